//! Who is connected to what a leftover offers, on values: what others use is not ended under them.

use inventory::TcpState::{Established, Listen};

use crate::{
    scene::evidence,
    values::{SRV, Values},
};

/// A server (200) whose client is gone, with a helper (201) below it, and two others (300, 301).
fn left() -> Values {
    Values::new()
        .with(200, 1, 200, SRV)
        .abandoned(200)
        .with(201, 200, 210, "helper")
        .with(300, 50, 30, "user")
        .with(301, 50, 31, "other")
}

/// The same, listening on a unix socket, with this connection to it.
fn on_unix(name: &str, peer: u64, holder: Option<(u32, u32)>) -> Values {
    left()
        .unix(500, None, Some("/tmp/own"), Some((200, 5)))
        .unix(501, Some(peer), Some(name), Some((200, 6)))
        .unix(502, Some(501), None, holder)
}

fn users(values: Values) -> String {
    let found = values.told(200).unwrap();
    let text = evidence(&found);
    let told = text.lines().find_map(|line| {
        let users = line.strip_prefix("others are connected to it: ")?;
        Some(format!("{} {users}", found.verdict.word()))
    });
    told.unwrap_or_else(|| found.verdict.word().to_owned())
}

#[test]
fn whoever_is_connected_to_its_unix_socket_uses_it() {
    let used = on_unix("/tmp/own", 502, Some((300, 9)));
    assert_eq!(users(used), "SHARED pid 300");
    let by_somebody_unseen = on_unix("/tmp/own", 502, None);
    assert_eq!(users(by_somebody_unseen), "SHARED the holder of socket 502");
    for (name, peer, holder) in [
        ("/tmp/own", 0, 300),
        ("/tmp/elsewhere", 502, 300),
        ("/tmp/own", 502, 201),
    ] {
        let values = on_unix(name, peer, Some((holder, 9)));
        assert_eq!(users(values), "OS_ORPHAN", "{name} {peer} {holder}");
    }
}

const OWN: &str = "127.0.0.1:8000";
const USER: &str = "127.0.0.1:5555";
const OTHER: &str = "127.0.0.1:7777";

/// The same, listening on a port, with a connection that it has accepted.
fn on_tcp() -> Values {
    left()
        .tcp(Some((200, 5)), Listen, OWN, "0.0.0.0:0")
        .tcp(Some((200, 6)), Established, OWN, USER)
}

#[test]
fn whoever_is_connected_to_its_port_uses_it() {
    // Two that have one address in common with the other end are not it.
    let used = on_tcp()
        .tcp(Some((301, 8)), Established, OTHER, OWN)
        .tcp(Some((301, 9)), Established, USER, OTHER)
        .tcp(Some((300, 9)), Established, USER, OWN);
    assert_eq!(users(used), "SHARED pid 300");
    assert_eq!(users(on_tcp()), format!("SHARED {USER}"));
    let by_its_own = on_tcp().tcp(Some((201, 9)), Established, USER, OWN);
    assert_eq!(users(by_its_own), "OS_ORPHAN");
}

#[test]
fn a_connection_that_was_closed_or_leads_away_is_nobodys_use() {
    let closed = on_tcp().tcp(None, Established, USER, OWN);
    assert_eq!(users(closed), "OS_ORPHAN");
    let away = left()
        .tcp(Some((200, 5)), Listen, OWN, "0.0.0.0:0")
        .tcp(Some((200, 6)), Established, OTHER, USER)
        .tcp(Some((300, 9)), Established, USER, OTHER);
    assert_eq!(users(away), "OS_ORPHAN");
}

#[test]
fn what_is_not_known_to_be_used_over_its_wire_is_by_whoever_is_connected() {
    let connected = |values: Values| {
        values
            .with(300, 50, 30, "user")
            .unix(500, None, Some("/tmp/own"), Some((200, 5)))
            .unix(501, Some(502), Some("/tmp/own"), Some((200, 6)))
            .unix(502, Some(501), None, Some((300, 9)))
    };
    let without_a_wire = Values::new().with(200, 1, 200, SRV);
    assert_eq!(without_a_wire.clone().words(200), "UNKNOWN unknown 200");
    assert_eq!(users(connected(without_a_wire)), "SHARED pid 300");
    let in_use = Values::new()
        .with(100, 50, 100, "client")
        .with(200, 100, 200, SRV)
        .served(200, 100);
    assert_eq!(users(connected(in_use)), "LIVE");
}
