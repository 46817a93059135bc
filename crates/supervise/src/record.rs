//! What was done to a process and what came of it; stored with the incident and read for ever.

use std::io;

use model::{Known, ProcessId, ProcessRef, Wall};
use serde::{Deserialize, Serialize};
use sys::process::ExitStatus;

/// What a killed process is recorded as.
pub const FORCED: &str = "forced containment, cleanup possibly incomplete";

/// Everything that was done to one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRecord {
    /// Which process.
    pub process: ProcessRef,
    /// Its parent when it was looked at before the first signal.
    pub parent: Option<ProcessId>,
    /// How it came to be ended.
    pub origin: Origin,
    /// The signals, in order.
    pub signals: Vec<Sent>,
    /// What came of it.
    pub end: End,
    /// Set if SIGKILL was used.
    pub forced: Option<Forced>,
}

impl EndRecord {
    /// Tells whether nothing of it is left that could act.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self.end, End::Gone { .. })
    }
}

/// How a process came to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It was in the plan.
    Planned,
    /// A process of the plan started it while the plan was carried out.
    NewChild,
}

/// The two signals that are ever sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Asks it to end.
    #[serde(rename = "SIGTERM")]
    Term,
    /// Ends it.
    #[serde(rename = "SIGKILL")]
    Kill,
}

impl Signal {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Term => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}

/// One signal and whether it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Which.
    pub signal: Signal,
    /// When.
    pub at: Wall,
    /// Whether the kernel took it.
    pub delivery: Delivery,
}

/// Whether the kernel took a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "delivery", rename_all = "snake_case")]
pub enum Delivery {
    /// It did.
    Taken,
    /// The process had ended; whoever has its number now got nothing.
    AlreadyGone,
    /// It did not, or the process is not what the evidence describes any more and nothing was sent.
    Refused {
        /// The error number, if it was the kernel that refused.
        errno: Option<i32>,
        /// The reason.
        why: String,
    },
}

impl Delivery {
    pub(crate) fn refused(error: &io::Error) -> Self {
        Self::Refused {
            errno: error.raw_os_error(),
            why: error.to_string(),
        }
    }
}

/// What came of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum End {
    /// It has ended; a zombie that nobody collects counts, for it cannot act.
    Gone {
        /// When that was seen.
        at: Wall,
        /// With which result, if the kernel tells.
        how: Known<HowEnded>,
    },
    /// It is still there.
    Remains {
        /// When that was seen.
        at: Wall,
        /// Its state letter, as ps(1) shows it.
        stat: Option<char>,
        /// Why.
        why: Remains,
    },
    /// Whether it has ended could not be found out.
    Unclear {
        /// Why not.
        why: String,
    },
}

/// How a process ended (wait(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum HowEnded {
    /// By itself.
    Exit {
        /// With this code.
        code: i32,
    },
    /// By a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether a core file was written.
        core_dumped: bool,
    },
}

impl From<ExitStatus> for HowEnded {
    fn from(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Exited { code } => Self::Exit { code },
            ExitStatus::Signaled {
                signal,
                core_dumped,
            } => Self::Signal {
                signal,
                core_dumped,
            },
        }
    }
}

/// Why a process is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Remains {
    /// No signal reached it.
    NotSignalled,
    /// It is stopped; the signal waits until it goes on.
    Stopped,
    /// It waits in the kernel and cannot be interrupted.
    Uninterruptible,
    /// It ignores SIGTERM.
    IgnoresTerm,
    /// It blocks SIGTERM; the signal waits.
    BlocksTerm,
    /// It has taken the signal and waits for children that live.
    HeldByChild {
        /// Which.
        children: Vec<ProcessId>,
    },
    /// It has taken the signal and has not ended yet.
    ShuttingDown,
    /// The kernel took the signal and nothing else is known; also the first process of a container.
    NotKnown {
        /// What could not be read or does not fit.
        why: String,
    },
}

/// That a process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forced {
    /// The operator's reason.
    pub reason: String,
    /// What that means, in words.
    pub note: String,
}

impl Forced {
    pub(crate) fn because(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            note: FORCED.to_owned(),
        }
    }
}
