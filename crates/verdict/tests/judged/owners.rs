//! What points to whoever started a server: in which order it is told, and that what contradicts is told too.

use clients::{Client, Launched, LoggedAt};
use model::{ChainLink, ConnectionId, Foreign, LaunchRecord, LinkRole, SessionId, Wall};
use sys::process::Handle;
use verdict::{EvidenceSource, Finding, LogFacts};

use crate::scene::{Judged, Scene, evidence};

fn now() -> Wall {
    Wall::from(std::time::SystemTime::now())
}

/// A run of ours whose chain is these, the client first.
fn run(chain: &[&Handle]) -> LaunchRecord {
    let roles = std::iter::once(LinkRole::Holder).chain(std::iter::repeat(LinkRole::Above));
    let links = chain.iter().zip(roles).map(|(handle, role)| ChainLink {
        process: handle.describe().unwrap(),
        role,
    });
    LaunchRecord {
        schema: LaunchRecord::SCHEMA.to_owned(),
        connection: ConnectionId::from_bytes([3; 10]),
        session: SessionId::from_bytes([4; 10]),
        session_seq: 1,
        chain: links.collect(),
        lost: Vec::new(),
        connected_at: Wall::from_millis(1),
        transport_closed_at: None,
        revoked_at: None,
        children: Vec::new(),
    }
}

fn of_source(found: &Finding, source: EvidenceSource) -> Vec<String> {
    let facts = found.evidence.iter().filter(|one| one.source == source);
    facts.map(|one| one.what.clone()).collect()
}

#[test]
fn a_server_whose_client_is_the_client_of_a_run_says_of_which_and_names_both_clients_of_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let harness = ["sh", "-c", "python3 \"$0\" \"$1\"; true"];
    let scene = Scene::start_in(folder, "pipes", &harness);
    let server = Handle::open(scene.server()).unwrap();
    let client = Handle::open(server.stat().ppid).unwrap();
    let outer = Handle::open(scene.client()).unwrap();
    let record = run(&[&client, &outer]);

    let judged = Judged::of(&scene.expected(), &[record], &LogFacts::default());

    let told = of_source(judged.finding(scene.server()), EvidenceSource::Run);
    let (inner, outer) = (client.id().pid, outer.id().pid);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .any(|one| one.starts_with(&format!("pid {inner} above it is the client of run")))
    );
    assert!(told.iter().any(|one| one.starts_with(&format!("pid {outer} above it is above the client of run"))));
    let _ = std::process::Command::new("kill")
        .args(["-KILL", &inner.to_string()])
        .status();
}

#[test]
fn an_orphan_whose_group_the_client_of_a_run_led_says_of_which_and_its_neighbour_does_not() {
    let led = || {
        Scene::start_in(
            tempfile::tempdir().unwrap(),
            "pipes",
            &["setsid", "python3"],
        )
    };
    let (mut scene, mut other) = (led(), led());
    let record = run(&[&Handle::open(scene.client()).unwrap()]);
    let pid = scene.client();
    scene.crash();
    other.crash();
    let mut expected = scene.expected();
    expected.extend(other.expected());

    let judged = Judged::of(&expected, &[record], &LogFacts::default());

    let told = of_source(judged.finding(scene.server()), EvidenceSource::Run);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with(&format!("pid {pid}, which led its group")),
        "{told:?}"
    );
    assert!(told[0].contains("was the client of run"), "{told:?}");
    assert!(of_source(judged.finding(other.server()), EvidenceSource::Run).is_empty());
}

/// What a client logged about the server of a scene.
fn launched(scene: &Scene, client: Client, at: LoggedAt) -> Launched {
    let expected = scene.expected();
    let words = std::iter::once(&expected[0].command).chain(&expected[0].args);
    Launched {
        client,
        command: words.cloned().collect(),
        at,
        source: "/home/user/mcp.log".into(),
        owner_uid: sys::process::own_uid(),
    }
}

#[test]
fn a_clients_own_log_says_that_it_started_an_orphan_if_time_and_user_fit() {
    let mut scene = Scene::start("pipes");
    scene.crash();
    let logged = |one: Launched| {
        let judged = Judged::logged(&scene.expected(), &[one]);
        of_source(judged.finding(scene.server()), EvidenceSource::LaunchLog)
    };
    let hour_ago = Wall::from_millis(now().millis() - 3_600_000);
    let by_utc = |at| launched(&scene, Client::ClaudeCode, LoggedAt::Utc(at));
    let anothers = Launched {
        owner_uid: 4711,
        ..by_utc(now())
    };
    let of_another_line = Launched {
        command: vec![Foreign::from("python3"), Foreign::from("other.py")],
        ..by_utc(now())
    };

    let told = logged(by_utc(now()));
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("claude-code logged at") && !told[0].contains("contradicts"));
    let elsewhere = launched(&scene, Client::ClaudeCode, LoggedAt::Local(hour_ago));
    assert!(logged(elsewhere)[0].contains("by its own clock"));
    for one in [by_utc(hour_ago), anothers, of_another_line] {
        assert!(logged(one).is_empty());
    }
}

#[test]
fn another_clients_log_contradicts_the_configuration_also_of_a_server_in_use() {
    let mut scene = Scene::start("pipes");
    let twin = Scene::start("pipes");
    scene.crash();
    let at = LoggedAt::Utc(now());
    let other = |scene: &Scene, client| {
        let judged = Judged::logged(&scene.expected(), &[launched(scene, client, at)]);
        let found = judged.finding(scene.server()).clone();
        assert!(found.evidence.is_sorted_by_key(|one| one.source));
        evidence(&found)
    };

    for one in [&scene, &twin] {
        let told = other(one, Client::Cursor);
        assert!(
            told.contains("contradicts the configuration of claude-code"),
            "{told}"
        );
    }
    assert!(!other(&twin, Client::ClaudeCode).contains("logged at"));
}

#[test]
fn what_points_to_an_owner_is_ranked_as_it_is_worth() {
    let ranks = [
        EvidenceSource::Log,
        EvidenceSource::LaunchRecord,
        EvidenceSource::Census,
        EvidenceSource::Run,
        EvidenceSource::UnixDiag,
        EvidenceSource::Pipe,
        EvidenceSource::Descriptors,
        EvidenceSource::Environment,
        EvidenceSource::ControlGroup,
        EvidenceSource::ProcessGroup,
        EvidenceSource::Configuration,
        EvidenceSource::LaunchLog,
        EvidenceSource::StartTime,
    ];

    assert!(ranks.is_sorted());
}
