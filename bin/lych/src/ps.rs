//! `lych ps`: what is left over, whose it was, and one next command.

pub(crate) mod words;

use std::{cmp::Reverse, collections::HashMap};

use clap::Args;
use model::{Exit, Explain, Home, Known};
use verdict::{Confidence, EndState, Extent, Finding, Report, Verdict, command_text};

use crate::{
    survey::{Closer, Survey},
    ui::{self, Tint},
};
use words::{WIDTH, age, cut, memory, verdict_words, wrap};

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Tell of every process, also of those that nobody configured.
    #[arg(long)]
    all: bool,
    /// End with 3 if something is left over, with 1 if that could not be told.
    #[arg(long)]
    exit_code: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Looks, judges and tells.
///
/// # Errors
/// The processes cannot be listed.
pub(crate) fn run(home: &Home, args: &PsArgs) -> Result<Exit, Explain> {
    let (closer, extent) = if args.all {
        (Closer::All, Extent::Everything)
    } else {
        (Closer::Candidates, Extent::Servers)
    };
    let report = Survey::take(home, closer, extent)?.report;
    if args.json {
        ui::json(&report)?;
    } else {
        ui::page(&page(&report, args.all, sys::process::own_uid()), tint)?;
    }
    Ok(if args.exit_code {
        exit(&report)
    } else {
        Exit::Done
    })
}

/// Not being able to tell is no "nothing left over".
fn exit(report: &Report) -> Exit {
    let blind = report
        .unreadable
        .iter()
        .any(|gap| gap.pid.is_none() && gap.what == "unix sockets");
    if report.sums.orphaned > 0 {
        Exit::Negative
    } else if report.sums.unknown > 0 || blind {
        Exit::Failed
    } else {
        Exit::Done
    }
}

/// Returns the whole page.
pub(crate) fn page(report: &Report, all: bool, uid: u32) -> String {
    let mut lines = sums(report);
    for section in sections(report) {
        let findings: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|one| section == section_of(one))
            .collect();
        if section.verdict.is_in_use() && !all {
            continue;
        }
        lines.push(String::new());
        lines.extend(wrap(&section.head(), 0));
        for group in groups(&findings) {
            lines.extend(tell(&group));
        }
    }
    if !all {
        lines.extend(in_use(report));
    }
    lines.push(String::new());
    lines.extend(next(report, uid));
    lines.join("\n") + "\n"
}

fn sums(report: &Report) -> Vec<String> {
    let sums = &report.sums;
    let mut parts = vec![
        format!("{} processes", sums.processes),
        format!("{} in use", sums.live),
        format!("{} left over", sums.orphaned),
    ];
    if sums.orphaned > 0 {
        parts.push(memory(sums.orphaned_rss_bytes));
    }
    if sums.suspected > 0 {
        parts.push(format!("{} suspect", sums.suspected));
    }
    if sums.unknown > 0 {
        parts.push(format!("{} unknown", sums.unknown));
    }
    if sums.not_readable > 0 {
        parts.push(format!("{} not readable", sums.not_readable));
    }
    wrap(&parts.join(" · "), 0)
}

/// What stands out of a page: its heads, by what is told below them, and what to do next.
pub(crate) fn tint(line: &str) -> Option<Tint> {
    let first = line.split([':', ',', ' ']).next()?;
    match first {
        "RUN" | "LEFT" | "LEFT-OVER" | "LET" => Some(Tint::Alarm),
        "SUSPECT" | "NOT" | "ENDED" | "ANOTHER" => Some(Tint::Doubt),
        "In" | "IN" | "SHARED" | "MANAGED" | "Nothing" => Some(Tint::Fine),
        "Next" => Some(Tint::Strong),
        _ => None,
    }
}

/// What is told under one head, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Section {
    /// Processes that nobody configured come last.
    unjudged: bool,
    verdict: Verdict,
    confidence: Reverse<Confidence>,
}

impl Section {
    pub(crate) fn head(self) -> String {
        if self.unjudged {
            return "NOT JUDGED: no record and no configuration names them".to_owned();
        }
        format!(
            "{} ({})",
            verdict_words(self.verdict),
            self.confidence.0.word()
        )
    }
}

pub(crate) fn section_of(finding: &Finding) -> Section {
    let named = finding.server.is_some() || finding.session.is_some();
    Section {
        unjudged: finding.verdict == Verdict::Unknown && !named,
        verdict: finding.verdict,
        confidence: Reverse(finding.confidence),
    }
}

fn sections(report: &Report) -> Vec<Section> {
    let mut found: Vec<Section> = report.findings.iter().map(section_of).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Findings that a person need not tell apart: same server and command, same authority, same add-ons.
fn groups<'a>(findings: &[&'a Finding]) -> Vec<Vec<&'a Finding>> {
    let key = |finding: &Finding| {
        (
            finding.session,
            finding
                .server
                .as_ref()
                .map(|one| (one.name.clone(), one.client)),
            command_text(&finding.root),
            finding.authority.level,
            finding.also.clone(),
        )
    };
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let at = *places.entry(key(finding)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn tell(group: &[&Finding]) -> Vec<String> {
    let Some(first) = group.first() else {
        return Vec::new();
    };
    let bytes: u64 = group.iter().map(|one| rss(one)).sum();
    let ages = group.iter().map(|one| one.root.elapsed_ms);
    let (youngest, oldest) = (ages.clone().min().unwrap_or(0), ages.max().unwrap_or(0));
    let since = if age(youngest) == age(oldest) {
        age(oldest)
    } else {
        format!("{}-{}", age(youngest), age(oldest))
    };
    let name = match &first.server {
        Some(server) if server.client == clients::Client::Unnamed => server.name.to_string(),
        Some(server) => format!("{} ({})", server.name, server.client),
        None => command_text(&first.root).to_string(),
    };
    let who = match group.len() {
        1 => format!("pid {}", first.root.pid),
        many => format!("{many} ×"),
    };
    let also: Vec<&str> = first.also.iter().copied().map(words::also_word).collect();
    let mut head = format!("  {who:<11} {since:>6} {:>7}  {name}", memory(bytes));
    if !also.is_empty() {
        // Before the name, which may be long and is cut.
        head = format!(
            "  {who:<11} {since:>6} {:>7}  {}  {name}",
            memory(bytes),
            also.join(" ")
        );
    }
    let mut lines = vec![cut(&head, WIDTH)];
    if group.len() > 1 {
        let pids: Vec<String> = group.iter().map(|one| one.root.pid.to_string()).collect();
        lines.push(cut(&format!("      pids {}", pids.join(" ")), WIDTH));
    }
    if first.server.is_some() {
        lines.push(cut(&format!("      {}", command_text(&first.root)), WIDTH));
    }
    lines.extend(held_by(first));
    lines.extend(owner(first));
    lines.extend(authority(first));
    lines
}

fn rss(finding: &Finding) -> u64 {
    let members: u64 = finding.members.iter().map(|member| member.rss_bytes).sum();
    finding.root.rss_bytes + members
}

/// Whoever keeps an orphan's wire open did not ask for it, but a person needs to know.
fn held_by(finding: &Finding) -> Option<String> {
    let end = &finding.transport.stdin;
    let first = end
        .holders
        .first()
        .filter(|_| end.state == EndState::HeldOpen)?;
    let more = match end.holders.len() {
        1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    Some(format!(
        "      held open by pid {} fd {}{more}",
        first.pid, first.fd
    ))
}

fn owner(finding: &Finding) -> Vec<String> {
    let run = finding.session.map(|session| format!("run {session}"));
    let owner = finding.owner.as_ref().map(|owner| {
        let command: Vec<String> = owner
            .command
            .value()
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        let state = match (owner.alive, &owner.stuck_since) {
            (false, _) => "is dead".to_owned(),
            (true, Some(Known::Yes(since))) => {
                let observed = finding.root.observed_at.millis();
                let stuck = observed.saturating_sub(since.millis());
                format!("is stuck for {}", age(stuck))
            }
            (true, Some(Known::Unknown { .. })) => "is stuck".to_owned(),
            (true, None) => "lives".to_owned(),
        };
        format!("owner pid {} {state}: {}", owner.pid, command.join(" "))
    });
    let text: Vec<String> = run.into_iter().chain(owner).collect();
    if text.is_empty() {
        return Vec::new();
    }
    vec![cut(&format!("      {}", text.join(", ")), WIDTH)]
}

/// What it could do, or, of one that has ended, who has to collect it.
fn authority(finding: &Finding) -> Vec<String> {
    if finding.verdict.is_in_use() || section_of(finding).unjudged {
        return Vec::new();
    }
    if finding.verdict == Verdict::Zombie {
        let why = finding
            .evidence
            .first()
            .map(|one| format!("      {}", one.what));
        return why.map(|why| cut(&why, WIDTH)).into_iter().collect();
    }
    wrap(&words::authority_words(&finding.authority), 6)
}

/// One line for what is as it should be.
fn in_use(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.verdict.is_in_use())
        .filter_map(|finding| finding.server.as_ref())
        .map(|server| server.name.to_string())
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    names.sort_unstable();
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in names {
        match counted.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => counted.push((name, 1)),
        }
    }
    let text: Vec<String> = counted
        .into_iter()
        .map(|(name, count)| match count {
            1 => name,
            many => format!("{name} ×{many}"),
        })
        .collect();
    let line = format!("In use: {}", text.join(", "));
    vec![String::new(), cut(&line, WIDTH)]
}

/// What was not seen, and one next command.
fn next(report: &Report, uid: u32) -> Vec<String> {
    let find = |test: &dyn Fn(&Finding) -> bool| report.findings.iter().find(|one| test(one));
    let orphan = find(&|one| one.verdict.is_orphan());
    let doubtful = find(&|one| {
        one.verdict == Verdict::LogicalOrphanSuspect
            || one.verdict == Verdict::Unknown && one.server.is_some()
    });
    let mut lines = Vec::new();
    if orphan.is_none() && doubtful.is_none() {
        lines.extend(wrap(nothing(report), 0));
    }
    let proven = find(&|one| one.verdict.is_orphan() && one.confidence == Confidence::Proven);
    let logical = find(&|one| one.verdict == Verdict::LogicalOrphan);
    if let Some(finding) = logical {
        lines.push(format!("Next: lych contain {} --dry-run", finding.id));
    } else if proven.is_some() {
        lines.push("Next: lych contain --orphans --dry-run".to_owned());
    } else if let Some(finding) = orphan.or(doubtful) {
        lines.push(format!("Next: lych inspect {}", finding.root.pid));
    } else if report.sums.not_readable > 0 && uid != 0 {
        lines.push("Next: sudo lych ps, to see other users' processes too".to_owned());
    }
    lines
}

const fn nothing(report: &Report) -> &'static str {
    if report.complete {
        "Nothing that is left over was found."
    } else {
        "Nothing that is left over was found among what could be read."
    }
}

#[cfg(test)]
mod tests;
