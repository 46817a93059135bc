//! Runs and calls as the log tells them, with and without keys.

use audit::CallFilter;
use model::{Body, CallState, Kind, Lost, LostBasis, SessionState, Wall};

use crate::world::*;

#[test]
fn a_call_of_this_daemon_run_is_readable_while_the_vault_is_locked() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let call = attempt(&audit, session);
    clear(&audit, session, call);
    answer(&audit, session, call);

    let calls = audit.calls(&CallFilter::default(), None).unwrap();

    assert_eq!(calls[0].state, CallState::Answered);
    assert_eq!(calls[0].status.value(), Some(&Some(201)));
    assert_eq!(calls[0].target.value().unwrap().method.raw(), "POST");
    assert_eq!(calls[0].seq, call.1);
}

#[test]
fn a_call_of_an_earlier_daemon_run_says_that_the_vault_is_locked() {
    let world = World::new();
    world.write_small_log();
    let (audit, _) = world.open();

    let locked = audit.calls(&CallFilter::default(), None).unwrap();
    let unlocked = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();

    assert_eq!(locked[0].target.why(), Some("the vault is locked"));
    assert_eq!(locked[0].state, CallState::Answered);
    assert_eq!(unlocked[0].target.value().unwrap().method.raw(), "POST");
}

#[test]
fn a_call_has_the_form_that_scripts_rely_on() {
    let world = World::new();
    world.write_small_log();
    let (audit, _) = world.open();

    let call = &audit.calls(&CallFilter::default(), None).unwrap()[0];
    let json = serde_json::to_value(call).unwrap();

    assert_eq!(json["target"]["unknown"], "the vault is locked");
    assert_eq!(json["state"], "answered");
    assert!(json["id"].as_str().unwrap().starts_with("c-"));
    assert!(json["session_id"].as_str().unwrap().starts_with("s-"));
    assert!(json.get("arguments").is_none());
    assert_eq!(
        &serde_json::from_value::<audit::CallView>(json).unwrap().id,
        &call.id
    );
}

#[test]
fn filters_choose_calls_by_run_state_and_time() {
    let world = World::new();
    let (audit, _) = world.open();
    let (one, two) = (open_run(&audit), open_run(&audit));
    let answered = attempt(&audit, one);
    clear(&audit, one, answered);
    answer(&audit, one, answered);
    let open = attempt(&audit, two);
    clear(&audit, two, open);
    let ids = |filter: &CallFilter| -> Vec<_> {
        audit
            .calls(filter, None)
            .unwrap()
            .iter()
            .map(|call| call.id)
            .collect()
    };

    let of_one = ids(&CallFilter {
        session: Some(one),
        ..CallFilter::default()
    });
    let still_open = ids(&CallFilter::open());
    let later = ids(&CallFilter {
        since: Some(Wall::from_millis(u64::MAX)),
        ..CallFilter::default()
    });

    assert_eq!(of_one, [answered.0]);
    assert_eq!(still_open, [open.0]);
    assert!(later.is_empty());
}

#[test]
fn a_revoked_run_stays_revoked_in_its_view() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let receipt = revoke(&audit, session);
    durable(
        &audit,
        entry(
            Kind::SessionEnded,
            session,
            None,
            None,
            Body::SessionEnded {
                why: "x".to_owned(),
            },
        ),
    );

    let runs = audit.sessions(None).unwrap();

    assert_eq!(runs[0].state, SessionState::Revoked);
    assert_eq!(runs[0].revoked_seq, Some(receipt.seq));
    assert_eq!(
        runs[0]
            .revoked_reason
            .value()
            .unwrap()
            .as_ref()
            .unwrap()
            .raw(),
        "test"
    );
    assert!(runs[0].ended_at.is_some());
}

#[test]
fn what_lost_means_is_read_from_the_sealed_body() {
    let world = World::new();
    let (audit, _) = world.open();
    let cases = [
        (LostBasis::HolderExited, SessionState::Lost),
        (LostBasis::AncestorExited, SessionState::Abandoned),
        (LostBasis::ClientStuck, SessionState::Stuck),
    ];
    for (basis, _) in cases {
        let session = open_run(&audit);
        let at = Wall::from_millis(7);
        let lost = Lost {
            basis,
            not_before: at,
            not_after: at,
            process: None,
        };
        durable(
            &audit,
            entry(
                Kind::ClientLost,
                session,
                None,
                None,
                Body::ClientLost(lost),
            ),
        );
    }

    let runs = audit.sessions(None).unwrap();

    for (run, (basis, state)) in runs.iter().zip(cases) {
        assert_eq!(run.state, state);
        assert_eq!(run.lost[0].lost.value().unwrap().basis, basis);
    }
}

#[test]
fn the_gravest_of_several_findings_counts() {
    let world = World::new();
    let (audit, _) = world.open();
    let cases = [
        (
            vec![LostBasis::ClientStuck, LostBasis::HolderExited],
            false,
            SessionState::Lost,
        ),
        (
            vec![LostBasis::HolderExited, LostBasis::AncestorExited],
            true,
            SessionState::Lost,
        ),
        (
            vec![LostBasis::ClientStuck, LostBasis::AncestorExited],
            false,
            SessionState::Abandoned,
        ),
        (vec![LostBasis::AncestorExited], true, SessionState::Ended),
    ];
    for (findings, ended, _) in &cases {
        let session = open_run(&audit);
        for basis in findings {
            let at = Wall::from_millis(7);
            let lost = Lost {
                basis: *basis,
                not_before: at,
                not_after: at,
                process: None,
            };
            durable(
                &audit,
                entry(
                    Kind::ClientLost,
                    session,
                    None,
                    None,
                    Body::ClientLost(lost),
                ),
            );
        }
        if *ended {
            let body = Body::SessionEnded {
                why: "x".to_owned(),
            };
            durable(&audit, entry(Kind::SessionEnded, session, None, None, body));
        }
    }

    let runs = audit.sessions(None).unwrap();

    for (run, (findings, ended, state)) in runs.iter().zip(cases) {
        assert_eq!(run.state, state, "{findings:?}, ended: {ended}");
    }
}

#[test]
fn a_run_whose_daemon_died_is_lost_between_two_known_times() {
    let world = World::new();
    world.write_small_log();
    let (audit, recovered) = world.open();

    let runs = audit.sessions(Some(&Xor)).unwrap();

    let lost = runs[0].lost[0].lost.value().unwrap();
    assert_eq!(runs[0].state, SessionState::Lost);
    assert_eq!(lost.basis, LostBasis::TransportClosed);
    assert!(lost.not_before <= lost.not_after);
    assert_eq!(recovered.open_runs[0].session, runs[0].id);
}

#[test]
fn a_key_file_that_is_gone_makes_its_bodies_unknown_not_wrong() {
    let world = World::new();
    world.write_small_log();
    let (audit, _) = world.open();
    let session = audit.sessions(None).unwrap()[0].id;
    std::fs::remove_file(ledger::key_file_of(&world.dir(), session)).unwrap();

    let calls = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();

    assert_eq!(calls[0].target.why(), Some("its key was erased"));
}

#[test]
fn a_key_that_is_not_the_committed_one_opens_nothing() {
    struct Other;
    impl audit::KeyUnwrap for Other {
        fn unwrap(&self, _file: &[u8]) -> Option<zeroize::Zeroizing<[u8; 32]>> {
            Some(zeroize::Zeroizing::new([0; 32]))
        }
    }
    let world = World::new();
    world.write_small_log();
    let (audit, _) = world.open();

    let calls = audit.calls(&CallFilter::default(), Some(&Other)).unwrap();

    let why = "the key file holds another key than the one on record";
    assert_eq!(calls[0].target.why(), Some(why));
}

#[test]
fn an_erased_run_cannot_be_read_and_the_log_stays_intact() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    attempt(&audit, session);
    audit.erase(session).unwrap();

    let calls = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();
    audit.close().unwrap();
    let report = ledger::verify(&world.dir(), &ledger::VerifyOptions::default());

    assert_eq!(calls[0].target.why(), Some("its key was erased"));
    assert_eq!(report.exit(), model::Exit::Done, "{report}");
    assert_eq!(report.checked.erased_keys, 1);
}

#[test]
fn an_erasure_that_a_crash_cut_short_is_finished_at_the_next_start() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let file = ledger::key_file_of(&world.dir(), session);
    let key = std::fs::read(&file).unwrap();
    audit.erase(session).unwrap();
    drop(audit);
    std::fs::write(&file, key).unwrap();

    let (_audit, _) = world.open();

    assert!(!file.exists());
}

#[test]
fn the_last_calls_of_a_run_that_goes_on_are_read_from_the_end_of_the_log() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    for _ in 0..80 {
        let call = attempt(&audit, session);
        clear(&audit, session, call);
        answer(&audit, session, call);
    }
    assert!(world.segments() > 3, "the run was opened in the first");
    let last = CallFilter {
        last: Some(3),
        ..CallFilter::default()
    };
    let Some(before) = read_by_this_thread() else {
        return;
    };

    let calls = audit.calls(&last, None).unwrap();

    let read = read_by_this_thread().unwrap() - before;
    let all = audit.calls(&CallFilter::default(), None).unwrap();
    assert_eq!(calls, all[all.len() - 3..]);
    assert!(calls.iter().all(|call| call.target.value().is_some()));
    assert!(read < 2 * world.sizes.segment, "{read} bytes read");
}
