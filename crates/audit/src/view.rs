//! Runs and calls as operators and scripts read them (`lych.sessions/v1`, `lych.calls/v1`).
//!
//! What stands in clear headers is always known. What is sealed is known if its key is: of the present daemon run from
//! memory, of older ones through an unlocked vault; otherwise it says why not.

use model::{
    CallId, CallState, ChainLink, ConnectionId, Digest, Foreign, Known, Lost, Operator, RequestKey,
    Seq, SessionId, SessionState, Target, Wall,
};
use serde::{Deserialize, Serialize};

/// Which calls are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallFilter {
    /// Of this run only.
    pub session: Option<SessionId>,
    /// This call only.
    pub call: Option<CallId>,
    /// Attempted at or after this time.
    pub since: Option<Wall>,
    /// In one of these states; empty for any.
    pub states: Vec<CallState>,
}

impl CallFilter {
    /// Returns the filter for calls whose repeat could do the same thing twice.
    #[must_use]
    pub fn open() -> Self {
        Self {
            states: vec![
                CallState::Cleared,
                CallState::Outliving,
                CallState::Waiting,
                CallState::Unresolved,
            ],
            ..Self::default()
        }
    }
}

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
    /// What an operator found out; null if nobody did.
    pub reconciled: Known<Option<Reconciliation>>,
    /// Digest of the arguments, to find a repeat; not for JSON, since short arguments can be guessed from it.
    #[serde(skip, default = "not_shown")]
    pub arguments: Known<Digest>,
}

fn not_shown() -> Known<Digest> {
    Known::unknown("not part of this form")
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
    /// What the client calls itself; not to be believed.
    pub client: Known<Option<Foreign>>,
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
