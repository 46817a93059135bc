//! The rules of order, one by one.

use ledger::Report;
use model::{CallState, Exit, Kind};

use crate::forge::*;

/// Writes these records of one call, each referring to the attempt, and judges them.
fn judged(kinds: &[Kind]) -> Report {
    let mut forge = Forge::begun();
    forge.open_run();
    let mut attempt = None;
    for kind in kinds {
        let refers = if *kind == Kind::Attempt || *kind == Kind::Revoked {
            None
        } else {
            attempt
        };
        let seq = forge.of_call(*kind, refers);
        if *kind == Kind::Attempt {
            attempt = Some(seq);
        }
    }
    forge.commit();
    forge.judge()
}

#[test]
fn every_way_a_call_may_go_is_in_order() {
    use Kind::*;
    let ways: [&[Kind]; 11] = [
        &[Attempt, Denied],
        &[Attempt, Withdrawn],
        &[Attempt, Unresolved],
        &[Attempt, Cleared, Answered],
        &[Attempt, Cleared, Answered, Answered],
        &[Attempt, Cleared, Withdrawn],
        &[Attempt, Cleared, Cleared, Answered],
        &[Attempt, Cleared, Unresolved, Reconciled],
        &[Attempt, Cleared, Unresolved, Answered],
        &[Attempt, Cleared, Outliving, Cleared, Answered],
        &[Attempt, Cleared, Waiting, Unresolved, Reconciled],
    ];
    for way in ways {
        let report = judged(way);

        assert_eq!(report.exit(), Exit::Done, "{way:?}: {report}");
        assert!(
            report
                .open_attempts
                .iter()
                .all(|open| open.state == CallState::Unresolved),
            "{way:?}"
        );
    }
}

#[test]
fn every_way_a_call_cannot_go_is_named() {
    use Kind::*;
    let ways: [(&[Kind], &str); 9] = [
        (
            &[Attempt, Answered],
            "an answer came to a call that was never cleared",
        ),
        (
            &[Attempt, Cleared, Denied],
            "a call was denied after it had been cleared",
        ),
        (
            &[Attempt, Denied, Cleared],
            "a clearance refers to no open attempt of its call",
        ),
        (
            &[Attempt, Denied, Denied],
            "an outcome refers to no open attempt",
        ),
        (
            &[Attempt, Cleared, Answered, Unresolved],
            "an outcome refers to no open attempt",
        ),
        (
            &[Attempt, Revoked, Cleared],
            "a call was cleared after its run was revoked",
        ),
        (
            &[Cleared],
            "a clearance refers to no open attempt of its call",
        ),
        (&[Answered], "an outcome refers to no attempt"),
        (&[Reconciled], "a reconciliation refers to no attempt"),
    ];
    for (way, rule) in ways {
        let report = judged(way);

        assert_eq!(report.exit(), Exit::Negative, "{way:?}: {report}");
        assert_eq!(report.structure[0].what, rule, "{way:?}");
    }
}

#[test]
fn attempts_without_a_known_end_are_listed_with_their_state() {
    use Kind::*;
    let ways: [(&[Kind], CallState); 5] = [
        (&[Attempt], CallState::Attempted),
        (&[Attempt, Cleared], CallState::Cleared),
        (&[Attempt, Cleared, Outliving], CallState::Outliving),
        (&[Attempt, Cleared, Waiting], CallState::Waiting),
        (&[Attempt, Unresolved], CallState::Unresolved),
    ];
    for (way, state) in ways {
        let report = judged(way);

        assert_eq!(report.open_attempts.len(), 1, "{way:?}");
        assert_eq!(report.open_attempts[0].state, state, "{way:?}");
        assert_eq!(report.open_attempts[0].call, Some(CALL));
    }
}

#[test]
fn a_record_behind_the_end_of_its_daemon_run_is_named() {
    let mut forge = Forge::begun();
    forge.record(Kind::EpochClosed, Says::default());
    forge.of_call(Kind::Attempt, None);
    forge.commit();

    let report = forge.judge();

    assert_eq!(
        report.structure[0].what,
        "a record follows the end of its daemon run"
    );
}
