//! A value that was read, or the reason why it could not be: unknown is never empty and never zero.

use serde::{Deserialize, Serialize};

/// Either a value that was read or the reason why it is not known.
///
/// In JSON a known value stands as itself and an unknown one as `{"unknown": "why"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Known<T> {
    /// It could not be read, and this is why.
    Unknown {
        /// The reason, for a person.
        unknown: String,
    },
    /// It was read.
    Yes(T),
}

impl<T> Known<T> {
    /// Returns an unknown value with its reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown {
            unknown: why.into(),
        }
    }

    /// Returns the value if it was read.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// Returns the reason if it was not.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Yes(_) => None,
            Self::Unknown { unknown } => Some(unknown),
        }
    }

    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Yes(value) => Known::Yes(f(value)),
            Self::Unknown { unknown } => Known::Unknown { unknown },
        }
    }
}

impl<T> From<T> for Known<T> {
    fn from(value: T) -> Self {
        Self::Yes(value)
    }
}
