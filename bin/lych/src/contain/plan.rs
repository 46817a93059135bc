//! What will be done, before it is.

use incident::{Ending, Subject};
use serde_json::{Value, json};

use super::choice::Group;
use crate::incident::{Sheet, command};

/// Returns the plan as a script reads it.
pub(super) fn json(groups: &[Group<'_>]) -> Value {
    let incidents: Vec<Value> = groups.iter().map(group_json).collect();
    json!({"schema": "lych.plan/v1", "incidents": incidents})
}

fn group_json(group: &Group<'_>) -> Value {
    let findings: Vec<&str> = group.findings.iter().map(|one| one.id.as_str()).collect();
    let processes: Vec<Value> = group.subjects.iter().map(subject_json).collect();
    json!({
        "session_id": group.session,
        "findings": findings,
        "revoke": group.session.is_some(),
        "processes": processes,
    })
}

fn subject_json(subject: &Subject) -> Value {
    json!({
        "pid": subject.process.id.pid,
        "command": subject.process.command,
        "verdict": subject.verdict,
        "confidence": subject.confidence,
    })
}

/// Returns the plan as a person reads it.
pub(super) fn text(groups: &[Group<'_>], ending: &Ending) -> String {
    let mut sheet = Sheet::default();
    let processes: usize = groups.iter().map(|group| group.subjects.len()).sum();
    let count = format!(
        "plan: {} of {}",
        amount(groups.len(), "incident"),
        amount(processes, "process")
    );
    sheet.line(0, 2, &count);
    for group in groups {
        sheet.gap();
        section(group, ending, &mut sheet);
    }
    sheet.into_text()
}

fn amount(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {noun}s"),
    }
}

fn section(group: &Group<'_>, ending: &Ending, sheet: &mut Sheet) {
    for finding in &group.findings {
        let (verdict, confidence) = (finding.verdict.word(), finding.confidence.word());
        sheet.field(&finding.id, &format!("{verdict}, {confidence}"));
        if let Some(evidence) = finding.evidence.first() {
            sheet.field("because", &evidence.what);
        }
    }
    match group.session {
        Some(session) => sheet.field(
            "revoke",
            &format!("run {session}, then wait for a refused call"),
        ),
        None => sheet.field("revoke", "nothing of ours: no run is known to own it"),
    }
    for subject in &group.subjects {
        let (pid, command) = (subject.process.id.pid, command(&subject.process.command));
        // Where an ended process stood is not known.
        let label = if subject.place.why().is_some() {
            "had ended"
        } else {
            "end"
        };
        sheet.field(label, &format!("{pid}  {command}"));
        for secret in &subject.reach.secrets {
            sheet.field("then rotate", secret.raw());
        }
    }
    if group.subjects.is_empty() {
        sheet.field("end", "no process of it is left");
    }
    let grace = ending.plan.grace.as_secs();
    match &ending.plan.force {
        Some(force) => sheet.field(
            "how",
            &format!(
                "SIGTERM, {grace} s, then SIGKILL (cleanup possibly incomplete): {}",
                force.reason()
            ),
        ),
        None => sheet.field("how", &format!("SIGTERM and {grace} s; nothing is killed")),
    }
}
