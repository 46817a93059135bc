//! The chain's growing end: seals a group, chains it, commits it, and waits for the disk.
//!
//! ```text
//! appending ──► appending      a group and its commit in one write, one fdatasync
//!     │    └──► next segment   before a group that would touch the reserve, if space was prepared
//!     └───────► poisoned       any failed write or sync; never left again
//! ```
//! Swapping any two steps would acknowledge what is not on disk: seal, chain, write, sync, publish, tell.

use std::{
    io,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ed25519_dalek::SigningKey;
use ledger::{Place, SegmentHeader, frame_id};
use model::{Clock, Digest, EpochId, Kind, LogId, Receipt, Seq, Stub};

mod frames;

use crate::{
    HeadPoint, KeyWrap, Stats,
    commit::{Seen, Sign},
    keyring::KeyRing,
    open::Sizes,
    pin::Pin,
    queue::{Group, Room},
    segments::{Segment, activate_spare, prepare_spare},
    unsettled::Unsettled,
};

/// Locks, whatever happened to another holder: every change behind these locks is complete when it is visible.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The growing end of the log.
pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    pub(crate) log_id: LogId,
    pub(crate) recipient: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wrap: Arc<dyn KeyWrap>,
    pub(crate) sizes: Sizes,
    pub(crate) segment: Segment,
    /// What the next record's `prev` will be.
    pub(crate) head: Digest,
    pub(crate) epoch: EpochId,
    pub(crate) signing: SigningKey,
    pub(crate) keys: Arc<Mutex<KeyRing>>,
    pub(crate) unsettled: Arc<Mutex<Unsettled>>,
    pub(crate) root: [u8; 32],
    pub(crate) spare: Spare,
    pub(crate) committed: Option<HeadPoint>,
    pub(crate) pin: Arc<Pin>,
    pub(crate) poisoned: Option<String>,
    pub(crate) writing: bool,
    pub(crate) stats: Stats,
}

/// Whether the next segment's space is there.
pub(crate) enum Spare {
    /// Not asked for yet.
    NotYet,
    /// It is.
    Ready,
    /// It could not be had.
    Missing(String),
}

/// What became of a group.
pub(crate) struct Done {
    pub(crate) receipts: Vec<(Stub, Receipt)>,
}

impl Writer {
    /// Writes a group and its commit, and waits for the disk.
    ///
    /// On an error the writer is poisoned: whether the bytes reached the disk is not known, and asking fsync(2) again
    /// would answer for other bytes.
    pub(crate) fn commit(
        &mut self,
        group: Group,
        sign: Option<Sign<'_>>,
    ) -> Result<Done, (String, Vec<Stub>)> {
        if self.writing {
            // Somebody panicked in the middle: the numbers of his records are lost, and a log has no gaps.
            self.poisoned = Some("a write was cut short".to_owned());
        }
        if let Some(why) = &self.poisoned {
            let why = why.clone();
            return Err((why, stubs(group)));
        }
        self.writing = true;
        let written = self.try_commit(&group, sign);
        self.writing = false;
        match written {
            Ok(ids) => {
                let log_id = self.log_id;
                let receipts = group
                    .records
                    .into_iter()
                    .zip(ids)
                    .map(|(queued, id)| {
                        let seq = queued.seq;
                        (queued.stub, Receipt { log_id, seq, id })
                    })
                    .collect();
                Ok(Done { receipts })
            }
            Err(error) => {
                let why = format!("{}: {error}", self.segment.path.display());
                self.poisoned = Some(why.clone());
                Err((why, stubs(group)))
            }
        }
    }

    fn try_commit(&mut self, group: &Group, mut sign: Option<Sign<'_>>) -> io::Result<Vec<Digest>> {
        self.make_room_for(group)?;
        let first = first_seq(group);
        let mut bytes = Vec::with_capacity(usize::try_from(group.bytes).unwrap_or(0));
        let mut ids = Vec::with_capacity(group.records.len());
        let mut frames = Vec::with_capacity(group.records.len());
        let mut head = self.head;
        for queued in &group.records {
            let frame = self.frame(queued, head, &mut sign)?;
            head = frame_id(&frame);
            ids.push(head);
            frames.push(bytes.len()..bytes.len() + frame.len());
            bytes.extend(frame);
        }
        let stamp = self.clock.now();
        let frame = self.commit_frame((first, group.commit_seq), stamp, head, bytes.len())?;
        bytes.extend(&frame);
        let begin = self.segment.offset;
        self.segment.append(&bytes)?;
        // Synced into a file that nobody finds again is not on record: two looks cost a few percent of the sync.
        self.still_in_place().map_err(io::Error::other)?;
        self.stats.syncs += 1;
        self.stats.commits += 1;
        self.stats.records += u64::try_from(ids.len()).unwrap_or(0);
        self.head = frame_id(&frame);
        self.note_unsettled(begin, &bytes, frames);
        self.committed = Some(HeadPoint {
            seq: group.commit_seq,
            id: self.head,
            at: stamp.wall,
        });
        self.look_ahead();
        if group.has(Kind::Revoked) {
            self.pin();
        }
        Ok(ids)
    }

    /// Keeps what is known of open calls up to date with what is on disk now.
    fn note_unsettled(&self, begin: u64, bytes: &[u8], frames: Vec<Range<usize>>) {
        let mut unsettled = lock(&self.unsettled);
        for frame in frames {
            let place = Place {
                segment: self.segment.index,
                offset: begin + u64::try_from(frame.start).unwrap_or(u64::MAX),
            };
            unsettled.apply_frame(bytes.get(frame).unwrap_or_default(), place);
        }
    }

    /// Goes on to the next segment if the group would touch the reserve and there is one.
    fn make_room_for(&mut self, group: &Group) -> io::Result<()> {
        let bytes = group.bytes;
        if self.segment.offset + bytes <= self.segment.len.saturating_sub(self.sizes.reserve) {
            return Ok(());
        }
        self.look_ahead();
        if !matches!(self.spare, Spare::Ready) {
            let fits = self.segment.offset + bytes <= self.segment.len;
            return if fits {
                Ok(())
            } else {
                Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    "the reserve is used up",
                ))
            };
        }
        let header = SegmentHeader {
            log_id: self.log_id,
            index: self.segment.index + 1,
            first_seq: first_seq(group),
            prev: self.head,
        };
        let next = activate_spare(&self.dir, &header, self.sizes.segment)?;
        let full = std::mem::replace(&mut self.segment, next);
        self.spare = Spare::NotYet;
        self.head = header.id();
        // The next segment's name says that this one is complete; only then may its unused end go.
        full.store.cut(full.offset)
    }

    /// Prepares the next segment once this one is half full; tried again by every commit until there is space.
    pub(crate) fn look_ahead(&mut self) {
        if matches!(self.spare, Spare::Ready) || self.segment.offset < self.segment.len / 2 {
            return;
        }
        self.spare = match prepare_spare(&self.dir, self.sizes.segment) {
            Ok(()) => Spare::Ready,
            Err(error) => Spare::Missing(format!("no space for the next segment: {error}")),
        };
    }

    /// Returns how many bytes are sure to fit, the reserve included, and why no more.
    pub(crate) fn room(&self) -> Room {
        let here = self.segment.len.saturating_sub(self.segment.offset);
        let (bytes, no_more) = match &self.spare {
            // Before the middle of a segment the next one is not needed yet.
            Spare::NotYet if self.segment.offset < self.segment.len / 2 => (here, None),
            Spare::NotYet | Spare::Ready => {
                let next = self.sizes.segment.saturating_sub(self.sizes.reserve);
                (here + next / 2, None)
            }
            Spare::Missing(why) => (here, Some(why.clone())),
        };
        Room { bytes, no_more }
    }

    /// Returns what others may see.
    pub(crate) fn seen(&self) -> Seen {
        Seen {
            head: self.committed,
            root: self.root,
            poisoned: self.poisoned.clone(),
            head_behind: self.pin.problem(),
            stats: self.stats,
        }
    }

    /// Writes `HEAD`.
    pub(crate) fn pin(&self) {
        if let Some(committed) = self.committed {
            self.pin.write(committed);
        }
    }

    /// Looks whether the log is still where it was, although nothing is written at present.
    pub(crate) fn watch(&mut self) {
        if let Err(why) = self.still_in_place() {
            self.poisoned.get_or_insert(why);
        }
    }

    /// A log that somebody removed or replaced while it is written would go on into nowhere.
    fn still_in_place(&self) -> Result<(), String> {
        let path = &self.segment.path;
        match self.segment.store.is_at(path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} was replaced", path.display())),
            Err(error) => Err(format!("{} is gone: {error}", path.display())),
        }
    }
}

fn first_seq(group: &Group) -> Seq {
    group
        .records
        .first()
        .map_or(group.commit_seq, |queued| queued.seq)
}

fn stubs(group: Group) -> Vec<Stub> {
    group
        .records
        .into_iter()
        .map(|queued| queued.stub)
        .collect()
}
