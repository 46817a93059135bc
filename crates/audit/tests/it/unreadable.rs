//! What cannot be looked at is not absent: nobody may conclude anything from it, least of all that a log is new.

use std::{fs, os::unix::fs::symlink, path::Path};

use audit::{AuditError, Retention};
use ledger::{Verdict, VerifyOptions, verify};
use model::Wall;

use crate::world::*;

/// Puts something in a file's place that stat(2) refuses to follow (ELOOP), for root too.
fn make_unreadable(path: &Path) {
    let _ = fs::remove_file(path);
    symlink(path, path).unwrap();
}

fn is_still_unreadable(path: &Path) -> bool {
    path.try_exists().is_err()
}

#[test]
fn a_segment_that_cannot_be_looked_at_leaves_no_judgement() {
    let world = World::new();
    world.write_long_log();
    make_unreadable(&world.last_segment());

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
    let why = report.why.unwrap_or_default();
    assert!(
        why.starts_with("cannot read") && why.contains(".seg"),
        "{why}"
    );
}

#[test]
fn a_first_kept_segment_that_cannot_be_looked_at_leaves_no_judgement() {
    let world = World::new();
    world.write_long_log();
    let (audit, _) = world.open();
    let nothing = Retention {
        since: Wall::from_millis(u64::MAX),
        bytes: 0,
        from: None,
    };
    audit.prune(&nothing).unwrap().expect("segments to give up");
    audit.close().unwrap();
    let first = world
        .dir()
        .join(format!("seg/{:010}.seg", world.first_segment()));
    make_unreadable(&first);

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
}

#[test]
fn a_head_that_cannot_be_looked_at_leaves_no_judgement() {
    let world = World::new();
    world.write_small_log();
    let head = world.dir().join("HEAD");
    make_unreadable(&head);

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
    assert!(report.why.unwrap_or_default().contains("HEAD"));
    assert!(matches!(world.try_open(), Err(AuditError::Unknown(_))));
    assert!(is_still_unreadable(&head));
}

#[test]
fn segments_that_cannot_be_looked_at_are_not_taken_for_no_log() {
    let world = World::new();
    world.write_small_log();
    fs::remove_file(world.dir().join("LOG")).unwrap();
    fs::rename(world.dir().join("seg"), world.folder.path().join("aside")).unwrap();
    make_unreadable(&world.dir().join("seg"));

    let report = verify(&world.dir(), &VerifyOptions::default());

    let why = report.why.unwrap_or_default();
    assert!(why.starts_with("cannot read"), "{why}");
}

#[test]
fn no_log_is_begun_over_one_whose_name_cannot_be_looked_at() {
    for name in ["LOG", "HEAD", "seg/0000000000.seg", "seg/0000000001.seg"] {
        let world = World::new();
        world.write_small_log();
        if name != "LOG" {
            fs::remove_file(world.dir().join("LOG")).unwrap();
            let _ = fs::remove_file(world.dir().join("HEAD"));
            fs::remove_file(world.dir().join("seg/0000000000.seg")).unwrap();
        }
        make_unreadable(&world.dir().join(name));

        let opened = world.try_open();

        assert!(
            matches!(opened, Err(AuditError::Io { .. })),
            "{name}: {:?}",
            opened.err()
        );
        assert!(is_still_unreadable(&world.dir().join(name)), "{name}");
    }
}
