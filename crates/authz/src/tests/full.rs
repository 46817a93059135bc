//! A log that takes nothing more, or no attempts.

use super::*;

#[test]
fn nothing_is_cleared_once_the_log_takes_no_more_and_closing_still_acts() {
    alone(|| {
        let (memory, gate, session) = world();
        let permit = now(gate.attempt(ask(session, 11, false)).unwrap().durable()).unwrap();
        *memory.full.lock().unwrap() = true;

        assert_eq!(
            gate.clear(permit).map(|_| ()).unwrap_err().why,
            Denial::NotRecorded
        );
        let closed = gate.close(Scope::Run { session }, Foreign::new("test"), None);

        assert!(
            now(closed.ticket).is_err(),
            "it must say that it is not on record"
        );
        let refused = through(&gate, ask(session, 12, false))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(refused.why.code(), "revoked");
    });
}

#[test]
fn a_run_whose_beginning_could_not_be_recorded_gets_nothing_and_the_next_one_does() {
    alone(|| {
        let (memory, gate, session) = world();
        *memory.full.lock().unwrap() = true;
        let unknown = gate.admit(newcomer(2, Some(20))).unwrap().session;
        *memory.full.lock().unwrap() = false;

        let refused = through(&gate, ask(unknown, 11, false)).map(drop);

        assert_eq!(refused.unwrap_err().why, Denial::NotRecorded);
        assert!(through(&gate, ask(session, 12, false)).is_ok());
        drop(gate.disconnected(
            unknown,
            ConnectionId::from_bytes([2; 10]),
            Wall::from_millis(1),
        ));
        let again = gate.admit(newcomer(3, Some(20))).unwrap();
        assert!(!again.joined);
        assert!(through(&gate, ask(again.session, 13, false)).is_ok());
    });
}

#[test]
fn with_no_room_for_attempts_refusals_are_on_record_alone_and_calls_go_on_when_there_is_room_again()
{
    alone(|| {
        let (memory, gate, session) = world();
        *memory.no_attempts.lock().unwrap() = true;
        let before = memory.kinds().len();

        let refused = through(&gate, ask(session, 10, false)).map(|_| ());
        let denied = gate.turn_away(&ask(session, 11, false), Denial::NotAllowed);

        assert_eq!(refused.unwrap_err().why, Denial::NotRecorded);
        assert!(now(denied.ticket.unwrap()).is_ok());
        let entries = memory.entries.lock().unwrap();
        let alone = entries[before..].iter();
        let alone: Vec<_> = alone.map(|entry| (entry.kind, entry.refers_to)).collect();
        assert_eq!(alone, [(Kind::Denied, None), (Kind::Denied, None)]);
        drop(entries);
        *memory.no_attempts.lock().unwrap() = false;
        assert!(through(&gate, ask(session, 12, false)).is_ok());
    });
}
