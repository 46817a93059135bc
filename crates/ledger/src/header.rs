//! The clear header in front of every record, and the frame around both.
//!
//! ```text
//! frame   len u32 | record                 len counts the record alone; 0 is the end of a segment's data
//! record  header (88 bytes) | body         id = SHA-256(frame)
//!
//! header   0  version u8 = 1
//!          1  kind u8
//!          2  sealing u8                   0 clear, 1 run key, 2 epoch key
//!          3  reserved u8 = 0
//!          4  seq u64
//!         12  wall_ms u64                  since 1970-01-01T00:00:00Z
//!         20  boot_ms u64                  since boot, sleep included
//!         28  session [10]                 zero if none
//!         38  call [10]                    zero if none
//!         48  refers_to u64                zero if none
//!         56  prev [32]                    id of the record before, or of the segment's header
//! ```
//! All numbers are big-endian. The header is the cipher's associated data, so a sealed body cannot be moved.

use model::{CallId, Digest, Kind, Seq, SessionId, Stamp, Wall};

use crate::bytes::{Fields, sha256_of};

/// The version that this code writes.
pub(crate) const VERSION: u8 = 1;
/// Length of a header.
pub const HEADER_LEN: usize = 88;
/// Length of the length in front of a record.
pub const FRAME_PREFIX: usize = 4;
/// The longest frame: a reader never allocates more on a length's word alone.
pub const MAX_FRAME: usize = 256 * 1024;

/// Under which key a body is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sealing {
    /// Under none: verification needs it, or there is none.
    Clear,
    /// Under the data key of the run in the header.
    Run,
    /// Under the data key of the epoch the record stands in.
    Epoch,
}

impl Sealing {
    const fn code(self) -> u8 {
        match self {
            Self::Clear => 0,
            Self::Run => 1,
            Self::Epoch => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Clear),
            1 => Some(Self::Run),
            2 => Some(Self::Epoch),
            _ => None,
        }
    }
}

/// The clear part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the record says.
    pub kind: Kind,
    /// Under which key its body is sealed.
    pub sealing: Sealing,
    /// Its place, counted from 1 without gaps.
    pub seq: Seq,
    /// When it was queued, on both clocks.
    pub stamp: Stamp,
    /// Whose it is.
    pub session: Option<SessionId>,
    /// Which call it belongs to.
    pub call: Option<CallId>,
    /// The record it answers.
    pub refers_to: Option<Seq>,
    /// The id of the record before it.
    pub prev: Digest,
}

/// Why a header cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// There are fewer bytes than a header has.
    #[error("the record is shorter than a header")]
    Short,
    /// A later version wrote it.
    #[error("the record has version {0}, which this program does not know")]
    Version(u8),
    /// A later version wrote it.
    #[error("the record has kind {0}, which this program does not know")]
    Kind(u8),
    /// A field holds what no writer puts there.
    #[error("the record's header holds a value that version 1 never writes")]
    Field,
}

impl Header {
    /// Returns the 88 stored bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let fields: [&[u8]; 8] = [
            &[VERSION, self.kind.code(), self.sealing.code(), 0],
            &self.seq.to_be_bytes(),
            &self.stamp.wall.millis().to_be_bytes(),
            &self.stamp.boot_ms.to_be_bytes(),
            &self.session.map_or([0; 10], SessionId::to_bytes),
            &self.call.map_or([0; 10], CallId::to_bytes),
            &self.refers_to.unwrap_or(0).to_be_bytes(),
            &self.prev.to_bytes(),
        ];
        for (to, from) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        out
    }

    /// Reads the header at the front of `record`.
    ///
    /// # Errors
    /// It is short, of another version, or holds what version 1 never writes.
    pub fn decode(record: &[u8]) -> Result<Self, BadHeader> {
        let mut fields = Fields(record.get(..HEADER_LEN).ok_or(BadHeader::Short)?);
        let [version, kind, sealing, reserved] = fields.array().ok_or(BadHeader::Short)?;
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        let kind = Kind::from_code(kind).ok_or(BadHeader::Kind(kind))?;
        let sealing = Sealing::from_code(sealing).ok_or(BadHeader::Field)?;
        if reserved != 0 || kind.body_is_clear() != (sealing == Sealing::Clear) {
            return Err(BadHeader::Field);
        }
        Self::rest(kind, sealing, fields).ok_or(BadHeader::Short)
    }

    fn rest(kind: Kind, sealing: Sealing, mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
            kind,
            sealing,
            seq: fields.u64()?,
            stamp: Stamp {
                wall: Wall::from_millis(fields.u64()?),
                boot_ms: fields.u64()?,
            },
            session: some_id(fields.array()?).map(SessionId::from_bytes),
            call: some_id(fields.array()?).map(CallId::from_bytes),
            refers_to: Some(fields.u64()?).filter(|seq| *seq != 0),
            prev: Digest::from_bytes(fields.array()?),
        })
    }
}

fn some_id(bytes: [u8; 10]) -> Option<[u8; 10]> {
    (bytes != [0; 10]).then_some(bytes)
}

/// Returns the stored bytes of a record: length, header, body; none if it would be longer than a frame may be.
#[must_use]
pub fn encode_frame(header: &Header, body: &[u8]) -> Option<Vec<u8>> {
    let len = HEADER_LEN + body.len();
    if FRAME_PREFIX + len > MAX_FRAME {
        return None;
    }
    let mut frame = Vec::with_capacity(FRAME_PREFIX + len);
    frame.extend(u32::try_from(len).ok()?.to_be_bytes());
    frame.extend(header.encode());
    frame.extend(body);
    Some(frame)
}

/// Returns a record's id: the SHA-256 of its frame, and through `prev` of everything before it.
#[must_use]
pub fn frame_id(frame: &[u8]) -> Digest {
    Digest::from_bytes(sha256_of(frame))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Header {
        Header {
            kind: Kind::Attempt,
            sealing: Sealing::Run,
            seq: 7,
            stamp: Stamp {
                wall: Wall::from_millis(1_764_400_000_000),
                boot_ms: 12,
            },
            session: Some(SessionId::from_bytes([1; 10])),
            call: Some(CallId::from_bytes([2; 10])),
            refers_to: None,
            prev: Digest::from_bytes([9; 32]),
        }
    }

    #[test]
    fn a_header_survives_being_written_and_read() {
        let header = sample();

        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn a_later_version_is_named_and_not_guessed_at() {
        let mut bytes = sample().encode();
        bytes[0] = 2;

        assert_eq!(Header::decode(&bytes), Err(BadHeader::Version(2)));
    }

    #[test]
    fn a_sealed_kind_cannot_pass_as_clear() {
        let mut bytes = sample().encode();
        bytes[2] = 0;

        assert_eq!(Header::decode(&bytes), Err(BadHeader::Field));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_header_parser_panic(bytes: Vec<u8>) {
            let _ = Header::decode(&bytes);
        }

        #[test]
        fn what_decodes_encodes_to_the_same_bytes(mut bytes in any::<[u8; 32]>(), tail in any::<[u8; 32]>(), last in any::<[u8; 24]>()) {
            bytes[0] = 1;
            bytes[1] %= 56;
            bytes[2] %= 3;
            bytes[3] = 0;
            let whole = [&bytes[..], &tail, &last].concat();

            if let Ok(header) = Header::decode(&whole) {
                prop_assert_eq!(header.encode().to_vec(), whole);
            }
        }
    }
}
