//! What the log is opened with, and what opening it brought to light.

use std::{path::PathBuf, sync::Arc};

use ledger::{SEGMENT_SIZE, TailRepaired};
use model::{CallId, CallState, Clock, EpochId, Seq, SessionId, SessionState, Wall};

use crate::KeyWrap;

/// What a log is opened with.
#[derive(Clone)]
pub struct Options {
    /// The log's folder; made if it is not there, mode 0700.
    pub dir: PathBuf,
    /// Tells the time of every record.
    pub clock: Arc<dyn Clock>,
    /// Wraps data keys.
    pub wrap: Arc<dyn KeyWrap>,
    /// What a log is made with if there is none; none to refuse instead.
    pub new_log: Option<NewLog>,
    /// How long segments are.
    pub sizes: Sizes,
}

/// What a new log is born with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLog {
    /// The bootstrap root's Ed25519 public key.
    pub bootstrap_root: [u8; 32],
    /// The age recipient of the public log key.
    pub recipient: String,
}

/// How long segments are, and how much of each is kept for what must always fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Length of a segment; at most that of the format.
    pub segment: u64,
    /// The end of a segment that takes no attempts: denials, revocations and outcomes still fit on a full disk.
    pub reserve: u64,
}

impl Sizes {
    /// Returns these sizes, but no segment longer than a reader accepts.
    pub(crate) fn bounded(self) -> Self {
        Self {
            segment: self.segment.min(SEGMENT_SIZE),
            ..self
        }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            segment: SEGMENT_SIZE,
            reserve: 1024 * 1024,
        }
    }
}

/// What opening the log brought to light.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the log was made just now.
    pub created: bool,
    /// The daemon run that began.
    pub epoch: EpochId,
    /// Whether the daemon run before closed the log in order; true for a new log.
    pub closed_in_order: bool,
    /// Bytes behind the last commit that were moved to quarantine.
    pub repairs: Vec<TailRepaired>,
    /// Calls whose repeat could do the same thing twice; those without outcome have just become `Unresolved`.
    pub open_calls: Vec<OpenCall>,
    /// Runs that had not come to an end.
    pub open_runs: Vec<OpenRun>,
    /// Runs whose authority was taken away, to be refused again.
    pub revoked_runs: Vec<SessionId>,
}

/// A call whose effect is not known, or that may still have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall {
    /// Which.
    pub call: CallId,
    /// Its run.
    pub session: Option<SessionId>,
    /// Its attempt.
    pub attempt: Seq,
    /// What it has come to.
    pub state: CallState,
}

/// A run that had not come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenRun {
    /// Which.
    pub session: SessionId,
    /// The record that opened it.
    pub seq: Option<Seq>,
    /// When.
    pub opened_at: Option<Wall>,
    /// Its state as the clear headers tell it.
    pub state: SessionState,
}
