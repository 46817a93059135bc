//! A call, its target and the states it can be in, unknown outcomes included.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{ChannelName, Foreign, IdError, OperationName};

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the thirty-two bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(IdError::LogId);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = str::from_utf8(pair).map_err(|_| IdError::LogId)?;
            if pair.starts_with('+') {
                return Err(IdError::LogId);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| IdError::LogId)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// What a call acts on: enough to find it at the other side, never what was said to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The channel, as the policy names it.
    pub channel: ChannelName,
    /// The operation that allowed it; none if no operation matched.
    pub operation: Option<OperationName>,
    /// The HTTP method, or `exec` for a command.
    pub method: Foreign,
    /// The path below the channel's base, without the query; or the command's category.
    pub path: Foreign,
}

/// The id a write carries to the remote side, derived from its run and call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestKey(pub String);

/// Why a call is known to have left nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// It was never cleared, so no byte of it may have left.
    NeverCleared,
    /// It was cleared, and the HTTP library handed the request back unwritten.
    HandedBackUnwritten,
}

/// Why the outcome of a call is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsettled {
    /// The connection broke after the request may have left.
    ConnectionBroke,
    /// The time allowed for an answer was over.
    TimedOut,
    /// Its run was revoked while it was under way.
    Revoked,
    /// Its client was lost and the grace was over.
    ClientLost,
    /// The daemon ended while it was under way.
    DaemonEnded,
    /// The answer was larger than allowed, or not HTTP.
    AnswerUnreadable,
}

/// The state of one call, as a fold over its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// On record; not yet allowed to leave.
    Attempted,
    /// We refused it.
    Denied,
    /// Provably nothing left.
    Withdrawn,
    /// Its bytes may have left.
    Cleared,
    /// An answer came.
    Answered,
    /// It started something that outlives it.
    Outliving,
    /// It is blocked and may go on later.
    Waiting,
    /// Whether it had an effect is not known.
    Unresolved,
    /// An operator found out and said so.
    Reconciled,
}

impl CallState {
    /// Tells whether a repeat of this call could do the same thing twice.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Cleared | Self::Outliving | Self::Waiting | Self::Unresolved => true,
            Self::Attempted
            | Self::Denied
            | Self::Withdrawn
            | Self::Answered
            | Self::Reconciled => false,
        }
    }

    /// Returns the word that commands and JSON use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Attempted => "attempted",
            Self::Denied => "denied",
            Self::Withdrawn => "withdrawn",
            Self::Cleared => "cleared",
            Self::Answered => "answered",
            Self::Outliving => "outliving",
            Self::Waiting => "waiting",
            Self::Unresolved => "unresolved",
            Self::Reconciled => "reconciled",
        }
    }
}

impl fmt::Display for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
