//! One batch: found by its frames, believed by its chain, accepted by its commit.

use std::ops::Range;

use model::{Digest, Kind, Seq};

use super::{Epoch, LastCommit, Scan, Signatures, Stop, Unchecked};
use crate::{
    MAX_BATCH,
    clear::{Commit, EpochOpened},
    header::{BadHeader, FRAME_PREFIX, HEADER_LEN, Header, MAX_FRAME, frame_id},
    report::FirstBad,
    scan::Record,
    segment::Place,
    window::Window,
};

/// A record that the chain and a commit vouch for.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    range: Range<usize>,
    header: Header,
    id: Digest,
}

impl Accepted {
    /// Takes a frame out of a certificate; none if it holds no record of version 1.
    pub(super) fn carried(bytes: &[u8], range: Range<usize>) -> Option<Self> {
        let frame = bytes.get(range.clone())?;
        Some(Self {
            header: Header::decode(frame.get(FRAME_PREFIX..)?).ok()?,
            id: frame_id(frame),
            range,
        })
    }

    /// Returns the daemon run that this record opens.
    pub(super) fn opens(&self, data: &[u8]) -> Option<Epoch> {
        if self.header.kind != Kind::EpochOpened {
            return None;
        }
        let opened = EpochOpened::decode(self.record(data, 0, 0).body)?;
        Some(Epoch {
            id: opened.epoch,
            public: opened.public,
            opened_seq: self.header.seq,
        })
    }

    pub(super) fn record<'a>(&self, data: &'a [u8], segment: u64, base: usize) -> Record<'a> {
        let frame = data.get(self.range.clone()).unwrap_or_default();
        Record {
            place: Place {
                segment,
                offset: u64::try_from(base + self.range.start).unwrap_or(u64::MAX),
            },
            header: self.header,
            body: frame.get(FRAME_PREFIX + HEADER_LEN..).unwrap_or_default(),
            id: self.id,
        }
    }
}

/// What stands at the scan's place.
pub(super) enum Collected {
    /// Frames up to and with a commit; not judged yet.
    Batch(Vec<Range<usize>>),
    /// Frames that lead to no commit, and where they end.
    Cut(Vec<Range<usize>>, usize),
    /// More than a writer ever leaves without a commit.
    TooLong(FirstBad),
}

/// Why a batch is not accepted.
pub(super) enum Fault {
    /// It is not what was written.
    Bad(FirstBad),
    /// It is whole, and a later version wrote it.
    Unknown(String),
}

impl From<FirstBad> for Fault {
    fn from(bad: FirstBad) -> Self {
        Self::Bad(bad)
    }
}

impl Scan {
    pub(super) fn data(&self) -> &[u8] {
        self.window.as_ref().map_or(&[], Window::data)
    }

    /// Where the window begins in the segment.
    pub(super) fn base(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.base)
    }

    /// The scan's place, in the window.
    pub(super) fn start(&self) -> usize {
        self.offset.saturating_sub(self.base())
    }

    pub(super) fn frame(&self, range: &Range<usize>) -> &[u8] {
        self.data().get(range.clone()).unwrap_or_default()
    }

    pub(super) fn bad(&self, at: usize, seq: Option<Seq>, what: impl Into<String>) -> FirstBad {
        let offset = u64::try_from(self.base() + at).unwrap_or(u64::MAX);
        let place = Place {
            segment: self.index,
            offset,
        };
        FirstBad::in_segment(place, seq, what)
    }

    /// Finds the frames of the next batch by their lengths alone.
    pub(super) fn collect(&mut self) -> Collected {
        let mut frames = std::mem::take(&mut self.ranges);
        frames.clear();
        let data = self.data();
        let mut at = self.start();
        loop {
            let Some(range) = frame_at(data, at) else {
                return Collected::Cut(frames, at);
            };
            at = range.end;
            let is_commit = data.get(range.start + FRAME_PREFIX + 1) == Some(&Kind::Commit.code());
            frames.push(range);
            if is_commit {
                return Collected::Batch(frames);
            }
            if at - self.start() > MAX_BATCH {
                let what = "more records without a commit than a writer ever leaves";
                return Collected::TooLong(self.bad(self.start(), Some(self.next_seq), what));
            }
        }
    }

    /// Believes a batch, or says which record is to blame.
    pub(super) fn judge(&mut self, frames: &[Range<usize>]) -> Result<Verdict, Fault> {
        let mut accepted = std::mem::take(&mut self.frames);
        accepted.clear();
        let data = self.data();
        let (mut before, mut seq) = (self.head, self.next_seq);
        for range in frames {
            let frame = data.get(range.clone()).unwrap_or_default();
            let header = Header::decode(frame.get(FRAME_PREFIX..).unwrap_or_default());
            let header = match header {
                Ok(header) if (header.prev, header.seq) == (before, seq) => header,
                Ok(_) | Err(_) => return self.judge_each(frames),
            };
            before = frame_id(frame);
            seq += 1;
            accepted.push(Accepted {
                range: range.clone(),
                header,
                id: before,
            });
        }
        self.judge_commit(accepted)
    }

    /// Says which record is to blame, where the chain or a header does not fit.
    fn judge_each(&self, frames: &[Range<usize>]) -> Result<Verdict, Fault> {
        let ids: Vec<Digest> = frames
            .iter()
            .map(|range| frame_id(self.frame(range)))
            .collect();
        if let Some(bad) = self.chain_fault(frames, &ids) {
            return Err(bad.into());
        }
        let mut accepted = Vec::with_capacity(frames.len());
        for (index, (range, id)) in frames.iter().zip(ids).enumerate() {
            let record = self.frame(range).get(FRAME_PREFIX..).unwrap_or_default();
            let header = Header::decode(record).map_err(|why| {
                let vouched = frames.last().is_some_and(|last| {
                    last != range && (self.epoch.is_none() || self.commit_is_signed(last))
                });
                self.undecodable(range, index, why, vouched)
            })?;
            accepted.push(Accepted {
                range: range.clone(),
                header,
                id,
            });
        }
        self.judge_commit(accepted)
    }

    fn undecodable(
        &self,
        range: &Range<usize>,
        index: usize,
        why: BadHeader,
        vouched: bool,
    ) -> Fault {
        match why {
            BadHeader::Version(_) | BadHeader::Kind(_) if vouched => {
                Fault::Unknown(why.to_string())
            }
            BadHeader::Version(_) | BadHeader::Kind(_) | BadHeader::Short | BadHeader::Field => {
                Fault::Bad(self.bad(range.start, self.seq_of_index(index), why.to_string()))
            }
        }
    }

    fn judge_commit(&self, frames: Vec<Accepted>) -> Result<Verdict, Fault> {
        let Some(last) = frames.last() else {
            return Err(self.bad(self.start(), None, "an empty batch").into());
        };
        let seq = Some(last.header.seq);
        let fault = |what: &str| Fault::Bad(self.bad(last.range.start, seq, what));
        let epoch = self.epoch_of(&frames)?;
        let body = last.record(self.data(), self.index, self.base()).body;
        let commit = Commit::decode(body).ok_or_else(|| fault("the commit is malformed"))?;
        let offset = u64::try_from(self.base() + last.range.start).unwrap_or(u64::MAX);
        let says = (
            commit.epoch,
            commit.first_seq,
            commit.segment,
            commit.offset,
        );
        if says != (epoch.id, self.next_seq, self.index, offset) {
            return Err(fault("the commit does not describe the records before it"));
        }
        let unchecked = Unchecked {
            header: last.header,
            commit,
            public: epoch.public,
        };
        if self.signatures == Signatures::All && !unchecked.is_signed(self.log_id) {
            return Err(fault("the commit's signature is not its epoch's"));
        }
        Ok(Verdict {
            unchecked,
            frames,
            epoch,
        })
    }

    /// An epoch begins with the first record of a batch, and the log with an epoch.
    fn epoch_of(&self, frames: &[Accepted]) -> Result<Epoch, Fault> {
        let mut epoch = self.epoch;
        for (index, frame) in frames.iter().enumerate() {
            if frame.header.kind != Kind::EpochOpened {
                continue;
            }
            let fault = |what: &str| self.bad(frame.range.start, Some(frame.header.seq), what);
            let opened = frame
                .opens(self.data())
                .ok_or_else(|| fault("the record that opens an epoch is malformed"))?;
            if index != 0 {
                return Err(fault("an epoch begins in the middle of a batch").into());
            }
            epoch = Some(opened);
        }
        epoch.ok_or_else(|| {
            self.bad(
                self.start(),
                Some(self.next_seq),
                "the log does not begin with an epoch",
            )
            .into()
        })
    }

    pub(super) fn accept(&mut self, verdict: Verdict) -> Result<(), Stop> {
        if self.epoch != Some(verdict.epoch) {
            self.check_pending()?;
        }
        let Some(last) = verdict.frames.last() else {
            return Ok(());
        };
        self.last = Some(LastCommit {
            place: last.record(&[], self.index, self.base()).place,
            seq: last.header.seq,
        });
        self.head = last.id;
        self.next_seq = last.header.seq + 1;
        self.offset = self.base() + last.range.end;
        self.epoch = Some(verdict.epoch);
        self.unchecked = (self.signatures == Signatures::LastOfEpoch).then_some(verdict.unchecked);
        self.frames = verdict.frames;
        Ok(())
    }
}

/// A batch that fits, on its way to being accepted.
pub(super) struct Verdict {
    frames: Vec<Accepted>,
    epoch: Epoch,
    unchecked: Unchecked,
}

/// Returns the range of the frame at `at`; none if no whole frame can stand there.
pub(crate) fn frame_at(data: &[u8], at: usize) -> Option<Range<usize>> {
    let prefix: [u8; FRAME_PREFIX] = *data.get(at..)?.first_chunk()?;
    let len = usize::try_from(u32::from_be_bytes(prefix)).ok()?;
    let end = at + FRAME_PREFIX + len;
    let whole = (HEADER_LEN..=MAX_FRAME - FRAME_PREFIX).contains(&len) && end <= data.len();
    whole.then_some(at..end)
}
