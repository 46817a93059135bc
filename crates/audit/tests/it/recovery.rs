//! What the next daemon finds, and what it refuses.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use audit::{Audit, AuditError, CallFilter};
use ledger::{Verdict, VerifyOptions, verify};
use model::{Act, Body, CallState, Entry, Exit, Kind};

use crate::world::*;

#[test]
fn an_attempt_without_outcome_is_unresolved_after_a_crash() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let attempted = attempt(&audit, session);
    let cleared = attempt(&audit, session);
    clear(&audit, session, cleared);
    drop(audit);

    let (audit, recovered) = world.open();
    let calls = audit.calls(&CallFilter::default(), None).unwrap();

    assert!(!recovered.closed_in_order);
    let open: Vec<_> = recovered
        .open_calls
        .iter()
        .map(|open| (open.call, open.attempt))
        .collect();
    assert_eq!(open, [attempted, cleared]);
    assert!(calls.iter().all(|call| call.state == CallState::Unresolved));
    assert_eq!(calls[0].why.value(), Some(&Some("daemon_ended".to_owned())));
}

#[test]
fn open_calls_are_told_again_at_every_start_but_recorded_once() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let call = attempt(&audit, session);
    drop(audit);
    let (audit, _) = world.open();
    let before = audit.head().unwrap().seq;
    audit.close().unwrap();
    drop(audit);

    let (audit, again) = world.open();

    assert_eq!(again.open_calls[0].call, call.0);
    // Closing: end and commit. Opening: epoch and commit, endorsement and commit. Nothing about the call.
    assert_eq!(audit.head().unwrap().seq, before + 6);
}

#[test]
fn revoked_runs_are_told_to_the_next_daemon() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    revoke(&audit, session);
    drop(audit);

    let (_audit, recovered) = world.open();

    assert_eq!(recovered.revoked_runs, [session]);
    assert!(recovered.open_runs.is_empty());
}

#[test]
fn a_torn_tail_is_moved_to_quarantine_and_told() {
    let world = World::new();
    world.write_small_log();
    // Longer than what the next start writes in its place.
    let torn = vec![0xee; 4_000];
    world.overwrite_tail(&torn);
    let before = verify(&world.dir(), &VerifyOptions::default());

    let (audit, recovered) = world.open();
    audit.close().unwrap();
    let after = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(before.verdict, Verdict::TornTail, "{before}");
    assert_eq!(before.exit(), Exit::Done);
    assert_eq!(recovered.repairs[0].len, u64::try_from(torn.len()).unwrap());
    assert_eq!(after.verdict, Verdict::IntactLocalPin, "{after}");
    assert_eq!(after.repairs.len(), 1);
    let kept = fs::read_dir(world.dir().join("quarantine"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(fs::read(kept.path()).unwrap(), torn);
}

#[test]
fn a_repair_that_was_cut_short_is_still_told() {
    let world = World::new();
    world.write_small_log();
    let digest = ledger::file_digest(b"lost bytes");
    let name = format!("0000000000-700-{digest}.bin");
    fs::write(world.dir().join("quarantine").join(name), b"lost bytes").unwrap();

    let (audit, recovered) = world.open();
    audit.close().unwrap();
    drop(audit);
    let (_audit, again) = world.open();

    assert_eq!(recovered.repairs[0].offset, 700);
    assert!(again.repairs.is_empty(), "told once");
}

#[test]
fn a_head_that_reaches_further_than_the_log_stops_the_start() {
    let world = World::new();
    world.write_small_log();
    let older = world.copy("older");
    world.append_one_run();
    fs::copy(world.dir().join("HEAD"), older.join("HEAD")).unwrap();

    let refused = world.try_open_at(&older).map(drop);

    assert!(
        matches!(refused, Err(AuditError::Truncated { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_head_of_another_history_stops_the_start() {
    let world = World::new();
    world.write_small_log();
    let fork = world.copy("fork");
    world.append_one_run();
    let (audit, _) = world.try_open_at(&fork).unwrap();
    audit.endorse(&world.root).unwrap();
    (0..4).for_each(|_| {
        open_run(&audit);
    });
    audit.close().unwrap();
    drop(audit);
    fs::copy(world.dir().join("HEAD"), fork.join("HEAD")).unwrap();

    let refused = world.try_open_at(&fork).map(drop);

    assert!(
        matches!(refused, Err(AuditError::Forked { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_log_without_its_log_file_is_not_taken_for_a_new_one() {
    let world = World::new();
    world.write_small_log();
    fs::remove_file(world.dir().join("LOG")).unwrap();
    fs::remove_file(world.dir().join("HEAD")).unwrap();

    let refused = world.try_open().map(drop);

    assert!(
        matches!(refused, Err(AuditError::LogMissing(_))),
        "{refused:?}"
    );
}

#[test]
fn a_start_that_died_before_the_log_file_is_begun_anew() {
    let world = World::new();
    world.write_small_log();
    let half = world.folder.path().join("half");
    fs::create_dir_all(half.join("seg")).unwrap();
    private(&half);
    private(&half.join("seg"));
    let segment = fs::read(world.dir().join("seg/0000000000.seg")).unwrap();
    fs::write(half.join("seg/0000000000.seg"), &segment[..96]).unwrap();

    let (_audit, recovered) = world.try_open_at(&half).unwrap();

    assert!(recovered.created);
}

#[test]
fn an_edited_log_is_not_appended_to() {
    let world = World::new();
    world.write_small_log();
    world.flip("seg/0000000000.seg", 150);

    let refused = world.try_open().map(drop);

    assert!(
        matches!(refused, Err(AuditError::Tampered(_))),
        "{refused:?}"
    );
}

#[test]
fn a_damaged_key_file_does_not_stop_the_log() {
    let world = World::new();
    world.write_small_log();
    let key = fs::read_dir(world.dir().join("keys"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs::write(key.path(), b"damaged").unwrap();

    assert!(world.try_open().is_ok());
    let report = verify(&world.dir(), &VerifyOptions::default());
    assert_eq!(report.verdict, Verdict::Tampered);
}

/// The folder copied at any moment under load is what a crash at that moment leaves, as far as the page cache goes.
#[test]
fn every_copy_of_a_log_in_use_can_be_recovered_without_losing_a_receipt() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let mut copies = Vec::new();

    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..150 {
                let call = attempt(&audit, session);
                clear(&audit, session, call);
                answer(&audit, session, call);
            }
        });
        while !writer.is_finished() && copies.len() < 12 {
            let acknowledged = audit.head().unwrap();
            copies.push((world.copy(&format!("copy-{}", copies.len())), acknowledged));
        }
    });

    for (copy, acknowledged) in copies {
        let (audit, _) = world.try_open_at(&copy).unwrap();
        audit.endorse(&world.root).unwrap();
        audit.close().unwrap();
        let pin = pin_of(&copy, &audit, acknowledged);
        let report = verify(&copy, &pinned(&pin));
        assert_eq!(report.verdict, Verdict::IntactPinned, "{report}");
        assert!(report.structure.is_empty(), "{report}");
    }
}

fn pin_of(copy: &Path, audit: &Audit, head: audit::HeadPoint) -> std::path::PathBuf {
    let path = copy.with_extension("pin");
    let pin = serde_json::json!({ "log_id": audit.log_id(), "seq": head.seq, "head": head.id });
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    file.write_all(pin.to_string().as_bytes()).unwrap();
    path
}

#[test]
fn opening_a_log_reads_it_once() {
    let world = World::new();
    world.write_long_log();
    let written: u64 = world
        .files()
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    let Some(before) = read_by_this_thread() else {
        return;
    };

    let opened = world.try_open().unwrap();

    let read = read_by_this_thread().unwrap() - before;
    drop(opened);
    assert!(read < written * 3 / 2, "{read} bytes read of {written}");
}

fn act(audit: &Audit, act: Act) {
    let by = model::Operator {
        uid: 1000,
        login_uid: None,
        presence: model::Presence::None,
    };
    durable(
        audit,
        Entry {
            kind: Kind::Acted,
            session: None,
            call: None,
            refers_to: None,
            body: Body::Acted { act, by },
        },
    );
}

/// What becomes of an attempt without outcome in a daemon run that starts with these acts.
fn becomes(acts: &[Act], cleared: bool, endorsed: bool) -> CallState {
    let world = World::new();
    // A vault has taken over in an earlier run.
    let (audit, _) = world.open();
    let vault = Root::new(2);
    audit.adopt_root(&world.root, &vault).unwrap();
    audit.close().unwrap();
    drop(audit);
    let (audit, _) = world.try_open().unwrap();
    for each in acts {
        act(&audit, each.clone());
    }
    if endorsed {
        audit.endorse(&vault).unwrap();
    }
    let session = open_run(&audit);
    let (call, seq) = attempt(&audit, session);
    if cleared {
        clear(&audit, session, (call, seq));
    }
    drop(audit);

    let (audit, recovered) = world.try_open().unwrap();

    let calls = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();
    let state = calls.iter().find(|view| view.id == call).unwrap().state;
    let open = recovered.open_calls.iter().any(|open| open.call == call);
    assert_eq!(open, state == CallState::Unresolved);
    audit.close().unwrap();
    let report = verify(&world.dir(), &VerifyOptions::default());
    assert!(report.structure.is_empty(), "{report}");
    state
}

#[test]
fn an_attempt_of_a_daemon_run_whose_vault_was_never_open_is_withdrawn_and_any_other_unresolved() {
    let started = || Act::Started {
        by: "test".to_owned(),
    };

    assert_eq!(becomes(&[started()], false, false), CallState::Withdrawn);
    assert_eq!(becomes(&[], false, false), CallState::Unresolved);
    assert_eq!(becomes(&[started()], true, false), CallState::Unresolved);
    assert_eq!(becomes(&[started()], false, true), CallState::Unresolved);
    let unlocked = [started(), Act::Unlock];
    assert_eq!(becomes(&unlocked, false, false), CallState::Unresolved);
}
