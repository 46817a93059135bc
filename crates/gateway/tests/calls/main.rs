//! Calls against a real remote side: what it received is what the record says.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod kept;
mod world;

use gateway::{Acts, Ending};
use model::{Body, Denial, Foreign, Kind, OutcomeBody, Scope, Unsettled, Withdrawal};
use testkit::Mode;

use world::{World, request, world, world_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_write_is_attempted_cleared_and_answered_under_the_id_that_was_sent() {
    let world = world();

    let ending = world
        .gateway
        .http(world.who, request("POST", "/force"))
        .await;

    let Ending::Answered(answered) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(answered.status, 200);
    assert_eq!(
        world.memory.kinds(),
        [Kind::Attempt, Kind::Cleared, Kind::Answered]
    );
    let sent = world.target.requests();
    let recorded = world.recorded_key();
    assert!(recorded.is_some());
    assert_eq!(sent[0].idempotency_key(), recorded.as_deref());
    assert_eq!(sent[0].header("authorization"), Some("Bearer s3cret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_recorded_and_sent_without_an_id() {
    let world = world();

    let ending = world
        .gateway
        .http(world.who, request("GET", "/health"))
        .await;

    assert!(matches!(ending, Ending::Answered(_)), "{ending:?}");
    assert_eq!(world.recorded_key(), None);
    assert_eq!(world.target.requests()[0].idempotency_key(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_operation_sends_no_id_is_recorded_without_one() {
    let plain = "[[channel.builds.operation]]\nname = \"plain\"\nallow = [\"POST /plain\"]\n";
    let world = world_with(plain, None);

    let ending = world
        .gateway
        .http(world.who, request("POST", "/plain"))
        .await;

    assert!(matches!(ending, Ending::Answered(_)), "{ending:?}");
    assert_eq!(world.recorded_key(), None);
    assert_eq!(world.target.requests()[0].idempotency_key(), None);
}

#[test]
fn a_channel_is_shown_with_what_it_allows_and_whether_it_is_closed() {
    let world = world();
    let only = |world: &World| world.gateway.channels(world.who).remove(0);

    let open = only(&world);
    assert_eq!((open.name.as_str(), open.closed), ("builds", None));
    assert_eq!(open.operations[0].allow, ["POST /force", "GET /health"]);
    assert!(open.operations[0].idempotent);

    world.revoke();
    let closed = only(&world).closed;
    assert!(matches!(closed, Some(Denial::Revoked { .. })), "{closed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_shut_knows_no_channel_and_refuses_as_locked() {
    let world = world();
    assert_eq!(world.gateway.channels(world.who).len(), 1);

    world.gateway.shut();

    assert!(world.gateway.channels(world.who).is_empty());
    let ending = world
        .gateway
        .http(world.who, request("GET", "/health"))
        .await;
    let refused = matches!(&ending, Ending::Refused(refusal) if refusal.why == Denial::Locked);
    assert!(refused, "{ending:?}");
    assert!(world.target.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_while_no_connection_can_be_established_nothing_left_and_the_record_proves_it() {
    let world = world();
    world.target.set_mode(Mode::RefuseToAccept);
    let call = world.begin("POST", "/force");
    world
        .until("the attempt to be on record", |world| {
            world.memory.has(Kind::Attempt)
        })
        .await;

    let in_flight = world.revoke();

    let ending = call.await.unwrap();
    assert!(
        matches!(
            ending,
            Ending::Withdrawn {
                proof: Withdrawal::NeverCleared,
                ..
            }
        ),
        "{ending:?}"
    );
    assert!(in_flight.is_empty());
    assert!(!world.memory.has(Kind::Cleared));
    assert!(world.target.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_after_the_remote_side_took_it_the_outcome_is_unresolved_and_listed_in_flight() {
    let world = world();
    let call = world.held("POST", "/force").await;

    let in_flight = world.revoke();

    let Ending::Unresolved { call, why, .. } = call.await.unwrap() else {
        panic!()
    };
    assert_eq!(why, Unsettled::Revoked);
    assert_eq!(in_flight, [call]);
    assert!(world.memory.has(Kind::Unresolved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_before_the_answer_is_unknown_and_its_repeat_is_refused() {
    let world = world();
    world.target.set_mode(Mode::CloseBeforeAnswer);

    let first = world
        .gateway
        .http(world.who, request("POST", "/force"))
        .await;
    let again = world
        .gateway
        .http(world.who, request("POST", "/force"))
        .await;

    let Ending::Unresolved { call, .. } = first else {
        panic!("{first:?}")
    };
    let Ending::Refused(refusal) = again else {
        panic!("{again:?}")
    };
    assert_eq!(refusal.why, Denial::Repeat { of: call });
    assert_eq!(world.target.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_asker_goes_away_still_comes_to_its_recorded_end() {
    let world = world();
    let call = world.held("POST", "/force").await;

    call.abort();
    world.target.release();

    world
        .until("the answer to be on record", |world| {
            world.memory.has(Kind::Answered)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_cancels_gives_a_call_up_as_soon_as_its_client_is_lost() {
    let world = world_with("on_client_lost = \"cancel\"", None);
    let call = world.held("POST", "/force").await;

    world.gateway.client_lost(world.who.session);

    let ending = call.await.unwrap();
    assert!(
        matches!(
            ending,
            Ending::Unresolved {
                why: Unsettled::ClientLost,
                ..
            }
        ),
        "{ending:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_finishes_lets_a_call_be_answered_after_its_client_was_lost() {
    let world = world();
    let call = world.held("POST", "/force").await;

    world.gateway.client_lost(world.who.session);
    world.target.release();

    let ending = call.await.unwrap();
    assert!(matches!(ending, Ending::Answered(_)), "{ending:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_when_the_attempt_cannot_be_recorded() {
    let world = world();
    *world.memory.full.lock().unwrap() = true;

    let ending = world
        .gateway
        .http(world.who, request("POST", "/force"))
        .await;

    let Ending::Refused(refusal) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(refusal.why, Denial::NotRecorded);
    assert!(world.target.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_sealed_for_another_destination_goes_nowhere() {
    let world = world_with("", Some("https://api.example.com"));

    let ending = world
        .gateway
        .http(world.who, request("GET", "/health"))
        .await;

    let Ending::Refused(refusal) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(refusal.why, Denial::Secret);
    assert_eq!(world.memory.kinds(), [Kind::Attempt, Kind::Denied]);
    assert!(world.target.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_gateway_refuses_and_records() {
    let world = world();
    drop(world.gate.close(Scope::All, Foreign::new("locked"), None));
    world.gateway.shut();

    let ending = world
        .gateway
        .http(world.who, request("GET", "/health"))
        .await;

    let Ending::Refused(refusal) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(refusal.why, Denial::Locked);
    assert!(world.memory.has(Kind::Denied));
    let outcomes = world
        .memory
        .entries
        .lock()
        .unwrap()
        .iter()
        .any(|entry| matches!(entry.body, Body::Outcome(OutcomeBody::Answered { .. })));
    assert!(!outcomes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_drained_waits_for_what_is_under_way() {
    let world = world();
    let call = world.held("POST", "/force").await;
    let gateway = world.gateway.clone();
    let mut drained = tokio::spawn(async move { gateway.drain().await });

    tokio::select! {
        _ = &mut drained => panic!("a call was under way"),
        () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {}
    }
    world.target.release();
    drained.await.unwrap();

    assert!(world.memory.has(Kind::Answered));
    assert!(matches!(call.await.unwrap(), Ending::Answered(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_a_client_is_remembered_until_its_run_has_ended() {
    let world = world_with("on_client_lost = \"cancel\"", None);
    world.target.set_mode(Mode::RefuseToAccept);
    world.gateway.client_lost(world.who.session);
    let given_up = world
        .gateway
        .http(world.who, request("GET", "/health"))
        .await;
    assert!(matches!(given_up, Ending::Withdrawn { .. }), "{given_up:?}");

    // Held, so that a call that is to be given up is, however soon its connection is up.
    world.gateway.ended(world.who.session);
    let call = world.held("GET", "/health").await;
    world.target.release();
    let made = call.await.unwrap();
    assert!(matches!(made, Ending::Answered(_)), "{made:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_did_not_reach_its_agent_is_on_record_as_undelivered() {
    let world = world();
    let ending = world
        .gateway
        .http(world.who, request("POST", "/force"))
        .await;
    let Ending::Answered(answered) = ending else {
        panic!("{ending:?}")
    };

    world.gateway.delivered(world.who, answered.call, false);
    world.gateway.delivered(world.who, answered.call, false);

    let entries = world.memory.entries.lock().unwrap();
    let told: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::Outcome(OutcomeBody::Answered { delivered, .. }) => Some(*delivered),
            _ => None,
        })
        .collect();
    assert_eq!(told, [None, Some(false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_could_not_be_read_is_on_record_all_the_same() {
    let world = world();

    let why = Denial::Malformed {
        what: "unknown field `x`".to_owned(),
    };
    world.gateway.turned_away(world.who, why);

    assert_eq!(world.memory.kinds(), [Kind::Attempt, Kind::Denied]);
}
