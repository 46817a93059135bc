//! Segment files: `seg/NNNNNNNNNN.seg`, preallocated, zero behind the data, each chained to the one before.
//!
//! ```text
//! segment  header (96 bytes) | frames … | zeros
//! header   magic "LYCHSEG1" | suite u8 = 1 | reserved [7] = 0 | log id [32] | index u64 | first_seq u64
//!          | prev [32]      id of the last record of the segment before; zero in the first
//! ```
//! The first record's `prev` is the SHA-256 of the header: so the chain runs `LOG` → header → records → next header.
//! A segment appears under its name with its header durable; it ends with a commit.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use model::{Digest, LogId, Seq};
use serde::Serialize;

use crate::bytes::{Fields, sha256};

/// How long a segment is made: appends into it then need no space from the disk.
pub const SEGMENT_SIZE: u64 = 16 * 1024 * 1024;
/// Length of a segment's header.
pub const SEGMENT_HEADER_LEN: usize = 96;
/// In a [`Place`]: not in a segment but in the certificate that took the place of the oldest ones.
pub const CARRIED: u64 = u64::MAX;
const MAGIC: &[u8; 8] = b"LYCHSEG1";
const SUITE: u8 = 1;

/// Where a frame stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The segment's number, as in its name.
    pub segment: u64,
    /// The frame's first byte there.
    pub offset: u64,
}

/// The front of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Which log it belongs to.
    pub log_id: LogId,
    /// Its number.
    pub index: u64,
    /// Its first record's number.
    pub first_seq: Seq,
    /// The id of the last record before it; zero in the first segment.
    pub prev: Digest,
}

impl SegmentHeader {
    /// Returns the stored bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            MAGIC.as_slice(),
            &[SUITE, 0, 0, 0, 0, 0, 0, 0],
            &self.log_id.to_bytes(),
            &self.index.to_be_bytes(),
            &self.first_seq.to_be_bytes(),
            &self.prev.to_bytes(),
        ]
        .concat()
    }

    /// Reads a header; none if it is not one of version 1.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.get(..SEGMENT_HEADER_LEN)?);
        let magic: [u8; 8] = fields.array()?;
        let suite: [u8; 8] = fields.array()?;
        if magic != *MAGIC || suite != [SUITE, 0, 0, 0, 0, 0, 0, 0] {
            return None;
        }
        Some(Self {
            log_id: LogId::from_bytes(fields.array()?),
            index: fields.u64()?,
            first_seq: fields.u64()?,
            prev: Digest::from_bytes(fields.array()?),
        })
    }

    /// Returns the header's id, which is the first record's `prev`.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::from_bytes(sha256(&[&self.encode()]))
    }
}

/// Returns the path of a segment.
#[must_use]
pub fn segment_file(dir: &Path, index: u64) -> PathBuf {
    dir.join("seg").join(format!("{index:010}.seg"))
}

/// A part of a segment's bytes, moved along as the reader goes on.
///
/// Ranges into [`Window::data`] are relative to `base`. What stands behind the window is read when it is asked for.
#[derive(Debug)]
pub(crate) struct Window {
    file: File,
    pub(crate) data: Vec<u8>,
    /// Where `data` begins in the file.
    pub(crate) base: usize,
    /// Whether the file ends with `data`.
    ended: bool,
}

/// More than the longest batch and the two longest frames behind it, and small enough to stay in a processor's cache.
const WINDOW: usize = 2 * 1024 * 1024;

impl Window {
    /// Opens a segment at `base`.
    pub(crate) fn open(path: &Path, base: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.len() > SEGMENT_SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut window = Self {
            file,
            data: Vec::new(),
            base,
            ended: false,
        };
        window.fill()?;
        Ok(window)
    }

    /// Moves on to `at`, if there is more to be had that way.
    pub(crate) fn slide(&mut self, at: usize) -> io::Result<bool> {
        let gone = at.saturating_sub(self.base).min(self.data.len());
        if gone == 0 || self.ended {
            return Ok(false);
        }
        self.data.drain(..gone);
        self.base += gone;
        self.fill()?;
        Ok(true)
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut filled = self.data.len();
        // One byte more than there is: reading nothing shows the end.
        let there = self.len()?.saturating_sub(self.base) + 1;
        self.data.resize(there.clamp(filled, WINDOW.max(filled)), 0);
        while let Some(rest) = self.data.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, wide(self.base + filled)) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.data.truncate(filled);
        Ok(())
    }

    /// Reads the same place again; true if a writer has changed it meanwhile.
    pub(crate) fn refresh(&mut self, at: usize) -> io::Result<bool> {
        let behind = self.data.get(at.saturating_sub(self.base)..);
        let before = behind.unwrap_or_default().to_vec();
        (self.base, self.ended) = (at, false);
        self.data.clear();
        self.fill()?;
        let same = self.data.len() >= before.len() && self.data.starts_with(&before);
        Ok(!same)
    }

    /// Gives the bytes from `at` to the end of the file, piece by piece. Pieces overlap by [`OVERLAP`], so that what is
    /// shorter than that is whole in one of them.
    pub(crate) fn pieces(&self, at: usize, mut see: impl FnMut(usize, &[u8])) -> io::Result<()> {
        let mut piece = Self {
            file: self.file.try_clone()?,
            data: Vec::new(),
            base: at,
            ended: false,
        };
        piece.fill()?;
        loop {
            see(piece.base, &piece.data);
            let next = piece.base + piece.data.len().saturating_sub(OVERLAP);
            if !piece.slide(next)? {
                return Ok(());
            }
        }
    }

    /// Returns where the zeros begin that end the file: `at`, if there is nothing else from there on.
    pub(crate) fn used(&self, at: usize) -> io::Result<usize> {
        let mut used = at;
        self.pieces(at, |base, piece| {
            let len = used_of(piece);
            if len > 0 {
                used = base + len;
            }
        })?;
        Ok(used)
    }

    /// Returns the file's length now.
    pub(crate) fn len(&self) -> io::Result<usize> {
        let len = self.file.metadata()?.len();
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// Returns a digest of all that stands behind `at`.
    pub(crate) fn fingerprint(&self, at: usize) -> io::Result<[u8; 32]> {
        let mut all = [0; 32];
        self.pieces(at, |_, piece| all = sha256(&[&all, piece]))?;
        Ok(all)
    }
}

/// How much of a piece comes again in the next.
pub(crate) const OVERLAP: usize = 512;

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns how many bytes stand in front of the zeros at the end.
fn used_of(data: &[u8]) -> usize {
    let mut end = data.len();
    for chunk in data.rchunks(ZEROS.len()) {
        if ZEROS.get(..chunk.len()) != Some(chunk) {
            let last = chunk.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            return end - chunk.len() + last + 1;
        }
        end -= chunk.len();
    }
    0
}

const ZEROS: [u8; 1024] = [0; 1024];
