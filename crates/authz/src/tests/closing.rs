//! What a closing reaches: the calls in its scope and no others, for as long as it holds.

use model::{ChannelName, SecretName};

use super::*;

fn other_channel(ask: Ask) -> Ask {
    Ask {
        target: Target {
            channel: "pages".parse().unwrap(),
            ..ask.target
        },
        secret: Some("other".parse().unwrap()),
        ..ask
    }
}

fn scopes() -> [Scope; 2] {
    [
        Scope::Channel {
            channel: "builds".parse().unwrap(),
        },
        Scope::Secret {
            secret: "token".parse().unwrap(),
        },
    ]
}

fn close(gate: &Gate, scope: Scope) -> crate::Closed {
    gate.close(scope, Foreign::new("test"), None)
}

fn why(gate: &Gate, ask: Ask) -> Option<Denial> {
    through(gate, ask).err().map(|refused| refused.why)
}

#[test]
fn closing_a_channel_or_a_secret_cancels_and_names_its_calls_and_leaves_others_alone() {
    for scope in scopes() {
        alone(move || {
            let (_, gate, session) = world();
            let inside = through(&gate, ask(session, 10, false)).unwrap();
            let outside = through(&gate, other_channel(ask(session, 11, false))).unwrap();
            let waiting = gate.attempt(ask(session, 12, false)).unwrap();
            let waiting = now(waiting.durable()).unwrap();

            let closed = close(&gate, scope.clone());

            assert!(closed.known);
            assert_eq!(closed.in_flight, [inside.call()]);
            assert!(inside.cancelled().is_cancelled());
            assert!(waiting.cancelled().is_cancelled());
            assert!(!outside.cancelled().is_cancelled());
            assert_eq!(gate.clear(waiting).unwrap_err().why.code(), "revoked");
        });
    }
}

#[test]
fn a_closed_channel_or_secret_is_refused_by_name_to_every_run_and_not_beside_it() {
    for (scope, name) in scopes().into_iter().zip(["channel", "secret"]) {
        alone(move || {
            let (_, gate, session) = world();
            let other = gate.admit(newcomer(2, Some(20))).unwrap().session;
            let seq = now(close(&gate, scope.clone()).ticket).unwrap().seq;

            for (number, run) in [(10, session), (20, other)] {
                let expected = Denial::Revoked {
                    scope: name.to_owned(),
                    seq: Some(seq),
                };
                assert_eq!(why(&gate, ask(run, number, false)), Some(expected));
                let beside = other_channel(ask(run, number + 1, false));
                assert_eq!(why(&gate, beside), None);
            }
        });
    }
}

#[test]
fn giving_one_channel_or_secret_back_leaves_the_others_closed() {
    alone(|| {
        let (_, gate, session) = world();
        let names = ["builds", "pages"].map(|name| name.parse::<ChannelName>().unwrap());
        let secrets = ["token", "other"].map(|name| name.parse::<SecretName>().unwrap());
        for channel in names.clone() {
            drop(close(&gate, Scope::Channel { channel }));
        }

        gate.reopen(&[names[0].clone()].into(), &[].into());
        assert_eq!(why(&gate, ask(session, 10, false)), None);
        assert!(why(&gate, other_channel(ask(session, 11, false))).is_some());

        gate.reopen(&[names[1].clone()].into(), &[].into());
        for secret in secrets.clone() {
            drop(close(&gate, Scope::Secret { secret }));
        }
        gate.reopen(&[].into(), &[secrets[0].clone()].into());
        assert_eq!(why(&gate, ask(session, 12, false)), None);
        assert!(why(&gate, other_channel(ask(session, 13, false))).is_some());
    });
}

#[test]
fn closing_a_run_that_is_not_there_is_said_to_be_that() {
    alone(|| {
        let (_, gate, session) = world();
        let stranger = SessionId::from_bytes([77; 10]);

        assert!(!close(&gate, Scope::Run { session: stranger }).known);
        assert!(close(&gate, Scope::Run { session }).known);
    });
}

#[test]
fn revoking_one_run_cancels_nothing_of_another() {
    alone(|| {
        let (_, gate, session) = world();
        let other = gate.admit(newcomer(2, Some(20))).unwrap().session;
        let (ours, theirs) = (
            through(&gate, ask(session, 10, false)).unwrap(),
            through(&gate, ask(other, 11, false)).unwrap(),
        );

        assert_eq!(revoke(&gate, session), [ours.call()]);

        assert!(ours.cancelled().is_cancelled() && !theirs.cancelled().is_cancelled());
        assert_eq!(why(&gate, ask(other, 12, false)), None);
    });
}

#[test]
fn a_lock_closes_everything_until_the_vault_is_opened_again() {
    alone(|| {
        let (_, gate, session) = world();
        let held = through(&gate, ask(session, 10, false)).unwrap();

        assert_eq!(close(&gate, Scope::All).in_flight, [held.call()]);

        assert!(held.cancelled().is_cancelled());
        assert_eq!(why(&gate, ask(session, 11, false)), Some(Denial::Locked));
        gate.unlocked(Vec::new());
        assert_eq!(why(&gate, ask(session, 12, false)), None);
    });
}

#[test]
fn after_closings_that_could_not_be_recorded_nothing_is_cleared_however_many_there_were() {
    for closings in [1, 2, 3] {
        alone(move || {
            let (memory, gate, session) = world();
            *memory.full.lock().unwrap() = true;
            for _ in 0..closings {
                let scope = Scope::Secret {
                    secret: "other".parse().unwrap(),
                };
                assert!(now(close(&gate, scope).ticket).is_err());
            }
            *memory.full.lock().unwrap() = false;
            // One that can be recorded again changes nothing about those that were not.
            let scope = Scope::Secret {
                secret: "other".parse().unwrap(),
            };
            assert!(now(close(&gate, scope).ticket).is_ok());

            let refused = why(&gate, ask(session, 11, false));

            assert_eq!(refused, Some(Denial::NotRecorded));
        });
    }
}

#[test]
fn an_attempt_that_never_became_durable_shuts_the_gate() {
    alone(|| {
        let (_, gate, session) = world();
        let attempted = gate.attempt(ask(session, 10, false)).unwrap();
        let call = attempted.ask.call;

        let refused = gate.unrecorded(call);

        assert_eq!((refused.why, refused.call), (Denial::NotRecorded, call));
        assert_eq!(
            why(&gate, ask(session, 11, false)),
            Some(Denial::NotRecorded)
        );
    });
}

#[test]
fn writes_that_an_earlier_daemon_left_open_block_their_twins() {
    alone(|| {
        let (_, gate, session) = world();
        let left = ask(session, 10, true);
        let open = crate::OpenCall {
            call: left.call,
            channel: left.target.channel.clone(),
            operation: left.target.operation.clone(),
            arguments: left.arguments,
        };

        gate.unlocked(vec![open]);

        let twin = ask(session, 11, true);
        assert_eq!(why(&gate, twin), Some(Denial::Repeat { of: left.call }));
        let others = [
            Ask {
                arguments: Digest::from_bytes([8; 32]),
                ..ask(session, 12, true)
            },
            other_channel(ask(session, 13, true)),
            ask(session, 14, false),
        ];
        for other in others {
            assert_eq!(why(&gate, other), None);
        }
    });
}

#[test]
fn what_a_cleared_call_carries_is_what_was_asked() {
    alone(|| {
        let (memory, gate, session) = world();
        let key = model::RequestKey("k-0123".to_owned());
        let asked = Ask {
            key: Some(key.clone()),
            ..ask(session, 10, true)
        };
        drop(through(&gate, ask(session, 9, false)).unwrap());

        let permit = now(gate.attempt(asked.clone()).unwrap().durable()).unwrap();
        let attempt = memory.kinds().len() as u64;
        assert_eq!((permit.call(), permit.attempt_seq()), (asked.call, attempt));
        let cleared = gate.clear(permit).unwrap();

        assert_eq!(cleared.call(), asked.call);
        assert_eq!(cleared.key(), Some(&key));
        let keyless = through(&gate, ask(session, 11, false)).unwrap();
        assert_eq!(keyless.key(), None);
    });
}

#[test]
fn an_answer_that_reached_nobody_is_put_on_record_and_nothing_else_is() {
    alone(|| {
        let (memory, gate, session) = world();
        let cleared = through(&gate, ask(session, 10, true)).unwrap();
        let answered = OutcomeBody::Answered {
            status: 201,
            delivered: None,
            remote_id: None,
        };
        let settled = cleared.settled_by(&answered);
        drop(gate.settle(cleared, answered));

        drop(gate.undelivered(settled).unwrap());

        let last = memory.entries.lock().unwrap().pop().unwrap();
        assert_eq!(last.kind, Kind::Answered);
        let Body::Outcome(OutcomeBody::Answered {
            status, delivered, ..
        }) = last.body
        else {
            panic!("{last:?}");
        };
        assert_eq!((status, delivered), (201, Some(false)));

        let cleared = through(&gate, ask(session, 11, true)).unwrap();
        let unresolved = OutcomeBody::Unresolved {
            why: Unsettled::TimedOut,
        };
        let settled = cleared.settled_by(&unresolved);
        drop(gate.settle(cleared, unresolved));
        assert!(gate.undelivered(settled).is_none());
    });
}

#[test]
fn a_write_that_goes_on_elsewhere_stays_open_and_one_that_never_left_does_not() {
    let outliving = || OutcomeBody::Outliving { job: "j".into() };
    let waiting = || OutcomeBody::Waiting { on: "w".into() };
    let withdrawn = || OutcomeBody::Withdrawn {
        proof: model::Withdrawal::NeverCleared,
    };
    for (outcome, stays) in [(outliving(), true), (waiting(), true), (withdrawn(), false)] {
        alone(move || {
            let (_, gate, session) = world();
            let cleared = through(&gate, ask(session, 10, true)).unwrap();
            let call = cleared.call();
            drop(gate.settle(cleared, outcome.clone()));

            let again = why(&gate, ask(session, 11, true));

            assert_eq!(again, stays.then_some(Denial::Repeat { of: call }));
        });
    }
}

#[test]
fn a_permit_that_was_given_up_makes_room_and_cannot_be_named_in_flight() {
    alone(|| {
        let (memory, gate, session) = world();
        let permits: Vec<_> = (0..64)
            .map(|number| {
                now(gate.attempt(ask(session, number, false)).unwrap().durable()).unwrap()
            })
            .collect();
        let connection = ConnectionId::from_bytes([1; 10]);
        assert_eq!(gate.under_way(connection), 64);
        assert_eq!(why(&gate, ask(session, 100, false)), Some(Denial::Busy));

        for permit in permits {
            drop(gate.withdraw(permit));
        }

        assert_eq!(gate.under_way(connection), 0);
        assert_eq!(memory.kinds().last().unwrap().0, Kind::Withdrawn);
        assert_eq!(close(&gate, Scope::All).in_flight, []);
    });
}

#[test]
fn more_than_a_thousand_calls_of_all_connections_together_are_busy() {
    alone(|| {
        let (_, gate, session) = world();
        let of = |connection: u8, number: u8| {
            let mut call = [number; 10];
            call[0] = connection;
            Ask {
                call: CallId::from_bytes(call),
                connection: ConnectionId::from_bytes([connection; 10]),
                ..ask(session, number, false)
            }
        };
        let mut held = Vec::new();
        for connection in 0..16 {
            held.extend((0..64).map(|number| gate.attempt(of(connection, number)).unwrap()));
        }

        assert_eq!(why(&gate, of(16, 0)), Some(Denial::Busy));

        drop(gate.withdraw(now(held.pop().unwrap().durable()).unwrap()));
        assert_eq!(why(&gate, of(16, 1)), None);
    });
}

#[test]
fn where_there_is_room_for_fewer_calls_fewer_are_let_in_and_never_more_than_usual() {
    for (room, fits) in [(3, 3), (64, 64), (usize::MAX, 64)] {
        alone(move || {
            let gate = Gate::new(Arc::new(Memory::default())).with_room_for(room);
            gate.unlocked(Vec::new());
            gate.runs_wait(false);
            let session = gate.admit(newcomer(1, Some(10))).unwrap().session;

            let held: Vec<_> = (0..64)
                .filter_map(|number| gate.attempt(ask(session, number, false)).ok())
                .collect();

            assert_eq!(held.len(), fits);
        });
    }
}

#[test]
fn a_gate_prints_nothing_of_what_it_holds() {
    alone(|| {
        let (_, gate, _) = world();

        assert_eq!(format!("{gate:?}"), "Gate { .. }");
    });
}
