//! What is carried over from segments that were given up, so that the rest can be judged without them.
//!
//! ```text
//! pruned/NNNNNNNNNN.cert   NNNNNNNNNN is the first segment that is kept
//!
//! "LYCHPRUN" [8] | suite u8 = 1 | reserved [7] = 0 | log id [32] | segment u64 | first seq u64 | prev [32] | frames …
//! ```
//! The frames are records of the segments that are gone, as they were stored and in their order: every hand-over of
//! the root and every daemon run with its endorsement, so that trust still comes from `LOG`; every revocation and
//! operator act; and all of the runs and calls that had not come to an end. A `pruned` record in the kept part names
//! the certificate's digest: so the chain vouches for it, and a segment that somebody merely removed has none.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use model::{Digest, LogId, Seq};

use crate::{
    bytes::{Fields, sha256},
    clear::Pruned,
    regular,
    report::FirstBad,
    scan::{Stop, frame_at},
};

const MAGIC: &[u8; 8] = b"LYCHPRUN";
const SUITE: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];
const FRONT: usize = 96;

/// A reader holds a certificate in memory, as it does a segment.
const LONGEST_CERTIFICATE: u64 = 16 * 1024 * 1024;

/// What takes the place of the segments before `segment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The first segment that is kept.
    pub segment: u64,
    /// Its first record's number.
    pub first_seq: Seq,
    /// The id of the last record before it.
    pub prev: Digest,
    /// The whole file.
    bytes: Vec<u8>,
}

impl Certificate {
    /// Makes a certificate of these frames.
    #[must_use]
    pub fn new(
        log_id: LogId,
        (segment, first_seq, prev): (u64, Seq, Digest),
        frames: &[u8],
    ) -> Self {
        let bytes = [
            MAGIC.as_slice(),
            &SUITE,
            &log_id.to_bytes(),
            &segment.to_be_bytes(),
            &first_seq.to_be_bytes(),
            &prev.to_bytes(),
            frames,
        ]
        .concat();
        Self {
            segment,
            first_seq,
            prev,
            bytes,
        }
    }

    /// Tells whether a reader would take it: one that it refuses would make the rest of the log worthless.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        u64::try_from(self.bytes.len()).is_ok_and(|len| len <= LONGEST_CERTIFICATE)
    }

    /// Returns the stored bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns what the record says that vouches for it.
    #[must_use]
    pub fn named(&self) -> Pruned {
        Pruned {
            segment: self.segment,
            first_seq: self.first_seq,
            prev: self.prev,
            certificate: Digest::from_bytes(sha256(&[&self.bytes])),
        }
    }

    /// Returns the path of the certificate that begins a log at this segment.
    #[must_use]
    pub fn path(dir: &Path, segment: u64) -> PathBuf {
        dir.join("pruned").join(format!("{segment:010}.cert"))
    }

    /// Reads the certificate for a log of which `lowest` is the first segment there is.
    ///
    /// A later one is taken if there is none for that very segment: then a removal was cut short.
    pub(crate) fn find(dir: &Path, log_id: LogId, lowest: u64) -> Result<Option<Self>, Stop> {
        let folder = dir.join("pruned");
        let Some(segment) = numbers(&folder, ".cert")
            .map_err(|source| Stop::Io {
                path: folder,
                source,
            })?
            .into_iter()
            .filter(|segment| *segment >= lowest)
            .min()
        else {
            return Ok(None);
        };
        let bad = |what: &str| Stop::Bad(FirstBad::in_file(name(segment), what));
        let path = Self::path(dir, segment);
        let bytes = read(&path).map_err(|source| {
            if source.kind() == io::ErrorKind::FileTooLarge {
                bad("it is longer than one can be")
            } else {
                Stop::Io { path, source }
            }
        })?;
        Self::decode(bytes, log_id, segment)
            .map(Some)
            .ok_or_else(|| bad("it is no certificate for this log and segment"))
    }

    fn decode(bytes: Vec<u8>, log_id: LogId, segment: u64) -> Option<Self> {
        let mut fields = Fields(bytes.get(..FRONT)?);
        let magic: [u8; 8] = fields.array()?;
        let suite: [u8; 8] = fields.array()?;
        let of_log: [u8; 32] = fields.array()?;
        let names = fields.u64()?;
        let whole =
            magic == *MAGIC && suite == SUITE && of_log == log_id.to_bytes() && names == segment;
        let certificate = Self {
            segment,
            first_seq: fields.u64()?,
            prev: Digest::from_bytes(fields.array()?),
            bytes: Vec::new(),
        };
        let last = frames(&bytes).last().map_or(FRONT, |range| range.end);
        (whole && last == bytes.len()).then_some(Self {
            bytes,
            ..certificate
        })
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = Range<usize>> {
        frames(&self.bytes)
    }

    /// Returns its name below the log's folder.
    pub(crate) fn name(&self) -> String {
        name(self.segment)
    }
}

fn frames(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(frame_at(bytes, FRONT), |range| frame_at(bytes, range.end))
}

fn name(segment: u64) -> String {
    format!("pruned/{segment:010}.cert")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = regular::read(path, LONGEST_CERTIFICATE + 1)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > LONGEST_CERTIFICATE) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Returns the numbers in the names of a folder's files that end like this; none if there is no folder.
///
/// A folder that cannot be read is an error: taken for an empty one, the log would be begun anew over itself.
pub(crate) fn numbers(folder: &Path, ending: &str) -> io::Result<Vec<u64>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(ending));
        found.extend(
            digits
                .filter(|digits| digits.len() == 10)
                .and_then(|digits| digits.parse::<u64>().ok()),
        );
    }
    Ok(found)
}
