//! Text that somebody else wrote: it can be printed only with its control characters made visible.

use std::fmt::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Text from outside (a command line, a tool's name, a server's answer).
///
/// Display escapes control characters, bidirectional overrides (Unicode UAX #9) and other invisible
/// marks, so that no such text can move a terminal's cursor, fake a line of ours or hide a part of itself.
/// JSON carries the text unchanged: escaping there is the format's own business. What is not UTF-8 is there as
/// `{"text": …, "raw": …}`, the bytes as they came in base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Foreign {
    text: String,
    /// As they came, where the text is not all that there was.
    bytes: Option<Box<[u8]>>,
}

impl Foreign {
    /// Wraps text from outside.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            bytes: None,
        }
    }

    /// Wraps bytes from outside; in the text, what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::new(text),
            Err(_) => Self {
                text: String::from_utf8_lossy(bytes).into_owned(),
                bytes: Some(bytes.into()),
            },
        }
    }

    /// Returns the text as it came, for comparing, never for printing.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.text
    }

    /// Returns the bytes as they came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// The form of what is not UTF-8.
#[derive(Serialize, Deserialize)]
struct Both {
    text: String,
    raw: String,
}

/// What a reader meets: plain text, or both forms.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Both(Both),
}

impl Serialize for Foreign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.bytes {
            None => serializer.serialize_str(&self.text),
            Some(bytes) => Both {
                text: self.text.clone(),
                raw: STANDARD.encode(bytes),
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Foreign {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Stored::deserialize(deserializer)? {
            Stored::Text(text) => Ok(Self::new(text)),
            // The bytes are what counts: the text is made of them, whatever is written there.
            Stored::Both(both) => match STANDARD.decode(both.raw) {
                Ok(bytes) => Ok(Self::from_bytes(&bytes)),
                Err(error) => Err(D::Error::custom(error)),
            },
        }
    }
}

/// Tells whether a character may stand on a terminal as it is.
#[must_use]
pub fn is_harmless(c: char) -> bool {
    !c.is_control() && !invisible(c)
}

impl From<&str> for Foreign {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

const fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text.chars() {
            if is_harmless(c) {
                f.write_char(c)?;
            } else {
                write!(f, "{}", c.escape_unicode())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn printed_foreign_text_has_no_control_or_invisible_character(text: String) {
            let shown = Foreign::new(text).to_string();

            prop_assert!(!shown.chars().any(|c| c.is_control() || invisible(c)));
        }
    }

    #[test]
    fn what_is_not_utf8_is_kept_byte_for_byte_and_reads_back() {
        let odd = Foreign::from_bytes(b"caf\xe9");

        let text = serde_json::to_string(&odd).unwrap();

        assert_eq!(text, "{\"text\":\"caf\u{fffd}\",\"raw\":\"Y2Fm6Q==\"}");
        let back: Foreign = serde_json::from_str(&text).unwrap();
        assert_eq!(back, odd);
        assert_eq!(back.bytes(), b"caf\xe9");
        assert_eq!(odd.to_string(), "caf\u{fffd}");
        let plain: Foreign = serde_json::from_str("\"caf\u{e9}\"").unwrap();
        assert_eq!(plain.bytes(), "caf\u{e9}".as_bytes());
        assert_eq!(serde_json::to_string(&plain).unwrap(), "\"caf\u{e9}\"");
        assert!(serde_json::from_str::<Foreign>("{\"text\":\"x\",\"raw\":\"*\"}").is_err());
    }

    #[test]
    fn an_escape_sequence_is_shown_not_sent() {
        let shown = Foreign::new("a\u{1b}[2Jb\u{202e}c\nd").to_string();

        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c\\u{a}d");
    }
}
