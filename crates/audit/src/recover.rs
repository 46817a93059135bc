//! Opening a log after whatever happened to the daemon before.
//!
//! The writer goes on only where the verifier finds everything that was acknowledged. Bytes behind the last commit are
//! copied to quarantine, then cut, then told of in a record; each step can be repeated, so a crash between them loses
//! nothing. An attempt without outcome becomes `Unresolved`: that it was never cleared cannot be known, because a
//! clearance is not waited for.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
    time::Instant,
};

use ed25519_dalek::SigningKey;
use ledger::{
    Calls, End, EpochOpened, KeyClear, Origin, PinResult, Report, Scan, Sessions, Signatures, Step,
    Stop, TailRepaired, Verdict, VerifyOptions, file_digest, key_commitment, key_file_of, verify,
};
use model::{
    Body, CallState, Digest, EpochId, Kind, LogId, OutcomeBody, Seq, SessionId, SessionState,
    Unsettled,
};
use sys::{durable, lock::Lock};

use crate::{
    AuditError, OpenCall, OpenRun, Options, Recovered,
    commit::Shared,
    create,
    keyring::{self, KeyRing},
    queue::{Content, Draft, Queue},
    seal,
    segments::Segment,
    writer::{Pinned, Spare, Writer, lock},
};

mod quarantine;

/// A log that is ready to be written.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log_id: LogId,
    pub(crate) keys: Arc<Mutex<KeyRing>>,
    pub(crate) lock: Lock,
    pub(crate) recovered: Recovered,
}

/// What the log says about the time before.
struct Past {
    end: End,
    next_seq: Seq,
    head: Digest,
    calls: Calls,
    sessions: Sessions,
    repaired: BTreeSet<(u64, u64, Digest)>,
    erased: BTreeSet<SessionId>,
    last_kind: Option<Kind>,
}

/// Opens the log and begins a daemon run in it.
pub(crate) fn open(options: &Options) -> Result<Opened, AuditError> {
    let dir = &options.dir;
    create::folders(dir)?;
    let lock = hold(dir)?;
    let log = dir.join("LOG");
    let created = !log.exists();
    if created {
        let new = options
            .new_log
            .as_ref()
            .ok_or_else(|| AuditError::NoLog(dir.clone()))?;
        create::new_log(dir, new, &*options.clock, options.sizes)?;
    }
    let bytes = std::fs::read(&log).map_err(AuditError::io("read", &log))?;
    let log_id = Origin::id(&bytes);
    let origin = Origin::decode(&bytes);
    let (past, root) = judge(dir, log_id, origin.as_ref().map(|origin| origin.root).ok())?;
    let origin = origin.map_err(|why| AuditError::Unknown(why.to_string()))?;
    let repairs = quarantine::repair(dir, &past.end, &past.repaired)?;
    finish_erasures(dir, &past.erased)?;
    let (writer, keys, opened) = begin(options, log_id, origin.recipient, root, &past)?;
    let recovered = Recovered {
        created,
        epoch: opened.epoch,
        closed_in_order: past.last_kind.is_none_or(|kind| kind == Kind::EpochClosed),
        open_calls: open_calls(&past.calls),
        open_runs: open_runs(&past.sessions),
        revoked_runs: revoked_runs(&past.sessions),
        repairs,
    };
    let shared = Shared::new(Queue::new(past.next_seq, options.sizes), writer);
    first_records(&shared, options, &opened, &recovered, &past.calls)?;
    Ok(Opened {
        shared,
        log_id,
        keys,
        lock,
        recovered,
    })
}

fn hold(dir: &Path) -> Result<Lock, AuditError> {
    let path = dir.join("LOCK");
    sys::lock::try_lock(&path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::WouldBlock {
            AuditError::Busy(dir.to_owned())
        } else {
            AuditError::io("lock", path)(source)
        }
    })
}

/// Reads the past, and refuses it if anything acknowledged is not there any more.
fn judge(
    dir: &Path,
    log_id: LogId,
    root: Option<[u8; 32]>,
) -> Result<(Past, [u8; 32]), AuditError> {
    // A new log, or one whose daemon died before its first commit: there is nothing yet to be judged.
    if let (Ok(past), Some(root)) = (read(dir, log_id, Signatures::LastOfEpoch), root)
        && past.next_seq == 1
        && past
            .end
            .tail
            .as_ref()
            .is_none_or(|tail| tail.acknowledged.is_none())
        && !dir.join("HEAD").exists()
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
    Ok((past, root.to_bytes()))
}

/// Maps a negative verdict to the reason why the log is not opened.
fn refuse(report: &Report) -> Result<(), AuditError> {
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
            PinResult::Confirms | PinResult::ReachesFurther | PinResult::Unusable(_) => {}
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
    let end = loop {
        match scan.step()? {
            Step::Batch(batch) => {
                for record in batch.records() {
                    calls.apply(&record.header, record.place);
                    sessions.apply(&record.header, record.place);
                    if record.header.kind != Kind::Commit {
                        last_kind = Some(record.header.kind);
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
        last_kind,
    })
}

/// Removes the key files whose erasure is on record, in case a crash came between.
fn finish_erasures(dir: &Path, erased: &BTreeSet<SessionId>) -> Result<(), AuditError> {
    for session in erased {
        let path = key_file_of(dir, session);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(AuditError::io("remove", path)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Makes the keys of a daemon run, and the writer that uses them.
fn begin(
    options: &Options,
    log_id: LogId,
    recipient: String,
    root: [u8; 32],
    past: &Past,
) -> Result<(Writer, Arc<Mutex<KeyRing>>, EpochOpened), AuditError> {
    let dir = &options.dir;
    let epoch = EpochId::random().map_err(AuditError::Key)?;
    let seed = keyring::draw().map_err(AuditError::Key)?;
    let signing = SigningKey::from_bytes(&seed);
    let key = keyring::draw().map_err(AuditError::Key)?;
    let file = options
        .wrap
        .wrap(&recipient, &key)
        .map_err(AuditError::Key)?;
    let path = key_file_of(dir, epoch);
    durable::create(&path, &file).map_err(AuditError::io("write", &path))?;
    let opened = EpochOpened {
        epoch,
        public: signing.verifying_key().to_bytes(),
        key: KeyClear {
            file: file_digest(&file),
            commitment: key_commitment(&key),
        },
    };
    let at = past.end.at;
    let segment = Segment::reopen(dir, at.segment, at.offset, options.sizes.segment).map_err(
        AuditError::io("open", ledger::segment_file(dir, at.segment)),
    )?;
    let keys = Arc::new(Mutex::new(KeyRing::new(epoch, key)));
    let writer = Writer {
        dir: dir.clone(),
        log_id,
        recipient,
        clock: Arc::clone(&options.clock),
        wrap: Arc::clone(&options.wrap),
        sizes: options.sizes,
        segment,
        head: past.head,
        epoch,
        signing,
        keys: Arc::clone(&keys),
        root,
        spare: Spare::NotYet,
        committed: None,
        pinned: Pinned {
            written: Instant::now(),
            seq: 0,
            problem: None,
        },
        poisoned: None,
        syncs: 0,
        records: 0,
        commits: 0,
    };
    Ok((writer, keys, opened))
}

/// Writes what every daemon run begins with, and what it has to say about the one before.
fn first_records(
    shared: &Shared,
    options: &Options,
    opened: &EpochOpened,
    recovered: &Recovered,
    calls: &Calls,
) -> Result<(), AuditError> {
    let mut tickets = Vec::new();
    let mut push = |draft| tickets.push(shared.push(draft, &*options.clock));
    push(Draft::clear(Kind::EpochOpened, opened.encode()));
    for repair in &recovered.repairs {
        push(Draft::clear(Kind::TailRepaired, repair.encode()));
    }
    let why = Body::Outcome(OutcomeBody::Unresolved {
        why: Unsettled::DaemonEnded,
    });
    for (call, fold) in calls.in_order() {
        if matches!(fold.state, CallState::Attempted | CallState::Cleared)
            && let (Some(attempt), Some(plain)) = (fold.attempt, seal::plaintext(&why))
        {
            push(Draft {
                kind: Kind::Unresolved,
                session: fold.session,
                call: Some(call),
                refers_to: Some(attempt.seq),
                content: Content::Sealed(plain),
            });
        }
    }
    let mut writer = lock(&shared.writer);
    shared.drain(&mut writer);
    writer.pin();
    drop(writer);
    for ticket in tickets {
        ticket.wait()?;
    }
    Ok(())
}

fn open_calls(calls: &Calls) -> Vec<OpenCall> {
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

fn open_runs(sessions: &Sessions) -> Vec<OpenRun> {
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

fn revoked_runs(sessions: &Sessions) -> Vec<SessionId> {
    let revoked = |(session, fold): (SessionId, &ledger::SessionFold)| {
        fold.revoked.is_some().then_some(session)
    };
    sessions
        .in_order()
        .into_iter()
        .filter_map(revoked)
        .collect()
}
