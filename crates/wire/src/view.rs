//! What the daemon shows of runs, calls and itself; the JSON that scripts read.

use model::{
    CallId, CallState, Foreign, Known, LostBasis, Presence, RequestKey, SessionId, SessionState,
    Target, Wall,
};
use serde::{Deserialize, Serialize};

/// A run, as `sessions list` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionView {
    /// Which run.
    pub id: SessionId,
    /// Its state.
    pub state: SessionState,
    /// The process that holds its wire.
    #[serde(default)]
    pub client: Option<Known<serde_json::Value>>,
    /// Shim → … → client.
    #[serde(default)]
    pub chain: Option<Known<serde_json::Value>>,
    /// When it began.
    pub opened_at: Wall,
    /// The place of its first record.
    #[serde(default)]
    pub seq: Option<u64>,
    /// That its client was lost.
    #[serde(default)]
    pub lost: Option<Known<LostView>>,
    /// When its authority was taken away.
    #[serde(default)]
    pub revoked_at: Option<Wall>,
    /// The record of that.
    #[serde(default)]
    pub revoked_seq: Option<u64>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<Wall>,
}

/// That a client was lost, and on which fact that rests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LostView {
    /// The fact.
    pub basis: LostBasis,
    /// Not before.
    pub not_before: Wall,
    /// Not after.
    pub not_after: Wall,
}

/// A call, as `activity list` and `reconcile list` show it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallView {
    /// Which call.
    pub id: CallId,
    /// Its run.
    pub session_id: Option<SessionId>,
    /// Its state.
    pub state: CallState,
    /// What it acts on.
    pub target: Known<Target>,
    /// The id it carries to the remote side.
    pub key: Option<Known<RequestKey>>,
    /// When it was asked for.
    pub attempted_at: Wall,
    /// The place of its attempt.
    #[serde(default)]
    pub seq: Option<u64>,
    /// When its bytes could leave.
    #[serde(default)]
    pub cleared_at: Option<Wall>,
    /// When its outcome was recorded.
    #[serde(default)]
    pub settled_at: Option<Wall>,
    /// The place of its outcome.
    #[serde(default)]
    pub settled_seq: Option<u64>,
    /// The answer's status.
    #[serde(default)]
    pub status: Option<Known<u16>>,
    /// The remote side's own id.
    #[serde(default)]
    pub remote_id: Option<Known<Foreign>>,
    /// Why it was refused, withdrawn or is unresolved.
    #[serde(default)]
    pub why: Option<Known<String>>,
    /// Account or endpoint class.
    #[serde(default)]
    pub destination: Option<Known<Foreign>>,
    /// Whether it could change anything outside.
    #[serde(default)]
    pub is_write: Option<Known<bool>>,
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
    /// How presence is established for acts that widen authority.
    pub presence: Presence,
    /// Which log it writes.
    pub log_id: String,
    /// The newest record on disk.
    pub last_seq: u64,
    /// Why nothing can be recorded, if so.
    pub log_fault: Option<String>,
    /// Runs in memory, by state.
    pub runs: usize,
    /// Calls whose outcome is not known.
    pub unresolved: usize,
    /// Whether the configuration draft differs from the applied policy.
    pub draft_differs: Known<bool>,
}
