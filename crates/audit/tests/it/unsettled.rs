//! Calls without a known end are told from memory and from their own records, however long the log is.

use audit::{Audit, CallFilter, CallView, Retention};
use model::{Body, CallState, Journal, Kind, OutcomeBody, SessionId, Unsettled, Wall};
use testkit::Proof;

use crate::world::*;

/// A run with an open call, and behind it so many calls that ended.
fn long(audit: &Audit, ended: usize) -> SessionId {
    let session = open_run(audit);
    clear(audit, session, attempt(audit, session));
    for _ in 0..ended {
        end(audit, session);
    }
    session
}

fn end(audit: &Audit, session: SessionId) {
    let call = attempt(audit, session);
    clear(audit, session, call);
    answer(audit, session, call);
}

fn open_calls(audit: &Audit) -> Vec<CallView> {
    audit.calls(&CallFilter::open(), Some(&Xor)).unwrap()
}

fn all_that_are_open(audit: &Audit) -> Vec<CallView> {
    let mut all = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();
    all.retain(|call| call.state.is_open());
    all
}

#[test]
fn open_calls_are_listed_by_reading_their_own_records_alone() {
    let world = World::new();
    for _ in 0..2 {
        let (audit, _) = world.open();
        long(&audit, 100);
        audit.close().unwrap();
    }
    let (audit, _) = world.open();

    let before = read_by_this_thread();
    let open = open_calls(&audit);
    let read = read_by_this_thread()
        .zip(before)
        .map(|(after, before)| after - before);

    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|call| call.target.value().is_some()));
    assert!(world.segments() > 5);
    // Two records and a key file for each, and what proc(5) itself was read for.
    assert!(
        read.is_none_or(|read| read < 8_000),
        "{read:?} bytes were read"
    );
}

#[test]
fn an_open_call_whose_segment_was_given_up_is_still_told_with_its_body() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = long(&audit, 60);
    let all = Retention {
        since: Wall::from_millis(u64::MAX),
        bytes: 0,
        from: None,
    };
    for _ in 0..2 {
        audit.prune(&all).unwrap().unwrap();
        let open = open_calls(&audit);
        assert_eq!(open.len(), 1);
        assert!(open[0].target.value().is_some(), "{open:?}");
        for _ in 0..40 {
            end(&audit, session);
        }
    }
    audit.close().unwrap();
    drop(audit);

    let (audit, _) = world.open();
    let open = open_calls(&audit);
    assert_eq!(open[0].state, CallState::Unresolved);
    assert!(open[0].target.value().is_some(), "{open:?}");
    assert_eq!(open, all_that_are_open(&audit));
}

/// Whatever happened, across restarts and crashes: what memory says is what the whole log says.
#[test]
fn what_is_kept_in_memory_is_what_the_whole_log_says() {
    let world = World::new();
    let mut chance = Proof::begin(1);
    for _ in 0..6 {
        let (audit, _) = world.open();
        let session = open_run(&audit);
        for _ in 0..20 {
            let (call, seq) = attempt(&audit, session);
            if chance.below(5) > 0 {
                clear(&audit, session, (call, seq));
            }
            let body = match chance.below(4) {
                0 => continue,
                1 => {
                    answer(&audit, session, (call, seq));
                    continue;
                }
                2 => OutcomeBody::Waiting {
                    on: "a person".to_owned(),
                },
                _ => OutcomeBody::Unresolved {
                    why: Unsettled::TimedOut,
                },
            };
            let kind = if matches!(body, OutcomeBody::Waiting { .. }) {
                Kind::Waiting
            } else {
                Kind::Unresolved
            };
            let outcome = entry(kind, session, Some(call), Some(seq), Body::Outcome(body));
            durable(&audit, outcome);
        }
        assert_eq!(open_calls(&audit), all_that_are_open(&audit));
        if chance.below(2) == 0 {
            audit.close().unwrap();
        }
    }
    let (audit, _) = world.open();
    let open = open_calls(&audit);
    assert_eq!(open, all_that_are_open(&audit));
    let first = open.first().expect("an open call");
    let found = Body::Reconciled {
        happened: true,
        evidence: "seen".to_owned(),
        by: model::Operator {
            uid: 0,
            login_uid: None,
            presence: model::Presence::None,
        },
    };
    let session = first.session_id.unwrap();
    let reconciled = entry(
        Kind::Reconciled,
        session,
        Some(first.id),
        Some(first.seq),
        found,
    );
    audit.push(reconciled).wait().unwrap();
    assert_eq!(open_calls(&audit).len(), open.len() - 1);
}
