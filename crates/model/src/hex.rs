//! Bytes as two small hexadecimal digits each.

const DIGITS: [char; 16] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
];

/// Writes bytes as hexadecimal digits, two each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or('?');
    let pair = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.iter().flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_as_the_standard_library_writes_it() {
        for byte in 0..=u8::MAX {
            assert_eq!(hex(&[byte, 7]), format!("{byte:02x}07"));
        }
    }
}
