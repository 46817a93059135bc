//! One JSON value per line, with an upper bound: a peer that never ends its line cannot fill our memory.

use serde::{Serialize, de::DeserializeOwned};

/// Longest line either side takes, in bytes. A tool call carries one request body; 4 MiB is well above
/// what agents send and well below what 64 of them at once would need to hurt.
pub const LINE_CAP: usize = 4 << 20;

/// What was wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is longer than the cap; the rest of it is skipped.
    #[error("a line is longer than {cap} bytes")]
    TooLong {
        /// The cap.
        cap: usize,
    },
    /// It is not the JSON that was expected.
    #[error("a line is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Takes bytes as they come and gives lines as they end.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Bytes that are known to hold no line end, so that a slow line is not searched again and again.
    searched: usize,
    cap: usize,
    skipping: bool,
}

impl LineBuffer {
    /// Returns an empty buffer for lines of at most `cap` bytes.
    #[must_use]
    pub const fn new(cap: usize) -> Self {
        Self {
            bytes: Vec::new(),
            searched: 0,
            cap,
            skipping: false,
        }
    }

    /// Takes the next bytes from the peer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next whole line without its end, or none if more bytes are needed.
    ///
    /// # Errors
    /// The line is too long. It is said once; the rest of that line is dropped and the next is read as usual.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let rest = self.bytes.get(self.searched..).unwrap_or_default();
            let Some(end) = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| at + self.searched)
            else {
                return self.no_end_yet();
            };
            let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
            self.searched = 0;
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.cap {
                return Err(LineError::TooLong { cap: self.cap });
            }
            return Ok(Some(line));
        }
    }

    fn no_end_yet(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        self.searched = self.bytes.len();
        // A carriage return at the end may be half of a line's end, which does not count.
        let line = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
        if line.len() <= self.cap && !self.skipping {
            return Ok(None);
        }
        self.bytes = Vec::new();
        self.searched = 0;
        if std::mem::replace(&mut self.skipping, true) {
            Ok(None)
        } else {
            Err(LineError::TooLong { cap: self.cap })
        }
    }

    /// Returns what is left behind the last line: bytes of the next protocol, or of a torn line.
    #[must_use]
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// Writes one value as one line.
///
/// # Errors
/// The value cannot be written as JSON: a defect of ours.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, LineError> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads one value from one line.
///
/// # Errors
/// The line is not that value.
pub fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_come_out_the_same_however_the_bytes_are_cut(
            lines in proptest::collection::vec("[^\r\n]{0,40}", 0..8), cut in 1usize..7
        ) {
            let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut buffer = LineBuffer::new(1024);
            let mut seen = Vec::new();
            for piece in stream.as_bytes().chunks(cut) {
                buffer.push(piece);
                while let Some(line) = buffer.next_line().unwrap() {
                    seen.push(String::from_utf8(line).unwrap());
                }
            }

            prop_assert_eq!(seen, lines);
        }
    }

    #[test]
    fn a_line_as_long_as_may_be_is_taken_also_if_its_end_comes_in_two_pieces() {
        for pieces in [&["1234\r\n"][..], &["1234\r", "\n"], &["1234", "\r", "\n"]] {
            let mut buffer = LineBuffer::new(4);
            let mut seen = Vec::new();
            for piece in pieces {
                buffer.push(piece.as_bytes());
                seen.extend(buffer.next_line().unwrap());
            }
            assert_eq!(seen, [b"1234"], "{pieces:?}");
        }
        let mut buffer = LineBuffer::new(4);
        buffer.push(b"1234\r5");
        assert!(buffer.next_line().is_err());
    }

    #[test]
    fn a_line_that_is_too_long_is_said_once_and_the_next_one_is_read() {
        let mut buffer = LineBuffer::new(4);
        buffer.push(b"123456");
        assert!(matches!(
            buffer.next_line(),
            Err(LineError::TooLong { cap: 4 })
        ));
        buffer.push(b"789");
        assert!(matches!(buffer.next_line(), Ok(None)));

        buffer.push(b"0\nok\n");

        assert_eq!(buffer.next_line().unwrap(), Some(b"ok".to_vec()));
    }
}
