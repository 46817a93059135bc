//! What the daemon shows of runs, calls and itself; the JSON that scripts read (`lych.sessions/v1`,
//! `lych.calls/v1`, `lych.status/v1`).
//!
//! What stands in the log's clear headers is always known. What is sealed is known if its key is, and
//! otherwise says why not.

use model::{
    CallId, CallState, ChainLink, ConnectionId, Digest, Foreign, Known, Lost, Operator, Presence,
    ProcessRef, RequestKey, Seq, SessionId, SessionState, Target, Wall,
};
use serde::{Deserialize, Serialize};

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Its id.
    pub id: CallId,
    /// Its run; null if its records name none.
    pub session_id: Option<SessionId>,
    /// What it has come to.
    pub state: CallState,
    /// What it acts on.
    pub target: Known<Target>,
    /// The id it carries to the remote side; null for a read.
    pub key: Known<Option<RequestKey>>,
    /// When its attempt, or its refusal without one, was put on record.
    pub attempted_at: Wall,
    /// The number of that record.
    pub seq: Seq,
    /// From when on its bytes may have left.
    pub cleared_at: Option<Wall>,
    /// When its newest outcome was put on record.
    pub settled_at: Option<Wall>,
    /// The number of that record.
    pub settled_seq: Option<Seq>,
    /// The answer's status.
    pub status: Known<Option<u16>>,
    /// Whether the agent could be told.
    pub delivered: Known<Option<bool>>,
    /// The remote side's own id for what was done or goes on.
    pub remote_id: Known<Option<Foreign>>,
    /// The code of the refusal, or why the outcome is what it is.
    pub why: Known<Option<String>>,
    /// Over which connection it came.
    pub connection: Known<ConnectionId>,
    /// Whether it can change anything outside.
    pub is_write: Known<bool>,
    /// The account or endpoint class.
    pub destination: Known<Foreign>,
    /// Whether we asked ourselves, to see the gate refuse.
    #[serde(default = "not_said")]
    pub probe: Known<bool>,
    /// What an operator found out; null if nobody did.
    pub reconciled: Known<Option<Reconciliation>>,
    /// Digest of the arguments, to find a repeat; not for JSON, since short arguments can be guessed from it.
    #[serde(skip, default = "not_shown")]
    pub arguments: Known<Digest>,
}

fn not_shown() -> Known<Digest> {
    Known::unknown("not part of this form")
}

fn not_kept() -> Known<LogKeep> {
    Known::unknown("the daemon does not say")
}

fn not_said() -> Known<bool> {
    Known::unknown("the daemon does not say")
}

/// What an operator found out about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciliation {
    /// Whether the effect is confirmed there.
    pub happened: bool,
    /// What shows it.
    pub evidence: String,
    /// Who says so.
    pub by: Operator,
    /// When.
    pub at: Wall,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// What it has come to.
    pub state: SessionState,
    /// The process that held its wire; null if it could not be told apart.
    pub client: Known<Option<ProcessRef>>,
    /// Shim → … → client, as seen at admission.
    pub chain: Known<Vec<ChainLink>>,
    /// Whether the chain and the holder were established.
    pub ownership_complete: Known<bool>,
    /// Why it was admitted.
    pub admission: Known<String>,
    /// When it was opened.
    pub opened_at: Known<Wall>,
    /// The number of the record that opened it.
    pub seq: Option<Seq>,
    /// What was found out about its client, newest last.
    pub lost: Vec<LostView>,
    /// When its authority was taken away; null if it was not.
    pub revoked_at: Option<Wall>,
    /// The number of the record that did.
    pub revoked_seq: Option<Seq>,
    /// Who did; null if the daemon did or nobody.
    pub revoked_by: Known<Option<Operator>>,
    /// Why.
    pub revoked_reason: Known<Option<Foreign>>,
    /// When it ended in the ordinary way.
    pub ended_at: Option<Wall>,
    /// Its connections, the oldest first.
    pub connections: Known<Vec<ConnectionId>>,
}

/// What was found out about a run's client, and when that was put on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostView {
    /// When it was put on record.
    pub recorded_at: Wall,
    /// On what it rests, and between which times it happened.
    pub lost: Known<Lost>,
}

/// What the vault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VaultState {
    /// There is one, and it is shut.
    Locked,
    /// There is one, and it is open.
    Unlocked,
    /// There is none.
    None,
}

/// How much of the log is kept without a word from an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogKeep {
    /// What is older is given up.
    pub days: u64,
    /// What makes the log longer is given up.
    pub bytes: u64,
}

/// What the daemon says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatusView {
    /// Its process number.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: Wall,
    /// The vault.
    pub vault: VaultState,
    /// How presence is established for acts that widen authority; it is sealed, so unknown while the vault
    /// is shut.
    pub presence: Known<Presence>,
    /// Which log it writes.
    pub log_id: String,
    /// The newest record on disk.
    pub last_seq: u64,
    /// Why nothing can be recorded, or no attempts, if so.
    pub log_fault: Option<String>,
    /// Whether nothing at all can be recorded until the daemon is started again.
    pub log_poisoned: bool,
    /// Why the newest `HEAD` could not be written, if so.
    pub log_head_behind: Option<String>,
    /// How much of it is kept; sealed, so unknown while the vault is shut.
    #[serde(default = "not_kept")]
    pub log_keep: Known<LogKeep>,
    /// Runs in memory, by state.
    pub runs: usize,
    /// Calls whose outcome is not known.
    pub unresolved: usize,
    /// Whether the configuration draft differs from the applied policy.
    pub draft_differs: Known<bool>,
}
