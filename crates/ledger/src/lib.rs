//! The log's bytes: frames, chain, signatures and `verify`, read-only and without any key.
//!
//! One place knows the format (`docs/audit-format.md` tells it to a second implementation). This room encodes and
//! decodes; only `audit` writes, and nothing here needs a vault, a key, a daemon or write access, so that whoever
//! reviews an incident needs no credentials.

mod bytes;
mod certificate;
mod clear;
mod fold;
mod head;
mod header;
mod keyfile;
mod origin;
mod pins;
mod records;
mod regular;
mod report;
mod scan;
mod segment;
mod structure;
mod tail;
mod verify;
mod walk;
mod window;

pub use certificate::Certificate;
pub use clear::{
    Commit, EndorsedHow, EpochEndorsed, EpochOpened, KeyErased, Pruned, RootEndorsed, TailRepaired,
    signed_message, signed_part,
};
pub use fold::{CallFold, Calls, Mark, SessionFold, Sessions};
pub use head::{Head, HeadError};
pub use header::{
    BadHeader, FRAME_PREFIX, HEADER_LEN, Header, MAX_FRAME, Sealing, encode_frame, frame_id,
};
pub use keyfile::{KEY_CLEAR_LEN, KeyClear, file_digest, key_commitment, key_file_of};
pub use origin::{Origin, OriginError};
pub use records::{ReadError, Records, Stored, read_at};
pub use report::{
    Checked, FirstBad, OpenAttempt, PinResult, PinUse, Prune, Repair, Report, StructureFinding,
    Unendorsed, Verdict,
};
pub use scan::{Batch, End, Epoch, Record, Scan, Signatures, Step, Stop};
pub use segment::{CARRIED, Place, SEGMENT_HEADER_LEN, SEGMENT_SIZE, SegmentHeader, segment_file};
pub use tail::Tail;
pub use verify::{Judged, Reached, VerifyOptions, Witness, verify, verify_with};
pub use walk::{Walked, parts, walk};

/// The longest run of bytes between two commits: a reader holds at most this much before it can believe any of it.
pub const MAX_BATCH: usize = 1024 * 1024;
