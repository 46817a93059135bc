//! One batch: found by its frames, believed by its chain, accepted by its commit.
//!
//! Where the chain does not fit, the record to blame is the first that nothing vouches for: a record is vouched for
//! by the `prev` of the one behind it, the commit by its signature.

use std::ops::Range;

use model::{Digest, Kind, Seq};

use super::{Epoch, LastCommit, Scan, Signatures, Stop, Unchecked};
use crate::{
    MAX_BATCH,
    clear::{Commit, EpochOpened, signed_message, signed_part},
    head::signature_is_by,
    header::{BadHeader, FRAME_PREFIX, HEADER_LEN, Header, MAX_FRAME, frame_id},
    report::FirstBad,
    scan::Record,
    segment::Place,
};

/// A record that the chain and a commit vouch for.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    range: Range<usize>,
    header: Header,
    id: Digest,
}

impl Accepted {
    pub(super) fn record<'a>(&self, data: &'a [u8], segment: u64) -> Record<'a> {
        let frame = data.get(self.range.clone()).unwrap_or_default();
        Record {
            place: Place {
                segment,
                offset: u64::try_from(self.range.start).unwrap_or(u64::MAX),
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
    /// Only zeros, up to the end of the file.
    Nothing,
    /// Bytes that do not lead to a commit.
    Cut(FirstBad),
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
    fn data(&self) -> &[u8] {
        self.loaded.as_ref().map_or(&[], |loaded| &loaded.data)
    }

    fn frame(&self, range: &Range<usize>) -> &[u8] {
        self.data().get(range.clone()).unwrap_or_default()
    }

    fn bad(&self, at: usize, seq: Option<Seq>, what: impl Into<String>) -> FirstBad {
        let offset = u64::try_from(at).unwrap_or(u64::MAX);
        let place = Place {
            segment: self.index,
            offset,
        };
        FirstBad::in_segment(place, seq, what)
    }

    /// Finds the frames of the next batch by their lengths alone.
    pub(super) fn collect(&self) -> Collected {
        let data = self.data();
        let mut frames = Vec::new();
        let mut at = self.offset;
        loop {
            let Some(range) = frame_at(data, at) else {
                return self.cut(&frames, at);
            };
            at = range.end;
            let is_commit = data.get(range.start + FRAME_PREFIX + 1) == Some(&Kind::Commit.code());
            frames.push(range);
            if is_commit {
                return Collected::Batch(frames);
            }
            if at - self.offset > MAX_BATCH {
                let what = "more records without a commit than a writer ever leaves";
                return Collected::Cut(self.bad(self.offset, Some(self.next_seq), what));
            }
        }
    }

    /// Names the first record that nothing vouches for, where the frames end without a commit.
    fn cut(&self, frames: &[Range<usize>], at: usize) -> Collected {
        let used = self.loaded.as_ref().map_or(0, |loaded| loaded.used);
        if frames.is_empty() && at >= used {
            return Collected::Nothing;
        }
        let ids: Vec<Digest> = frames
            .iter()
            .map(|range| frame_id(self.frame(range)))
            .collect();
        if let Some(bad) = self.chain_fault(frames, &ids) {
            return Collected::Cut(bad);
        }
        let peeked = prev_of(self.data().get(at..).unwrap_or_default());
        let what = "no whole record stands here";
        let seq_at = self.seq_of_index(frames.len());
        match (frames.last(), ids.last()) {
            // The last frame's length may be what is wrong, unless its successor names its digest.
            (Some(last), Some(id)) if peeked != Some(*id) => {
                let seq = self.seq_of_index(frames.len().saturating_sub(1));
                Collected::Cut(self.bad(last.start, seq, "what follows this record is no record"))
            }
            _ => Collected::Cut(self.bad(at, seq_at, what)),
        }
    }

    fn seq_of_index(&self, index: usize) -> Option<Seq> {
        u64::try_from(index).ok().map(|index| self.next_seq + index)
    }

    /// Checks numbers and chain, and returns the first record that nothing vouches for.
    fn chain_fault(&self, frames: &[Range<usize>], ids: &[Digest]) -> Option<FirstBad> {
        let mut before = self.head;
        for (index, (range, id)) in frames.iter().zip(ids).enumerate() {
            let expected = self.seq_of_index(index);
            let (seq, prev) = (seq_of(self.frame(range)), prev_of(self.frame(range)));
            if prev != Some(before) {
                let vouched = self.successor_names(range, *id) || self.commit_is_signed(range);
                return Some(self.blame(index, frames, (seq, expected), vouched));
            }
            if seq != expected {
                let what = "the record's number is not the next one";
                return Some(self.bad(range.start, expected, what));
            }
            before = *id;
        }
        None
    }

    /// The chain breaks in front of `index`. That record is itself intact if it is vouched for.
    fn blame(
        &self,
        index: usize,
        frames: &[Range<usize>],
        (seq, expected): (Option<Seq>, Option<Seq>),
        vouched: bool,
    ) -> FirstBad {
        let here = frames.get(index).cloned().unwrap_or_default();
        let start = here.start;
        let record = self.frame(&here).get(FRAME_PREFIX..).unwrap_or_default();
        let before = index.checked_sub(1).and_then(|before| frames.get(before));
        if let (Err(_), Some(before)) = (Header::decode(record), before) {
            // A wrong length makes its successor begin in the wrong place.
            let seq = expected.map(|seq| seq - 1);
            return self.bad(before.start, seq, "what follows this record is no record");
        }
        if seq != expected {
            let what = "a record is missing, doubled or moved before this place";
            return self.bad(start, expected, what);
        }
        let changed = "the record's bytes are not those that its successor was chained to";
        match (vouched, before, self.last) {
            (true, Some(before), _) => self.bad(before.start, expected.map(|seq| seq - 1), changed),
            (true, None, Some(last)) => FirstBad::in_segment(last.place, Some(last.seq), changed),
            (true, None, None) | (false, _, _) => self.bad(start, expected, changed),
        }
    }

    /// Tells whether the frame behind this one, in this batch or the next, was chained to it as it stands.
    fn successor_names(&self, range: &Range<usize>, id: Digest) -> bool {
        let next = frame_at(self.data(), range.end);
        next.is_some_and(|next| prev_of(self.frame(&next)) == Some(id))
    }

    fn commit_is_signed(&self, range: &Range<usize>) -> bool {
        let record = self.frame(range).get(FRAME_PREFIX..).unwrap_or_default();
        let body = record.get(HEADER_LEN..).unwrap_or_default();
        let (Ok(header), Some(commit), Some(epoch)) =
            (Header::decode(record), Commit::decode(body), self.epoch)
        else {
            return false;
        };
        header.kind == Kind::Commit
            && signed_part(header.kind, body)
                .and_then(|part| signed_message(self.log_id, &header, part))
                .is_some_and(|message| signature_is_by(&epoch.public, &message, &commit.signature))
    }

    /// Believes a batch, or says which record is to blame.
    pub(super) fn judge(&self, frames: &[Range<usize>]) -> Result<Verdict, Fault> {
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
            return Err(self.bad(self.offset, None, "an empty batch").into());
        };
        let seq = Some(last.header.seq);
        let fault = |what: &str| Fault::Bad(self.bad(last.range.start, seq, what));
        let epoch = self.epoch_of(&frames)?;
        let body = last.record(self.data(), self.index).body;
        let commit = Commit::decode(body).ok_or_else(|| fault("the commit is malformed"))?;
        let offset = u64::try_from(last.range.start).unwrap_or(u64::MAX);
        let says = (
            commit.epoch,
            commit.first_seq,
            commit.segment,
            commit.offset,
        );
        if says != (epoch.id, self.next_seq, self.index, offset) {
            return Err(fault("the commit does not describe the records before it"));
        }
        let message = signed_part(Kind::Commit, body)
            .and_then(|part| signed_message(self.log_id, &last.header, part))
            .ok_or_else(|| fault("the commit is malformed"))?;
        if self.signatures == Signatures::All
            && !signature_is_by(&epoch.public, &message, &commit.signature)
        {
            return Err(fault("the commit's signature is not its epoch's"));
        }
        Ok(Verdict {
            unchecked: Unchecked {
                message,
                signature: commit.signature,
                public: epoch.public,
            },
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
            let opened = EpochOpened::decode(frame.record(self.data(), self.index).body)
                .ok_or_else(|| fault("the record that opens an epoch is malformed"))?;
            if index != 0 {
                return Err(fault("an epoch begins in the middle of a batch").into());
            }
            epoch = Some(Epoch {
                id: opened.epoch,
                public: opened.public,
                opened_seq: frame.header.seq,
            });
        }
        epoch.ok_or_else(|| {
            self.bad(
                self.offset,
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
            place: last.record(&[], self.index).place,
            seq: last.header.seq,
        });
        self.head = last.id;
        self.next_seq = last.header.seq + 1;
        self.offset = last.range.end;
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

fn seq_of(frame: &[u8]) -> Option<Seq> {
    let at = FRAME_PREFIX + 4;
    frame
        .get(at..)?
        .first_chunk()
        .map(|seq| Seq::from_be_bytes(*seq))
}

pub(super) fn prev_of(frame: &[u8]) -> Option<Digest> {
    let at = FRAME_PREFIX + 56;
    frame
        .get(at..)?
        .first_chunk()
        .map(|prev| Digest::from_bytes(*prev))
}
