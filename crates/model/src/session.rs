//! The states a run of an agent can be in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of one run; who leaves which state, and why, is told in the gate's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Asked for and not yet admitted.
    Pending,
    /// Admitted; its client lives.
    Live,
    /// Admitted; its client is stopped or does not read what waits for it.
    Stuck,
    /// A process above the client is dead, the client itself lives and still holds the wire.
    Abandoned,
    /// Its client is dead.
    Lost,
    /// Its authority was taken away.
    Revoked,
    /// It came to its end in the ordinary way.
    Ended,
}

impl SessionState {
    /// Returns the word that commands and JSON use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Live => "live",
            Self::Stuck => "stuck",
            Self::Abandoned => "abandoned",
            Self::Lost => "lost",
            Self::Revoked => "revoked",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
