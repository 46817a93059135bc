//! What the writer does when the disk does not do what it is told.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use ed25519_dalek::SigningKey;
use ledger::{Verdict, VerifyOptions, verify};
use model::{Body, CallId, Clock, Entry, Journal, Kind, SessionId, Stamp, Ticket, Wall};
use tempfile::TempDir;

use crate::{
    Audit, KeyWrap, NewLog, Options, Sizes,
    segments::Store,
    writer::{Spare, lock},
};

mod loss;
mod pin;

struct Plain;

impl KeyWrap for Plain {
    fn wrap(&self, _recipient: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        Ok(key.to_vec())
    }
}

#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Stamp {
        let tick = self.0.fetch_add(1, Ordering::Relaxed);
        Stamp {
            wall: Wall::from_millis(tick),
            boot_ms: tick,
        }
    }
}

const SMALL: Sizes = Sizes {
    segment: 64 * 1024,
    reserve: 16 * 1024,
};

fn open(folder: &TempDir, sizes: Sizes) -> Audit {
    let root = SigningKey::from_bytes(&[1; 32]).verifying_key().to_bytes();
    let options = Options {
        dir: folder.path().join("audit"),
        clock: Arc::new(Ticks::default()),
        wrap: Arc::new(Plain),
        new_log: Some(NewLog {
            bootstrap_root: root,
            recipient: "age1test".to_owned(),
        }),
        sizes,
    };
    Audit::open(options).unwrap().0
}

fn push(audit: &Audit, kind: Kind) -> Ticket {
    audit.push(Entry {
        kind,
        session: Some(SessionId::from_bytes([1; 10])),
        call: Some(CallId::random().unwrap()),
        refers_to: None,
        body: Body::Empty,
    })
}

/// Stands in front of the real file.
struct Faulty {
    file: Box<dyn Store>,
    /// Writes at most so many bytes at once.
    at_most: usize,
    /// After so many syncs every further one fails.
    syncs: Mutex<usize>,
    asked: Arc<AtomicUsize>,
}

impl Store for Faulty {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let some = &bytes[..bytes.len().min(self.at_most)];
        self.file.write_at(some, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut left = lock(&self.syncs);
        *left = left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("the disk is gone"))?;
        self.file.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

/// Puts another disk under the segment.
fn store_of(audit: &Audit, other: impl FnOnce(Box<dyn Store>) -> Box<dyn Store>) {
    struct Gone;
    impl Store for Gone {
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn sync(&self) -> io::Result<()> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn cut(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn is_at(&self, _: &Path) -> io::Result<bool> {
            Ok(false)
        }
    }
    let mut writer = lock(&audit.shared.writer);
    let file = std::mem::replace(&mut writer.segment.store, Box::new(Gone));
    writer.segment.store = other(file);
}

/// Puts the fault in front of the segment, and returns how often a sync was asked for.
fn make_faulty(audit: &Audit, at_most: usize, syncs: usize) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    store_of(audit, |file| {
        Box::new(Faulty {
            file,
            at_most,
            syncs: Mutex::new(syncs),
            asked: counted,
        })
    });
    asked
}

#[test]
fn short_writes_are_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    make_faulty(&audit, 7, usize::MAX);

    for _ in 0..5 {
        push(&audit, Kind::Attempt).wait().unwrap();
    }
    audit.close().unwrap();

    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
}

#[test]
fn a_failed_sync_fails_its_records_and_all_later_ones_and_is_never_asked_again() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    let asked = make_faulty(&audit, usize::MAX, 1);

    let before = push(&audit, Kind::Attempt).wait();
    let failed = push(&audit, Kind::Attempt).wait();
    let later = push(&audit, Kind::Denied).wait();

    assert!(before.is_ok());
    assert!(failed.unwrap_err().why.contains("the disk is gone"));
    assert!(later.unwrap_err().why.contains("the disk is gone"));
    assert!(audit.is_poisoned());
    assert!(audit.close().is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn what_was_promised_before_a_failed_sync_survives_it() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    make_faulty(&audit, usize::MAX, 3);
    let kept: Vec<_> = (0..10)
        .filter_map(|_| push(&audit, Kind::Attempt).wait().ok())
        .collect();
    drop(audit);

    let audit = open(&folder, SMALL);
    let report = verify(audit.dir(), &VerifyOptions::default());

    assert_eq!(kept.len(), 3);
    assert!(
        report.last_seq > kept.last().map(|receipt| receipt.seq),
        "{report}"
    );
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
}

/// A folder in the place of the prepared segment: nothing can be prepared any more.
fn fill_the_disk(audit: &Audit) {
    let spare = audit.dir().join("seg/spare");
    let _ = std::fs::remove_file(&spare);
    std::fs::create_dir(spare).unwrap();
    lock(&audit.shared.writer).spare = Spare::NotYet;
}

#[test]
fn on_a_full_disk_attempts_are_refused_and_denials_still_fit() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    fill_the_disk(&audit);

    let refused = (0..1_000)
        .find_map(|_| push(&audit, Kind::Attempt).wait().err())
        .unwrap();
    let denials = (0..20).map(|_| push(&audit, Kind::Denied).wait());

    assert!(
        refused.why.contains("only the reserve is left"),
        "{refused}"
    );
    assert!(denials.into_iter().all(|denial| denial.is_ok()));
    assert!(audit.health().attempts_refused.is_some());
    assert!(!audit.is_poisoned());
}

#[test]
fn on_a_full_disk_a_flood_of_refusals_leaves_room_for_outcomes_and_those_for_operators() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    fill_the_disk(&audit);
    let until_refused = |kind| {
        let refused = (0..1_000).find_map(|_| push(&audit, kind).wait().err());
        refused.unwrap().why
    };

    let attempts = until_refused(Kind::Attempt);
    let denials = until_refused(Kind::Denied);
    let outcome = push(&audit, Kind::Answered).wait();
    let outcomes = until_refused(Kind::Answered);
    let operator = (0..5).map(|_| push(&audit, Kind::Revoked).wait());

    assert!(operator.into_iter().all(|done| done.is_ok()));
    assert!(outcome.is_ok());
    assert!(attempts.contains("only the reserve is left"), "{attempts}");
    assert!(denials.contains("the reserve is used up"), "{denials}");
    assert!(outcomes.contains("the reserve is used up"), "{outcomes}");
    assert!(!audit.is_poisoned());
}

#[test]
fn a_log_that_has_no_room_but_the_operators_opens_again_and_takes_his_acts() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    fill_the_disk(&audit);
    for kind in [Kind::Attempt, Kind::Denied, Kind::Answered] {
        (0..1_000)
            .find_map(|_| push(&audit, kind).wait().err())
            .unwrap();
    }
    drop(audit);

    let audit = open(&folder, SMALL);

    push(&audit, Kind::Acted).wait().unwrap();
    push(&audit, Kind::Revoked).wait().unwrap();
    assert!(push(&audit, Kind::Attempt).wait().is_err());
    audit.close().unwrap();
    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
}

#[test]
fn attempts_are_taken_again_when_there_is_space_again() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    fill_the_disk(&audit);
    (0..1_000)
        .find_map(|_| push(&audit, Kind::Attempt).wait().err())
        .unwrap();

    std::fs::remove_dir(audit.dir().join("seg/spare")).unwrap();
    // Whatever is written next finds the space.
    push(&audit, Kind::Denied).wait().unwrap();

    push(&audit, Kind::Attempt).wait().unwrap();
    audit.close().unwrap();
    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
}

#[test]
fn when_the_reserve_is_used_up_too_the_writer_says_so_and_what_it_promised_stands() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    fill_the_disk(&audit);

    let mut kept = 0;
    let failed = loop {
        match push(&audit, Kind::Denied).wait() {
            Ok(receipt) => kept = receipt.seq,
            Err(failed) => break failed,
        }
    };

    assert!(failed.why.contains("the reserve is used up"), "{failed}");
    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.last_seq, Some(kept + 1), "{report}");
}

#[test]
fn a_run_whose_key_file_cannot_be_made_is_recorded_under_the_daemon_runs_key() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    let keys = audit.dir().join("keys");
    let aside = folder.path().join("keys");
    std::fs::rename(&keys, &aside).unwrap();

    push(&audit, Kind::SessionOpened).wait().unwrap();
    std::fs::rename(&aside, &keys).unwrap();
    let runs = audit.sessions(None).unwrap();
    audit.close().unwrap();

    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(runs.len(), 1);
}

#[test]
fn a_revocation_moves_head_before_its_ticket_is_settled() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);

    let receipt = push(&audit, Kind::Revoked).wait().unwrap();

    let head = std::fs::read(audit.dir().join("HEAD")).unwrap();
    assert!(ledger::Head::decode(&head).unwrap().seq > receipt.seq);
}

/// What somebody does to the log's folder while it is written.
fn meddle(meddle: impl FnOnce(&Path)) {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    push(&audit, Kind::Attempt).wait().unwrap();

    meddle(audit.dir());

    // Not even the very next record is acknowledged.
    let next = push(&audit, Kind::Attempt).wait();
    assert!(next.is_err(), "{next:?}");
    assert!(audit.is_poisoned());
    assert!(push(&audit, Kind::Denied).wait().is_err());
}

#[test]
fn a_log_that_is_removed_or_moved_while_it_is_written_acknowledges_nothing_more() {
    meddle(|dir| std::fs::remove_dir_all(dir).unwrap());
    meddle(|dir| std::fs::rename(dir, dir.with_extension("aside")).unwrap());
    meddle(|dir| {
        let segment = ledger::segment_file(dir, 0);
        let bytes = std::fs::read(&segment).unwrap();
        std::fs::remove_file(&segment).unwrap();
        std::fs::write(&segment, bytes).unwrap();
    });
}

#[test]
fn an_idle_log_notices_when_it_is_looked_after_that_it_is_gone() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    audit.watch();
    assert!(!audit.is_poisoned());
    std::fs::remove_dir_all(audit.dir()).unwrap();

    audit.watch();

    assert!(audit.health().poisoned.unwrap().contains("is gone"));
}

#[test]
fn a_record_longer_than_one_may_be_is_refused_without_harm() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, Sizes::default());
    let long = Entry {
        kind: Kind::SessionEnded,
        session: Some(SessionId::from_bytes([1; 10])),
        call: None,
        refers_to: None,
        body: Body::SessionEnded {
            why: "x".repeat(ledger::MAX_FRAME),
        },
    };

    let refused = audit.push(long).wait();

    assert!(refused.unwrap_err().why.contains("longer than"));
    push(&audit, Kind::Denied).wait().unwrap();
}

#[test]
fn a_committer_that_panics_leaves_no_gap_but_an_end() {
    struct Panics;
    impl Clock for Panics {
        fn now(&self) -> Stamp {
            panic!("in the middle of a write");
        }
    }
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    lock(&audit.shared.writer).clock = Arc::new(Panics);

    let lost = push(&audit, Kind::Attempt).wait();
    lock(&audit.shared.writer).clock = Arc::new(Ticks::default());
    let closed = audit.close();

    assert!(lost.is_err() && closed.is_err());
    let report = verify(audit.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
}
