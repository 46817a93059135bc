//! Text that somebody else wrote: it can be printed only with its control characters made visible.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

/// Text from outside (a command line, a tool's name, a server's answer).
///
/// Display escapes control characters, bidirectional overrides (Unicode UAX #9) and other invisible
/// marks, so that no such text can move a terminal's cursor, fake a line of ours or hide a part of itself.
/// JSON carries the text unchanged: escaping there is the format's own business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Foreign(String);

impl Foreign {
    /// Wraps text from outside.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Wraps bytes from outside; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the text as it came, for comparing, never for printing.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.0
    }
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
        for c in self.0.chars() {
            if c.is_control() || invisible(c) {
                write!(f, "{}", c.escape_unicode())?;
            } else {
                f.write_char(c)?;
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
    fn an_escape_sequence_is_shown_not_sent() {
        let shown = Foreign::new("a\u{1b}[2Jb\u{202e}c\nd").to_string();

        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c\\u{a}d");
    }
}
