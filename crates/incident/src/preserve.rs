//! The first step: keep what is there before anything is done to it.

use model::{Foreign, Home, ProcessId, ProcessRef, SessionId, Wall};
use serde::{Deserialize, Serialize};

use crate::{
    case::Case, desk::Desk, error::IncidentError, eyes::Look, step::Body, subject::Subject,
};

/// What an incident is opened with: the look in which its processes were found, and the findings.
#[derive(Debug)]
pub struct Selection {
    /// The processes.
    pub subjects: Vec<Subject>,
    /// The look.
    pub look: Look,
    /// All that it saw as JSON, command lines redacted and environment by name only: the evidence.
    pub snapshot: Vec<u8>,
    /// The findings as JSON, as `ps --json` shows them: the evidence for every verdict.
    pub findings: Vec<u8>,
    /// The run, if the operator named one.
    pub session: Option<SessionId>,
    /// Why it is opened, in the operator's words.
    pub reason: Option<String>,
    /// What opens it.
    pub opening: Opening,
}

/// What opened an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// An operator, to contain it.
    Contain,
    /// An operator, to look into it.
    Open,
    /// The daemon, because a client was lost.
    Draft,
}

/// What the first step kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preserve {
    /// The processes.
    pub subjects: Vec<Subject>,
    /// Children of theirs that no finding counts among them. They are left alone.
    pub left_out: Vec<ProcessRef>,
    /// When all processes were looked at.
    pub observed_at: Wall,
    /// Whether nothing was unreadable then.
    pub complete: bool,
    /// How many things could not be read.
    pub unreadable: u64,
    /// The run that the operator named.
    pub session: Option<SessionId>,
    /// Why it was opened.
    pub reason: Option<Foreign>,
    /// What opened it.
    pub opening: Opening,
    /// What became of evidence that is private.
    pub raw: RawEvidence,
}

/// What became of evidence that may hold secrets: whole command lines and environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "raw", rename_all = "snake_case")]
pub enum RawEvidence {
    /// Only its redacted form was kept.
    NotKept {
        /// Why.
        why: String,
    },
}

/// An incident whose evidence is durable.
#[derive(Debug)]
pub struct Preserved {
    pub(crate) case: Case,
    pub(crate) body: Preserve,
}

/// Opens an incident and keeps the evidence.
///
/// # Errors
/// No process and no run was named, or the file system refused; nothing was done to any process.
pub fn preserve(
    home: &Home,
    selection: Selection,
    desk: &mut Desk<'_>,
) -> Result<Preserved, IncidentError> {
    // A run can be contained of which no process is left: its authority and its calls still are.
    if selection.subjects.is_empty() && selection.session.is_none() {
        return Err(IncidentError::NoSubject);
    }
    let mut case = Case::create(home)?;
    let evidence = vec![
        case.keep("snapshot.json", &selection.snapshot)?,
        case.keep("findings.json", &selection.findings)?,
    ];
    let body = Preserve {
        left_out: left_out(&selection.subjects, &selection.look),
        subjects: selection.subjects,
        observed_at: selection.look.observed_at,
        complete: selection.look.complete,
        unreadable: u64::try_from(selection.look.unreadable).unwrap_or(u64::MAX),
        session: selection.session,
        reason: selection.reason.map(Foreign::new),
        opening: selection.opening,
        raw: RawEvidence::NotKept {
            why: "raw command lines and environments are kept only where the daemon can seal them"
                .to_owned(),
        },
    };
    case.append(desk, evidence, Body::Preserve(body.clone()))?;
    Ok(Preserved { case, body })
}

/// Returns everything below the subjects that is none of them.
fn left_out(subjects: &[Subject], look: &Look) -> Vec<ProcessRef> {
    let mut above: Vec<&ProcessId> = subjects.iter().map(|one| &one.process.id).collect();
    let mut found: Vec<ProcessRef> = Vec::new();
    let mut next = 0;
    while let Some(parent) = above.get(next).copied() {
        next += 1;
        for sight in &look.processes {
            let id = &sight.process.id;
            let is_child = sight.parent.as_ref().is_some_and(|one| one.same(parent));
            if is_child && !above.iter().any(|known| known.same(id)) {
                above.push(id);
                found.push(sight.process.clone());
            }
        }
    }
    found
}

impl Preserved {
    /// Returns the incident as its folder holds it.
    #[must_use]
    pub const fn case(&self) -> &Case {
        &self.case
    }
}
