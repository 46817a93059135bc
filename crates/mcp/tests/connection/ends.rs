//! The ways in which a connection ends, and what they leave of the calls under way.

use std::time::Duration;

use mcp::{Closing, Event};
use serde_json::json;
use tokio::time::timeout;

use crate::peer::{SOON, Told, call, request, serve};

#[tokio::test]
async fn after_a_half_close_the_answers_flow_until_the_last_call_has_ended() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;
    served.client.shut().await;
    let noted = timeout(SOON, served.events.recv()).await.unwrap();
    assert!(matches!(noted, Some(Event::InputEnded { .. })));
    assert!(!served.end.is_finished());

    served.acts.release.add_permits(1);

    let answer = served.client.next().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"]["body"], "held");
    assert_eq!(served.client.next().await, None);
    assert!(served.next_delivered().await);
    let ended = served.ended().await;
    assert_eq!(ended.closing, Closing::InputEnded);
    assert!(ended.input_ended_at.unwrap().boot_ms <= ended.transport_closed_at.boot_ms);
    assert_eq!(ended.unanswered, 0);
}

#[tokio::test]
async fn a_held_call_outlives_five_seconds_of_half_closed_connection() {
    tokio::time::pause();
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;
    served.client.shut().await;

    tokio::time::sleep(Duration::from_secs(60)).await;
    served.acts.release.add_permits(1);

    assert_eq!(served.client.next().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_full_close_ends_the_connection_at_once_and_the_call_goes_on() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;

    drop(served.client.stream);

    let ended = timeout(SOON, served.end).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.closing, Closing::HungUp);
    assert_eq!(ended.unanswered, 1);
    served.acts.release.add_permits(1);
    let told = timeout(SOON, served.told.recv()).await.unwrap().unwrap();
    assert!(matches!(told, Told::Delivered(_, false)), "{told:?}");
}

#[tokio::test]
async fn what_a_client_sent_before_it_closed_is_not_begun() {
    let mut served = serve();
    served.initialize().await;
    served.client.send(call(1, "/late")).await;

    // The runtime has one thread, which has not been given up since the line was written.
    drop(served.client.stream);

    let ended = timeout(SOON, served.end).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.closing, Closing::HungUp);
    assert!(served.acts.last.lock().unwrap().is_none());
}

#[tokio::test]
async fn nothing_but_an_end_is_an_ordinary_end() {
    let mut served = serve();

    served.client.shut().await;

    assert_eq!(served.client.next().await, None);
    assert_eq!(served.ended().await.closing, Closing::InputEnded);
}

#[tokio::test]
async fn a_torn_last_line_is_no_request() {
    let mut served = serve();
    served.initialize().await;
    let line = call(1, "/torn").to_string();
    served.client.write(line.as_bytes()).await;
    served.client.shut().await;

    assert_eq!(served.client.next().await, None);
    assert!(served.acts.last.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_cancelled_call_goes_on_and_gets_no_answer() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1, "reason": "changed my mind"}});
    served.client.send(cancel).await;
    served.client.ask(request(2, "ping", json!({}))).await;
    // Its id is not free yet: the call runs.
    let again = served.client.ask(call(1, "/x")).await;
    assert_eq!(again["error"]["code"], -32600);

    served.acts.release.add_permits(1);

    assert!(!served.next_delivered().await);
    let next = served.client.ask(call(1, "/x")).await;
    assert_eq!(next["result"]["structuredContent"]["body"], "you said /x");
}

#[tokio::test]
async fn the_daemon_can_end_a_connection_and_what_is_ready_is_still_said() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;
    served.client.ask(request(2, "ping", json!({}))).await;

    served.stop.cancel();

    assert_eq!(served.client.next().await, None);
    let ended = timeout(SOON, served.end).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.closing, Closing::Stopped);
    assert_eq!(ended.input_ended_at, None);
    assert_eq!(ended.unanswered, 1);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_stuck_after_thirty_seconds_until_it_reads() {
    tokio::time::pause();
    let mut served = serve();
    served.initialize().await;
    served.client.send(call(1, "/large")).await;

    let stuck = timeout(Duration::from_secs(60), served.events.recv()).await;
    assert!(matches!(stuck, Ok(Some(Event::Stuck { .. }))), "{stuck:?}");

    assert_eq!(served.client.next().await.unwrap()["id"], 1);
    let again = served.events.recv().await;
    assert!(matches!(again, Some(Event::ReadsAgain { .. })), "{again:?}");
}

#[tokio::test]
async fn a_client_that_reads_nothing_cannot_hide_its_end() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/large").await;
    // Faults fill the queue, and then the socket, until nothing more of them is read.
    let noise = vec![b'\n'; 1 << 16];
    let mut written = 0;
    while let Ok(result) = timeout(
        Duration::from_millis(200),
        tokio::io::AsyncWriteExt::write(&mut served.client.stream, &noise),
    )
    .await
    {
        written += result.unwrap();
        assert!(written < 64 << 20, "reading never stops");
    }

    served.client.shut().await;
    let noted = timeout(SOON, served.events.recv()).await.unwrap();
    assert!(
        matches!(noted, Some(Event::InputEnded { .. })),
        "half close"
    );

    drop(served.client.stream);
    let ended = timeout(SOON, served.end).await.unwrap().unwrap().unwrap();
    assert!(
        matches!(ended.closing, Closing::HungUp | Closing::WriteFailed { .. }),
        "{ended:?}"
    );
}
