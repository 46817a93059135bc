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
};

use ed25519_dalek::SigningKey;
use ledger::{EpochOpened, KeyClear, Origin, file_digest, key_commitment, key_file_of};
use model::{
    Body, CallState, EpochId, Kind, LogId, OutcomeBody, Seq, SessionId, Ticket, Withdrawal,
};
use sys::lock::Lock;

use crate::{
    AuditError, Options, Recovered, Stats,
    ballast::Ballast,
    commit::Shared,
    create,
    keyring::{self, KeyRing},
    pin::Pin,
    prune,
    queue::{Content, Draft, Queue},
    seal,
    segments::Segment,
    unsettled::Unsettled,
    writer::{Spare, Writer, lock},
};

mod past;
mod quarantine;

pub(crate) use past::refuse;
use past::{Past, Story, judge, open_calls, open_runs, revoked_runs};

/// A log that is ready to be written.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log_id: LogId,
    pub(crate) keys: Arc<Mutex<KeyRing>>,
    pub(crate) unsettled: Arc<Mutex<Unsettled>>,
    pub(crate) lock: Lock,
    /// The daemon run's first record.
    pub(crate) begun: Seq,
    pub(crate) recovered: Recovered,
}

/// Opens the log and begins a daemon run in it.
pub(crate) fn open(options: &Options) -> Result<Opened, AuditError> {
    let dir = &options.dir;
    create::folders(dir)?;
    let lock = hold(dir)?;
    let log = dir.join("LOG");
    let created = !create::is_there(&log)?;
    if created {
        let new = options
            .new_log
            .as_ref()
            .ok_or_else(|| AuditError::NoLog(dir.clone()))?;
        create::new_log(dir, new, &*options.clock, options.sizes)?;
    }
    let bytes =
        sys::regular::read(&log, create::LONGEST_SMALL).map_err(AuditError::io("read", &log))?;
    let log_id = Origin::id(&bytes);
    let origin = Origin::decode(&bytes);
    let mut past = judge(dir, origin.as_ref().map(|origin| origin.root).ok())?;
    let origin = origin.map_err(|why| AuditError::Unknown(why.to_string()))?;
    let repairs = quarantine::repair(dir, &past.end, &past.story.repaired)?;
    finish_erasures(dir, &past.story.erased)?;
    prune::finish(dir, past.story.pruned)?;
    let unsettled = &mut past.story.unsettled;
    unsettled.forget_runs();
    unsettled
        .follow(dir)
        .map_err(AuditError::io("read the certificate in", dir))?;
    let story = &past.story;
    let (mut writer, keys, opened) = begin(options, log_id, origin.recipient, &past)?;
    let recovered = Recovered {
        created,
        epoch: opened.epoch,
        closed_in_order: story.last_kind.is_none_or(|kind| kind == Kind::EpochClosed),
        open_calls: open_calls(&story.unsettled.calls, &story.shut),
        open_runs: open_runs(&story.sessions),
        revoked_runs: revoked_runs(&story.sessions),
        repairs,
    };
    // Before anything is taken: on a full disk nothing may be promised that only the next segment has room for.
    writer.look_ahead();
    let queue = Queue::new(past.next_seq, options.sizes, writer.room());
    let known = Arc::clone(&writer.unsettled);
    let shared = Shared::new(queue, writer);
    first_records(&shared, options, &opened, &recovered, story)?;
    for ballast in [Ballast::Key, Ballast::Tail] {
        // Without it the log goes on as well; only a start on a full disk would not.
        drop(ballast.hold(dir));
    }
    Ok(Opened {
        shared,
        log_id,
        keys,
        unsettled: known,
        lock,
        begun: past.next_seq,
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
    Ballast::Key
        .create(dir, &path, &file)
        .map_err(AuditError::io("write", &path))?;
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
    let pin = Pin::new(dir.join("HEAD"), log_id, epoch, signing.clone());
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
        unsettled: Arc::new(Mutex::new(past.story.unsettled.clone())),
        root: past.root,
        spare: Spare::NotYet,
        committed: None,
        pin: Arc::new(pin),
        poisoned: None,
        writing: false,
        stats: Stats::default(),
    };
    Ok((writer, keys, opened))
}

/// Writes what every daemon run begins with, and what it has to say about the one before.
fn first_records(
    shared: &Shared,
    options: &Options,
    opened: &EpochOpened,
    recovered: &Recovered,
    story: &Story,
) -> Result<(), AuditError> {
    let push = |draft| shared.push(draft, &*options.clock);
    let mut needed = vec![push(Draft::clear(Kind::EpochOpened, opened.encode()))];
    let repairs = recovered.repairs.iter();
    needed.extend(repairs.map(|repair| push(Draft::clear(Kind::TailRepaired, repair.encode()))));
    let unresolved: Vec<Ticket> = unresolved(story).map(push).collect();
    let mut writer = lock(&shared.writer);
    shared.drain(&mut writer);
    shared.pin(&writer);
    let is_poisoned = writer.poisoned.is_some();
    drop(writer);
    for ticket in needed {
        ticket.wait()?;
    }
    for ticket in unresolved {
        // On a full disk there may be no room for these; whoever opens the log next says it then.
        if let (Err(error), true) = (ticket.wait(), is_poisoned) {
            return Err(error.into());
        }
    }
    Ok(())
}

/// What becomes of the attempts that the daemon run before left without an outcome.
fn unresolved(story: &Story) -> impl Iterator<Item = Draft> {
    let plain = |outcome| seal::plaintext(&Body::Outcome(outcome));
    let unknown = plain(OutcomeBody::Unresolved {
        why: model::Unsettled::DaemonEnded,
    });
    let nothing = plain(OutcomeBody::Withdrawn {
        proof: Withdrawal::NeverCleared,
    });
    let calls = story.unsettled.calls.in_order().into_iter();
    calls.filter_map(move |(call, fold)| {
        let open = matches!(fold.state, CallState::Attempted | CallState::Cleared);
        let attempt = fold.attempt.filter(|_| open)?.seq;
        let (kind, plain) = if story.shut.withdrew(attempt) {
            (Kind::Withdrawn, nothing.clone())
        } else {
            (Kind::Unresolved, unknown.clone())
        };
        Some(Draft {
            kind,
            session: fold.session,
            call: Some(call),
            refers_to: Some(attempt),
            content: Content::Sealed(plain?),
        })
    })
}
