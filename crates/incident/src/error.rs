//! What can keep an incident from going on, and what to do about each.

use std::{io, path::PathBuf};

use model::{Exit, Explain, Fault, IncidentId, SessionId};

use crate::authority::Unanswered;

/// Why a step was not taken. Everything up to the step before it is durable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IncidentError {
    /// There is no such incident.
    #[error("there is no incident {0}")]
    NoSuch(IncidentId),
    /// Somebody else works on it.
    #[error("incident {0} is being worked on by another lych")]
    Busy(IncidentId),
    /// It is closed.
    #[error("incident {0} is closed")]
    Closed(IncidentId),
    /// Follow-up is open.
    #[error("incident {id} has {open} open follow-up")]
    OpenFollowUp {
        /// Which incident.
        id: IncidentId,
        /// How many.
        open: usize,
    },
    /// There is no such follow-up.
    #[error("incident {id} has no follow-up {follow_up}")]
    NoSuchFollowUp {
        /// Which incident.
        id: IncidentId,
        /// What was asked for.
        follow_up: String,
    },
    /// It has no record yet.
    #[error("incident {0} is not contained yet")]
    NotRecorded(IncidentId),
    /// No process and no run was named.
    #[error("an incident needs a process or a run")]
    NoSubject,
    /// The processes belong to different runs.
    #[error("the processes belong to the runs {one} and {other}")]
    TwoRuns {
        /// One of them.
        one: SessionId,
        /// Another.
        other: SessionId,
    },
    /// A file is not what the files after it, or its anchor, say.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// In what way.
        why: String,
    },
    /// The file system refused.
    #[error("cannot write or read {path}")]
    Storage {
        /// What.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The processes could not be looked at.
    #[error("the processes cannot be looked at")]
    Blind(#[source] io::Error),
    /// The daemon did not do what was asked.
    #[error("authority did not answer")]
    Unanswered(#[from] Unanswered),
    /// A value of ours has no JSON form.
    #[error("a step cannot be written as JSON")]
    Form(#[source] serde_json::Error),
}

impl IncidentError {
    pub(crate) fn storage(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Storage { path, source }
    }
}

impl From<IncidentError> for Explain {
    fn from(error: IncidentError) -> Self {
        let (exit, fault, next) = advice(&error);
        let mut explain = Self::new(exit, fault, error.to_string());
        if let Some(source) = std::error::Error::source(&error) {
            explain = explain.because(source);
        }
        match next {
            Some(next) => explain.next(next),
            None => explain,
        }
    }
}

fn advice(error: &IncidentError) -> (Exit, Fault, Option<String>) {
    use IncidentError as E;
    match error {
        E::NoSuch(_) => (
            Exit::Failed,
            Fault::Caller,
            Some("list them with `lych incident list`".to_owned()),
        ),
        E::Busy(_) => (
            Exit::Failed,
            Fault::Caller,
            Some("wait for the other one to end, then try again".to_owned()),
        ),
        E::Closed(id) => (
            Exit::Refused,
            Fault::Caller,
            Some(format!("read it with `lych incident show {id}`")),
        ),
        E::OpenFollowUp { id, .. } => (
            Exit::Refused,
            Fault::Caller,
            Some(format!(
                "do it and note it (`lych incident note {id} TEXT --done ID`), or say \
                 --accept-open --reason R"
            )),
        ),
        E::NoSuchFollowUp { id, .. } => (
            Exit::Usage,
            Fault::Caller,
            Some(format!("see them with `lych incident show {id}`")),
        ),
        E::NotRecorded(id) => (
            Exit::Refused,
            Fault::Caller,
            Some(format!("go on with `lych contain --incident {id}`")),
        ),
        E::NoSubject => (Exit::Usage, Fault::Caller, None),
        E::TwoRuns { .. } => (
            Exit::Usage,
            Fault::Caller,
            Some("contain them one run at a time: `lych contain --session ID`".to_owned()),
        ),
        E::Damaged { .. } => (
            Exit::Failed,
            Fault::Operator,
            Some("compare the folder with its anchors in the log".to_owned()),
        ),
        E::Storage { .. } | E::Blind(_) => (Exit::Failed, Fault::Operator, None),
        E::Unanswered(_) => (
            Exit::Unreachable,
            Fault::Operator,
            Some("see `lych status`; the incident goes on where it stopped".to_owned()),
        ),
        E::Form(_) => (Exit::Failed, Fault::Ours, None),
    }
}
