//! The path an agent asks for, in the one spelling that every server reads alike.
//!
//! Two programs that read a path differently are how a request gets past a list of allowed paths. So there is
//! no cleaning up here: a path that any of them could shorten, decode again or split elsewhere is refused.

use model::Denial;

/// A path that has one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CleanPath {
    /// As it is sent, percent-encoding in capitals.
    pub(crate) text: String,
    /// Its segments, decoded.
    pub(crate) segments: Vec<String>,
}

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathFault {
    #[error("the path does not start with one '/': it is taken below the channel's base")]
    NotBelow,
    #[error("the path is longer than {LONGEST} bytes")]
    TooLong,
    #[error("the path has a '?' or '#': the query is a field of its own")]
    QueryOrFragment,
    #[error("the path has a character that must be percent-encoded")]
    Character,
    #[error("the path has a '%' without two hexadecimal digits behind it")]
    Escape,
    #[error("the path has an empty segment")]
    EmptySegment,
    #[error("the path has a segment that leads upwards or stays")]
    Dots,
    #[error("the path encodes a character that has no business being encoded")]
    Hidden,
}

impl From<PathFault> for Denial {
    fn from(fault: PathFault) -> Self {
        let what = fault.to_string();
        match fault {
            PathFault::NotBelow | PathFault::EmptySegment | PathFault::Dots | PathFault::Hidden => {
                Self::NotYours { what }
            }
            PathFault::TooLong
            | PathFault::QueryOrFragment
            | PathFault::Character
            | PathFault::Escape => Self::Malformed { what },
        }
    }
}

/// Reads a path below a channel's base.
pub(crate) fn read(path: &str) -> Result<CleanPath, PathFault> {
    if path.len() > LONGEST {
        return Err(PathFault::TooLong);
    }
    let below = path.strip_prefix('/').ok_or(PathFault::NotBelow)?;
    if path.contains(['?', '#']) {
        return Err(PathFault::QueryOrFragment);
    }
    let parts: Vec<&str> = below.split('/').collect();
    let mut text = String::with_capacity(path.len());
    let mut segments = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        // Only the last one may be empty: the path then ends in a slash.
        if part.is_empty() && index + 1 < parts.len() {
            return Err(PathFault::EmptySegment);
        }
        let (spelled, decoded) = read_segment(part)?;
        text.push('/');
        text.push_str(&spelled);
        segments.push(decoded);
    }
    Ok(CleanPath { text, segments })
}

fn read_segment(segment: &str) -> Result<(String, String), PathFault> {
    let mut spelled = String::with_capacity(segment.len());
    let mut decoded = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            if !is_plain(byte) {
                return Err(PathFault::Character);
            }
            spelled.push(char::from(byte));
            decoded.push(byte);
            continue;
        }
        let (high, low) = (bytes.next(), bytes.next());
        let value = hex(high).zip(hex(low)).map(|(high, low)| high << 4 | low);
        let value = value.ok_or(PathFault::Escape)?;
        if hides(value) {
            return Err(PathFault::Hidden);
        }
        spelled.push_str(&format!("%{value:02X}"));
        decoded.push(value);
    }
    // What is no UTF-8 could be an overlong form of something refused above.
    let decoded = String::from_utf8(decoded).map_err(|_| PathFault::Hidden)?;
    if decoded
        .chars()
        .any(|c| c.is_control() || LOOKALIKES.contains(&c))
    {
        return Err(PathFault::Hidden);
    }
    // Some servers cut parameters off (`..;x`), others trailing dots and blanks.
    let name = decoded.split(';').next().unwrap_or("");
    let only_dots = name.chars().all(|c| c == '.' || c == ' ');
    if !decoded.is_empty() && only_dots {
        return Err(PathFault::Dots);
    }
    Ok((spelled, decoded))
}

fn hex(byte: Option<u8>) -> Option<u8> {
    let digit = char::from(byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Characters that RFC 3986 (section 3.3) allows in a segment as they are.
fn is_plain(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte)
}

pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// What is never encoded in good faith: separators, what would be decoded twice, and the unreserved
/// characters, whose encoded form means the same (RFC 3986, section 2.3).
fn hides(byte: u8) -> bool {
    is_unreserved(byte) || byte.is_ascii_control() || b"/\\%".contains(&byte)
}

/// Characters that compatibility mappings turn into dots and slashes.
const LOOKALIKES: [char; 9] = [
    '\u{2024}', '\u{2025}', '\u{2026}', '\u{2044}', '\u{2215}', '\u{29f8}', '\u{ff0e}', '\u{ff0f}',
    '\u{ff3c}',
];

/// Servers commonly refuse request lines beyond 8 KiB; the query has a limit of its own.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_that_some_server_reads_otherwise_is_refused() {
        use PathFault as F;
        for (path, why) in [
            ("", F::NotBelow),
            ("builds", F::NotBelow),
            ("http://evil.example/", F::NotBelow),
            ("//evil.example/x", F::EmptySegment),
            ("/a//b", F::EmptySegment),
            ("/a///", F::EmptySegment),
            ("/..", F::Dots),
            ("/a/../b", F::Dots),
            ("/a/./b", F::Dots),
            ("/a/.", F::Dots),
            ("/a/...", F::Dots),
            ("/a/..;/b", F::Dots),
            ("/a/..;x=1/b", F::Dots),
            ("/a/;/b", F::Dots),
            ("/a/..%20/b", F::Dots),
            ("/a/%2e%2e/b", F::Hidden),
            ("/a/.%2E/b", F::Hidden),
            ("/a/%2f/b", F::Hidden),
            ("/a%2Fb", F::Hidden),
            ("/a%5cb", F::Hidden),
            ("/a%252e", F::Hidden),
            ("/a%00", F::Hidden),
            ("/a%0d%0aX:y", F::Hidden),
            ("/%61dmin", F::Hidden),
            ("/a/%c0%ae%c0%ae/b", F::Hidden),
            ("/a/%ef%bc%8e%ef%bc%8e/b", F::Hidden),
            ("/a/%c2%85", F::Hidden),
            ("/a\\b", F::Character),
            ("/a b", F::Character),
            ("/a\r\nb", F::Character),
            ("/a\u{0}", F::Character),
            ("/\u{fc}", F::Character),
            ("/a\"b", F::Character),
            ("/a?b", F::QueryOrFragment),
            ("/a#b", F::QueryOrFragment),
            ("/a%", F::Escape),
            ("/a%2", F::Escape),
            ("/a%zz", F::Escape),
            ("/a%+1", F::Escape),
        ] {
            assert_eq!(read(path), Err(why), "{path:?}");
        }
        assert_eq!(read(&format!("/{}", "a".repeat(LONGEST))), Err(F::TooLong));
        assert!(read(&format!("/{}", "a".repeat(LONGEST - 1))).is_ok());
    }

    #[test]
    fn an_ordinary_path_passes_as_it_is() {
        for path in [
            "/",
            "/a",
            "/a/",
            "/.well-known/x",
            "/a/v1.2/b..c",
            "/a;v=1/@x:y",
            "/a%20b/%C3%BC",
        ] {
            assert_eq!(read(path).unwrap().text, path);
        }
        assert_eq!(read("/a%c3%bc").unwrap().text, "/a%C3%BC");
        assert_eq!(
            read("/a%20b/%C3%BC/").unwrap().segments,
            ["a b", "\u{fc}", ""]
        );
    }

    /// Reads a path as loosely as any server might: decodes again and again, cuts parameters, takes `\` for
    /// `/`, and drops what is empty.
    fn loosest(path: &str) -> Vec<String> {
        let mut text = path.to_owned();
        for _ in 0..3 {
            let mut out = Vec::new();
            let mut bytes = text.bytes();
            while let Some(byte) = bytes.next() {
                if byte == b'%' {
                    let pair: Vec<u8> = bytes.clone().take(2).collect();
                    let value = str::from_utf8(&pair)
                        .ok()
                        .and_then(|t| u8::from_str_radix(t, 16).ok());
                    if let Some(value) = value {
                        out.push(value);
                        bytes.nth(1);
                        continue;
                    }
                }
                out.push(byte);
            }
            text = String::from_utf8_lossy(&out).into_owned();
        }
        text.replace('\\', "/")
            .split('/')
            .map(|part| part.split(';').next().unwrap_or("").trim().to_owned())
            .collect()
    }

    proptest! {
        #[test]
        fn no_path_that_passes_climbs_for_the_loosest_reader(
            path in "(/|\\.|%2e|%2F|%5c|%25|;|a|\\\\|%c0%ae| |%20|\\?){1,12}"
        ) {
            if let Ok(clean) = read(&format!("/{path}")) {
                let loose = loosest(&clean.text);
                prop_assert!(!loose.iter().any(|part| part == ".." || part == "."), "{}", clean.text);
                prop_assert_eq!(loose.len(), clean.segments.len() + 1, "{}", clean.text);
            }
        }

        #[test]
        fn a_path_that_passes_is_sent_in_a_spelling_that_passes_unchanged(path: String) {
            if let Ok(clean) = read(&path) {
                prop_assert_eq!(read(&clean.text), Ok(clean));
            }
        }
    }
}
