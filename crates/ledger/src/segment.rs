//! Segment files: `seg/NNNNNNNNNN.seg`, preallocated, zero behind the data, each chained to the one before.
//!
//! ```text
//! segment  header (96 bytes) | frames … | zeros
//! header   magic "LYCHSEG1" | suite u8 = 1 | reserved [7] = 0 | log id [32] | index u64 | first_seq u64
//!          | prev [32]      id of the last record of the segment before; zero in the first
//! ```
//! The first record's `prev` is the SHA-256 of the header: so the chain runs `LOG` → header → records → next header.
//! A segment appears under its name with its header durable; it ends with a commit.

use std::path::{Path, PathBuf};

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
