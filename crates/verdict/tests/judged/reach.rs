//! What a leftover could still do, on values: each rule once where it holds and once where it just does not.

use inventory::{Activity, Target, TcpState};
use model::{Foreign, Known, LinkRole};
use verdict::{Authority, AuthorityLevel as Level};

use crate::values::{SRV, Values, link};

/// A server (200) whose client is gone, and of which everything could be read.
fn left() -> Values {
    let values = Values::new().with(200, 1, 200, SRV).abandoned(200);
    values.closer(200, |_| ())
}

fn of(values: Values) -> Authority {
    values.told(200).unwrap().authority
}

fn texts(names: &[Foreign]) -> Vec<&str> {
    names.iter().map(Foreign::raw).collect()
}

fn env(names: &[&str]) -> Authority {
    let names = names.iter().copied().map(Foreign::from).collect();
    of(left().closer(200, |closer| closer.env_names = Known::Yes(names)))
}

#[test]
fn nothing_that_was_seen_is_no_proof_and_what_could_not_be_read_is_unknown() {
    let nothing = of(left());
    assert_eq!(nothing.level, Level::NoneSeen);
    assert_eq!(nothing.because.len(), 1);
    assert!(nothing.because[0].ends_with("which does not show that there is none"));

    let no_names = left().closer(200, |closer| closer.env_names = Known::unknown("denied"));
    let no_descriptors = left().but(200, |one| one.descriptors = Known::unknown("denied"));
    for values in [no_names, no_descriptors] {
        let unknown = of(values);
        assert_eq!(unknown.level, Level::Unknown);
        assert_eq!(
            unknown.because,
            ["of 1 of its processes not everything could be read"]
        );
    }
    let part = left().with(201, 200, 201, "helper");
    let secret = part.closer(200, |closer| {
        closer.env_names = Known::Yes(vec!["GITHUB_TOKEN".into()]);
    });
    let held = of(secret);
    assert_eq!(held.level, Level::Held);
    assert_eq!(
        held.because,
        [
            "it was started with GITHUB_TOKEN",
            "of 1 of its processes not everything could be read"
        ]
    );
}

#[test]
fn a_variable_is_told_of_if_its_name_is_a_secrets_or_that_of_a_way_to_act() {
    let held = env(&["DATABASE_URL", "GITHUB_TOKEN", "HOME", "PATH"]);
    assert_eq!(held.level, Level::Held);
    assert_eq!(texts(&held.env_names), ["DATABASE_URL", "GITHUB_TOKEN"]);
    assert_eq!(
        held.because,
        ["it was started with DATABASE_URL, GITHUB_TOKEN"]
    );

    assert_eq!(env(&["HOME", "PATH"]).level, Level::NoneSeen);
    let many = env(&["A_TOKEN", "B_TOKEN", "C_TOKEN", "D_TOKEN", "E_TOKEN"]);
    assert_eq!(
        many.because,
        ["it was started with A_TOKEN, B_TOKEN, C_TOKEN and 2 more"]
    );
}

#[test]
fn an_open_file_is_told_of_if_its_path_is_one_of_secrets() {
    let file = |path: &str| {
        let path = Foreign::from(path);
        let deleted = false;
        of(left().open((200, 5), Target::File { path, deleted }))
    };
    let held = file("/home/user/.ssh/id_ed25519");
    assert_eq!(held.level, Level::Held);
    assert_eq!(held.because, ["it has /home/user/.ssh/id_ed25519 open"]);
    assert_eq!(file("/etc/hosts").level, Level::NoneSeen);
}

/// Connected to a unix socket of this name, which a process of that name holds.
fn connected(values: Values, name: &str, holder: &str) -> Values {
    values
        .with(300, 1, 30, holder)
        .unix(500, Some(501), None, Some((200, 5)))
        .unix(501, Some(500), Some(name), Some((300, 6)))
}

#[test]
fn an_agent_acts_for_it_and_another_service_can_be_reached() {
    let agent = of(connected(left(), "/run/user/1000/keyring/ssh", "keyring"));
    assert_eq!(agent.level, Level::Held);
    assert_eq!(
        agent.because,
        ["it is connected to an agent that signs or logs in for it (/run/user/1000/keyring/ssh)"]
    );
    let service = of(connected(left(), "/run/dbus", "dbus"));
    assert_eq!(service.level, Level::Reachable);
    assert_eq!(service.because, ["it is connected to /run/dbus"]);
    let offered = of(left().unix(500, None, Some("/tmp/own"), Some((200, 5))));
    assert_eq!(texts(&offered.sockets), ["/tmp/own"]);
}

/// A shim (200) of a client (100) in order.
fn run() -> Values {
    let values = Values::new()
        .with(100, 50, 100, "client")
        .with(200, 100, 200, "lych mcp")
        .served(200, 100)
        .closer(200, |_| ());
    let mut values = values.recorded((100, 100), &[]);
    values.launches[0].chain = vec![
        link((200, 200), LinkRole::Shim, "lych mcp"),
        link((100, 100), LinkRole::Holder, "client"),
    ];
    values
}

#[test]
fn a_runs_way_out_is_our_own_gate_which_is_no_service_beside_it() {
    let gate = "/home/user/.lych/agent.sock";
    let open = of(connected(run(), gate, "lychd"));
    assert_eq!(open.level, Level::Reachable);
    assert_eq!(open.because, ["its run's authority was not taken away"]);
    assert!(open.sockets.is_empty());

    let mut revoked = connected(run(), gate, "lychd");
    revoked.launches[0].revoked_at = Some(model::Wall::from_millis(7));
    assert_eq!(of(revoked).level, Level::Refused);

    let unseen = connected(run(), gate, "lychd").but_unix(501, |one| one.holders.clear());
    assert!(of(unseen).sockets.is_empty());
    let of_another = of(connected(run(), gate, "thief"));
    assert_eq!(texts(&of_another.sockets), [gate]);
    let other_name = of(connected(run(), "/run/other", "lychd"));
    assert_eq!(texts(&other_name.sockets), ["/run/other"]);
    let of_no_run = of(connected(left(), gate, "lychd"));
    assert_eq!(texts(&of_no_run.sockets), [gate]);
}

#[test]
fn a_tcp_connection_leads_somewhere_as_long_as_it_is_one() {
    let with = |state| {
        let tcp = (Some((200, 5)), state);
        of(left().tcp(tcp.0, tcp.1, "127.0.0.1:5000", "10.0.0.1:443"))
    };
    for state in [TcpState::Established, TcpState::SynSent] {
        let connected = with(state);
        assert_eq!(connected.level, Level::Reachable);
        assert_eq!(texts(&connected.tcp), ["127.0.0.1:5000 -> 10.0.0.1:443"]);
        assert_eq!(
            connected.because,
            ["it has TCP connections (127.0.0.1:5000 -> 10.0.0.1:443)"]
        );
    }
    assert_eq!(with(TcpState::CloseWait).level, Level::NoneSeen);
    let listens = with(TcpState::Listen);
    assert_eq!(listens.level, Level::NoneSeen);
    assert_eq!(texts(&listens.tcp), ["listens on 127.0.0.1:5000"]);
}

#[test]
fn a_udp_socket_leads_somewhere_if_it_has_chosen_where() {
    let sends = of(left().udp((200, 5), "127.0.0.1:5000", Some("10.0.0.1:53")));
    assert_eq!(sends.level, Level::Reachable);
    assert_eq!(
        sends.because,
        ["it has UDP connections (udp 127.0.0.1:5000 -> 10.0.0.1:53)"]
    );
    let waits = of(left().udp((200, 5), "127.0.0.1:5000", None));
    assert_eq!(waits.level, Level::NoneSeen);
    assert_eq!(texts(&waits.tcp), ["udp on 127.0.0.1:5000"]);
}

#[test]
fn what_it_takes_from_a_queue_nobody_else_gets() {
    let with = |state, port| {
        let remote = format!("10.0.0.1:{port}");
        of(left().tcp(Some((200, 5)), state, "127.0.0.1:5000", &remote))
    };
    let takes = with(TcpState::Established, 6379);
    assert_eq!(texts(&takes.consumes), ["Redis at 10.0.0.1:6379"]);
    assert!(
        takes
            .because
            .contains(&"what it takes nobody else gets (Redis at 10.0.0.1:6379)".to_owned())
    );
    assert!(with(TcpState::CloseWait, 6379).consumes.is_empty());
    assert!(with(TcpState::Established, 443).consumes.is_empty());
}

#[test]
fn a_question_that_has_no_answer_for_a_second_is_a_long_poll() {
    let with = |sent_ms_ago, received_ms_ago, bytes_sent, bytes_received| {
        let activity = Activity {
            sent_ms_ago,
            received_ms_ago,
            bytes_sent,
            bytes_received,
        };
        let ends = ("127.0.0.1:5000", "10.0.0.1:443");
        let holder = Some((200, 5));
        let tcp = left().tcp_that(holder, TcpState::Established, ends, Some(activity));
        let consumes = of(tcp).consumes;
        texts(&consumes).join("")
    };
    let waits = "an answer of 10.0.0.1:443, asked for 5 s ago";
    assert_eq!(with(5000, 6000, Some(10), Some(5)), waits);
    assert_eq!(with(5000, 4000, Some(10), Some(0)), waits);
    assert_ne!(with(1000, 6000, Some(10), Some(5)), "");
    assert_eq!(with(999, 6000, Some(10), Some(5)), "");
    assert_eq!(with(5000, 5000, Some(10), Some(5)), "");
    assert_eq!(with(5000, 4000, Some(10), Some(5)), "");
    assert_eq!(with(5000, 6000, Some(0), Some(5)), "");
    assert_eq!(with(5000, 6000, None, Some(5)), "");
}
