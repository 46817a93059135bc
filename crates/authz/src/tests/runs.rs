//! Runs and their connections: who joins, who is dead, who is forgotten.

use model::SessionState;

use super::*;

fn lost(basis: LostBasis, pid: u32) -> Lost {
    Lost {
        basis,
        not_before: Wall::from_millis(1),
        not_after: Wall::from_millis(1),
        process: Some(model::ProcessRef {
            id: process(pid),
            command: Vec::new(),
            exe: None,
            exe_id: None,
        }),
    }
}

fn leave(gate: &Gate, session: SessionId, connection: u8) {
    let connection = ConnectionId::from_bytes([connection; 10]);
    drop(gate.disconnected(session, connection, Wall::from_millis(1)));
}

fn state(gate: &Gate, session: SessionId) -> Option<SessionState> {
    gate.state_of(session)
}

#[test]
fn a_connection_joins_the_run_of_its_holder_and_of_nobody_else() {
    alone(|| {
        let (memory, gate, session) = world();

        let same = gate.admit(newcomer(2, Some(10))).unwrap();
        let other = gate.admit(newcomer(3, Some(20))).unwrap();
        let nobody = gate.admit(newcomer(4, None)).unwrap();
        let nobody_again = gate.admit(newcomer(5, None)).unwrap();

        assert!(same.joined && same.session == session);
        assert_eq!(same.session_seq, Some(1));
        for fresh in [&other, &nobody, &nobody_again] {
            assert!(!fresh.joined && fresh.session != session);
        }
        assert_ne!(nobody.session, nobody_again.session, "nobody is not one");
        let opened = memory.kinds();
        let opened = opened.iter().filter(|one| one.0 == Kind::SessionOpened);
        assert_eq!(opened.count(), 4);
    });
}

#[test]
fn a_run_whose_holder_died_is_joined_by_no_later_process_of_its_number() {
    alone(|| {
        let (_, gate, session) = world();
        drop(gate.lost(session, lost(LostBasis::HolderExited, 10)));

        let again = gate.admit(newcomer(2, Some(10))).unwrap();

        assert!(!again.joined && again.session != session);
    });
}

#[test]
fn a_dead_holder_cancels_what_waits_in_its_own_run_and_lets_what_left_go_on() {
    alone(|| {
        let (_, gate, session) = world();
        let other = gate.admit(newcomer(2, Some(20))).unwrap().session;
        let left = through(&gate, ask(session, 10, false)).unwrap();
        let waiting = now(gate.attempt(ask(session, 11, false)).unwrap().durable()).unwrap();
        let theirs = now(gate.attempt(ask(other, 12, false)).unwrap().durable()).unwrap();

        drop(gate.lost(session, lost(LostBasis::HolderExited, 10)));

        assert!(waiting.cancelled().is_cancelled());
        assert!(!left.cancelled().is_cancelled() && !theirs.cancelled().is_cancelled());
        assert!(gate.clear(theirs).is_ok());
        assert_eq!(state(&gate, session), Some(SessionState::Lost));
        assert_eq!(state(&gate, other), Some(SessionState::Live));
    });
}

#[test]
fn each_dead_process_is_on_record_once_and_only_a_dead_holder_takes_authority() {
    alone(|| {
        let (memory, gate, session) = world();
        let recorded = || {
            let all = memory.kinds();
            all.iter().filter(|one| one.0 == Kind::ClientLost).count()
        };

        assert!(
            gate.lost(session, lost(LostBasis::ClientStuck, 8))
                .is_some()
        );
        assert_eq!(state(&gate, session), Some(SessionState::Live));
        assert!(
            gate.lost(session, lost(LostBasis::TransportClosed, 7))
                .is_some()
        );
        assert_eq!(state(&gate, session), Some(SessionState::Live));
        assert!(
            gate.lost(session, lost(LostBasis::AncestorExited, 9))
                .is_some()
        );
        assert!(
            gate.lost(session, lost(LostBasis::AncestorExited, 9))
                .is_none()
        );

        assert_eq!(recorded(), 3);
        assert_eq!(state(&gate, session), Some(SessionState::Abandoned));
        assert!(through(&gate, ask(session, 10, true)).is_ok());
    });
}

#[test]
fn a_run_ends_with_its_last_connection_and_is_forgotten() {
    alone(|| {
        let (memory, gate, session) = world();
        drop(gate.admit(newcomer(2, Some(10))).unwrap());

        leave(&gate, session, 2);
        assert_eq!(state(&gate, session), Some(SessionState::Live));
        assert_eq!(gate.runs()[0].connections, 1);
        leave(&gate, session, 1);

        assert_eq!(state(&gate, session), None);
        assert_eq!(gate.runs().len(), 0);
        let last: Vec<Kind> = memory
            .kinds()
            .iter()
            .rev()
            .take(2)
            .map(|one| one.0)
            .collect();
        assert_eq!(last, [Kind::SessionEnded, Kind::Disconnected]);
        // Nothing of it comes back: what is asked in its name is refused.
        let refused = through(&gate, ask(session, 10, false))
            .map(drop)
            .unwrap_err();
        assert_eq!(refused.why, Denial::ClientLost);
    });
}

#[test]
fn a_revoked_run_is_remembered_until_its_holder_is_dead_and_its_end_is_on_record_once() {
    alone(|| {
        let (memory, gate, session) = world();
        revoke(&gate, session);
        // Its holder dies while it is still connected: the connection's end comes later.
        gate.holder_is_dead(&process(10));
        assert_eq!(state(&gate, session), Some(SessionState::Revoked));
        leave(&gate, session, 1);
        assert_eq!(state(&gate, session), Some(SessionState::Revoked));

        let again = gate.admit(newcomer(2, Some(10))).unwrap();
        assert!(again.joined);
        leave(&gate, session, 2);

        let ends = memory.kinds();
        let ends = ends.iter().filter(|one| one.0 == Kind::SessionEnded);
        assert_eq!(ends.count(), 1);
        gate.holder_is_dead(&process(20));
        assert_eq!(state(&gate, session), Some(SessionState::Revoked));
        gate.holder_is_dead(&process(10));
        assert_eq!(state(&gate, session), None);
    });
}

#[test]
fn the_list_of_runs_says_of_each_what_it_is() {
    alone(|| {
        let (_, gate, session) = world();
        let nobody = gate.admit(newcomer(3, None)).unwrap().session;
        gate.runs_wait(true);
        let pending = gate.admit(newcomer(4, Some(40))).unwrap().session;
        revoke(&gate, nobody);

        let runs = gate.runs();

        assert_eq!(runs.len(), 3);
        let of = |id| runs.iter().find(|run| run.id == id).unwrap();
        assert_eq!(of(session).state, SessionState::Live);
        assert_eq!(of(nobody).state, SessionState::Revoked);
        assert_eq!(of(pending).state, SessionState::Pending);
        assert!(of(session).ownership_complete && !of(nobody).ownership_complete);
        assert!(runs.iter().all(|run| run.connections == 1));
    });
}

#[test]
fn a_state_names_what_weighs_most() {
    alone(|| {
        let (_, gate, session) = world();
        drop(gate.lost(session, lost(LostBasis::AncestorExited, 9)));
        gate.runs_wait(true);
        assert_eq!(state(&gate, session), Some(SessionState::Abandoned));
        let waits = gate.admit(newcomer(2, Some(20))).unwrap().session;
        drop(gate.lost(waits, lost(LostBasis::AncestorExited, 9)));
        assert_eq!(state(&gate, waits), Some(SessionState::Pending));
        drop(gate.lost(waits, lost(LostBasis::HolderExited, 20)));
        assert_eq!(state(&gate, waits), Some(SessionState::Lost));
        revoke(&gate, waits);
        assert_eq!(state(&gate, waits), Some(SessionState::Revoked));
        // A run is not admitted in a state in which it does not wait.
        assert_eq!(gate.allow(waits), Some(SessionState::Revoked));
        assert_eq!(gate.allow(SessionId::from_bytes([77; 10])), None);
    });
}

#[test]
fn a_run_that_opens_behind_a_lock_waits_even_where_nobody_is_asked() {
    alone(|| {
        let (_, gate, _) = world();
        drop(gate.close(Scope::All, Foreign::new("test"), None));
        let session = gate.admit(newcomer(2, Some(20))).unwrap().session;
        gate.runs_wait(true);
        gate.unlocked(Vec::new());

        let refused = through(&gate, ask(session, 10, false))
            .map(drop)
            .unwrap_err();

        assert_eq!(refused.why, Denial::Pending);
    });
}

#[test]
fn saying_that_nobody_waits_admits_who_waits() {
    alone(|| {
        let (_, gate, _) = world();
        gate.runs_wait(true);
        let session = gate.admit(newcomer(2, Some(20))).unwrap().session;
        assert_eq!(state(&gate, session), Some(SessionState::Pending));

        gate.runs_wait(false);
        gate.runs_wait(true);

        assert_eq!(state(&gate, session), Some(SessionState::Live));
    });
}

#[test]
fn a_lost_run_that_is_still_connected_is_refused_and_so_is_an_ended_one() {
    alone(|| {
        let (_, gate, session) = world();
        drop(gate.lost(session, lost(LostBasis::HolderExited, 10)));
        let channel = "builds".parse().unwrap();
        assert_eq!(gate.shut_for(session, &channel), Some(Denial::ClientLost));

        let before = SessionId::from_bytes([42; 10]);
        gate.still_revoked(before, process(99), None);
        assert_eq!(
            gate.shut_for(before, &channel)
                .map(|why| why.code().to_owned()),
            Some("revoked".to_owned())
        );
        assert_eq!(
            gate.shut_for(SessionId::from_bytes([77; 10]), &channel),
            Some(Denial::ClientLost)
        );
    });
}

#[test]
fn a_channel_is_shut_for_a_run_that_waits_and_while_the_vault_is_shut() {
    alone(|| {
        let (_, gate, _) = world();
        let channel = "builds".parse().unwrap();
        gate.runs_wait(true);
        let session = gate.admit(newcomer(2, Some(20))).unwrap().session;
        assert_eq!(gate.shut_for(session, &channel), Some(Denial::Pending));

        drop(gate.close(Scope::All, Foreign::new("test"), None));
        assert_eq!(gate.shut_for(session, &channel), Some(Denial::Locked));
    });
}

#[test]
fn counting_counts_each_reason_by_itself_and_only_what_came_since() {
    alone(|| {
        let (memory, gate, session) = world();
        let turned = |number, why: Denial| gate.turn_away(&ask(session, number, false), why);
        for number in 10..13 {
            drop(turned(number, Denial::NotAllowed));
        }
        // The agent's own words make no reason of their own.
        for (number, what) in [(20, "a"), (21, "b")] {
            let what = what.to_owned();
            drop(turned(number, Denial::Malformed { what }));
        }
        for (number, what) in [(30, "a"), (31, "b"), (32, "c"), (33, "d")] {
            let what = what.to_owned();
            drop(turned(number, Denial::NotYours { what }));
        }

        assert!(gate.count_denials().is_some());

        let entries = memory.entries.lock().unwrap();
        let mut counts: Vec<u64> = entries
            .iter()
            .filter_map(|entry| {
                let Body::DenialsCounted { count, .. } = entry.body else {
                    return None;
                };
                Some(count)
            })
            .collect();
        drop(entries);
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 3]);
        assert!(gate.count_denials().is_none(), "nothing came since");
    });
}

#[test]
fn whoever_asks_for_a_repetition_is_remembered_until_it_is_settled() {
    alone(|| {
        let (_, gate, session) = world();
        let other = gate.admit(newcomer(2, Some(20))).unwrap().session;
        let open = through(&gate, ask(session, 10, true)).unwrap();
        let call = open.call();
        assert_eq!(gate.repeats_asked(), []);
        for (number, run) in [(11, session), (12, other)] {
            assert!(through(&gate, ask(run, number, true)).is_err());
        }

        let asked = crate::RepeatAsked {
            of: call,
            by: other,
        };
        assert_eq!(gate.repeats_asked(), [asked]);

        let answered = OutcomeBody::Answered {
            status: 200,
            delivered: None,
            remote_id: None,
        };
        drop(gate.settle(open, answered));
        assert_eq!(gate.repeats_asked(), []);
        assert!(!gate.allow_repeat(call), "it is open no more");
    });
}

#[test]
fn a_refusal_that_stayed_alone_is_counted_by_no_further_record() {
    alone(|| {
        let (memory, gate, session) = world();
        revoke(&gate, session);
        assert!(through(&gate, ask(session, 10, false)).is_err());
        let before = memory.kinds().len();

        revoke(&gate, session);

        let kinds: Vec<Kind> = memory.kinds()[before..].iter().map(|one| one.0).collect();
        assert_eq!(kinds, [Kind::Revoked]);
    });
}
