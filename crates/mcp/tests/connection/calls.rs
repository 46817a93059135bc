//! What comes back from a call, for the model, for a program and for an auditor.

use serde_json::{Value, json};

use crate::peer::{RECEIPT_SEQ, Served, Told, call, request, serve};

async fn ready() -> Served {
    let mut served = serve();
    served.initialize().await;
    served
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

fn has_receipt(answer: &Value) -> bool {
    answer["result"]["_meta"]["lychgate/receipt"]["seq"] == RECEIPT_SEQ
}

#[tokio::test]
async fn an_answer_has_its_status_body_call_and_receipt() {
    let mut served = ready().await;

    let answer = served.client.ask(call(1, "/x")).await;

    let structured = &answer["result"]["structuredContent"];
    assert_eq!(text(&answer), "HTTP 200\n\nyou said /x");
    assert_eq!(structured["status"], 200);
    assert_eq!(structured["headers"]["content-type"], "text/plain");
    assert_eq!(structured["remote_id"], "job-7");
    assert!(structured["call"].is_string());
    assert!(has_receipt(&answer), "{answer}");
    assert_eq!(served.next_told().await, Told::Asked("/x".to_owned()));
    assert!(matches!(served.next_told().await, Told::Delivered(_, true)));
}

#[tokio::test]
async fn a_body_that_is_no_text_comes_as_base64() {
    let mut served = ready().await;

    let answer = served.client.ask(call(1, "/binary")).await;

    let structured = &answer["result"]["structuredContent"];
    assert_eq!(structured["body_base64"], "/wA=");
    assert_eq!(structured.get("body"), None);
    assert!(text(&answer).contains("2 bytes"), "{answer}");
}

#[tokio::test]
async fn a_refusal_is_a_result_that_says_what_to_do() {
    let mut served = ready().await;

    let locked = served.client.ask(call(1, "/locked")).await;
    let repeat = served.client.ask(call(2, "/repeat")).await;

    let refused = &locked["result"]["structuredContent"]["refused"];
    assert_eq!(locked["result"]["isError"], true);
    assert_eq!(refused["code"], "locked");
    assert_eq!(refused["what_to_do"], "run lych unlock");
    assert!(refused["call"].is_string());
    assert!(text(&locked).contains("run lych unlock"));
    assert!(has_receipt(&locked));
    let refused = &repeat["result"]["structuredContent"]["refused"];
    assert_eq!(refused["code"], "repeat");
    assert!(refused["of"].is_string());
}

#[tokio::test]
async fn an_unknown_outcome_says_not_to_repeat_and_a_withdrawn_call_that_nothing_left() {
    let mut served = ready().await;

    let unresolved = served.client.ask(call(1, "/unresolved")).await;
    let withdrawn = served.client.ask(call(2, "/withdrawn")).await;

    assert_eq!(unresolved["result"]["isError"], true);
    let fields = &unresolved["result"]["structuredContent"]["unresolved"];
    assert_eq!(fields["why"], "connection_broke");
    assert_eq!(
        fields["what_to_do"],
        "do not repeat; ask the operator: lych reconcile"
    );
    assert!(has_receipt(&unresolved));
    assert_eq!(withdrawn["result"]["isError"], true);
    let fields = &withdrawn["result"]["structuredContent"]["withdrawn"];
    assert_eq!(fields["nothing_left"], true);
    assert_eq!(fields["proof"], "handed_back_unwritten");
}

#[tokio::test]
async fn a_defect_behind_a_call_is_an_error_and_the_connection_goes_on() {
    let mut served = ready().await;

    let answer = served.client.ask(call(1, "/defect")).await;
    let next = served.client.ask(call(1, "/x")).await;

    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(next["result"]["isError"], false);
}

#[tokio::test]
async fn wrong_arguments_are_a_result_that_the_model_can_read_and_reach_nobody() {
    let mut served = ready().await;
    for arguments in [
        json!({}),
        json!({"channel": "a", "method": "GET", "path": "/", "x": 1}),
    ] {
        let params = json!({"name": "http_request", "arguments": arguments});

        let answer = served.client.ask(request(1, "tools/call", params)).await;

        assert_eq!(answer["result"]["isError"], true);
        let refused = &answer["result"]["structuredContent"]["refused"];
        assert_eq!(refused["code"], "malformed");
        assert_eq!(refused["call"], Value::Null);
        assert!(text(&answer).contains("field"), "{answer}");
        assert!(matches!(served.next_told().await, Told::TurnedAway(_)));
    }
    assert!(served.acts.last.lock().unwrap().is_none());
}

#[tokio::test]
async fn an_unknown_tool_or_method_is_a_protocol_error() {
    let mut served = ready().await;
    let client = &mut served.client;

    let tool = client
        .ask(request(1, "tools/call", json!({"name": "x\u{1b}[2J"})))
        .await;
    let form = client.ask(request(2, "tools/call", json!({}))).await;
    let method = client.ask(request(3, "tools/eat", json!({}))).await;
    let prompts = client.ask(request(4, "prompts/list", json!({}))).await;

    assert_eq!(tool["error"]["code"], -32602);
    let message = tool["error"]["message"].as_str().unwrap();
    assert_eq!(message, "unknown tool: x\\u{1b}[2J");
    assert_eq!(form["error"]["code"], -32602);
    assert_eq!(method["error"]["code"], -32601);
    assert_eq!(prompts["error"]["code"], -32601);
}

#[tokio::test]
async fn the_channels_are_shown_without_any_secret() {
    let mut served = ready().await;

    let answer = served
        .client
        .ask(request(1, "tools/call", json!({"name": "channels"})))
        .await;

    let channel = &answer["result"]["structuredContent"]["channels"][0];
    assert_eq!(channel["name"], "builds");
    assert_eq!(channel["closed"], "locked");
    assert_eq!(channel["operations"][0]["allow"][0], "POST /force/*");
    assert!(text(&answer).contains("builds"), "{answer}");
}
