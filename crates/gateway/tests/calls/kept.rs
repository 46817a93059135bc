//! Which calls share a connection, and what closes one that is kept.

use std::time::{Duration, Instant};

use gateway::{Acts, Asker, Ending};
use model::{Foreign, Scope};
use testkit::Mode;

use crate::world::{World, admit, request, world};

/// Well before a connection is closed because it was kept long enough.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn answered(world: &World, who: Asker, method: &str, path: &str) {
    let ending = world.gateway.http(who, request(method, path)).await;
    assert!(matches!(ending, Ending::Answered(_)), "{ending:?}");
}

/// Has a read keep its connection, does `what`, and tells whether that closes it.
async fn closes(what: impl FnOnce(&World)) -> bool {
    let world = world();
    answered(&world, world.who, "GET", "/health").await;
    assert_eq!(world.target.open_connections(), 1, "it is kept");
    let begun = Instant::now();

    what(&world);

    world
        .until("the connection to be closed", |world| {
            world.target.open_connections() == 0
        })
        .await;
    begun.elapsed() < AT_ONCE
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_one_run_share_a_connection_and_a_write_has_its_own() {
    let world = world();

    for _ in 0..3 {
        answered(&world, world.who, "GET", "/health").await;
    }
    assert_eq!(world.target.connections(), 1);
    answered(&world, world.who, "POST", "/force").await;

    assert_eq!(world.target.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_gets_a_connection_that_another_one_used() {
    let world = world();
    let other = admit(&world.gate, 2);

    answered(&world, world.who, "GET", "/health").await;
    answered(&world, other, "GET", "/health").await;

    assert_eq!(world.target.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_a_lock_and_the_end_of_its_run_close_a_connection_that_is_kept() {
    let revoked = closes(|world| {
        let session = world.who.session;
        let scope = Scope::Run { session };
        drop(world.gateway.close(scope, Foreign::new("test"), None));
    });
    let locked = closes(|world| world.gateway.shut());
    let ended = closes(|world| world.gateway.ended(world.who.session));

    assert!(revoked.await && locked.await && ended.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_a_policy_closes_what_was_opened_under_the_one_before() {
    assert!(closes(World::apply).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_began_under_another_policy_leaves_no_connection_to_this_one() {
    let world = world();
    let call = world.held("GET", "/health").await;
    world.apply();
    world.target.set_mode(Mode::Answer);
    world.target.release();
    assert!(matches!(call.await.unwrap(), Ending::Answered(_)));

    answered(&world, world.who, "GET", "/health").await;

    assert_eq!(world.target.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_a_revocation_meets_leaves_no_connection() {
    let world = world();
    let call = world.held("GET", "/health").await;
    let begun = Instant::now();

    let session = world.who.session;
    let scope = Scope::Run { session };
    drop(world.gateway.close(scope, Foreign::new("test"), None));

    let ending = call.await.unwrap();
    assert!(matches!(ending, Ending::Unresolved { .. }), "{ending:?}");
    // It looks at its connection only behind its answer.
    world.target.release();
    world
        .until("the connection to be closed", |world| {
            world.target.open_connections() == 0
        })
        .await;
    assert!(begun.elapsed() < AT_ONCE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_uses_is_closed_before_the_other_side_gives_it_up() {
    assert!(!closes(|_| ()).await);
}
