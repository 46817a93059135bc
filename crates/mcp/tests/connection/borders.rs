//! Lines that are wrong, too long, too many or too early.

use mcp::MOST_IN_FLIGHT;
use model::Denial;
use serde_json::{Value, json};

use crate::peer::{LARGE, Told, call, initialize, request, serve, serve_after};

#[tokio::test]
async fn what_is_no_json_is_answered_and_the_next_line_is_read() {
    let mut served = serve();
    served.client.write(b"{oops\n\xff\xfe\n[]\n").await;

    let codes = [
        served.client.next().await.unwrap(),
        served.client.next().await.unwrap(),
        served.client.next().await.unwrap(),
    ]
    .map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()));

    let null = || Value::Null;
    assert_eq!(
        codes,
        [
            (null(), json!(-32700)),
            (null(), json!(-32700)),
            (null(), json!(-32600))
        ]
    );
    served.initialize().await;
}

#[tokio::test]
async fn a_line_above_the_cap_is_answered_and_one_at_the_cap_is_taken() {
    let mut served = serve();
    served.initialize().await;
    let shell = request(1, "ping", json!({"pad": ""})).to_string();
    let ping = |pad: usize| {
        let line = request(1, "ping", json!({"pad": "x".repeat(pad)}));
        format!("{line}\n")
    };
    let fits = ping(wire::LINE_CAP - shell.len());
    assert_eq!(fits.len() - 1, wire::LINE_CAP);

    served.client.write(fits.as_bytes()).await;
    let taken = served.client.next().await.unwrap();
    served.client.write(ping(wire::LINE_CAP).as_bytes()).await;
    let refused = served.client.next().await.unwrap();

    assert_eq!(taken["result"], json!({}));
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["id"], Value::Null);
    assert_eq!(
        served.client.ask(request(2, "ping", json!({}))).await["result"],
        json!({})
    );
}

#[tokio::test]
async fn an_id_that_is_in_flight_is_refused_and_free_again_after_its_answer() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(7, "/held").await;

    let duplicate = served.client.ask(call(7, "/x")).await;
    served.acts.release.add_permits(1);
    let held = served.client.next().await.unwrap();
    let free = served.client.ask(call(7, "/x")).await;

    assert_eq!(duplicate["error"]["code"], -32600);
    assert_eq!(held["result"]["structuredContent"]["body"], "held");
    assert_eq!(free["result"]["structuredContent"]["body"], "you said /x");
}

#[tokio::test]
async fn ids_that_are_a_number_and_a_text_are_two() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(7, "/held").await;
    let mut other = request(0, "ping", json!({}));
    other["id"] = json!("7");

    let answer = served.client.ask(other).await;

    assert_eq!(answer["result"], json!({}));
}

#[tokio::test]
async fn beyond_the_most_in_flight_a_call_is_busy_and_only_recorded() {
    let mut served = serve();
    served.initialize().await;
    for id in 0..MOST_IN_FLIGHT as u64 {
        served.call_and_wait(id, "/held").await;
    }

    let busy = served.client.ask(call(1000, "/x")).await;
    assert_eq!(served.next_told().await, Told::TurnedAway(Denial::Busy));
    let other = served
        .client
        .ask(request(1001, "tools/list", json!({})))
        .await;

    let refused = &busy["result"]["structuredContent"]["refused"];
    assert_eq!(busy["result"]["isError"], true);
    assert_eq!(refused["code"], "busy");
    assert!(other["error"]["code"].as_i64().unwrap() > 0, "{other}");
    served.acts.release.add_permits(MOST_IN_FLIGHT);
    for _ in 0..MOST_IN_FLIGHT {
        assert_eq!(
            served.client.next().await.unwrap()["result"]["isError"],
            false
        );
        assert!(matches!(served.next_told().await, Told::Delivered(_, true)));
    }
    assert_eq!(
        served.client.ask(call(1000, "/x")).await["result"]["isError"],
        false
    );
}

#[tokio::test]
async fn bytes_that_came_with_the_hello_are_read_first() {
    let mut ahead = format!("{}\n", initialize("2025-11-25")).into_bytes();
    let rest = ahead.split_off(20);
    let mut served = serve_after(ahead);

    served.client.write(&rest).await;

    assert_eq!(served.client.next().await.unwrap()["id"], "init");
}

#[tokio::test]
async fn a_reader_that_is_slow_gets_every_answer_whole() {
    let mut served = serve();
    served.initialize().await;
    for id in 0..8 {
        served.call_and_wait(id, "/large").await;
    }

    let mut seen: Vec<u64> = Vec::new();
    for _ in 0..8 {
        let answer = served.client.next().await.unwrap();
        let body = &answer["result"]["structuredContent"]["body"];
        assert_eq!(body.as_str().unwrap().len(), LARGE);
        seen.push(answer["id"].as_u64().unwrap());
    }

    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn text_of_the_agent_goes_to_the_gateway_unchanged() {
    let mut served = serve();
    served.initialize().await;
    let path = "/\u{202e}a\u{1b}[2J\u{0}ü";

    served.call_and_wait(1, path).await;

    let asked = served.acts.last.lock().unwrap().clone().unwrap();
    assert_eq!(asked.path, path);
    assert_eq!(
        (asked.channel.as_str(), asked.method.as_str()),
        ("builds", "POST")
    );
}
