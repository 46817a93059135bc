//! The newest calls, read from the log's end: only as many segments as they need.
//!
//! A call is complete once its first record has been seen, because all others stand behind it. So segments are added
//! in front of those already read until enough complete calls pass the filter.

use std::{collections::VecDeque, ops::ControlFlow};

use ledger::{CallFold, ReadError, Walked, parts, walk};
use model::{CallId, Seq, SessionId};

use super::{Index, Keys, Owner, calls, is_there};
use crate::{Audit, AuditError, CallFilter, journals::Opener, writer::lock};

/// Reads back from the end until `count` calls pass the filter, or the log begins.
pub(super) fn read(
    audit: &Audit,
    filter: &CallFilter,
    count: usize,
) -> Result<(Index, Vec<CallId>), AuditError> {
    is_there(audit)?;
    let last = audit.head().map_or(0, |head| head.seq);
    let parts = parts(&audit.dir).map_err(AuditError::io("read the segments in", &audit.dir))?;
    let mut index = Index::default();
    let mut wanted = Vec::new();
    let mut rest = parts.iter().copied();
    let mut seen = VecDeque::new();
    // Twice as many each time: a filter that few calls pass would otherwise fold the same headers again and again.
    let mut more = 1;
    while wanted.len() < count && rest.len() > 0 {
        for part in rest.by_ref().take(more) {
            seen.push_front(headers(audit, part, last)?);
        }
        more *= 2;
        index.calls = ledger::Calls::default();
        for (header, place) in seen.iter().flatten() {
            index.calls.apply(header, *place);
        }
        wanted = newest(&index, filter, count);
    }
    // This daemon run's keys are in memory; only for those of earlier ones the log has to be asked.
    index.keys.epochs.push((audit.begun, audit.epoch()));
    let mut parts = parts.into_iter();
    while !index.has_keys_of(audit, &wanted)
        && let Some(part) = parts.next()
    {
        note_keys(audit, part, last, &mut index)?;
    }
    Ok((index, wanted))
}

type Headers = Vec<(ledger::Header, ledger::Place)>;

fn headers(audit: &Audit, part: u64, last: Seq) -> Result<Headers, AuditError> {
    let mut found = Vec::new();
    each(audit, part, last, |record| {
        if record.header.call.is_some() {
            found.push((record.header, record.place));
        }
    })?;
    Ok(found)
}

fn each(
    audit: &Audit,
    part: u64,
    last: Seq,
    mut see: impl FnMut(&Walked<'_>),
) -> Result<(), AuditError> {
    let walked = walk(&audit.dir, part, last, |record| {
        see(record);
        ControlFlow::Continue(())
    });
    let path = ledger::segment_file(&audit.dir, part);
    walked.map_err(|source| AuditError::Read(ReadError::Log { path, source }))
}

/// The complete calls that pass, the oldest of them first.
fn newest(index: &Index, filter: &CallFilter, count: usize) -> Vec<CallId> {
    let complete = |call: &CallFold| {
        // A refusal without an attempt stands alone; everything else begins with its attempt.
        call.attempt.is_some() || call.state == model::CallState::Denied
    };
    let all: Vec<_> = index
        .calls
        .in_order()
        .into_iter()
        .filter(|(id, call)| complete(call) && calls::passes(filter, *id, call))
        .map(|(id, _)| id)
        .collect();
    all.get(all.len().saturating_sub(count)..)
        .unwrap_or_default()
        .to_vec()
}

/// Notes the data keys that a part of the log names. Parts come newest first, so what is known already is newer.
fn note_keys(audit: &Audit, part: u64, last: Seq, index: &mut Index) -> Result<(), AuditError> {
    let mut found = Keys::default();
    each(audit, part, last, |record| {
        found.note(&record.header, record.body);
    })?;
    index.keys.put_before(found);
    Ok(())
}

impl Index {
    /// Tells whether every body of these calls can be looked for a key.
    fn has_keys_of(&self, audit: &Audit, wanted: &[CallId]) -> bool {
        let first = self.keys.epochs.first().map_or(Seq::MAX, |(seq, _)| *seq);
        let in_memory = lock(&audit.keys);
        let known = |session: SessionId| {
            in_memory.run(session).is_some() || self.keys.get(Owner::Run(session)).is_some()
        };
        wanted
            .iter()
            .filter_map(|call| self.calls.get(*call))
            .all(|call| first <= call.first.seq && call.session.is_none_or(known))
    }
}

/// Tells the calls in the order of the log.
pub(super) fn views(
    opener: &Opener<'_>,
    calls: &ledger::Calls,
    wanted: Vec<CallId>,
) -> Vec<crate::CallView> {
    wanted
        .into_iter()
        .filter_map(|id| Some(calls::view(opener, id, calls.get(id)?)))
        .collect()
}
