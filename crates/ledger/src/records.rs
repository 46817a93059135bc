//! Reads the committed records one after the other, for whoever wants to tell a story from them.

use std::{
    collections::VecDeque,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use model::{Digest, EpochId, LogId};

use crate::{
    certificate::{Certificate, numbers},
    header::{FRAME_PREFIX, HEADER_LEN, Header, MAX_FRAME, frame_id},
    origin::Origin,
    regular,
    scan::{Scan, Signatures, Step, Stop},
    segment::{CARRIED, Place, segment_file},
};

/// One record with its stored body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Where it stands.
    pub place: Place,
    /// Its clear header.
    pub header: Header,
    /// Its stored body: ciphertext and tag, or the clear bytes.
    pub body: Vec<u8>,
    /// Its id.
    pub id: Digest,
}

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// `LOG` is missing or unreadable.
    #[error("cannot read {path}")]
    Log {
        /// Which file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The log is not what was written; `verify` tells all about it.
    #[error(transparent)]
    Stop(#[from] Stop),
    /// A record that was there a moment ago cannot be read again.
    #[error("cannot read the record at {offset} of segment {segment} again")]
    Again {
        /// Which segment.
        segment: u64,
        /// Where in it.
        offset: u64,
    },
}

/// The committed records of a log, in order; ends with the last commit.
///
/// Hashes are checked on the way, signatures are not: that is `verify`'s work. Of a log whose daemon crashed they may
/// therefore include what somebody without a key appended; the next start of the daemon cuts it off.
#[derive(Debug)]
pub struct Records {
    scan: Scan,
    ready: VecDeque<(EpochId, Stored)>,
    ended: bool,
}

impl Records {
    /// Opens the log in `dir`.
    ///
    /// # Errors
    /// There is no readable `LOG`.
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let path = dir.join("LOG");
        let bytes = regular::read(&path, regular::LONGEST_SMALL)
            .map_err(|source| ReadError::Log { path, source })?;
        Ok(Self::of(dir, Origin::id(&bytes)))
    }

    /// Opens the log in `dir`, whose id the caller knows.
    #[must_use]
    pub fn of(dir: &Path, log_id: LogId) -> Self {
        Self {
            scan: Scan::new(dir, log_id, Signatures::Unchecked),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    fn fill(&mut self) -> Result<(), Stop> {
        match self.scan.step()? {
            Step::Batch(batch) => {
                let epoch = batch.epoch.id;
                self.ready.extend(batch.records().map(|record| {
                    let stored = Stored {
                        place: record.place,
                        header: record.header,
                        body: record.body.to_vec(),
                        id: record.id,
                    };
                    (epoch, stored)
                }));
            }
            Step::End(_) => self.ended = true,
        }
        Ok(())
    }
}

impl Iterator for Records {
    /// A record and the daemon run it stands in.
    type Item = Result<(EpochId, Stored), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.ended {
            if let Err(stop) = self.fill() {
                self.ended = true;
                return Some(Err(stop.into()));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

/// Reads again the record at a place that a fold remembered.
///
/// # Errors
/// There is no record there now: the log was changed meanwhile.
pub fn read_at(dir: &Path, place: Place) -> Result<Stored, ReadError> {
    stored_at(dir, place).ok_or(ReadError::Again {
        segment: place.segment,
        offset: place.offset,
    })
}

fn stored_at(dir: &Path, place: Place) -> Option<Stored> {
    let path = if place.segment == CARRIED {
        let first = numbers(&dir.join("pruned"), ".cert")
            .ok()?
            .into_iter()
            .min()?;
        Certificate::path(dir, first)
    } else {
        segment_file(dir, place.segment)
    };
    let file = regular::open(&path).ok()?;
    let mut prefix = [0; FRAME_PREFIX];
    file.read_exact_at(&mut prefix, place.offset).ok()?;
    let len = FRAME_PREFIX + usize::try_from(u32::from_be_bytes(prefix)).ok()?;
    if !(FRAME_PREFIX + HEADER_LEN..=MAX_FRAME).contains(&len) {
        return None;
    }
    let mut frame = vec![0; len];
    file.read_exact_at(&mut frame, place.offset).ok()?;
    let header = Header::decode(frame.get(FRAME_PREFIX..)?).ok()?;
    Some(Stored {
        place,
        header,
        id: frame_id(&frame),
        body: frame.split_off(FRAME_PREFIX + HEADER_LEN),
    })
}
