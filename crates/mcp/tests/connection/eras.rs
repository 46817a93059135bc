//! Both eras on one connection, in every order in which clients come.

use serde_json::json;

use crate::peer::{arguments, call, initialize, modern, request, serve};

/// The protocol's own codes.
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_VERSION: i64 = -32022;

#[tokio::test]
async fn after_initialize_both_eras_are_answered() {
    let mut served = serve();
    served.initialize().await;
    let client = &mut served.client;

    let legacy = client.ask(call(1, "/a")).await;
    let new = client.ask(modern(2, "tools/call", arguments("/b"))).await;
    let discover = client.ask(modern(3, "server/discover", json!({}))).await;
    let legacy_again = client.ask(call(4, "/c")).await;

    assert_eq!(legacy["result"]["structuredContent"]["body"], "you said /a");
    assert_eq!(new["result"]["structuredContent"]["body"], "you said /b");
    assert!(discover["result"]["supportedVersions"].is_array());
    assert_eq!(
        legacy_again["result"]["structuredContent"]["body"],
        "you said /c"
    );
}

#[tokio::test]
async fn a_probe_that_fails_or_succeeds_leaves_the_way_to_initialize_open() {
    let mut served = serve();
    let client = &mut served.client;
    let mut unknown = modern(3, "server/discover", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");

    let good = client.ask(modern(1, "server/discover", json!({}))).await;
    let bare = client.ask(request(2, "server/discover", json!({}))).await;
    let unknown = client.ask(unknown).await;
    let init = client.ask(initialize("2025-11-25")).await;
    let legacy = client.ask(call(4, "/a")).await;

    let server = &good["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "lychgate", "{good}");
    assert_eq!(bare["error"]["code"], INVALID_PARAMS);
    assert_eq!(unknown["error"]["code"], UNSUPPORTED_VERSION);
    assert_eq!(init["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(legacy["result"]["isError"], false);
}

#[tokio::test]
async fn a_modern_call_first_does_not_shut_legacy_clients_out() {
    let mut served = serve();
    let client = &mut served.client;

    let new = client.ask(modern(1, "tools/call", arguments("/a"))).await;
    let init = client.ask(initialize("2025-06-18")).await;
    let legacy = client.ask(call(2, "/b")).await;
    let new_again = client.ask(modern(3, "tools/list", json!({}))).await;

    assert_eq!(new["result"]["isError"], false);
    assert_eq!(init["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(legacy["result"]["isError"], false);
    assert!(new_again["result"]["tools"].is_array());
}

#[tokio::test]
async fn a_legacy_call_without_initialize_is_refused_and_never_asked_for() {
    let mut served = serve();
    let client = &mut served.client;
    client.ask(modern(1, "server/discover", json!({}))).await;

    let refused = client.ask(call(2, "/a")).await;
    let ping = client.ask(request(3, "ping", json!({}))).await;

    assert_eq!(refused["error"]["code"], INVALID_PARAMS);
    assert_eq!(ping["result"], json!({}));
    assert!(served.acts.last.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_second_initialize_is_answered_while_a_call_is_under_way() {
    let mut served = serve();
    served.initialize().await;
    served.call_and_wait(1, "/held").await;

    let again = served.client.ask(initialize("2025-11-25")).await;
    let list = served.client.ask(request(2, "tools/list", json!({}))).await;

    assert_eq!(again["result"]["protocolVersion"], "2025-11-25");
    assert!(list["result"]["tools"].is_array());
}

#[tokio::test]
async fn each_era_gets_its_own_shape() {
    let mut served = serve();
    served.initialize().await;
    let client = &mut served.client;

    let legacy = client.ask(request(1, "tools/list", json!({}))).await;
    let new = client.ask(modern(2, "tools/list", json!({}))).await;

    assert_eq!(legacy["result"].get("resultType"), None);
    assert_eq!(legacy["result"].get("ttlMs"), None);
    assert_eq!(new["result"]["resultType"], "complete");
    assert_eq!(new["result"]["cacheScope"], "private");
    assert_eq!(legacy["result"]["tools"], new["result"]["tools"]);
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_answered_with_a_legacy_one_and_its_shape() {
    let mut served = serve();
    let client = &mut served.client;

    let init = client.ask(initialize("2099-01-01")).await;
    let list = client.ask(request(1, "tools/list", json!({}))).await;

    assert_eq!(init["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(list["result"].get("resultType"), None, "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_behind_an_initialize_is_answered_after_it() {
    for _ in 0..20 {
        let mut served = serve();
        let lines = format!(
            "{}\n{}\n{}\n",
            initialize("2025-11-25"),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            request(1, "tools/list", json!({}))
        );
        served.client.write(lines.as_bytes()).await;

        let first = served.client.next().await.unwrap();
        let second = served.client.next().await.unwrap();

        assert_eq!((&first["id"], &second["id"]), (&json!("init"), &json!(1)));
    }
}
