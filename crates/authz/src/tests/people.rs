//! What a person decides: runs that wait, and repetitions let through once.

use super::*;

fn refusal(gate: &Gate, ask: Ask) -> Denial {
    through(gate, ask).map(|_| ()).unwrap_err().why
}

#[test]
fn a_run_that_waits_is_refused_until_it_is_allowed_and_each_refusal_is_on_record() {
    alone(|| {
        let (memory, gate, _) = world();
        gate.runs_wait(true);
        let session = gate.admit(newcomer(2, Some(20))).unwrap().session;

        assert_eq!(refusal(&gate, ask(session, 11, false)), Denial::Pending);
        let last = memory.kinds().pop().unwrap();
        assert_eq!(last.0, Kind::Denied);
        assert_eq!(gate.allow(session), Some(model::SessionState::Pending));

        assert!(through(&gate, ask(session, 12, false)).is_ok());
    });
}

#[test]
fn a_rule_that_nobody_has_read_yet_admits_nobody() {
    alone(|| {
        let gate = Gate::new(Arc::new(Memory::default()));
        let session = gate.admit(newcomer(1, Some(10))).unwrap().session;
        gate.unlocked(Vec::new());

        assert_eq!(refusal(&gate, ask(session, 11, false)), Denial::Pending);
    });
}

#[test]
fn a_run_that_began_while_nobody_was_asked_goes_on_when_somebody_is() {
    alone(|| {
        let (_, gate, session) = world();

        gate.runs_wait(true);

        assert!(through(&gate, ask(session, 11, false)).is_ok());
        let later = gate.admit(newcomer(2, Some(20))).unwrap().session;
        assert_eq!(refusal(&gate, ask(later, 12, false)), Denial::Pending);
    });
}

#[test]
fn allowing_a_revoked_run_gives_it_nothing_back() {
    alone(|| {
        let (_, gate, session) = world();
        gate.runs_wait(true);
        revoke(&gate, session);

        assert_eq!(gate.allow(session), Some(model::SessionState::Revoked));

        assert_eq!(refusal(&gate, ask(session, 11, false)).code(), "revoked");
    });
}

#[test]
fn one_repetition_passes_when_it_is_allowed_and_the_next_is_refused_again() {
    alone(|| {
        let (_, gate, session) = world();
        let first = through(&gate, ask(session, 11, true)).unwrap();
        let open = first.call();
        drop(gate.settle(
            first,
            OutcomeBody::Unresolved {
                why: Unsettled::ConnectionBroke,
            },
        ));
        assert_eq!(
            refusal(&gate, ask(session, 12, true)),
            Denial::Repeat { of: open }
        );
        assert_eq!(gate.repeats_asked().len(), 1);

        assert!(gate.allow_repeat(open));
        let second = through(&gate, ask(session, 13, true)).unwrap();
        drop(gate.settle(
            second,
            OutcomeBody::Answered {
                status: 200,
                delivered: None,
                remote_id: None,
            },
        ));

        assert_eq!(
            refusal(&gate, ask(session, 14, true)),
            Denial::Repeat { of: open },
            "what became of the first is still not known"
        );
    });
}

#[test]
fn of_two_repetitions_on_one_permission_one_passes_whatever_the_order() {
    shuttle::check_random(
        || {
            let (_, gate, session) = world();
            let first = through(&gate, ask(session, 11, true)).unwrap();
            assert!(gate.allow_repeat(first.call()));

            let callers: Vec<_> = (12..14u8)
                .map(|number| {
                    let gate = Arc::clone(&gate);
                    shuttle::thread::spawn(move || {
                        through(&gate, ask(session, number, true)).is_ok()
                    })
                })
                .collect();
            let passed = callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .filter(|passed| *passed)
                .count();

            assert_eq!(passed, 1);
        },
        300,
    );
}

#[test]
fn a_call_that_is_not_open_cannot_be_repeated_by_permission() {
    alone(|| {
        let (_, gate, _) = world();

        assert!(!gate.allow_repeat(CallId::from_bytes([77; 10])));
    });
}

#[test]
fn a_channel_says_to_a_run_why_it_is_shut() {
    alone(|| {
        let (_, gate, session) = world();
        let channel = "builds".parse().unwrap();
        assert_eq!(gate.shut_for(session, &channel), None);

        drop(gate.close(
            Scope::Channel {
                channel: channel.clone(),
            },
            Foreign::new("test"),
            None,
        ));

        let why = gate.shut_for(session, &channel).unwrap();
        assert_eq!(why.code(), "revoked");
    });
}
