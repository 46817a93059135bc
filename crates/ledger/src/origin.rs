//! The file `LOG`: five lines that never change and whose SHA-256 is the log's id.
//!
//! ```text
//! lychgate audit log 1
//! suite 1
//! root <64 hex digits>
//! recipient <age recipient>
//! created <RFC 3339, UTC, milliseconds>
//! ```
//! Text, so that `cat` shows it and `sha256sum` gives the id. Suite 1 is SHA-256, Ed25519, ChaCha20-Poly1305 and
//! age with X25519. It is written once, before the first record; the id stands in every segment's header.

use model::{Digest, LogId, Wall};

use crate::bytes::sha256;

/// What a log was born with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The bootstrap root's Ed25519 public key.
    pub root: [u8; 32],
    /// The public log key: the age recipient to which every data key is wrapped.
    pub recipient: String,
    /// When the log was made.
    pub created: Wall,
}

/// Why `LOG` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// A later version wrote it.
    #[error("LOG says {0:?}, which this program does not know")]
    Version(String),
    /// It is not what version 1 writes.
    #[error("LOG does not have the five lines of version 1")]
    Form,
}

const FIRST: &str = "lychgate audit log ";

impl Origin {
    /// Returns the bytes of `LOG`; none if the recipient is no single word.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let word =
            !self.recipient.is_empty() && self.recipient.bytes().all(|b| b.is_ascii_graphic());
        let root = Digest::from_bytes(self.root);
        let (recipient, created) = (&self.recipient, self.created);
        let text =
            format!("{FIRST}1\nsuite 1\nroot {root}\nrecipient {recipient}\ncreated {created}\n");
        word.then(|| text.into_bytes())
    }

    /// Reads `LOG`.
    ///
    /// # Errors
    /// A later version wrote it, or it is not exactly what version 1 writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, OriginError> {
        let text = str::from_utf8(bytes).map_err(|_| OriginError::Form)?;
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| line.strip_prefix(FIRST));
        let suite = lines.next().and_then(|line| line.strip_prefix("suite "));
        match (first, suite) {
            (Some("1"), Some("1")) => {}
            (Some(version), Some(suite)) => {
                let known = format!("version {version}, suite {suite}");
                return Err(OriginError::Version(known));
            }
            _ => return Err(OriginError::Form),
        }
        let origin = Self::rest(lines).ok_or(OriginError::Form)?;
        // Only one spelling is accepted: two files with one meaning would be two log ids.
        if origin.encode().as_deref() == Some(bytes) {
            Ok(origin)
        } else {
            Err(OriginError::Form)
        }
    }

    fn rest<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let root: Digest = lines.next()?.strip_prefix("root ")?.parse().ok()?;
        let recipient = lines.next()?.strip_prefix("recipient ")?.to_owned();
        let created = lines.next()?.strip_prefix("created ")?.parse().ok()?;
        Some(Self {
            root: root.to_bytes(),
            recipient,
            created,
        })
    }

    /// Returns the id of the log whose `LOG` has these bytes.
    #[must_use]
    pub fn id(bytes: &[u8]) -> LogId {
        LogId::from_bytes(sha256(&[bytes]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Origin {
        Origin {
            root: [3; 32],
            recipient: "age1example".to_owned(),
            created: Wall::from_millis(1_764_400_000_123),
        }
    }

    #[test]
    fn log_survives_being_written_and_read() {
        let bytes = sample().encode().unwrap();

        assert_eq!(Origin::decode(&bytes), Ok(sample()));
    }

    #[test]
    fn a_later_suite_is_named() {
        let bytes = sample().encode().unwrap();
        let later = String::from_utf8(bytes)
            .unwrap()
            .replace("suite 1", "suite 2");

        assert_eq!(
            Origin::decode(later.as_bytes()),
            Err(OriginError::Version("version 1, suite 2".to_owned()))
        );
    }

    #[test]
    fn a_recipient_cannot_add_lines() {
        let origin = Origin {
            recipient: "age1x\ncreated 1970-01-01T00:00:00.000Z".to_owned(),
            ..sample()
        };

        assert_eq!(origin.encode(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_log_parser_panic(bytes: Vec<u8>) {
            let _ = Origin::decode(&bytes);
        }
    }
}
