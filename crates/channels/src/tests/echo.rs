//! What an answer may not hand on: the secret that went out, and credentials of the remote side.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Denial, Unsettled};

use super::{
    server::{Server, answering, read_request, read_to_close},
    world::{SECRET, World, ask, get, patient, policy_for, post, short},
};
use crate::{Answer, Cut, HttpAsk, Plan, Policy, Sent};

const MINTED: &str = "ghs_0123456789abcdef";

/// A plan for an operation with these further lines.
fn plan_with(server: &Server<String>, lines: &str) -> Plan {
    let draft = format!(
        "[channel.builds]\nkind = \"http\"\nbase = \"http://{}\"\nsecret = \"token\"\n\
         [[channel.builds.operation]]\nname = \"all\"\nallow = [\"GET /**\", \"POST /**\"]\n{lines}\n",
        server.address
    );
    Policy::parse_draft(&draft)
        .unwrap()
        .plan(ask("GET", "/builds/1"))
        .unwrap()
}

async fn answer_to(plan: &Plan) -> Answer {
    match World::new().call(plan, patient()).await {
        Sent::Answered(answer) => answer,
        Sent::HandedBack(_) | Sent::Broke { .. } => panic!("no answer"),
    }
}

fn answer_with(headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn no_channel_of_an_answer_echoes_the_secret_in_any_encoding_however_it_is_cut() {
    let basic = STANDARD.encode(format!("user:{SECRET}"));
    let url = url::form(SECRET);
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    for form in [SECRET.to_owned(), basic, url, hex] {
        let body = format!("{{\"sent\":\"Bearer {form}\"}}");
        let whole = answer_with(&format!("X-Trace: id-{form}-x\r\n"), &body).replace("OK", &form);
        for cut in 1..whole.len() {
            if whole.len() - cut > form.len() + 30 && !cut.is_multiple_of(16) {
                continue;
            }
            let (first, rest) = whole.split_at(cut);
            let (first, rest) = (first.to_owned(), rest.to_owned());
            let server = Server::start(move |mut stream| {
                let request = read_request(&mut stream);
                stream.set_nodelay(true).unwrap();
                stream.write_all(first.as_bytes()).unwrap();
                let _ = stream.write_all(rest.as_bytes());
                request
            });
            let answer = answer_to(&get(server.address)).await;

            let mut seen = String::from_utf8(answer.body).unwrap();
            for (_, value) in &answer.headers {
                seen.push_str(value.raw());
            }
            assert!(!seen.contains(&form), "cut at {cut}: {seen}");
            assert_eq!(answer.cut.echoed, 2, "cut at {cut}: {seen}");
            server.end();
        }
    }
}

mod url {
    //! The secret as a form's field.

    pub(super) fn form(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }
}

#[tokio::test]
async fn an_operation_may_say_that_an_echo_is_wanted() {
    let server = answering(answer_with("", SECRET));
    let plan = plan_with(&server, "redact = false");

    let answer = answer_to(&plan).await;

    assert_eq!(answer.body, SECRET.as_bytes());
    assert_eq!(answer.cut, Cut::default());
    server.end();
}

#[tokio::test]
async fn a_body_that_cannot_be_searched_is_kept_back_and_that_is_said() {
    for headers in [
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: identity\r\nContent-Encoding: br\r\n",
        "Content-Encoding: x, y\r\n",
    ] {
        // As small as a bomb is: nothing here ever unpacks it.
        let server = answering(answer_with(headers, "\u{1f}\u{8b}packed"));
        let answer = answer_to(&get(server.address)).await;

        assert_eq!(answer.body, b"", "{headers}");
        assert!(answer.cut.withheld, "{headers}");
        assert_eq!(answer.status, 200);
        server.end();
    }
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n6\r\npacked\r\n0\r\n\r\n";
    let server = answering(chunked);
    let answer = answer_to(&get(server.address)).await;
    assert!(answer.cut.withheld && answer.body.is_empty());
    server.end();

    let server = answering(answer_with("Content-Encoding: Identity\r\n", "plain"));
    let answer = answer_to(&get(server.address)).await;
    assert_eq!(
        (answer.body.as_slice(), answer.cut.withheld),
        (&b"plain"[..], false)
    );
    server.end();
}

#[tokio::test]
async fn a_body_that_comes_packed_is_kept_back_while_anything_in_it_is_looked_for() {
    for (lines, kept_back) in [
        ("", true),
        ("redact = false", true),
        ("mints_credentials = true", true),
        ("redact = false\nmints_credentials = true", false),
    ] {
        let server = answering(answer_with("Content-Encoding: gzip\r\n", "packed"));

        let answer = answer_to(&plan_with(&server, lines)).await;

        assert_eq!(
            (answer.cut.withheld, answer.body.is_empty()),
            (kept_back, kept_back),
            "{lines}"
        );
        server.end();
    }
}

#[tokio::test]
async fn what_an_answer_hands_out_is_taken_out_unless_its_operation_mints() {
    let body = format!(r#"{{"access_token":"{MINTED}","expires_in":3600,"see":"{MINTED}"}}"#);
    let headers = format!("Set-Cookie: session={MINTED}\r\nX-Token: {MINTED}\r\n");
    let answer_text = answer_with(&headers, &body);

    let server = answering(answer_text.clone());
    let answer = answer_to(&plan_with(&server, "")).await;
    assert_eq!(answer.cut.minted, 3);
    let shown = format!("{:?}", answer.headers) + std::str::from_utf8(&answer.body).unwrap();
    assert!(!shown.contains(MINTED), "{shown}");
    assert!(shown.contains("3600"), "{shown}");
    server.end();

    let server = answering(answer_text);
    let answer = answer_to(&plan_with(&server, "mints_credentials = true")).await;
    assert_eq!(answer.body, body.as_bytes());
    assert!(answer.headers.iter().any(|(name, _)| name == "set-cookie"));
    server.end();
}

#[test]
fn an_endpoint_that_hands_out_credentials_is_refused_unless_its_operation_mints() {
    let plan = |lines: &str, ask: HttpAsk| {
        let draft =
            format!("[channel.builds]\nkind = \"http\"\nbase = \"https://h.example\"\n{lines}\n");
        Policy::parse_draft(&draft).unwrap().plan(ask)
    };
    let operation = "[[channel.builds.operation]]\nname = \"all\"\nallow = [\"POST /**\"]\n";
    let mut granted = ask("POST", "/anything");
    granted.body = Some(b"grant_type=client_credentials".to_vec());
    for asked in [ask("POST", "/oauth/token"), ask("POST", "/login"), granted] {
        let again = || HttpAsk {
            body: asked.body.clone(),
            ..ask("POST", &asked.path)
        };
        let refused = plan(&format!("secret = \"s\"\n{operation}"), again()).unwrap_err();
        assert!(matches!(refused, Denial::NotYours { .. }), "{refused:?}");
        let mints = format!("secret = \"s\"\n{operation}mints_credentials = true\n");
        assert!(plan(&mints, again()).is_ok(), "{}", asked.path);
        assert!(plan(operation, again()).is_ok(), "no secret is spent");
    }
}

#[tokio::test]
async fn an_answer_that_never_begins_or_ends_is_given_up() {
    for (endless, status) in [
        ("HTTP/1.1 100 Continue\r\n\r\n", None),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            Some(200),
        ),
    ] {
        let server = Server::start(move |mut stream| {
            read_request(&mut stream);
            let piece = match status {
                None => endless,
                Some(_) => {
                    stream.write_all(endless.as_bytes()).unwrap();
                    "1;x=y\r\na\r\n"
                }
            };
            // A byte now and then keeps a wait for the next byte alive for ever, and not a wait for the whole.
            stream.set_nodelay(true).unwrap();
            for _ in 0..100_000 {
                if stream.write_all(piece.as_bytes()).is_err() {
                    break;
                }
                std::thread::yield_now();
            }
            read_to_close(&mut stream)
        });
        let plan = post(server.address);

        let sent = World::new().call(&plan, short()).await;

        let Sent::Broke { why, status: seen } = sent else {
            panic!("{sent:?}");
        };
        assert!(
            matches!(why, Unsettled::TimedOut | Unsettled::AnswerUnreadable),
            "{why:?}"
        );
        assert_eq!(seen, status);
        server.end();
    }
}

#[tokio::test]
async fn headers_and_trailers_without_end_are_unreadable() {
    let many = "X-A: b\r\n".repeat(5_000);
    let trailers = "x: y\r\n".repeat(20_000);
    for text in [
        format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}\r\n"),
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}",
            "x".repeat(100_000)
        ),
    ] {
        let server = answering(text);
        let plan = policy_for("http", server.address, "")
            .plan(ask("GET", "/builds/1"))
            .unwrap();

        let sent = World::new().call(&plan, patient()).await;

        let known = matches!(
            sent,
            Sent::Broke {
                why: Unsettled::AnswerUnreadable | Unsettled::ConnectionBroke,
                ..
            }
        );
        assert!(known, "{sent:?}");
        server.end();
    }
}
