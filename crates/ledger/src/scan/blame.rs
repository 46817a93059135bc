//! Which record to blame: where the chain does not fit, the first one that nothing vouches for.
//!
//! A record is vouched for by the `prev` of the one behind it, a commit by its signature. A wrong length shows only in
//! its successor, which then begins in the wrong place.

use std::ops::Range;

use model::{Digest, Kind, Seq};

use super::{Scan, Unchecked, batch::frame_at};
use crate::{
    clear::Commit,
    header::{FRAME_PREFIX, HEADER_LEN, Header, frame_id},
    report::FirstBad,
};

impl Scan {
    /// Names the first record that nothing vouches for, where the frames end without a commit.
    pub(super) fn cut(&self, frames: &[Range<usize>], at: usize) -> FirstBad {
        let ids: Vec<Digest> = frames
            .iter()
            .map(|range| frame_id(self.frame(range)))
            .collect();
        if let Some(bad) = self.chain_fault(frames, &ids) {
            return bad;
        }
        let peeked = prev_of(self.data().get(at..).unwrap_or_default());
        let what = "no whole record stands here";
        let seq_at = self.seq_of_index(frames.len());
        match (frames.last(), ids.last()) {
            // The last frame's length may be what is wrong, unless its successor names its digest.
            (Some(last), Some(id)) if peeked != Some(*id) => {
                let seq = self.seq_of_index(frames.len().saturating_sub(1));
                self.bad(last.start, seq, "what follows this record is no record")
            }
            _ => self.bad(at, seq_at, what),
        }
    }

    pub(super) fn seq_of_index(&self, index: usize) -> Option<Seq> {
        u64::try_from(index).ok().map(|index| self.next_seq + index)
    }

    /// Checks numbers and chain, and returns the first record that nothing vouches for.
    pub(super) fn chain_fault(&self, frames: &[Range<usize>], ids: &[Digest]) -> Option<FirstBad> {
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

    pub(super) fn commit_is_signed(&self, range: &Range<usize>) -> bool {
        let record = self.frame(range).get(FRAME_PREFIX..).unwrap_or_default();
        let body = record.get(HEADER_LEN..).unwrap_or_default();
        let (Ok(header), Some(commit), Some(epoch)) =
            (Header::decode(record), Commit::decode(body), self.epoch)
        else {
            return false;
        };
        let unchecked = Unchecked {
            header,
            commit,
            public: epoch.public,
        };
        header.kind == Kind::Commit && unchecked.is_signed(self.log_id)
    }
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
