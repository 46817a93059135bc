//! What a log that nobody touched says.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use audit::{Audit, AuditError, CallFilter};
use ledger::{Verdict, VerifyOptions, verify};
use model::{Body, Clock, Entry, Exit, Journal, Kind, Stamp, Wall};

use crate::world::*;

#[test]
fn a_cleanly_closed_log_is_intact_and_only_locally_pinned() {
    let world = World::new();
    world.write_small_log();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(report.exit(), Exit::Done);
    assert_eq!((report.first_seq, report.open_attempts.len()), (Some(1), 1));
}

#[test]
fn a_copy_of_head_kept_elsewhere_makes_it_pinned() {
    let world = World::new();
    world.write_small_log();
    let pin = world.folder.path().join("pin.json");
    std::fs::copy(world.dir().join("HEAD"), &pin).unwrap();

    let report = verify(&world.dir(), &pinned(&pin));

    assert_eq!(report.verdict, Verdict::IntactPinned, "{report}");
}

#[test]
fn a_receipt_pins_the_log_up_to_its_record() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let receipt = durable(&audit, attempt_entry(session, call_id()));
    audit.close().unwrap();
    let pin = world.folder.path().join("receipt.json");
    std::fs::write(&pin, serde_json::to_vec(&receipt).unwrap()).unwrap();

    let report = verify(&world.dir(), &pinned(&pin));

    assert_eq!(report.verdict, Verdict::IntactPinned, "{report}");
    assert_eq!(report.confirmed_from_outside(), Some(receipt.seq));
    let unpinned = format!("confirms records {} to", receipt.seq + 1);
    assert!(report.to_string().contains(&unpinned), "{report}");
}

#[test]
fn a_report_pins_the_log_for_the_next_verification() {
    let world = World::new();
    world.write_small_log();
    let first = verify(&world.dir(), &VerifyOptions::default());
    let pin = world.folder.path().join("incident.json");
    let incident = serde_json::json!({ "id": "i-1", "verify": first });
    std::fs::write(&pin, incident.to_string()).unwrap();
    world.append_one_run();

    let report = verify(&world.dir(), &pinned(&pin));

    assert_eq!(report.verdict, Verdict::IntactPinned, "{report}");
}

#[test]
fn a_required_pin_that_is_not_given_leaves_no_judgement() {
    let world = World::new();
    world.write_small_log();

    let report = verify(
        &world.dir(),
        &VerifyOptions {
            require_pin: true,
            ..VerifyOptions::default()
        },
    );

    assert_eq!(report.verdict, Verdict::CannotJudge);
    assert_eq!(report.exit(), Exit::Failed);
}

#[test]
fn a_pin_that_cannot_be_read_leaves_no_judgement() {
    let world = World::new();
    world.write_small_log();

    let report = verify(&world.dir(), &pinned(&world.folder.path().join("nowhere")));

    assert_eq!(report.verdict, Verdict::CannotJudge);
}

#[test]
fn another_log_under_the_expected_id_is_called_forked() {
    let world = World::new();
    world.write_small_log();
    let options = VerifyOptions {
        log_id: Some(model::LogId::from_bytes([9; 32])),
        ..VerifyOptions::default()
    };

    let report = verify(&world.dir(), &options);

    assert_eq!(report.verdict, Verdict::Forked);
    assert_eq!(report.exit(), Exit::Negative);
}

#[test]
fn no_log_is_no_judgement() {
    let world = World::new();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::CannotJudge);
    assert_eq!(report.exit(), Exit::Failed);
}

#[test]
fn no_stored_byte_shows_what_was_sealed() {
    let world = World::new();
    world.write_small_log();

    let stored: Vec<u8> = world
        .files()
        .into_iter()
        .flat_map(|file| std::fs::read(file).unwrap())
        .collect();

    for sealed in [CANARY, "test client", "ci.example.com", "key-1"] {
        let found = stored
            .windows(sealed.len())
            .any(|window| window == sealed.as_bytes());
        assert!(!found, "{sealed:?} stands in clear");
    }
}

#[test]
fn a_second_writer_is_told_that_there_is_one() {
    let world = World::new();
    let (_audit, _) = world.open();

    let second = world.try_open();

    assert!(matches!(second, Err(AuditError::Busy(_))));
}

#[test]
fn nobody_else_writes_the_logs_own_records() {
    let world = World::new();
    let (audit, _) = world.open();
    let forged = Entry {
        kind: Kind::KeyErased,
        session: None,
        call: None,
        refers_to: None,
        body: Body::Empty,
    };

    let ticket = audit.push(forged);

    assert!(ticket.wait().is_err());
}

#[test]
fn nothing_is_taken_behind_the_end() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    audit.close().unwrap();

    let late = audit.push(attempt_entry(session, call_id()));

    assert!(late.wait().is_err());
}

#[test]
fn the_log_goes_on_over_many_segments() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    for _ in 0..200 {
        let call = attempt(&audit, session);
        clear(&audit, session, call);
        answer(&audit, session, call);
    }
    audit.close().unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert!(world.segments() > 3, "{} segments", world.segments());
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert!(report.structure.is_empty() && report.open_attempts.is_empty());
}

#[test]
fn a_clearance_behind_the_runs_revocation_is_found_without_a_key() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let call = attempt(&audit, session);
    revoke(&audit, session);
    clear(&audit, session, call);
    audit.close().unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(
        report.verdict,
        Verdict::IntactLocalPin,
        "the bytes are what was written"
    );
    assert_eq!(report.exit(), Exit::Negative);
    assert_eq!(
        report.structure[0].what,
        "a call was cleared after its run was revoked"
    );
}

#[test]
fn a_full_segment_is_cut_to_what_it_holds() {
    let world = World::new();
    world.write_long_log();

    let full = std::fs::read(world.dir().join("seg/0000000000.seg")).unwrap();

    let used = frames(&full).last().unwrap().end;
    assert_eq!(full.len(), used);
    assert!(
        used > 20 * 1024 - 5 * 1024,
        "filled up to the reserve: {used}"
    );
}

#[test]
fn head_catches_up_by_itself_when_nothing_more_comes() {
    let world = World::new();
    let (audit, _) = world.open();
    open_run(&audit);
    let last = audit.head().unwrap();

    let head = testkit::wait_for("HEAD", testkit::Deadline::usual(), || {
        let head = ledger::Head::decode(&std::fs::read(world.dir().join("HEAD")).unwrap()).unwrap();
        (head.seq == last.seq).then_some(head)
    });

    assert_eq!(head.head, last.id);
}

/// A wall clock that somebody sets to and fro; the one since boot goes on.
struct Jumping(AtomicU64);

impl Clock for Jumping {
    fn now(&self) -> Stamp {
        let tick = self.0.fetch_add(1, Ordering::Relaxed);
        let year = 365 * 24 * 60 * 60 * 1000;
        let wall = match tick % 4 {
            0 => 10 * year,
            1 => 30 * year,
            2 => 0,
            _ => 9 * year,
        };
        Stamp {
            wall: Wall::from_millis(wall + tick),
            boot_ms: tick,
        }
    }
}

#[test]
fn a_clock_that_jumps_both_ways_changes_no_order_and_raises_no_alarm() {
    let world = World::new();
    let options = audit::Options {
        clock: Arc::new(Jumping(AtomicU64::new(0))),
        ..world.options()
    };
    let mut made = Vec::new();
    for _ in 0..2 {
        let (audit, _) = Audit::open(options.clone()).unwrap();
        audit.endorse(&world.root).unwrap();
        let session = open_run(&audit);
        for _ in 0..10 {
            let call = attempt(&audit, session);
            clear(&audit, session, call);
            answer(&audit, session, call);
            made.push(call.0);
        }
        let told = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();
        let told: Vec<_> = told.iter().map(|call| call.id).collect();
        assert_eq!(told, made);
        audit.close().unwrap();
    }

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(report.exit(), Exit::Done, "{report}");
}
