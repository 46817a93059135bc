//! What stands behind the last commit: a torn write, or the rest of a log that was edited.
//!
//! A writer writes one batch, waits for the disk, and only then writes the next. So a torn write leaves remains of one
//! batch, its commit perhaps among them (sectors reach the disk in any order). A signed commit that does *not* follow
//! the last good one directly shows that more had been acknowledged: then bytes before it were changed.

use std::{io, iter::successors, ops::Range};

use memchr::memmem;
use model::{Kind, LogId, Seq};

use crate::{
    clear::{Commit, EpochOpened, signed_message, signed_part},
    head::signature_is_by,
    header::{FRAME_PREFIX, HEADER_LEN, Header},
    report::{FirstBad, TornTail},
    scan::frame_at,
    window::{OVERLAP, Window},
};

/// Bytes behind the last commit.
#[derive(Debug, Clone)]
pub struct Tail {
    /// The segment they stand in.
    pub segment: u64,
    /// Where they begin and end in the segment.
    pub range: Range<u64>,
    /// The first record that could not be read or believed.
    pub bad: FirstBad,
    /// The number of a signed commit among them that shows they had been acknowledged.
    pub acknowledged: Option<Seq>,
}

impl Tail {
    /// Looks at what stands from `range` on in a segment.
    pub(crate) fn find(
        (segment, window): (u64, &Window),
        range: Range<usize>,
        (next_seq, log): (Seq, LogId),
        public: Option<[u8; 32]>,
        bad: FirstBad,
    ) -> io::Result<Self> {
        // Not cut at the last byte that is not zero: a signature may end in zeros.
        let whole = range.start..range.end.saturating_add(OVERLAP);
        let mut publics: Vec<[u8; 32]> = public.into_iter().collect();
        window.pieces(whole.clone(), |_, bytes| publics.extend(opened_keys(bytes)))?;
        let mut acknowledged = None;
        window.pieces(whole, |_, bytes| {
            acknowledged = acknowledged.or_else(|| signed_commit(bytes, next_seq, log, &publics));
        })?;
        let wide = |at: usize| u64::try_from(at).unwrap_or(u64::MAX);
        Ok(Self {
            segment,
            range: wide(range.start)..wide(range.end),
            bad,
            acknowledged,
        })
    }
}

/// Finds a signed commit that does not follow the last good one directly.
fn signed_commit(bytes: &[u8], next_seq: Seq, log: LogId, publics: &[[u8; 32]]) -> Option<Seq> {
    commits(bytes)
        .filter(|(_, commit, _)| commit.first_seq > next_seq)
        .find(|(header, commit, message)| {
            let message = signed_message(log, header, message).unwrap_or_default();
            publics
                .iter()
                .any(|key| signature_is_by(key, &message, &commit.signature))
        })
        .map(|(header, ..)| header.seq)
}

impl From<&Tail> for TornTail {
    fn from(tail: &Tail) -> Self {
        Self {
            segment: tail.segment,
            offset: tail.range.start,
            bytes: tail.range.end.saturating_sub(tail.range.start),
        }
    }
}

/// Finds everything that has the form of a record of `kind` with `body_len` bytes, at any offset.
fn shaped(bytes: &[u8], kind: Kind, body_len: usize) -> impl Iterator<Item = &[u8]> {
    let len = u32::try_from(HEADER_LEN + body_len).unwrap_or(0);
    let mut pattern = len.to_be_bytes().to_vec();
    pattern.extend([1, kind.code(), 0, 0]);
    let finder = memmem::Finder::new(&pattern).into_owned();
    let after = move |from: usize| Some(from + finder.find(bytes.get(from..)?)?);
    // From the next byte on, not behind the whole pattern: it may overlap itself.
    successors(after(0), move |at| after(at + 1))
        .filter_map(|at| bytes.get(frame_at(bytes, at)?))
        .filter_map(|frame| frame.get(FRAME_PREFIX..))
}

fn commits(bytes: &[u8]) -> impl Iterator<Item = (Header, Commit, &[u8])> {
    shaped(bytes, Kind::Commit, Commit::LEN).filter_map(|record| {
        let body = record.get(HEADER_LEN..)?;
        let part = signed_part(Kind::Commit, body)?;
        Some((Header::decode(record).ok()?, Commit::decode(body)?, part))
    })
}

fn opened_keys(bytes: &[u8]) -> impl Iterator<Item = [u8; 32]> {
    shaped(bytes, Kind::EpochOpened, EpochOpened::LEN)
        .filter_map(|record| EpochOpened::decode(record.get(HEADER_LEN..)?))
        .map(|opened| opened.public)
}
