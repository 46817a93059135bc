//! What is the agent's to choose, and what is not.

use model::{Denial, Destination, Secret};
use proptest::prelude::*;

use super::world::{ask, policy_for};
use crate::{HttpAsk, Plan, Policy, Seal};

fn policy() -> Policy {
    policy_for("http", "127.0.0.1:80".parse().unwrap(), "")
}

fn plan(edit: impl FnOnce(&mut HttpAsk)) -> Result<Plan, Denial> {
    let mut ask = ask("POST", "/force");
    edit(&mut ask);
    policy().plan(ask)
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn what_is_not_listed_is_refused() {
    for (method, path, why) in [
        ("POST", "/other", Denial::NotAllowed),
        ("DELETE", "/builds/1", Denial::NotAllowed),
        ("get", "/builds/1", Denial::NotAllowed),
        ("GET", "/builds/1/x", Denial::NotAllowed),
        ("GET", "/builds", Denial::NotAllowed),
        ("BREW", "/force", Denial::NotAllowed),
        ("", "/force", Denial::NotAllowed),
    ] {
        assert_eq!(
            policy().plan(ask(method, path)).unwrap_err(),
            why,
            "{method} {path}"
        );
    }
    assert_eq!(
        plan(|ask| ask.channel = text("other")).unwrap_err(),
        Denial::UnknownChannel
    );
    assert_eq!(
        Policy::nothing().plan(ask("GET", "/")).unwrap_err(),
        Denial::UnknownChannel
    );
}

#[test]
fn an_empty_list_allows_nothing() {
    let draft = "[channel.builds]\nkind = \"http\"\nbase = \"https://h.example\"\n\
                 [[channel.builds.operation]]\nname = \"none\"\n";
    let policy = Policy::parse_draft(draft).unwrap();

    assert_eq!(
        policy.plan(ask("GET", "/")).unwrap_err(),
        Denial::NotAllowed
    );
    assert!(
        policy
            .describe()
            .contains(&text("channel builds: allows nothing"))
    );
}

#[test]
fn a_path_trap_is_not_the_agents_to_choose() {
    for path in [
        "/../x",
        "/builds/%2e%2e",
        "//evil.example/",
        "http://evil.example/",
        "/builds/a%2Fb",
    ] {
        let why = policy().plan(ask("GET", path)).unwrap_err();
        assert!(matches!(why, Denial::NotYours { .. }), "{path}: {why:?}");
    }
    for path in [
        "/builds/1?x=y",
        "/builds/1#x",
        "/builds\\1",
        "/builds/1\r\nX: y",
        "/builds/%",
    ] {
        let why = policy().plan(ask("GET", path)).unwrap_err();
        assert!(matches!(why, Denial::Malformed { .. }), "{path}: {why:?}");
    }
}

#[test]
fn a_header_that_frames_the_message_or_carries_authority_is_not_the_agents() {
    for name in [
        "Authorization",
        "AUTHORIZATION",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Cookie",
        "Idempotency-Key",
        "idempotency-key",
        "TE",
        "Trailer",
        "Upgrade",
        "Keep-Alive",
        "Expect",
        "Accept-Encoding",
        "X-Forwarded-For",
        "Forwarded",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
        "Via",
    ] {
        let why = plan(|ask| ask.headers.push((text(name), text("x")))).unwrap_err();
        assert!(matches!(why, Denial::NotYours { .. }), "{name}: {why:?}");
    }
    for name in [
        "Content-Type",
        "Accept",
        "User-Agent",
        "If-Match",
        "X-Trace",
    ] {
        assert!(
            plan(|ask| ask.headers.push((text(name), text("x")))).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn an_injected_header_of_another_name_is_not_the_agents_either() {
    let more = "inject = { header = \"X-Api-Key\" }";
    let policy = policy_for("http", "127.0.0.1:80".parse().unwrap(), more);
    let mut asked = ask("GET", "/builds/1");
    asked.headers.push((text("x-api-key"), text("mine")));

    let why = policy.plan(asked).unwrap_err();

    assert_eq!(
        why,
        Denial::NotYours {
            what: text("the header x-api-key")
        }
    );
}

#[test]
fn headers_and_query_are_taken_up_to_eight_kibibytes_and_no_further() {
    let header =
        |length: usize| plan(|ask| ask.headers.push((text("x-a"), "v".repeat(length - 3)))).is_ok();
    let query =
        |length: usize| plan(|ask| ask.query.push((text("q"), "v".repeat(length - 3)))).is_ok();

    for (length, taken) in [(8 * 1024, true), (8 * 1024 + 1, false)] {
        assert_eq!(header(length), taken, "a header of {length} bytes");
        assert_eq!(query(length), taken, "a query of {length} bytes");
    }
}

#[test]
fn a_body_is_taken_up_to_four_mebibytes_and_no_further_and_is_never_shown() {
    let bytes = |length: usize| plan(|ask| ask.body = Some(vec![b'x'; length]));

    assert!(bytes((4 << 20) + 1).is_err());
    let shown = format!("{:?}", bytes(4 << 20).unwrap());

    let plan = bytes(0).unwrap();
    assert_eq!(plan.secret().map(|name| name.as_str()), Some("token"));
    assert!(shown.starts_with("Plan { target: Target {"), "{shown}");
    assert!(shown.ends_with(", .. }") && shown.len() < 500, "{shown}");
}

#[test]
fn a_header_that_cannot_be_sent_is_malformed() {
    for (name, value) in [
        ("X A", "x"),
        ("", "x"),
        ("X-A", "a\r\nHost: evil"),
        ("X-A", "a\0"),
        ("X:", "a"),
    ] {
        let why = plan(|ask| ask.headers.push((text(name), text(value)))).unwrap_err();
        assert!(matches!(why, Denial::Malformed { .. }), "{name}: {why:?}");
    }
    let most = (0..64).map(|n| (format!("x-{n}"), String::new())).collect();
    assert!(plan(|ask| ask.headers = most).is_ok());
    let many = (0..65).map(|n| (format!("x-{n}"), String::new())).collect();
    assert!(matches!(
        plan(|ask| ask.headers = many),
        Err(Denial::Malformed { .. })
    ));
    let large = vec![(text("x"), "x".repeat(9000))];
    assert!(matches!(
        plan(|ask| ask.headers = large),
        Err(Denial::Malformed { .. })
    ));
    let query = vec![(text("x"), "x".repeat(9000))];
    assert!(matches!(
        plan(|ask| ask.query = query),
        Err(Denial::Malformed { .. })
    ));
    let body = Some(vec![0; (4 << 20) + 1]);
    assert!(matches!(
        plan(|ask| ask.body = body),
        Err(Denial::Malformed { .. })
    ));
}

#[test]
fn everything_but_a_read_is_a_write() {
    assert!(plan(|_| {}).unwrap().is_write());
    assert!(!policy().plan(ask("GET", "/builds/1")).unwrap().is_write());
    assert!(!policy().plan(ask("HEAD", "/builds/1")).unwrap().is_write());
}

#[test]
fn a_read_carries_no_request_id_and_may_not_choose_one() {
    let read = policy().plan(ask("GET", "/force")).unwrap();
    let mut asked = ask("GET", "/force");
    asked.headers.push((text("Idempotency-Key"), text("x")));

    assert_eq!(read.idempotency_header(), None);
    assert_eq!(
        plan(|_| {}).unwrap().idempotency_header(),
        Some("idempotency-key")
    );
    assert!(matches!(policy().plan(asked), Err(Denial::NotYours { .. })));
}

#[test]
fn the_record_names_the_path_and_never_the_query() {
    let plan = plan(|ask| ask.query.push((text("q"), text("private")))).unwrap();

    let target = plan.target();

    assert_eq!(target.path.raw(), "/force");
    assert_eq!(
        target.operation.as_ref().map(|name| name.as_str()),
        Some("force")
    );
    assert_eq!(plan.destination().to_string(), "http://127.0.0.1/api");
}

#[test]
fn a_secret_goes_only_where_it_is_sealed_for() {
    let plan = plan(|_| {}).unwrap();
    let value = Secret::new(b"x".to_vec());
    let fits = |destination: &str, header: &str| {
        let destinations: [Destination; 1] = [destination.parse().unwrap()];
        let seal = Seal {
            value: &value,
            destinations: &destinations,
            header,
        };
        match plan.credential(&seal) {
            Ok(_) => true,
            Err(why) => {
                assert_eq!(why, Denial::Secret);
                false
            }
        }
    };

    assert!(fits("http://127.0.0.1/api", "Authorization"));
    assert!(fits("http://127.0.0.1", "authorization"));
    assert!(
        !fits("http://127.0.0.1/api/v2", "Authorization"),
        "narrower than the channel's base"
    );
    assert!(!fits("http://127.0.0.1:81/api", "Authorization"));
    assert!(!fits("https://127.0.0.1:80/api", "Authorization"));
    assert!(!fits("http://127.0.0.1/ap", "Authorization"));
    assert!(!fits("http://127.0.0.1/api", "X-Api-Key"));
}

#[test]
fn the_digest_of_arguments_is_the_stored_form_of_version_one() {
    let plan = plan(|ask| {
        ask.query = vec![(text("q"), text("1"))];
        ask.headers = vec![(text("X-B"), text("2")), (text("X-A"), text("1"))];
        ask.body = Some(b"body".to_vec());
    });

    let digest = plan.unwrap().arguments().to_string();

    assert_eq!(
        digest,
        "f9cba6417344ea201404c65ac142c4d28e02baafffc1408af7c57299d4906188"
    );
}

#[test]
fn two_different_asks_never_look_alike() {
    let digest = |edit: fn(&mut HttpAsk)| plan(edit).unwrap().arguments();
    let all = [
        digest(|_| {}),
        digest(|ask| ask.body = Some(b"a".to_vec())),
        digest(|ask| ask.query = vec![(text("a"), text(""))]),
        digest(|ask| ask.query = vec![(text(""), text("a"))]),
        digest(|ask| ask.headers = vec![(text("a"), text("bc"))]),
        digest(|ask| ask.headers = vec![(text("ab"), text("c"))]),
        digest(|ask| ask.headers = vec![(text("a"), text("b")), (text("c"), text(""))]),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());

    let one = digest(|ask| ask.headers = vec![(text("A"), text("1")), (text("b"), text("2"))]);
    let other = digest(|ask| ask.headers = vec![(text("B"), text("2")), (text("a"), text("1"))]);
    assert_eq!(
        one, other,
        "neither the order of headers nor their case is a choice"
    );
}

proptest! {
    #[test]
    fn whatever_is_asked_the_request_stays_below_the_base(
        path in "(/|builds|\\.|\\.\\.|%2e|%2f|;|\\\\|@|:|http:|evil\\.example|\\?|#|%|\\PC){0,10}",
    ) {
        let draft = "[channel.builds]\nkind = \"http\"\nbase = \"https://h.example/api\"\n\
                     [[channel.builds.operation]]\nname = \"all\"\nallow = [\"GET /**\"]\n";
        let policy = Policy::parse_draft(draft).unwrap();

        if let Ok(plan) = policy.plan(ask("GET", &path)) {
            let uri: http::Uri = plan.path_and_query.parse().unwrap();
            prop_assert!(uri.path().starts_with("/api/"), "{uri}");
            prop_assert!(uri.host().is_none() && uri.query().is_none(), "{uri}");
            prop_assert_eq!(uri.path(), plan.path_and_query.as_str());
        }
    }

    #[test]
    fn no_ask_makes_the_planner_panic(
        method: String, path: String, pairs in proptest::collection::vec((".*", ".*"), 0..4), body: Option<Vec<u8>>,
    ) {
        let asked = HttpAsk {
            channel: text("builds"), method, path: format!("/builds/{path}"),
            query: pairs.clone(), headers: pairs, body,
        };
        let _ = policy().plan(asked);
    }
}

#[test]
fn certificates_are_told_apart_by_the_beginning_of_their_digest() {
    // FIPS 180-4, the example of one block.
    assert_eq!(crate::plan::short_digest(b"abc"), "sha256 ba7816bf8f01cfea");
}
