//! Who manages a process, who else holds its wire, and what is said of it: on values.

use inventory::{Closer, Descriptor, Target};
use model::{Foreign, Known, LinkRole, SessionState};
use verdict::{EvidenceSource, Finding};

use crate::{
    scene::evidence,
    values::{SRV, Values, link},
};

fn in_group(group: &str) -> Option<Closer> {
    let text = r#"{"cgroup": "GROUP", "env_names": {"unknown": "x"}, "exe_id": {"unknown": "x"},
        "network_namespace": {"unknown": "x"}, "withstands_term": {"unknown": "x"}}"#;
    serde_json::from_str(&text.replace("GROUP", group)).unwrap()
}

/// A server (200) without a wire, adopted, that leads a session of its own in this control group.
fn service(group: &str) -> Values {
    let closer = in_group(group);
    Values::new().with(200, 1, 200, SRV).but(200, move |one| {
        one.sid = 200;
        one.closer = closer;
    })
}

const UNIT: &str = "/system.slice/mcp.service";

#[test]
fn a_services_main_process_is_managed_and_whatever_else_is_in_its_group_is_not() {
    let unknown = "UNKNOWN unknown 200";
    assert_eq!(service(UNIT).words(200), "MANAGED inferred 200");
    assert_eq!(service("/user.slice/app-x.scope").words(200), unknown);
    let of_the_manager = service("/user.slice/user@1000.service").words(200);
    assert_eq!(of_the_manager, unknown);
    let in_a_session = service(UNIT).but(200, |one| one.sid = 50);
    assert_eq!(in_a_session.words(200), unknown);
    let below = service(UNIT)
        .with(90, 50, 20, "x")
        .but(200, |one| one.ppid = 90);
    assert_eq!(below.words(200), unknown);
}

#[test]
fn a_wire_at_its_end_was_no_managers_and_one_that_is_held_may_be() {
    let left = service(UNIT).abandoned(200);
    assert_eq!(left.words(200), "OS_ORPHAN proven 200");
    let held = service(UNIT).with(90, 50, 20, "x").served(200, 90);
    assert_eq!(held.words(200), "MANAGED inferred 200");
}

#[test]
fn a_terminal_uses_a_server_as_long_as_it_is_there() {
    let on = |path: &str| {
        let target = Target::Terminal {
            path: Foreign::from(path),
        };
        Values::new().with(200, 1, 200, SRV).but(200, move |one| {
            one.descriptors = Known::Yes(vec![Descriptor {
                fd: 0,
                access: None,
                close_on_exec: None,
                locked: false,
                wakes_in_ms: None,
                named_pipe: None,
                target,
            }]);
        })
    };
    assert_eq!(on("/dev/pts/3").words(200), "LIVE inferred 200");
    let gone = on("/dev/pts/3 (deleted)");
    assert_eq!(gone.words(200), "OS_ORPHAN inferred 200");
}

#[test]
fn an_end_that_only_the_servers_own_child_holds_is_held_open() {
    let own = Values::new()
        .with(200, 1, 200, SRV)
        .with(210, 200, 210, "child")
        .pipe(1, Some((210, 9)), Some((200, 0)));
    assert_eq!(own.words(210), "ORPHAN_HELD_OPEN inferred 200");
}

#[test]
fn a_dead_client_on_record_outweighs_a_living_parent_that_holds_nothing() {
    let held_by_a_sibling = || {
        Values::new()
            .with(90, 50, 20, "relay")
            .with(91, 90, 30, "sibling")
            .with(200, 90, 200, SRV)
            .pipe(1, Some((91, 4)), Some((200, 0)))
            .but(91, |one| {
                let Known::Yes(open) = &mut one.descriptors else {
                    panic!("{one:?}");
                };
                open[0].close_on_exec = Some(false);
            })
    };
    assert_eq!(held_by_a_sibling().words(200), "DETACHED suspected 200");
    let seen = [(200, 200, 100, SRV)];
    let recorded = held_by_a_sibling().recorded((100, 100), &seen);
    assert_eq!(recorded.words(200), "ORPHAN_HELD_OPEN inferred 200");
    let lives = held_by_a_sibling()
        .with(100, 50, 100, "client")
        .recorded((100, 100), &seen);
    assert_eq!(lives.words(200), "DETACHED suspected 200");
}

/// A client (100), its server (200), and that one's own server (210).
fn chain() -> Values {
    Values::new()
        .with(100, 50, 100, "client")
        .with(200, 100, 200, SRV)
        .served(200, 100)
        .with(210, 200, 210, SRV)
        .served(210, 200)
}

#[test]
fn a_server_of_a_server_that_is_left_over_is_a_suspect_and_of_one_in_use_in_use() {
    let below = |values: Values| values.with(210, 200, 210, SRV).served(210, 200).words(210);
    let server = |ppid| {
        Values::new()
            .with(100, 50, 100, "client")
            .with(200, ppid, 200, SRV)
    };
    let left = "LOGICAL_ORPHAN_SUSPECT inferred 210";
    assert_eq!(below(server(1).abandoned(200)), left);
    assert_eq!(below(server(100).abandoned(200)), "LIVE proven 210");
    assert_eq!(below(server(1).served(200, 100)), "LIVE proven 210");
    assert_eq!(below(server(100).served(200, 100)), "LIVE proven 210");
}

#[test]
fn of_two_clients_in_a_chain_both_are_named() {
    let inner = chain().told(210).unwrap();
    let outer = chain().told(200).unwrap();

    assert_eq!(inner.owner.as_ref().unwrap().pid, 200);
    let text = evidence(&inner);
    assert!(
        text.contains("its client pid 200 is itself a server of pid 100"),
        "{text}"
    );
    assert!(!evidence(&outer).contains("itself a server"));
}

#[test]
fn a_record_that_names_another_client_than_the_wire_contradicts() {
    let recorded = |client: u32| {
        let line = [(200, 200, client, SRV)];
        let values = chain().with(110, 50, 100, "client");
        evidence(&values.recorded((client, 100), &line).told(200).unwrap())
    };
    assert!(recorded(110).contains("a record has it below pid 110, which contradicts"));
    assert!(!recorded(100).contains("contradicts"));
}

fn of(found: &Finding, source: EvidenceSource) -> String {
    let facts = found.evidence.iter().filter(|one| one.source == source);
    facts.map(|one| one.what.as_str()).collect()
}

#[test]
fn a_runs_finding_says_what_is_dead_and_what_the_log_knows() {
    let gone = || {
        let mut values = chain().recorded((100, 100), &[]);
        values.launches[0].chain = vec![
            link((200, 200), LinkRole::Shim, "lych mcp"),
            link((100, 100), LinkRole::Holder, "client"),
            link((40, 40), LinkRole::Above, "harness --x"),
        ];
        values
    };
    let plain = gone().told(100).unwrap();
    let dead = of(&plain, EvidenceSource::LaunchRecord);
    assert!(
        dead.contains("was started below pid 40 (harness --x), which is dead"),
        "{dead}"
    );
    assert_eq!(of(&plain, EvidenceSource::Log), "");
    let known = gone().logged(SessionState::Lost, None).told(100).unwrap();
    let known = of(&known, EvidenceSource::Log);
    assert!(known.contains("as lost"), "{known}");
    let mut read = gone();
    read.log.read = true;
    let unknown = of(&read.told(100).unwrap(), EvidenceSource::Log);
    assert!(unknown.contains("the log knows no run"), "{unknown}");
}
