//! What the log says about the time before, if it may be believed.

use std::{collections::BTreeSet, path::Path};

use ledger::{
    Calls, End, PinResult, Pruned, Report, Scan, Sessions, Signatures, Step, Stop, TailRepaired,
    Verdict, VerifyOptions, verify,
};
use model::{CallState, Digest, Kind, LogId, Seq, SessionId, SessionState};

use crate::{AuditError, OpenCall, OpenRun};

/// What the log says about the time before.
pub(super) struct Past {
    pub(super) end: End,
    pub(super) next_seq: Seq,
    pub(super) head: Digest,
    pub(super) calls: Calls,
    pub(super) sessions: Sessions,
    pub(super) repaired: BTreeSet<(u64, u64, Digest)>,
    pub(super) erased: BTreeSet<SessionId>,
    pub(super) pruned: Option<Pruned>,
    pub(super) last_kind: Option<Kind>,
}

/// Reads the past, and refuses it if anything acknowledged is not there any more.
pub(super) fn judge(
    dir: &Path,
    log_id: LogId,
    root: Option<[u8; 32]>,
) -> Result<(Past, [u8; 32]), AuditError> {
    // A new log, or one whose daemon died before its first commit: there is nothing yet to be judged.
    if !dir.join("HEAD").exists()
        && let (Ok(past), Some(root)) = (read(dir, log_id, Signatures::LastOfEpoch), root)
        && past.next_seq == 1
        && past
            .end
            .tail
            .as_ref()
            .is_none_or(|tail| tail.acknowledged.is_none())
    {
        return Ok((past, root));
    }
    let report = verify(dir, &VerifyOptions::default());
    refuse(&report)?;
    let root = report
        .root
        .value()
        .ok_or_else(|| AuditError::Unknown(report.root.why().unwrap_or_default().to_owned()))?;
    let past = read(dir, log_id, Signatures::LastOfEpoch)
        .or_else(|stop| match stop {
            Stop::Unsigned => read(dir, log_id, Signatures::All),
            Stop::Bad(_) | Stop::Unknown(_) | Stop::Io { .. } => Err(stop),
        })
        .map_err(|stop| AuditError::Read(stop.into()))?;
    // Both passes must have come to the same end, or the writer would go on in the wrong place.
    if past.next_seq != report.last_seq.map_or(1, |last| last + 1) {
        return Err(AuditError::Unknown(
            "the log was read twice and ended in different places".to_owned(),
        ));
    }
    Ok((past, root.to_bytes()))
}

/// Maps a negative verdict to the reason why the log is not opened.
pub(crate) fn refuse(report: &Report) -> Result<(), AuditError> {
    let last = report.last_seq.unwrap_or(0);
    for pin in &report.pins_used {
        match pin.result {
            PinResult::ReachesFurther if report.verdict == Verdict::Truncated => {
                let head = pin.seq.unwrap_or(0);
                return Err(AuditError::Truncated { last, head });
            }
            PinResult::Differs | PinResult::OtherLog => {
                let seq = pin.seq.unwrap_or(0);
                return Err(AuditError::Forked { seq });
            }
            PinResult::Confirms
            | PinResult::Pruned
            | PinResult::ReachesFurther
            | PinResult::Unusable(_) => {}
        }
    }
    match (&report.verdict, &report.first_bad, &report.why) {
        // The chain is whole; a damaged key file makes old bodies unreadable, not new records wrong.
        (Verdict::Tampered, Some(bad), _) if bad.file.starts_with("keys/") => Ok(()),
        (Verdict::Tampered, Some(bad), _) => Err(AuditError::Tampered(bad.clone())),
        (Verdict::CannotJudge, _, why) => Err(AuditError::Unknown(why.clone().unwrap_or_default())),
        (
            Verdict::IntactPinned
            | Verdict::IntactLocalPin
            | Verdict::IntactUnpinned
            | Verdict::TornTail
            | Verdict::Tampered
            | Verdict::Truncated
            | Verdict::Forked,
            _,
            _,
        ) => Ok(()),
    }
}

fn read(dir: &Path, log_id: LogId, signatures: Signatures) -> Result<Past, Stop> {
    let mut scan = Scan::new(dir, log_id, signatures);
    let (mut calls, mut sessions) = (Calls::default(), Sessions::default());
    let (mut repaired, mut erased) = (BTreeSet::new(), BTreeSet::new());
    let mut last_kind = None;
    let mut pruned = None;
    let end = loop {
        match scan.step()? {
            Step::Batch(batch) => {
                for record in batch.records() {
                    calls.apply(&record.header, record.place);
                    sessions.apply(&record.header, record.place);
                    if record.header.kind != Kind::Commit {
                        last_kind = Some(record.header.kind);
                    }
                    if record.header.kind == Kind::Pruned {
                        pruned = Pruned::decode(record.body).or(pruned);
                    }
                    if record.header.kind == Kind::TailRepaired
                        && let Some(says) = TailRepaired::decode(record.body)
                    {
                        repaired.insert((says.segment, says.offset, says.sha256));
                    }
                }
                let gone = batch.records().filter(|r| r.header.kind == Kind::KeyErased);
                erased.extend(gone.filter_map(|record| record.header.session));
                // Only what is still open is needed, so memory does not grow with the log.
                calls.keep_unsettled();
            }
            Step::End(end) => break end,
        }
    };
    Ok(Past {
        end,
        next_seq: scan.next_seq(),
        head: scan.head(),
        calls,
        sessions,
        repaired,
        erased,
        pruned,
        last_kind,
    })
}

pub(super) fn open_calls(calls: &Calls) -> Vec<OpenCall> {
    let opened = |(call, fold): (model::CallId, &ledger::CallFold)| OpenCall {
        call,
        session: fold.session,
        attempt: fold.attempt.unwrap_or(fold.first).seq,
        state: match fold.state {
            CallState::Attempted | CallState::Cleared => CallState::Unresolved,
            CallState::Denied
            | CallState::Withdrawn
            | CallState::Answered
            | CallState::Outliving
            | CallState::Waiting
            | CallState::Unresolved
            | CallState::Reconciled => fold.state,
        },
    };
    calls.in_order().into_iter().map(opened).collect()
}

pub(super) fn open_runs(sessions: &Sessions) -> Vec<OpenRun> {
    let open = |(session, fold): (SessionId, &ledger::SessionFold)| OpenRun {
        session,
        seq: fold.opened.map(|mark| mark.seq),
        opened_at: fold.opened.map(|mark| mark.at),
        state: fold.state(),
    };
    sessions
        .in_order()
        .into_iter()
        .map(open)
        .filter(|run| !matches!(run.state, SessionState::Revoked | SessionState::Ended))
        .collect()
}

pub(super) fn revoked_runs(sessions: &Sessions) -> Vec<SessionId> {
    let revoked = |(session, fold): (SessionId, &ledger::SessionFold)| {
        fold.revoked.is_some().then_some(session)
    };
    sessions
        .in_order()
        .into_iter()
        .filter_map(revoked)
        .collect()
}
