//! The gate under a scheduler: each test runs through many interleavings of its threads.

use std::{future::Future, pin::pin, sync::Arc, task::Context};

use model::{
    Body, CallId, ConnectionId, Denial, Digest, Entry, Foreign, Journal, Kind, Lost, LostBasis,
    OutcomeBody, ProcessId, Receipt, Scope, SessionId, Target, Ticket, Unsettled, Wall,
};
use shuttle::sync::Mutex;

use crate::{Ask, Cleared, Gate, Newcomer, Refused};

mod closing;
mod full;
mod people;
mod runs;

/// A journal that keeps what it is given, and can be told to take nothing more.
#[derive(Default)]
struct Memory {
    entries: Mutex<Vec<Entry>>,
    full: Mutex<bool>,
    /// Only what operators, outcomes and refusals need still fits.
    no_attempts: Mutex<bool>,
}

impl Journal for Memory {
    fn push(&self, entry: Entry) -> Ticket {
        if *self.full.lock().unwrap() {
            return Ticket::refused("the disk is full");
        }
        if *self.no_attempts.lock().unwrap() && entry.kind == Kind::Attempt {
            return Ticket::refused("only the reserve is left");
        }
        let mut entries = self.entries.lock().unwrap();
        entries.push(entry);
        let seq = entries.len() as u64;
        let (ticket, stub) = Ticket::new(seq);
        stub.settle(Ok(Receipt {
            log_id: model::LogId::from_bytes([0; 32]),
            seq,
            id: Digest::from_bytes([0; 32]),
        }));
        ticket
    }
}

impl Memory {
    fn kinds(&self) -> Vec<(Kind, Option<CallId>)> {
        self.entries
            .lock()
            .unwrap()
            .iter()
            .map(|entry| (entry.kind, entry.call))
            .collect()
    }
}

fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the memory journal settles at once"),
    }
}

fn process(pid: u32) -> ProcessId {
    ProcessId {
        boot_id: "boot".into(),
        pid,
        start_ticks: u64::from(pid),
        pidfd_inode: None,
    }
}

fn newcomer(number: u8, holder: Option<u32>) -> Newcomer {
    Newcomer {
        connection: ConnectionId::from_bytes([number; 10]),
        chain: Vec::new(),
        holder: holder.map(process),
        uid: 1000,
        admission: "test".into(),
    }
}

fn ask(session: SessionId, number: u8, is_write: bool) -> Ask {
    Ask {
        call: CallId::from_bytes([number; 10]),
        session,
        connection: ConnectionId::from_bytes([1; 10]),
        target: Target {
            channel: "builds".parse().unwrap(),
            operation: Some("force".parse().unwrap()),
            method: "POST".into(),
            path: "/x".into(),
        },
        destination: "http://127.0.0.1".into(),
        secret: Some("token".parse().unwrap()),
        arguments: Digest::from_bytes([if is_write { 9 } else { number }; 32]),
        key: None,
        is_write,
    }
}

fn world() -> (Arc<Memory>, Arc<Gate>, SessionId) {
    let memory = Arc::new(Memory::default());
    let gate = Arc::new(Gate::new(memory.clone()));
    gate.unlocked(Vec::new());
    gate.runs_wait(false);
    let session = gate.admit(newcomer(1, Some(10))).unwrap().session;
    (memory, gate, session)
}

fn through(gate: &Gate, ask: Ask) -> Result<Cleared, Refused> {
    let attempted = gate.attempt(ask)?;
    let permit = now(attempted.durable()).expect("durable");
    gate.clear(permit)
}

fn revoke(gate: &Gate, session: SessionId) -> Vec<CallId> {
    gate.close(Scope::Run { session }, Foreign::new("test"), None)
        .in_flight
}

#[test]
fn no_call_is_cleared_behind_its_runs_revocation_and_in_flight_names_those_before() {
    shuttle::check_random(
        || {
            let (memory, gate, session) = world();

            let callers: Vec<_> = (10..14u8)
                .map(|number| {
                    let gate = Arc::clone(&gate);
                    shuttle::thread::spawn(move || {
                        through(&gate, ask(session, number, false)).is_ok()
                    })
                })
                .collect();
            let in_flight = revoke(&gate, session);
            let went: usize = callers
                .into_iter()
                .filter_map(|caller| caller.join().unwrap().then_some(1))
                .sum();

            let kinds = memory.kinds();
            let revoked = kinds
                .iter()
                .position(|(kind, _)| *kind == Kind::Revoked)
                .unwrap();
            let cleared: Vec<usize> = (0..kinds.len())
                .filter(|index| kinds[*index].0 == Kind::Cleared)
                .collect();
            assert!(cleared.iter().all(|index| *index < revoked), "{kinds:?}");
            assert_eq!(cleared.len(), went);
            assert!(
                cleared
                    .iter()
                    .all(|index| in_flight.contains(&kinds[*index].1.unwrap()))
            );
            assert_eq!(in_flight.len(), went);
        },
        2_000,
    );
}

#[test]
fn of_two_equal_writes_at_once_one_is_refused_as_a_repeat() {
    shuttle::check_random(
        || {
            let (_, gate, session) = world();

            let callers: Vec<_> = (10..12u8)
                .map(|number| {
                    let gate = Arc::clone(&gate);
                    shuttle::thread::spawn(move || through(&gate, ask(session, number, true)))
                })
                .collect();
            let results: Vec<_> = callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .collect();

            let repeats = results.iter().filter(|result| {
                matches!(
                    result,
                    Err(Refused {
                        why: Denial::Repeat { .. },
                        ..
                    })
                )
            });
            assert_eq!(repeats.count(), 1);
        },
        1_000,
    );
}

fn alone(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, 1);
}

#[test]
fn an_unresolved_write_blocks_its_twin_of_another_run_until_it_is_reconciled() {
    alone(|| {
        let (_, gate, session) = world();
        let other = gate.admit(newcomer(2, Some(20))).unwrap().session;
        let cleared = through(&gate, ask(session, 10, true)).unwrap();
        let (call, seq) = (cleared.call(), 1);
        drop(gate.settle(
            cleared,
            OutcomeBody::Unresolved {
                why: Unsettled::TimedOut,
            },
        ));

        let refused = through(&gate, ask(other, 11, true))
            .map(|_| ())
            .unwrap_err();

        assert_eq!(refused.why, Denial::Repeat { of: call });
        let by = model::Operator {
            uid: 0,
            login_uid: None,
            presence: model::Presence::None,
        };
        drop(gate.reconcile(Some(session), call, seq, (false, "seen".into()), by));
        assert!(through(&gate, ask(other, 12, true)).is_ok());
    });
}

#[test]
fn an_answered_write_may_be_made_again() {
    alone(|| {
        let (_, gate, session) = world();
        let cleared = through(&gate, ask(session, 10, true)).unwrap();
        let answered = OutcomeBody::Answered {
            status: 200,
            delivered: None,
            remote_id: None,
        };
        drop(gate.settle(cleared, answered));

        assert!(through(&gate, ask(session, 11, true)).is_ok());
    });
}

#[test]
fn a_new_connection_of_a_revoked_runs_holder_stays_revoked() {
    alone(|| {
        let (_, gate, session) = world();
        revoke(&gate, session);
        drop(gate.disconnected(
            session,
            ConnectionId::from_bytes([1; 10]),
            Wall::from_millis(1),
        ));

        let again = gate.admit(newcomer(2, Some(10))).unwrap();

        assert!(again.joined);
        let refused = through(&gate, ask(again.session, 11, false))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.why.code(), "revoked");
    });
}

#[test]
fn a_dead_holder_closes_the_intake_and_a_dead_ancestor_does_not() {
    alone(|| {
        let (_, gate, session) = world();
        let lost = |basis| Lost {
            basis,
            not_before: Wall::from_millis(1),
            not_after: Wall::from_millis(1),
            process: None,
        };

        drop(gate.lost(session, lost(LostBasis::AncestorExited)));
        assert!(through(&gate, ask(session, 11, false)).is_ok());
        let permit = now(gate.attempt(ask(session, 12, false)).unwrap().durable()).unwrap();
        drop(gate.lost(session, lost(LostBasis::HolderExited)));

        assert!(permit.cancelled().is_cancelled());
        assert_eq!(
            gate.clear(permit).map(|_| ()).unwrap_err().why,
            Denial::ClientLost
        );
        let refused = through(&gate, ask(session, 13, false))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.why, Denial::ClientLost);
    });
}

#[test]
fn a_flood_of_refusals_is_two_records_and_a_count() {
    alone(|| {
        let (memory, gate, session) = world();
        revoke(&gate, session);
        let before = memory.kinds().len();

        for number in 10..110 {
            assert!(through(&gate, ask(session, number, false)).is_err());
        }
        drop(gate.count_denials());

        let entries = memory.entries.lock().unwrap();
        let kinds: Vec<Kind> = entries[before..].iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::Attempt, Kind::Denied, Kind::DenialsCounted]);
        assert!(matches!(
            entries.last().unwrap().body,
            Body::DenialsCounted { count: 99, .. }
        ));
    });
}

#[test]
fn each_revocation_is_followed_by_a_refusal_of_its_own_and_no_count_is_lost() {
    alone(|| {
        let (memory, gate, session) = world();
        revoke(&gate, session);
        for number in 10..13 {
            assert!(through(&gate, ask(session, number, false)).is_err());
        }
        let before = memory.kinds().len();

        revoke(&gate, session);
        assert!(through(&gate, ask(session, 13, false)).is_err());

        let entries = memory.entries.lock().unwrap();
        let kinds: Vec<Kind> = entries[before..].iter().map(|entry| entry.kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::DenialsCounted,
                Kind::Revoked,
                Kind::Attempt,
                Kind::Denied
            ]
        );
        assert!(matches!(
            entries[before].body,
            Body::DenialsCounted { count: 2, .. }
        ));
    });
}

#[test]
fn a_probe_of_a_revoked_run_is_refused_on_record_however_many_were_before() {
    alone(|| {
        let (memory, gate, session) = world();
        revoke(&gate, session);
        assert!(through(&gate, ask(session, 10, false)).is_err());
        let before = memory.kinds().len();

        let refused = gate.probe(&ask(session, 11, false)).map(|_| ());

        assert_eq!(refused.unwrap_err().why.code(), "revoked");
        let entries = memory.entries.lock().unwrap();
        let kinds: Vec<Kind> = entries[before..].iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::Attempt, Kind::Denied]);
        assert!(matches!(
            entries[before].body,
            Body::Attempt { probe: true, .. }
        ));
    });
}

#[test]
fn a_probe_of_a_run_with_authority_lets_nothing_through_and_leaves_nothing_open() {
    alone(|| {
        let (memory, gate, session) = world();
        let before = memory.kinds().len();

        drop(gate.probe(&ask(session, 11, true)).unwrap());

        let kinds: Vec<Kind> = memory.kinds()[before..].iter().map(|one| one.0).collect();
        assert_eq!(kinds, [Kind::Attempt, Kind::Withdrawn]);
        // The very same write is no repetition of it.
        assert!(through(&gate, ask(session, 12, true)).is_ok());
        let closed = gate.close(Scope::All, "the vault was locked".into(), None);
        assert!(!closed.in_flight.contains(&CallId::from_bytes([11; 10])));
    });
}

#[test]
fn a_run_nobody_owns_may_read_and_not_write() {
    alone(|| {
        let (_, gate, _) = world();
        let nobody = gate.admit(newcomer(3, None)).unwrap().session;

        assert!(through(&gate, ask(nobody, 11, false)).is_ok());
        let refused = through(&gate, ask(nobody, 12, true))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.why, Denial::OwnershipIncomplete);
    });
}

#[test]
fn a_locked_gate_records_and_refuses() {
    alone(|| {
        let memory = Arc::new(Memory::default());
        let gate = Gate::new(memory.clone());
        let session = gate.admit(newcomer(1, Some(10))).unwrap().session;

        let refused = through(&gate, ask(session, 11, false))
            .map(|_| ())
            .unwrap_err();

        assert_eq!(refused.why, Denial::Locked);
        let kinds: Vec<Kind> = memory.kinds().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds[2..], [Kind::Attempt, Kind::Denied]);
    });
}

#[test]
fn a_run_revoked_before_a_restart_is_still_revoked_for_its_holder() {
    alone(|| {
        let (_, gate, _) = world();
        let before = SessionId::from_bytes([42; 10]);
        gate.still_revoked(before, process(99), Some(7));

        let again = gate.admit(newcomer(2, Some(99))).unwrap();

        assert_eq!(again.session, before);
        let refused = through(&gate, ask(before, 11, false))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            refused.why,
            Denial::Revoked {
                scope: "run".to_owned(),
                seq: Some(7)
            }
        );
    });
}

#[test]
fn a_connection_with_64_calls_under_way_is_busy_and_its_neighbour_is_not() {
    alone(|| {
        let (_, gate, session) = world();
        let under_way: Vec<_> = (0..64)
            .map(|number| gate.attempt(ask(session, number, false)).unwrap())
            .collect();
        let neighbour = Ask {
            connection: ConnectionId::from_bytes([2; 10]),
            ..ask(session, 101, false)
        };

        let refused = gate
            .attempt(ask(session, 100, false))
            .map(|_| ())
            .unwrap_err();

        assert_eq!(refused.why, Denial::Busy);
        assert!(gate.attempt(neighbour).is_ok());
        drop(under_way);
    });
}
