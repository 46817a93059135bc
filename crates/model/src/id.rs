//! Ids that a person reads and types, and names that a person chooses; each kind is its own type.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Crockford's alphabet: no `i`, `l`, `o`, `u`, so an id survives being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Says why a text is not the id or name it was given as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text does not have the form `x-` and sixteen letters or digits.
    #[error("expected {prefix} and 16 letters or digits, as in {prefix}0123456789abcdef")]
    Form {
        /// The prefix of the kind of id that was expected.
        prefix: &'static str,
    },
    /// The text is no name.
    #[error(
        "a name is 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-', and starts with a letter or digit"
    )]
    Name,
    /// The text is not 64 hexadecimal digits.
    #[error("a log id is 64 hexadecimal digits")]
    LogId,
}

fn encode(bytes: [u8; 10]) -> String {
    let mut out = String::with_capacity(16);
    for half in bytes.chunks_exact(5) {
        let bits = half
            .iter()
            .fold(0u64, |acc, byte| acc << 8 | u64::from(*byte));
        for step in (0..8).rev() {
            let index = usize::try_from(bits >> (step * 5) & 31).unwrap_or(0);
            out.push(char::from(ALPHABET.get(index).copied().unwrap_or(b'0')));
        }
    }
    out
}

fn decode(text: &str) -> Option<[u8; 10]> {
    let text = text.as_bytes();
    if text.len() != 16 {
        return None;
    }
    let mut out = [0u8; 10];
    for (half, letters) in out.chunks_exact_mut(5).zip(text.chunks_exact(8)) {
        let mut bits = 0u64;
        for letter in letters {
            let value = ALPHABET.iter().position(|known| known == letter)?;
            bits = bits << 5 | u64::try_from(value).ok()?;
        }
        half.copy_from_slice(bits.to_be_bytes().get(3..)?);
    }
    Some(out)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 10]);

        impl $name {
            /// Draws a new id from the operating system's random source.
            ///
            /// # Errors
            /// The kernel has no randomness to give; nothing useful can be done before it has.
            pub fn random() -> std::io::Result<Self> {
                let mut bytes = [0; 10];
                getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
                Ok(Self(bytes))
            }

            /// Returns the id that these ten bytes stand for.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 10]) -> Self {
                Self(bytes)
            }

            /// Returns the ten bytes, as the log stores them.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 10] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(|rest| decode(&rest.to_ascii_lowercase()))
                    .map(Self)
                    .ok_or(IdError::Form { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// One run of one agent (called a session in commands and JSON).
    SessionId,
    "s-"
);
id!(
    /// One shim or one wrapped server, connected to the daemon.
    ConnectionId,
    "k-"
);
id!(
    /// One use of one tool.
    CallId,
    "c-"
);
id!(
    /// One incident: a folder of evidence and steps.
    IncidentId,
    "i-"
);
id!(
    /// One run of the daemon, with its own signing key in the log.
    EpochId,
    "e-"
);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
                let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
                if first && rest && text.len() <= 64 { Ok(Self(text)) } else { Err(IdError::Name) }
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

name!(
    /// A channel's name in the configuration.
    ChannelName
);
impl ChannelName {
    /// Returns what stands in the record of a call that named no channel there could be.
    #[must_use]
    pub fn unnamed() -> Self {
        Self("unnamed".to_owned())
    }
}

name!(
    /// An operation's name inside its channel.
    OperationName
);
name!(
    /// A secret's name in the vault; never its value.
    SecretName
);

/// The SHA-256 of a log's `LOG` file: what pins, receipts and incidents name a log by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogId([u8; 32]);

impl LogId {
    /// Returns the log id with these bytes.
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

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex(&self.0))
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LogId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        crate::Digest::from_str(text)
            .map(|digest| Self(digest.to_bytes()))
            .map_err(|_| IdError::LogId)
    }
}

impl TryFrom<String> for LogId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<LogId> for String {
    fn from(id: LogId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_id_survives_being_written_and_read(bytes: [u8; 10]) {
            let id = CallId::from_bytes(bytes);

            prop_assert_eq!(id.to_string().parse::<CallId>(), Ok(id));
        }

        #[test]
        fn no_text_makes_the_id_parser_panic(text: String) {
            let _ = text.parse::<SessionId>();
            let _ = text.parse::<ChannelName>();
            let _ = text.parse::<LogId>();
        }
    }

    #[test]
    fn one_kind_of_id_is_not_taken_for_another() {
        let call = CallId::from_bytes([7; 10]).to_string();

        assert_eq!(
            call.parse::<SessionId>(),
            Err(IdError::Form { prefix: "s-" })
        );
    }

    #[test]
    fn a_name_cannot_climb_out_of_its_folder() {
        for bad in ["", ".", "..", "../x", "a/b", "-x", "a b", "a\n"] {
            assert_eq!(bad.parse::<SecretName>(), Err(IdError::Name), "{bad:?}");
        }
    }
}
