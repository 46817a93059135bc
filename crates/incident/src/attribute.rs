//! The second step: which run owned these processes, and what it did last.

use model::{Known, ProcessId, SessionId};
use serde::{Deserialize, Serialize};

use crate::{
    authority::{CallFact, RunFact},
    case::Case,
    desk::Desk,
    error::IncidentError,
    preserve::{Preserve, Preserved},
    step::Body,
    subject::Subject,
};

/// Whose the processes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// How each process was attributed.
    pub processes: Vec<Attribution>,
    /// The run that owned them; none if no record and no hint names one.
    pub session: Option<SessionId>,
    /// What is on record of that run.
    pub run: Known<Option<RunFact>>,
    /// Its calls before anything was done.
    pub calls: Known<Vec<CallFact>>,
}

/// How one process was attributed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// Which process.
    pub process: ProcessId,
    /// Its run.
    pub session: Option<SessionId>,
    /// On what that rests.
    pub source: Source,
}

/// On what an attribution rests, strongest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Source {
    /// The daemon's own record of the process.
    Record,
    /// The operator named the run.
    Operator,
    /// A launch record or the environment names it; nothing confirms that.
    Hint,
    /// Nothing names a run.
    Nothing,
    /// The records could not be asked, and no hint names a run.
    NotAsked {
        /// Why not.
        why: String,
    },
}

/// An incident whose owner is known, or known not to be known.
#[derive(Debug)]
pub struct Attributed {
    pub(crate) case: Case,
    pub(crate) preserve: Preserve,
    pub(crate) body: Attribute,
}

impl Preserved {
    /// Finds the run that owned the processes, and its calls.
    ///
    /// # Errors
    /// The processes belong to different runs, or the file system refused.
    pub fn attribute(mut self, desk: &mut Desk<'_>) -> Result<Attributed, IncidentError> {
        let named = self.body.session;
        let subjects = self.body.subjects.iter();
        let processes: Vec<Attribution> = subjects
            .map(|subject| attribution(subject, named, desk))
            .collect();
        let session = one_run(&processes)?.or(named);
        let (run, calls) = match session {
            Some(session) => (
                known(desk.authority.session(session)),
                known(desk.authority.calls(session)),
            ),
            None => match not_asked(&processes) {
                Some(why) => (Known::unknown(why), Known::unknown(why)),
                None => (Known::Yes(None), Known::Yes(Vec::new())),
            },
        };
        let body = Attribute {
            processes,
            session,
            run,
            calls,
        };
        self.case
            .append(desk, Vec::new(), Body::Attribute(Box::new(body.clone())))?;
        Ok(Attributed {
            case: self.case,
            preserve: self.body,
            body,
        })
    }
}

impl Attribute {
    /// Returns why no run is known to own these processes.
    pub(crate) fn why_nobody(&self) -> String {
        self.not_asked()
            .map_or_else(|| NOBODY.to_owned(), str::to_owned)
    }

    /// Returns why the records could not be asked, if a run may be missing for that reason.
    pub(crate) fn not_asked(&self) -> Option<&str> {
        not_asked(&self.processes)
    }
}

impl Attributed {
    /// Returns the incident as its folder holds it.
    #[must_use]
    pub const fn case(&self) -> &Case {
        &self.case
    }

    /// Returns the run that owned the processes.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        self.body.session
    }
}

const NOBODY: &str = "no record and no hint names a run";

fn attribution(subject: &Subject, named: Option<SessionId>, desk: &mut Desk<'_>) -> Attribution {
    let recorded = desk.authority.run_of(&subject.process.id);
    let (session, source) = match (&recorded, named, subject.session_hint) {
        (Ok(Some(session)), _, _) => (Some(*session), Source::Record),
        (_, Some(session), _) => (Some(session), Source::Operator),
        (_, None, Some(session)) => (Some(session), Source::Hint),
        (Ok(None), None, None) => (None, Source::Nothing),
        (Err(error), None, None) => {
            let why = error.to_string();
            (None, Source::NotAsked { why })
        }
    };
    Attribution {
        process: subject.process.id.clone(),
        session,
        source,
    }
}

fn not_asked(processes: &[Attribution]) -> Option<&str> {
    processes.iter().find_map(|one| match &one.source {
        Source::NotAsked { why } => Some(why.as_str()),
        Source::Record | Source::Operator | Source::Hint | Source::Nothing => None,
    })
}

/// Commands repeat, runs do not: processes of two runs are two incidents.
fn one_run(processes: &[Attribution]) -> Result<Option<SessionId>, IncidentError> {
    let mut found: Option<SessionId> = None;
    for session in processes.iter().filter_map(|process| process.session) {
        match found {
            Some(one) if one != session => {
                return Err(IncidentError::TwoRuns {
                    one,
                    other: session,
                });
            }
            _ => found = Some(session),
        }
    }
    Ok(found)
}

pub(crate) fn known<T>(answer: Result<T, crate::Unanswered>) -> Known<T> {
    match answer {
        Ok(value) => Known::Yes(value),
        Err(error) => Known::unknown(error.to_string()),
    }
}
