//! Walks the log batch by batch and believes only what the chain vouches for.
//!
//! A batch is a run of records that ends in a commit. Nothing of it is given out before the whole batch is chained
//! to what came before and its commit says what it stands on. A writer may be at work meanwhile: the last segment is
//! then read again as long as it changes, and what stands behind its last commit is a tail, not a fault. Memory is
//! bounded by a window onto one segment.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use model::{Digest, EpochId, LogId, Seq};

use crate::{
    certificate::Certificate,
    clear::{Commit, signed_message, signed_part},
    head::signature_is_by,
    header::Header,
    report::FirstBad,
    segment::{CARRIED, Place, segment_file},
    tail::Tail,
    window::Window,
};

mod batch;
mod blame;
mod opening;

pub(crate) use batch::frame_at;
use batch::{Accepted, Collected};
use opening::First;

/// How often, and after how long, a tail is looked at again: a writer may have been scheduled away in the middle of a
/// write. If nothing changes meanwhile, nobody writes.
const LOOKS: usize = 5;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Which commits' signatures are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signatures {
    /// None: for a reader that trusts who opened the log.
    Unchecked,
    /// The last of each epoch: it covers all before it.
    LastOfEpoch,
    /// Every one: finds the first bad one.
    All,
}

/// The daemon run whose records are being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Its id.
    pub id: EpochId,
    /// Its public key.
    pub public: [u8; 32],
    /// Its first record.
    pub opened_seq: Seq,
}

/// Why a scan ends before the log does.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Bytes that were acknowledged are not what was written.
    #[error("{0}")]
    Bad(FirstBad),
    /// A later version wrote it.
    #[error("{0}")]
    Unknown(String),
    /// The last commit of an epoch has a wrong signature; a scan with `Signatures::All` finds the first such.
    #[error("the last commit of an epoch is not signed by it")]
    Unsigned,
    /// The file system refused.
    #[error("cannot read {path}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

/// What a scan came to.
#[derive(Debug)]
pub enum Step<'a> {
    /// A whole batch.
    Batch(Batch<'a>),
    /// The end of what is committed.
    End(End),
}

/// Where the log ends.
#[derive(Debug, Clone)]
pub struct End {
    /// The first byte behind the last commit.
    pub at: Place,
    /// What stands behind it, if anything does.
    pub tail: Option<Tail>,
}

/// The records of one commit, the commit last.
#[derive(Debug)]
pub struct Batch<'a> {
    data: &'a [u8],
    segment: u64,
    /// Where `data` begins in the segment.
    base: usize,
    frames: &'a [Accepted],
    /// The daemon run they stand in.
    pub epoch: Epoch,
    /// The number of the first record behind them.
    pub next_seq: Seq,
}

impl Batch<'_> {
    /// Tells whether these are not records of the log but those that a certificate carries over.
    #[must_use]
    pub const fn is_carried(&self) -> bool {
        self.segment == CARRIED
    }
}

/// One record of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where its frame stands.
    pub place: Place,
    /// Its clear header.
    pub header: Header,
    /// Its stored body.
    pub body: &'a [u8],
    /// Its id.
    pub id: Digest,
}

impl<'a> Batch<'a> {
    /// Returns the records in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let (data, segment, base) = (self.data, self.segment, self.base);
        self.frames
            .iter()
            .map(move |frame| frame.record(data, segment, base))
    }
}

/// A walk over one log.
#[derive(Debug)]
pub struct Scan {
    dir: PathBuf,
    log_id: LogId,
    signatures: Signatures,
    index: u64,
    window: Option<Window>,
    /// What takes the place of the segments that were given up.
    certificate: Option<Certificate>,
    /// Whether the next segment was there before this one was read: it is complete then.
    sealed: bool,
    /// Where the next batch begins in the segment.
    offset: usize,
    next_seq: Seq,
    /// What the next record's `prev` must be.
    head: Digest,
    last: Option<LastCommit>,
    epoch: Option<Epoch>,
    unchecked: Option<Unchecked>,
    /// The records of the batch that was accepted last.
    frames: Vec<Accepted>,
    /// Where the frames of a batch stand; kept for the next one, as room.
    ranges: Vec<Range<usize>>,
}

/// The newest commit that was accepted.
#[derive(Debug, Clone, Copy)]
struct LastCommit {
    place: Place,
    seq: Seq,
}

/// A commit whose signature is looked at later, if at all.
#[derive(Debug)]
struct Unchecked {
    header: Header,
    commit: Commit,
    public: [u8; 32],
}

impl Unchecked {
    fn is_signed(&self, log_id: LogId) -> bool {
        let body = self.commit.encode();
        signed_part(self.header.kind, &body)
            .and_then(|part| signed_message(log_id, &self.header, part))
            .is_some_and(|message| signature_is_by(&self.public, &message, &self.commit.signature))
    }
}

impl Scan {
    /// Begins at the first record of the log in `dir` with this id.
    #[must_use]
    pub fn new(dir: &Path, log_id: LogId, signatures: Signatures) -> Self {
        Self {
            dir: dir.to_owned(),
            log_id,
            signatures,
            index: 0,
            window: None,
            certificate: None,
            sealed: false,
            offset: 0,
            next_seq: 1,
            head: Digest::from_bytes([0; 32]),
            last: None,
            epoch: None,
            unchecked: None,
            frames: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// Returns what takes the place of segments that were given up.
    #[must_use]
    pub const fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Returns the daemon run the scan has come to.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// Returns the number that the next record will have.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Returns the id that the next record will name as its `prev`.
    #[must_use]
    pub const fn head(&self) -> Digest {
        self.head
    }

    /// Returns the place and number of the last commit that was believed.
    #[must_use]
    pub fn last_commit(&self) -> Option<(Place, Seq)> {
        self.last.map(|last| (last.place, last.seq))
    }

    /// Goes on to the next batch, or to the end.
    ///
    /// # Errors
    /// The log is not what was written, was written by a later version, or cannot be read.
    pub fn step(&mut self) -> Result<Step<'_>, Stop> {
        loop {
            if self.window.is_none() {
                match self.load_first()? {
                    First::None => return self.end(None),
                    First::Carried => return self.carried(),
                    First::Segment => {}
                }
            }
            let bad = match self.collect() {
                Collected::Batch(ranges) => match self.judge(&ranges) {
                    Ok(accepted) => {
                        self.accept(accepted)?;
                        self.ranges = ranges;
                        return self.batch();
                    }
                    Err(batch::Fault::Unknown(what)) => return Err(Stop::Unknown(what)),
                    // Whom to blame depends on what follows: it has to be in the window.
                    Err(batch::Fault::Bad(_)) if self.slide()? => continue,
                    Err(batch::Fault::Bad(bad)) => bad,
                },
                Collected::TooLong(bad) => bad,
                Collected::Cut(..) if self.slide()? => continue,
                Collected::Cut(frames, at) => {
                    if !frames.is_empty() || self.used()? > self.offset {
                        self.cut(&frames, at)
                    } else if self.sealed {
                        self.load_next()?;
                        continue;
                    } else if self.reload_if_followed()? {
                        // Read again, it may hold more than it did.
                        continue;
                    } else {
                        return self.end(None);
                    }
                }
            };
            if let Some(tail) = self.behind(bad)? {
                return self.end(Some(tail));
            }
        }
    }

    fn batch(&self) -> Result<Step<'_>, Stop> {
        let (Some(window), Some(epoch)) = (&self.window, self.epoch) else {
            return self.end(None);
        };
        Ok(Step::Batch(Batch {
            data: window.data(),
            segment: self.index,
            base: window.base,
            frames: &self.frames,
            epoch,
            next_seq: self.next_seq,
        }))
    }

    fn carried(&self) -> Result<Step<'_>, Stop> {
        let (Some(certificate), Some(epoch)) = (&self.certificate, self.epoch) else {
            return self.end(None);
        };
        Ok(Step::Batch(Batch {
            data: certificate.bytes(),
            segment: CARRIED,
            base: 0,
            frames: &self.frames,
            epoch,
            next_seq: self.next_seq,
        }))
    }

    /// Judges bytes that are no batch: a fault where more follows, else a tail; none if it is worth another look.
    fn behind(&mut self, bad: FirstBad) -> Result<Option<Tail>, Stop> {
        if self.sealed {
            return Err(Stop::Bad(bad));
        }
        if self.reload_if_followed()? {
            return Ok(None);
        }
        let before = self.on_file(|window, at| window.fingerprint(at))?;
        let offset = self.offset;
        if self.on_file_mut(|window| window.refresh(offset))? {
            return Ok(None);
        }
        let used = self.used()?;
        let tail = self.tail(bad, used)?;
        let goes_on = self.on_file(|window, _| window.len())? > used;
        if tail.acknowledged.is_some() || !goes_on {
            return Ok(Some(tail));
        }
        for _ in 0..LOOKS {
            thread::sleep(LOOK_AGAIN);
            if self.reload_if_followed()? {
                return Ok(None);
            }
            if self.on_file(|window, at| window.fingerprint(at))? != before {
                self.load(self.index, self.offset)?;
                return Ok(None);
            }
        }
        Ok(Some(tail))
    }

    fn tail(&self, bad: FirstBad, used: usize) -> Result<Tail, Stop> {
        self.on_file(|window, at| {
            Tail::find(
                (self.index, window),
                at..used.max(at),
                (self.next_seq, self.log_id),
                self.epoch.map(|epoch| epoch.public),
                bad,
            )
        })
    }

    fn slide(&mut self) -> Result<bool, Stop> {
        let offset = self.offset;
        self.on_file_mut(|window| window.slide(offset))
    }

    /// Returns where the data ends; the scan's own place if nothing but zeros follows.
    fn used(&self) -> Result<usize, Stop> {
        self.on_file(Window::used)
    }

    fn on_file<T>(&self, what: impl FnOnce(&Window, usize) -> io::Result<T>) -> Result<T, Stop> {
        let Some(window) = &self.window else {
            return Err(self.unreadable(io::ErrorKind::NotFound.into()));
        };
        what(window, self.offset).map_err(|source| self.unreadable(source))
    }

    fn on_file_mut<T>(
        &mut self,
        what: impl FnOnce(&mut Window) -> io::Result<T>,
    ) -> Result<T, Stop> {
        let Some(window) = &mut self.window else {
            return Err(self.unreadable(io::ErrorKind::NotFound.into()));
        };
        what(window).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> Stop {
        Stop::Io {
            path: segment_file(&self.dir, self.index),
            source,
        }
    }

    fn end(&self, tail: Option<Tail>) -> Result<Step<'_>, Stop> {
        self.check_pending()?;
        self.nothing_missing()?;
        Ok(Step::End(End {
            at: self.here(),
            tail,
        }))
    }

    fn here(&self) -> Place {
        Place {
            segment: self.index,
            offset: u64::try_from(self.offset).unwrap_or(u64::MAX),
        }
    }

    fn check_pending(&self) -> Result<(), Stop> {
        match &self.unchecked {
            Some(commit) if !commit.is_signed(self.log_id) => Err(Stop::Unsigned),
            Some(_) | None => Ok(()),
        }
    }
}
