//! The ways in which a text format spells one byte, so that a secret is found however its bytes are mixed.
//!
//! Which characters a program escapes differs from library to library, so no fixed list of whole forms would
//! do: each byte may stand as it is, percent-encoded, escaped as in JSON, or as a reference as in a page.

/// Returns how many bytes of the beginning of `text` spell `secret`; none if they do not.
pub(super) fn spelled(text: &[u8], secret: &[u8]) -> Option<usize> {
    // Nearly every place ends here, before anything is allocated for it.
    if lengths(text, *secret.first()?) == [None, None] {
        return None;
    }
    // More than one end at a time, since a byte like '%' stands for itself and begins an escape too.
    let mut ends = vec![0];
    for byte in secret {
        let mut next: Vec<usize> = Vec::with_capacity(ends.len());
        for end in ends {
            let rest = text.get(end..).unwrap_or_default();
            let longer = lengths(rest, *byte).into_iter().flatten();
            next.extend(longer.map(|length| end + length));
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return None;
        }
        ends = next;
    }
    ends.last().copied()
}

/// The lengths of the spellings of `byte` that `text` begins with.
fn lengths(text: &[u8], byte: u8) -> [Option<usize>; 2] {
    match text.first() {
        Some(b'%') => [same(text, byte), percent(text, byte)],
        Some(b'\\') => [same(text, byte), escape(text, byte)],
        Some(b'&') => [same(text, byte), reference(text, byte)],
        // As forms spell a blank.
        Some(b'+') if byte == b' ' => [Some(1), None],
        Some(_) | None => [same(text, byte), None],
    }
}

fn same(text: &[u8], byte: u8) -> Option<usize> {
    (text.first() == Some(&byte)).then_some(1)
}

/// RFC 3986, section 2.1.
fn percent(text: &[u8], byte: u8) -> Option<usize> {
    (hexadecimal(text.get(1..3)?)? == u32::from(byte)).then_some(3)
}

/// RFC 8259, section 7.
fn escape(text: &[u8], byte: u8) -> Option<usize> {
    match text.get(1)? {
        b'u' => (hexadecimal(text.get(2..6)?)? == u32::from(byte)).then_some(6),
        // As some languages escape in their own strings.
        b'x' => (hexadecimal(text.get(2..4)?)? == u32::from(byte)).then_some(4),
        other => (*other == byte && !byte.is_ascii_alphanumeric()).then_some(2),
    }
}

/// A character reference of HTML or XML.
fn reference(text: &[u8], byte: u8) -> Option<usize> {
    let window = text.get(1..text.len().min(LONGEST_REFERENCE))?;
    let end = window.iter().position(|byte| *byte == b';')?;
    let name = window.get(..end)?;
    let value = match name {
        [b'#', b'x' | b'X', digits @ ..] => hexadecimal(digits)?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        _ => return None,
    };
    (value == u32::from(byte)).then_some(end + 2)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    plain
        .then(|| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
        .flatten()
}

/// `&#x0000021;`: leading zeros are allowed, and nobody writes more of them.
const LONGEST_REFERENCE: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_known_in_every_spelling() {
        for (byte, text) in [
            (b'/', "/"),
            (b'/', "%2f"),
            (b'/', "%2F"),
            (b'/', "\\/"),
            (b'/', "\\u002f"),
            (b'/', "\\x2F"),
            (b'/', "&#47;"),
            (b'/', "&#x2F;"),
            (b'/', "&#x00002f;"),
            (b'&', "&amp;"),
            (b'&', "&"),
            (b'\'', "&apos;"),
            (b'"', "&quot;"),
            (b'<', "&lt;"),
            (b'>', "&gt;"),
            (b'%', "%25"),
            (b'%', "%"),
            (b'\\', "\\\\"),
            (b' ', "+"),
            (b'a', "\\u0061"),
        ] {
            assert_eq!(
                spelled(text.as_bytes(), &[byte]),
                Some(text.len()),
                "{text}"
            );
        }
        for (byte, text) in [
            (b'/', ""),
            (b'/', "%2"),
            (b'/', "%2g"),
            (b'/', "%+f"),
            (b'/', "\\u02f"),
            (b'n', "\\n"),
            (b'/', "&#47"),
            (b'/', "&#;"),
            (b'+', "%20"),
            (b'a', "+"),
            (b'a', "&#x;"),
            (b'a', "&lt;"),
        ] {
            assert_eq!(spelled(text.as_bytes(), &[byte]), None, "{text}");
        }
    }

    #[test]
    fn a_byte_that_also_begins_an_escape_is_read_both_ways() {
        for text in ["%25x", "%2525x", "%25%32%35x", "&#37;25x"] {
            assert_eq!(
                spelled(text.as_bytes(), b"%25x"),
                Some(text.len()),
                "{text}"
            );
        }
    }
}
