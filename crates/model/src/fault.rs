//! An error at the edge is three things and a number: what happened, why, what to do next, exit code.

use serde::{Deserialize, Serialize};

/// The exit codes, frozen: scripts depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Done, or clean.
    Done,
    /// Failed, or could not tell.
    Failed,
    /// The command line is wrong.
    Usage,
    /// It ran, and the verdict is negative.
    Negative,
    /// The vault is locked.
    Locked,
    /// The daemon cannot be reached.
    Unreachable,
    /// Denied or refused.
    Refused,
    /// Timed out.
    TimedOut,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// Returns the number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Negative => 3,
            Self::Locked => 4,
            Self::Unreachable => 5,
            Self::Refused => 6,
            Self::TimedOut => 7,
            Self::Interrupted => 130,
        }
    }
}

/// Whose fault an error is: decides who reads it and what they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Whoever called gave something wrong.
    Caller,
    /// The remote side failed.
    Upstream,
    /// The installation is not in order, and its operator can mend it.
    Operator,
    /// A defect of ours: it asks for a report.
    Ours,
}

/// An error as a person reads it, also over the operator's socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Explain {
    /// What happened.
    pub what: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whose fault it is.
    pub fault: Fault,
    /// The exit code.
    pub exit: Exit,
}

impl Explain {
    /// Returns an error that says what happened.
    pub fn new(exit: Exit, fault: Fault, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: None,
            next: None,
            fault,
            exit,
        }
    }

    /// Adds why.
    #[must_use]
    pub fn because(mut self, why: impl ToString) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
