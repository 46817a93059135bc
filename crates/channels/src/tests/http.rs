//! What is sent, what comes back, and what is said of it when it does not.

use std::{
    io::Write,
    net::{Shutdown, TcpListener},
    sync::mpsc,
};

use model::{Foreign, Unsettled};

use super::{
    server::{Server, answering, read_request, read_to_close},
    world::{SECRET, World, ask, credential, get, patient, policy_for, post, short},
};
use crate::{Answer, ConnectError, NotSent, Sent, connect};

fn answered(sent: Sent) -> Answer {
    match sent {
        Sent::Answered(answer) => answer,
        Sent::HandedBack(_) | Sent::Broke { .. } => panic!("{sent:?}"),
    }
}

fn broke(sent: Sent) -> (Unsettled, Option<u16>) {
    match sent {
        Sent::Broke { why, status } => (why, status),
        Sent::HandedBack(_) | Sent::Answered(_) => panic!("{sent:?}"),
    }
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let field = answer.headers.iter().find(|(known, _)| known == name);
    field.map(|(_, value)| value.raw())
}

#[tokio::test]
async fn the_request_goes_out_once_with_its_credential_and_key() {
    let server = answering("HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok");
    let plan = post(server.address);

    let answer = answered(World::new().call(&plan, patient()).await);

    assert_eq!((answer.status, answer.body.as_slice()), (201, &b"ok"[..]));
    assert_eq!(header(&answer, "x-a"), Some("b"));
    let address = server.address;
    let request = server.end();
    assert!(
        request.starts_with("POST /api/force HTTP/1.1\r\n"),
        "{request}"
    );
    for line in [
        format!("authorization: Bearer {SECRET}"),
        "idempotency-key: key-1".to_owned(),
        format!("host: {address}"),
        "accept-encoding: identity".to_owned(),
        "content-length: 7".to_owned(),
    ] {
        assert_eq!(
            request.matches(&format!("\r\n{line}\r\n")).count(),
            1,
            "{line} in {request}"
        );
    }
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"));
}

#[tokio::test]
async fn a_request_says_who_sends_it_unless_the_agent_does() {
    for (own, sent) in [
        (None, "user-agent: lychgate"),
        (Some("curl/8"), "user-agent: curl/8\r\n"),
    ] {
        let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let mut asked = ask("GET", "/builds/1");
        asked
            .headers
            .extend(own.map(|own| ("User-Agent".to_owned(), own.to_owned())));
        let plan = policy_for("http", server.address, "").plan(asked).unwrap();

        answered(World::new().call(&plan, patient()).await);

        let request = server.end();
        assert!(request.contains(sent), "{request}");
        assert_eq!(request.matches("user-agent").count(), 1, "{request}");
    }
}

#[tokio::test]
async fn the_query_is_encoded_and_a_read_carries_no_key() {
    let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut asked = ask("GET", "/builds/a%20b");
    asked.query = vec![
        ("a&b".to_owned(), "c=d\r\n".to_owned()),
        ("e".to_owned(), String::new()),
    ];
    asked.headers = vec![("Accept".to_owned(), "text/plain".to_owned())];
    let plan = policy_for("http", server.address, "").plan(asked).unwrap();

    answered(World::new().call(&plan, patient()).await);

    let request = server.end();
    assert!(
        request.starts_with("GET /api/builds/a%20b?a%26b=c%3Dd%0D%0A&e= HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\naccept: text/plain\r\n"));
    assert!(!request.contains("idempotency-key"));
}

#[tokio::test]
async fn an_answer_without_a_body_ends_with_its_head() {
    for (method, text) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        ),
    ] {
        let server = answering(text);
        let policy = policy_for("http", server.address, "");
        let plan = policy.plan(ask(method, "/builds/1")).unwrap();

        let answer = answered(World::new().call(&plan, patient()).await);

        assert_eq!(answer.body, b"", "{text}");
        server.end();
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let sink = TcpListener::bind("127.0.0.1:0").unwrap();
        sink.set_nonblocking(true).unwrap();
        let location = format!("http://{}/x", sink.local_addr().unwrap());
        let server = answering(format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        ));
        let plan = post(server.address);

        let answer = answered(World::new().call(&plan, patient()).await);

        assert_eq!(answer.status, status);
        assert_eq!(header(&answer, "location"), Some(location.as_str()));
        assert_eq!(
            sink.accept().unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock
        );
        server.end();
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound_and_not_one_byte_beyond_however_it_is_cut() {
    let announced = |len: usize| {
        let body = "x".repeat(len);
        format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{body}")
    };
    let chunked = |lens: &[usize]| {
        let chunk = |len: &usize| format!("{len:x}\r\n{}\r\n", "x".repeat(*len));
        let body: String = lens.iter().map(chunk).collect();
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}0\r\n\r\n")
    };
    let most = patient().answer_bytes;

    for whole in [announced(most), chunked(&[most]), chunked(&[most - 1, 1])] {
        let server = answering(whole);
        let plan = get(server.address);
        let answer = answered(World::new().call(&plan, patient()).await);
        assert_eq!(answer.body.len(), most);
        drop(server.end());
    }
    for beyond in [
        announced(most + 1),
        chunked(&[most + 1]),
        chunked(&[most, 1]),
        chunked(&[most - 1, 3]),
    ] {
        let server = answering(beyond);
        let plan = get(server.address);
        let sent = World::new().call(&plan, patient()).await;
        assert_eq!(broke(sent), (Unsettled::AnswerUnreadable, Some(200)));
        drop(server.end());
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_unreadable_and_its_status_is_kept() {
    let announced =
        "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n".to_owned() + &"x".repeat(1001);
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n");
    let endless_head = "HTTP/1.1 200 OK\r\nX: ".to_owned() + &"x".repeat(70_000);
    let endless = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
        u64::MAX / 4
    );
    for (text, status) in [
        (endless, Some(200)),
        (announced, Some(200)),
        (chunked, Some(200)),
        (endless_head, None),
    ] {
        let server = answering(text);
        let plan = get(server.address);

        let sent = World::new().call(&plan, patient()).await;

        assert_eq!(broke(sent), (Unsettled::AnswerUnreadable, status));
        server.end();
    }
}

#[tokio::test]
async fn what_is_no_http_is_unreadable() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let server = answering(text);
        let plan = post(server.address);

        let sent = World::new().call(&plan, patient()).await;

        assert_eq!(broke(sent), (Unsettled::AnswerUnreadable, None), "{text}");
        server.end();
    }
}

#[tokio::test]
async fn a_connection_that_closes_before_the_answer_leaves_the_outcome_unknown() {
    for text in [
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let server = answering(text);
        let plan = post(server.address);

        let (why, status) = broke(World::new().call(&plan, patient()).await);

        assert_eq!(why, Unsettled::ConnectionBroke, "{text}");
        assert_eq!(status, text.contains("OK").then_some(200));
        assert!(server.end().starts_with("POST /api/force"));
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_before_sending_hands_the_request_back() {
    let (closed, is_closed) = mpsc::channel();
    let server = Server::start(move |mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        closed.send(()).unwrap();
        read_to_close(&mut stream)
    });
    let world = World::new();
    let plan = post(server.address);
    let permit = world.permit(&plan).await;
    let mut connection = connect(&permit, &plan, &patient()).await.unwrap();
    is_closed.recv().unwrap();
    let cleared = world.clear(permit);
    // One turn of the runtime, so that it has seen what the kernel already knows.
    tokio::task::yield_now().await;

    let sent = connection.send(&cleared, Some(credential(&plan))).await;

    assert!(
        matches!(sent, Sent::HandedBack(NotSent::ConnectionClosed)),
        "{sent:?}"
    );
    assert_eq!(server.end(), b"", "not one byte may have arrived");
}

#[tokio::test]
async fn a_slow_answer_is_given_up_and_the_outcome_unknown() {
    for (text, status) in [
        ("", None),
        ("HTTP/1.1 200 OK\r\nX-Slow: ", None),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            Some(200),
        ),
    ] {
        let server = Server::start(move |mut stream| {
            read_request(&mut stream);
            stream.write_all(text.as_bytes()).unwrap();
            read_to_close(&mut stream)
        });
        let plan = post(server.address);

        let sent = World::new().call(&plan, short()).await;

        assert_eq!(broke(sent), (Unsettled::TimedOut, status), "{text}");
        server.end();
    }
}

#[tokio::test]
async fn a_call_that_is_revoked_under_way_ends_at_once_and_is_unknown() {
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    let server = Server::start(move |mut stream| {
        read_request(&mut stream);
        arrived.send(()).unwrap();
        read_to_close(&mut stream)
    });
    let world = World::new();
    let plan = post(server.address);

    let (sent, ()) = tokio::join!(world.call(&plan, patient()), async {
        has_arrived.await.unwrap();
        world.revoke();
    });

    assert_eq!(broke(sent), (Unsettled::Revoked, None));
    assert_eq!(
        server.end(),
        b"",
        "the connection is closed, and nothing more was sent"
    );
}

#[tokio::test]
async fn a_call_that_is_revoked_before_sending_sends_nothing() {
    let server = Server::start(|mut stream| read_to_close(&mut stream));
    let world = World::new();
    let plan = post(server.address);
    let permit = world.permit(&plan).await;
    let mut connection = connect(&permit, &plan, &patient()).await.unwrap();
    let cleared = world.clear(permit);
    world.revoke();

    let sent = connection.send(&cleared, Some(credential(&plan))).await;

    assert!(
        matches!(sent, Sent::HandedBack(NotSent::Cancelled)),
        "{sent:?}"
    );
    drop(connection);
    assert_eq!(server.end(), b"");
}

#[tokio::test]
async fn a_call_that_is_revoked_before_it_is_connected_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let world = World::new();
    let plan = post(listener.local_addr().unwrap());
    let permit = world.permit(&plan).await;
    world.revoke();

    let error = connect(&permit, &plan, &patient()).await.unwrap_err();

    assert!(matches!(error, ConnectError::Cancelled), "{error}");
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[tokio::test]
async fn a_clearance_or_credential_of_another_call_sends_nothing() {
    let world = World::new();
    let elsewhere = get("127.0.0.1:1".parse().unwrap());
    for case in ["clearance", "credential", "no credential"] {
        let server = Server::start(|mut stream| read_to_close(&mut stream));
        let plan = get(server.address);
        let permit = world.permit(&plan).await;
        let mut connection = connect(&permit, &plan, &patient()).await.unwrap();
        let (cleared, credential) = match case {
            "clearance" => (
                world.clear(world.permit(&plan).await),
                Some(credential(&plan)),
            ),
            "credential" => (world.clear(permit), Some(credential(&elsewhere))),
            _ => (world.clear(permit), None),
        };

        let sent = connection.send(&cleared, credential).await;

        assert!(matches!(sent, Sent::HandedBack(_)), "{case}: {sent:?}");
        drop(connection);
        assert_eq!(server.end(), b"", "{case}");
    }
}

#[tokio::test]
async fn a_closed_port_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = get(listener.local_addr().unwrap());
    drop(listener);
    let world = World::new();
    let permit = world.permit(&plan).await;

    let error = connect(&permit, &plan, &patient()).await.unwrap_err();

    assert!(matches!(error, ConnectError::Tcp { .. }), "{error}");
}

#[tokio::test]
async fn cookies_and_connection_headers_are_not_handed_on() {
    let server = answering(
        "HTTP/1.1 200 OK\r\nSet-Cookie: session=1\r\nKeep-Alive: x\r\nProxy-Authenticate: x\r\n\
         Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
    );
    let plan = get(server.address);

    let answer = answered(World::new().call(&plan, patient()).await);

    let names: Vec<&str> = answer
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["content-type", "content-length"]);
    server.end();
}

#[tokio::test]
async fn an_answer_that_repeats_the_secret_does_not_hand_it_on() {
    let body = format!("you sent Bearer {SECRET}, thanks");
    let length = body.len();
    let server = answering(format!(
        "HTTP/1.1 400 Bad\r\nX-Echo: {SECRET}\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let plan = get(server.address);

    let answer = answered(World::new().call(&plan, patient()).await);

    assert_eq!(answer.cut.echoed, 2);
    assert_eq!(answer.body, b"you sent Bearer [secret removed], thanks");
    assert_eq!(header(&answer, "x-echo"), Some("[secret removed]"));
    server.end();
}

#[tokio::test]
async fn the_job_id_is_read_from_the_answer() {
    for (body, id) in [
        (r#"{"result":[17,"x"]}"#, Some("17")),
        (r#"{"result":["b-1"]}"#, Some("b-1")),
        (r#"{"result":[{}]}"#, None),
        (r#"{"result":[]}"#, None),
        ("no json", None),
    ] {
        let length = body.len();
        let server = answering(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        let plan = post(server.address);

        let answer = answered(World::new().call(&plan, patient()).await);

        assert_eq!(answer.remote_id, id.map(Foreign::new), "{body}");
        server.end();
    }
}

#[tokio::test]
async fn nothing_that_can_be_printed_holds_the_secret_or_the_body() {
    let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbodytext");
    let world = World::new();
    let plan = post(server.address);
    let permit = world.permit(&plan).await;
    let mut connection = connect(&permit, &plan, &patient()).await.unwrap();
    let mut shown = format!("{plan:?} {connection:?} ");
    let cleared = world.clear(permit);

    let sent = connection.send(&cleared, Some(credential(&plan))).await;

    shown += &format!("{sent:?}");
    assert!(!shown.contains(SECRET) && !shown.contains("bodytext") && !shown.contains("\\\"a\\\""));
    for told in [
        "Plan { target",
        "Connection { call",
        "Answer { status: 200, body_bytes: 8",
    ] {
        assert!(shown.contains(told), "{told} in {shown}");
    }
    server.end();
}
