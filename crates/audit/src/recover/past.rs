//! What the log says about the time before, if it may be believed.

use std::{collections::BTreeSet, path::Path};

use ledger::{
    Batch, Calls, End, PinResult, Pruned, Reached, Report, Sessions, TailRepaired, Verdict,
    VerifyOptions, Witness, verify_with,
};
use model::{CallState, Digest, Kind, Seq, SessionId, SessionState};

use crate::{AuditError, OpenCall, OpenRun, create::is_there, unsettled::Unsettled};

/// What the log says about the time before.
pub(super) struct Past {
    pub(super) end: End,
    pub(super) next_seq: Seq,
    pub(super) head: Digest,
    pub(super) root: [u8; 32],
    pub(super) story: Story,
}

/// What its records tell. Of the calls only those that are still open are kept, so memory does not grow with the calls.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) unsettled: Unsettled,
    pub(super) sessions: Sessions,
    pub(super) repaired: BTreeSet<(u64, u64, Digest)>,
    pub(super) erased: BTreeSet<SessionId>,
    pub(super) pruned: Option<Pruned>,
    pub(super) last_kind: Option<Kind>,
    pub(super) shut: Shut,
}

/// Daemon runs in which the vault was never open, told from clear headers alone.
///
/// The daemon puts one act on record when it starts, and another before it uses an opened vault; and without the vault
/// there is no policy by which anything could be cleared. So an attempt of a run with that one act alone, which died
/// before its refusal was on record, provably left nothing.
#[derive(Debug, Default)]
pub(super) struct Shut {
    acts: usize,
    may_be_open: bool,
    a_vault_took_over: bool,
    /// Attempts of the present run of the daemon, while it may have been shut.
    attempts: Vec<Seq>,
    /// Those of runs that were.
    withdrawn: BTreeSet<Seq>,
}

impl Shut {
    fn apply(&mut self, kind: Kind, seq: Seq) {
        match kind {
            Kind::EpochOpened => self.begin(),
            Kind::Acted => self.acts += 1,
            Kind::Cleared => self.may_be_open = true,
            Kind::RootEndorsed => {
                self.a_vault_took_over = true;
                self.may_be_open = true;
            }
            // Before a vault took over, the bootstrap root vouches at each start.
            Kind::EpochEndorsed => self.may_be_open |= self.a_vault_took_over,
            Kind::Attempt => self.attempts.push(seq),
            Kind::Commit
            | Kind::EpochClosed
            | Kind::TailRepaired
            | Kind::KeyErased
            | Kind::Pruned
            | Kind::SessionOpened
            | Kind::Connected
            | Kind::Disconnected
            | Kind::ClientLost
            | Kind::SessionEnded
            | Kind::Denied
            | Kind::Withdrawn
            | Kind::Answered
            | Kind::Outliving
            | Kind::Waiting
            | Kind::Unresolved
            | Kind::Reconciled
            | Kind::DenialsCounted
            | Kind::Revoked
            | Kind::IncidentStep => {}
        }
        if self.acts > 1 || self.may_be_open {
            self.attempts.clear();
        }
    }

    fn begin(&mut self) {
        let attempts = std::mem::take(&mut self.attempts);
        if self.acts == 1 && !self.may_be_open {
            self.withdrawn.extend(attempts);
        }
        self.acts = 0;
        self.may_be_open = false;
    }

    /// Tells whether nothing can have come of an attempt; asked when the log has been read to its end.
    pub(super) fn withdrew(&self, attempt: Seq) -> bool {
        let present = self.acts == 1 && !self.may_be_open && self.attempts.contains(&attempt);
        present || self.withdrawn.contains(&attempt)
    }
}

impl Witness for Story {
    fn batch(&mut self, batch: &Batch<'_>) {
        for record in batch.records() {
            self.shut.apply(record.header.kind, record.header.seq);
            self.unsettled
                .apply(&record.header, record.body, record.place);
            self.sessions.apply(&record.header, record.place);
            if record.header.kind != Kind::Commit {
                self.last_kind = Some(record.header.kind);
            }
            if record.header.kind == Kind::Pruned {
                self.pruned = Pruned::decode(record.body).or(self.pruned);
            }
            if record.header.kind == Kind::TailRepaired
                && let Some(says) = TailRepaired::decode(record.body)
            {
                self.repaired
                    .insert((says.segment, says.offset, says.sha256));
            }
            if record.header.kind == Kind::KeyErased {
                self.erased.extend(record.header.session);
            }
        }
    }
}

/// Reads the past, and refuses it if anything acknowledged is not there any more.
pub(super) fn judge(dir: &Path, origin: Option<[u8; 32]>) -> Result<Past, AuditError> {
    let judged = verify_with::<Story>(dir, &VerifyOptions::default());
    let root = match origin {
        // A new log, or one whose daemon died before its first commit: there is nothing yet to be judged.
        Some(root) if has_no_commit(dir, judged.reached.as_ref())? => root,
        Some(_) | None => {
            refuse(&judged.report)?;
            let root = judged.report.root;
            let unknown = root.why().unwrap_or_default().to_owned();
            let root = root.value().ok_or(AuditError::Unknown(unknown))?;
            root.to_bytes()
        }
    };
    let Some(reached) = judged.reached else {
        return Err(AuditError::Unknown("its end was not reached".to_owned()));
    };
    Ok(Past {
        end: reached.end,
        next_seq: reached.next_seq,
        head: reached.head,
        root,
        story: judged.witness,
    })
}

/// Tells whether no record was ever acknowledged, as far as anything here shows.
fn has_no_commit(dir: &Path, reached: Option<&Reached>) -> Result<bool, AuditError> {
    let Some(reached) = reached.filter(|reached| reached.next_seq == 1) else {
        return Ok(false);
    };
    let pinned = is_there(&dir.join("HEAD"))?;
    let tail = reached.end.tail.as_ref();
    Ok(!pinned && tail.is_none_or(|tail| tail.acknowledged.is_none()))
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

pub(super) fn open_calls(calls: &Calls, shut: &Shut) -> Vec<OpenCall> {
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
    let all = calls.in_order().into_iter().map(opened);
    all.filter(|open| !shut.withdrew(open.attempt)).collect()
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
