//! What this room asks of whoever holds authority, and the answers when nobody does.

use std::time::Duration;

use model::{
    CallId, CallState, Digest, Foreign, IncidentId, Known, Lost, Operator, ProcessId, ProcessRef,
    RequestKey, Scope, Seq, SessionId, SessionState, Target, Wall,
};
use serde::{Deserialize, Serialize};

/// The daemon, as an incident needs it.
pub trait Authority {
    /// Returns the run that the daemon's own records give this process to; none if no record names it.
    ///
    /// # Errors
    /// The question was not answered, so nothing is known.
    fn run_of(&mut self, process: &ProcessId) -> Result<Option<SessionId>, Unanswered>;

    /// Returns what is on record of a run; none if there is no such run.
    ///
    /// # Errors
    /// The question was not answered.
    fn session(&mut self, id: SessionId) -> Result<Option<RunFact>, Unanswered>;

    /// Returns every call of a run, in the order of the log.
    ///
    /// # Errors
    /// The question was not answered.
    fn calls(&mut self, session: SessionId) -> Result<Vec<CallFact>, Unanswered>;

    /// Takes authority away.
    ///
    /// # Errors
    /// It was not taken away, or nobody knows whether it was.
    fn revoke(&mut self, scope: &Scope, reason: &str) -> Result<Revocation, Unanswered>;

    /// Waits until a call of the run is refused after the record `after`, at most `at_most`; none if no such
    /// call came.
    ///
    /// # Errors
    /// The question was not answered.
    fn refusal_after(
        &mut self,
        session: SessionId,
        after: Seq,
        at_most: Duration,
    ) -> Result<Option<Refusal>, Unanswered>;

    /// Asks in the run's name without anything that could leave, and tells how that was answered.
    ///
    /// # Errors
    /// The question was not answered.
    fn probe(&mut self, session: SessionId) -> Result<Probed, Unanswered>;

    /// Records a step's digest in the log, and returns the record.
    ///
    /// # Errors
    /// It was not recorded; it can be later, marked late.
    fn anchor(
        &mut self,
        incident: IncidentId,
        step: &str,
        sha256: Digest,
        late: bool,
    ) -> Result<Seq, Unanswered>;

    /// Verifies the log and returns the exact output.
    ///
    /// # Errors
    /// There is no log, or it could not be read.
    fn verify(&mut self) -> Result<Verification, Unanswered>;
}

/// A question to the daemon that got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// There is no daemon.
    #[error("no daemon: {0}")]
    Absent(String),
    /// It answered that it failed, or the connection broke.
    #[error("{0}")]
    Failed(String),
}

/// What is on record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFact {
    /// Which run.
    pub session: SessionId,
    /// Its state when it was asked for.
    pub state: SessionState,
    /// The process that held its wire.
    pub client: Known<ProcessRef>,
    /// Whether only its shim said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_reported: bool,
    /// When it began.
    pub opened_at: Wall,
    /// That its client was lost, and on what that rests; none if it was not.
    pub lost: Known<Option<Lost>>,
    /// When its authority had been taken away before this incident.
    pub revoked_at: Option<Wall>,
}

/// One call of a run. Bodies of the log that cannot be opened (a locked vault) are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFact {
    /// Which call.
    pub id: CallId,
    /// Its state.
    pub state: CallState,
    /// The place of its attempt in the log.
    pub seq: Seq,
    /// When it was asked for.
    pub attempted_at: Wall,
    /// When its bytes could leave.
    pub cleared_at: Option<Wall>,
    /// When its outcome was recorded.
    pub settled_at: Option<Wall>,
    /// What it acts on.
    pub target: Known<Target>,
    /// Account or endpoint class.
    pub destination: Known<Foreign>,
    /// The id it carries to the remote side; none for a read.
    pub key: Option<Known<RequestKey>>,
    /// The answer's status; none without an answer.
    pub status: Option<Known<u16>>,
    /// The remote side's own id for what was done.
    pub remote_id: Option<Known<Foreign>>,
    /// Why it was refused, withdrawn or is unresolved.
    pub why: Option<Known<String>>,
    /// The record that refused it.
    pub denied_seq: Option<Seq>,
}

/// What a revocation answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// The record; none if it holds but could not be recorded.
    pub seq: Option<Seq>,
    /// When.
    pub at: Wall,
    /// Calls whose bytes may already have left.
    pub in_flight: Vec<CallId>,
    /// Who did it.
    pub by: Operator,
}

/// A call that was refused after the revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The record of the refusal.
    pub seq: Seq,
    /// Whose call it was.
    pub by: RefusedBy,
}

/// How the gate answered us in the run's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// It refused, because the run has no authority, in this record.
    Refused(Seq),
    /// It did not, or for another reason.
    Otherwise(String),
}

/// Whose refused call shows that the revocation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// The survivor asked by itself: the stronger proof.
    OwnAttempt,
    /// We asked over the survivor's own path: the weaker one.
    Probe,
}

/// The exact output of `audit verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// As JSON.
    pub json: serde_json::Value,
    /// As a person reads it.
    pub text: String,
}

/// Nobody holds authority: every question stays open, and says why.
#[derive(Debug, Clone)]
pub struct Absent {
    why: String,
}

impl Absent {
    /// Returns an authority that is not there.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }

    fn unanswered<T>(&self) -> Result<T, Unanswered> {
        Err(Unanswered::Absent(self.why.clone()))
    }
}

impl Authority for Absent {
    fn run_of(&mut self, _process: &ProcessId) -> Result<Option<SessionId>, Unanswered> {
        self.unanswered()
    }

    fn session(&mut self, _id: SessionId) -> Result<Option<RunFact>, Unanswered> {
        self.unanswered()
    }

    fn calls(&mut self, _session: SessionId) -> Result<Vec<CallFact>, Unanswered> {
        self.unanswered()
    }

    fn revoke(&mut self, _scope: &Scope, _reason: &str) -> Result<Revocation, Unanswered> {
        self.unanswered()
    }

    fn probe(&mut self, _session: SessionId) -> Result<Probed, Unanswered> {
        self.unanswered()
    }

    fn refusal_after(
        &mut self,
        _session: SessionId,
        _after: Seq,
        _at_most: Duration,
    ) -> Result<Option<Refusal>, Unanswered> {
        self.unanswered()
    }

    fn anchor(
        &mut self,
        _incident: IncidentId,
        _step: &str,
        _sha256: Digest,
        _late: bool,
    ) -> Result<Seq, Unanswered> {
        self.unanswered()
    }

    fn verify(&mut self) -> Result<Verification, Unanswered> {
        self.unanswered()
    }
}
