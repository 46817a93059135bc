//! The last step: the outcome, the rows, what is left to do, and what the log's verifier says.

use model::{Exit, Known};
use serde::{Deserialize, Serialize};

use crate::{
    case::Case,
    confirm::Confirmation,
    desk::Desk,
    error::IncidentError,
    folder::{EvidenceFile, digest, to_json},
    follow_up::{FollowUp, required},
    reconcile::Reconciled,
    revoke::Revoke,
    row::{Row, rows},
    step::Body,
};

/// The state of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The daemon opened it when a client was lost; nobody has looked yet.
    Draft,
    /// It is open.
    Open,
    /// A refusal was seen, and both sides have ended.
    Contained,
    /// The processes have ended, and something else is missing.
    Partial,
    /// Somebody started a process again.
    Respawned,
    /// A process is still there.
    Survived,
    /// It was closed.
    Closed,
}

impl State {
    /// Returns the word that commands and JSON use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Open => "open",
            Self::Contained => "contained",
            Self::Partial => "partial",
            Self::Respawned => "respawned",
            Self::Survived => "survived",
            Self::Closed => "closed",
        }
    }

    /// Returns the exit code of a command that brought an incident here.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Partial | Self::Respawned | Self::Survived => Exit::Negative,
            Self::Draft | Self::Open | Self::Contained | Self::Closed => Exit::Done,
        }
    }
}

/// The outcome of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How it ended.
    pub state: State,
    /// What is missing for `contained`.
    pub missing: Vec<String>,
    /// What is to be done.
    pub follow_up: Vec<FollowUp>,
    /// What `audit verify` said, as JSON; the exact output lies beside the step.
    pub verify: Known<serde_json::Value>,
    /// One row per process.
    pub rows: Vec<Row>,
}

/// An incident with its record.
#[derive(Debug)]
pub struct Recorded {
    pub(crate) case: Case,
    pub(crate) state: State,
}

impl Reconciled {
    /// Writes the record.
    ///
    /// # Errors
    /// The file system refused.
    pub fn record(mut self, desk: &mut Desk<'_>) -> Result<Recorded, IncidentError> {
        let (verify, evidence) = self.verify(desk)?;
        let (state, missing) = self.judge();
        let follow_up = required(&self);
        let record = Record {
            state,
            missing,
            rows: rows(&self.case, &follow_up),
            follow_up,
            verify,
        };
        self.case
            .append(desk, evidence, Body::Record(Box::new(record)))?;
        Ok(Recorded {
            case: self.case,
            state,
        })
    }

    fn verify(
        &self,
        desk: &mut Desk<'_>,
    ) -> Result<(Known<serde_json::Value>, Vec<EvidenceFile>), IncidentError> {
        match desk.authority.verify() {
            Ok(verification) => {
                let files = vec![
                    self.case
                        .keep("verify.json", &to_json(&verification.json)?)?,
                    self.case.keep("verify.txt", verification.text.as_bytes())?,
                ];
                Ok((Known::Yes(verification.json), files))
            }
            Err(error) => Ok((Known::unknown(error.to_string()), Vec::new())),
        }
    }

    /// Contained is what has nothing missing; every other state says what is.
    fn judge(&self) -> (State, Vec<String>) {
        let mut missing = Vec::new();
        match &self.confirm {
            Confirmation::Refused { .. } => {}
            Confirmation::NoPathOfOurs { .. } => missing.push(
                "the processes use no path of ours, so no refusal can show that they cannot act"
                    .to_owned(),
            ),
            Confirmation::NotObserved { why } => {
                missing.push(format!("no refused call is on record: {why}"));
            }
        }
        if let Revoke::Revoked { revocation, .. } = &self.revoke
            && revocation.seq.is_none()
        {
            missing.push("the revocation is not recorded".to_owned());
        }
        self.judge_sides(&mut missing);
        let state = if !self.body.left.is_empty() {
            State::Survived
        } else if self
            .body
            .respawned
            .value()
            .is_some_and(|all| !all.is_empty())
        {
            State::Respawned
        } else if missing.is_empty() {
            State::Contained
        } else {
            State::Partial
        };
        (state, missing)
    }

    fn judge_sides(&self, missing: &mut Vec<String>) {
        let body = &self.body;
        for process in &body.left {
            missing.push(format!("process {} is still there", process.pid));
        }
        missing.extend(body.unclear.iter().cloned());
        match &body.respawned {
            Known::Yes(all) => missing.extend(all.iter().map(|respawn| {
                let (by, now) = (respawn.by.pid, respawn.now.id.pid);
                format!("process {by} started it again as process {now}")
            })),
            Known::Unknown { unknown } => {
                missing.push(format!(
                    "whether anything came back is not known: {unknown}"
                ));
            }
        }
        match &body.remote_ended {
            Known::Yes(_) => missing.extend(
                body.open
                    .iter()
                    .map(|call| format!("the outcome of call {call} is not known")),
            ),
            Known::Unknown { unknown } => missing.push(unknown.clone()),
        }
    }
}

impl Recorded {
    /// Returns how it ended.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the incident as its folder holds it.
    #[must_use]
    pub const fn case(&self) -> &Case {
        &self.case
    }
}

/// More than `audit verify` ever says.
const LONGEST_TEXT: u64 = 64 << 20;

impl Case {
    /// Returns the exact output of `audit verify` that belongs to the newest record; none if there was none,
    /// or if the file is not the one that the record names.
    #[must_use]
    pub fn verify_text(&self) -> Option<String> {
        let step = self
            .steps()
            .rev()
            .find(|step| step.body.record().is_some())?;
        let named = |file: &&EvidenceFile| file.file.ends_with("-verify.txt");
        let file = step.evidence.iter().find(named)?;
        let bytes = sys::regular::read(&self.folder().join(&file.file), LONGEST_TEXT).ok()?;
        (digest(&bytes) == file.sha256).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the newest record.
    #[must_use]
    pub fn latest_record(&self) -> Option<&Record> {
        self.newest(Body::record)
    }
}
