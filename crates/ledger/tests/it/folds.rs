//! Folds over clear headers are folds: a part and then the rest is the whole.

use ledger::{Calls, Header, Place, Sealing, Sessions};
use model::{CallId, Digest, Kind, SessionId, SessionState, Stamp, Wall};
use proptest::prelude::*;

fn headers() -> impl Strategy<Value = Vec<Header>> {
    let one = (1u8..56, 0u8..4, 0u8..6, proptest::option::of(1u64..60));
    proptest::collection::vec(one, 0..60).prop_map(|parts| {
        let kinds = parts
            .into_iter()
            .filter_map(|(code, session, call, refers_to)| {
                Kind::from_code(code).map(|kind| (kind, session, call, refers_to))
            });
        kinds
            .enumerate()
            .map(|(at, (kind, session, call, refers_to))| {
                header(at, kind, session, call, refers_to)
            })
            .collect()
    })
}

fn header(at: usize, kind: Kind, session: u8, call: u8, refers_to: Option<u64>) -> Header {
    let seq = u64::try_from(at).unwrap() + 1;
    Header {
        kind,
        sealing: if kind.body_is_clear() {
            Sealing::Clear
        } else {
            Sealing::Run
        },
        seq,
        stamp: Stamp {
            wall: Wall::from_millis(seq * 10),
            boot_ms: seq,
        },
        session: (session > 0).then(|| SessionId::from_bytes([session; 10])),
        call: (call > 0).then(|| CallId::from_bytes([call; 10])),
        refers_to,
        prev: Digest::from_bytes([0; 32]),
    }
}

fn fold(sessions: &mut Sessions, calls: &mut Calls, headers: &[Header]) {
    for header in headers {
        sessions.apply(header, place(header));
        calls.apply(header, place(header));
    }
}

const fn place(header: &Header) -> Place {
    Place {
        segment: 0,
        offset: header.seq * 100,
    }
}

proptest! {
    #[test]
    fn a_prefix_and_then_the_rest_fold_to_the_whole(headers in headers(), at: prop::sample::Index) {
        let (first, rest) = headers.split_at(at.index(headers.len() + 1));
        let (mut sessions, mut calls) = (Sessions::default(), Calls::default());
        fold(&mut sessions, &mut calls, first);
        // A reader may stop here, remember, and go on later.
        let (mut sessions, mut calls) = (sessions.clone(), calls.clone());
        fold(&mut sessions, &mut calls, rest);
        let (mut all_sessions, mut all_calls) = (Sessions::default(), Calls::default());
        fold(&mut all_sessions, &mut all_calls, &headers);

        prop_assert_eq!(sessions, all_sessions);
        prop_assert_eq!(calls, all_calls);
    }

    #[test]
    fn forgetting_settled_calls_never_forgets_an_open_one(headers in headers()) {
        let (mut kept, mut all) = (Calls::default(), Calls::default());
        for header in &headers {
            kept.apply_unsettled(header, place(header));
        }
        fold(&mut Sessions::default(), &mut all, &headers);

        for (id, call) in all.in_order() {
            let state = kept.get(id).map(|kept| kept.state);
            prop_assert_eq!(state, call.is_unsettled().then_some(call.state));
        }
    }
}

#[test]
fn a_run_of_an_earlier_daemon_is_lost_until_somebody_joins_again() {
    let mut sessions = Sessions::default();
    let run = SessionId::from_bytes([1; 10]);
    let story = [
        (Kind::EpochOpened, 0, SessionState::Live),
        (Kind::SessionOpened, 1, SessionState::Live),
        (Kind::EpochOpened, 0, SessionState::Lost),
        (Kind::Connected, 1, SessionState::Live),
        (Kind::Revoked, 1, SessionState::Revoked),
        (Kind::SessionEnded, 1, SessionState::Revoked),
    ];
    for (at, (kind, session, state)) in story.into_iter().enumerate() {
        fold(
            &mut sessions,
            &mut Calls::default(),
            &[header(at, kind, session, 0, None)],
        );

        let now = sessions
            .get(run)
            .map_or(SessionState::Live, ledger::SessionFold::state);
        assert_eq!(now, state, "after {kind:?}");
    }
}
