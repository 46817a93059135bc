//! What points to an owner, on values: each hint once where it holds and once where it just does not.

use clients::{Client, Launched, LoggedAt};
use inventory::Process;
use model::{Foreign, Known, LinkRole, SessionState, Wall};
use verdict::{EvidenceSource, Finding};

use crate::values::{SRV, Values, in_use, left, link};

fn of(found: &Finding, source: EvidenceSource) -> String {
    let told = found.evidence.iter().filter(|one| one.source == source);
    let told: Vec<&str> = told.map(|one| one.what.as_str()).collect();
    told.join("\n")
}

fn hint(values: Values, source: EvidenceSource) -> String {
    of(&values.told(200).unwrap(), source)
}

#[test]
fn a_variable_says_whose_a_leftover_was_and_of_what_is_in_use_only_what_contradicts() {
    let marked = |values: Values, name: &str| {
        let names = Known::Yes(vec![Foreign::from(name)]);
        let values = values.closer(200, |closer| closer.env_names = names);
        hint(values, EvidenceSource::Environment)
    };
    let same = "it was started with CLAUDECODE, which claude-code sets";
    assert_eq!(marked(left(), "CLAUDECODE"), same);
    assert_eq!(marked(in_use(), "CLAUDECODE"), "");
    let other = "it was started with GEMINI_CLI, which gemini sets: that contradicts the configuration of claude-code";
    assert_eq!(marked(left(), "GEMINI_CLI"), other);
    assert_eq!(marked(in_use(), "GEMINI_CLI"), other);
    // Of what only a record names no configuration says whose it is.
    let mut by_record = left().recorded((100, 100), &[]);
    by_record.launches[0].chain = vec![link((200, 200), LinkRole::Shim, "lych mcp")];
    let by_record = by_record.but(200, |one| {
        one.command = Known::Yes(["lych", "mcp"].map(Foreign::from).to_vec());
    });
    let plain = "it was started with GEMINI_CLI, which gemini sets";
    assert_eq!(marked(by_record, "GEMINI_CLI"), plain);
}

#[test]
fn a_clients_log_says_that_it_started_this_command_at_this_time_for_this_user() {
    let logged = |client, at, owner_uid, line: &str| {
        let mut values = left();
        values.launched = vec![Launched {
            client,
            command: line.split(' ').map(Foreign::from).collect(),
            at,
            source: "/home/user/log".into(),
            owner_uid,
        }];
        hint(values, EvidenceSource::LaunchLog)
    };
    // It was seen at 1 000 000, a second old.
    let at = |millis| LoggedAt::Utc(Wall::from_millis(millis));
    let cursor = Client::Cursor;
    let claude = logged(Client::ClaudeCode, at(999_000), 1000, SRV);
    assert!(claude.starts_with("claude-code logged at 1970-01-01T00:16:39"));
    assert!(claude.ends_with("that it starts this command"), "{claude}");
    assert!(logged(cursor, at(999_000), 1000, SRV).contains("contradicts"));
    let own_clock = LoggedAt::Local(Wall::from_millis(999_000 + 3_600_000));
    let local = logged(Client::ClaudeCode, own_clock, 1000, SRV);
    assert!(
        local.contains("by its own clock") && !local.contains('Z'),
        "{local}"
    );
    for (at, owner, line) in [
        (at(999_000 + 10_001), 1000, SRV),
        (at(999_000), 1001, SRV),
        (at(999_000), 1000, "python3 /opt/other.py --stdio"),
    ] {
        assert_eq!(logged(cursor, at, owner, line), "", "{owner} {line}");
    }
    assert_ne!(logged(cursor, at(999_000 - 10_000), 0, SRV), "");
}

/// What a run's record says of a server, whose client is of this chain.
fn run(values: Values, chain: &[((u32, u64), LinkRole, &str)]) -> String {
    let mut values = values.recorded((1000, 1), &[]);
    let links = chain.iter().map(|(id, role, line)| link(*id, *role, line));
    values.launches[0].chain = links.collect();
    let told = hint(values, EvidenceSource::Run);
    told.split(" of run").next().unwrap().to_owned()
}

#[test]
fn a_run_whose_chain_names_a_living_process_above_a_server_says_of_what_it_is() {
    use LinkRole::{Above, Holder, HolderReported, Shim};
    let of_client = |role| run(in_use(), &[((100, 100), role, "client")]);
    assert_eq!(of_client(Holder), "pid 100 above it is the client");
    let reported = "pid 100 above it is the client, as its shim says,";
    assert_eq!(of_client(HolderReported), reported);
    assert_eq!(of_client(Above), "pid 100 above it is above the client");
    assert_eq!(of_client(Shim), "", "what is connected is no owner");

    assert_eq!(run(in_use(), &[((50, 10), Above, "bash")]), "", "a shell");
    assert_eq!(run(in_use(), &[((1, 0), Above, "init")]), "", "everybody's");
    assert_eq!(
        run(in_use(), &[((100, 99), Holder, "client")]),
        "",
        "reused"
    );
    let beside = in_use().with(60, 50, 60, "agent");
    assert_eq!(run(beside, &[((60, 60), Holder, "agent")]), "", "beside it");
    let holder = Values::new()
        .with(60, 50, 60, "agent")
        .with(100, 50, 100, "client")
        .with(200, 100, 200, SRV)
        .served(200, 60);
    let of_holder = run(holder, &[((60, 60), Holder, "agent")]);
    assert_eq!(of_holder, "pid 60 above it is the client");
}

#[test]
fn what_a_record_names_itself_needs_no_other_run() {
    let mut values = in_use().recorded((100, 100), &[(200, 200, 100, SRV)]);
    values = values.recorded((100, 100), &[]);
    assert_eq!(hint(values, EvidenceSource::Run), "");
}

#[test]
fn a_run_whose_dead_client_led_a_servers_group_or_session_says_of_what_it_was() {
    let led = |change: fn(&mut Process), id| {
        run(left().but(200, change), &[(id, LinkRole::Holder, "agent")])
    };
    let was = "pid 90, which led its group or session and is dead, was the client";
    assert_eq!(led(|one| one.pgid = 90, (90, 20)), was);
    assert_eq!(led(|one| one.sid = 90, (90, 20)), was);
    assert_eq!(led(|one| one.pgid = 90, (90, 200)), was);
    assert_eq!(led(|one| one.pgid = 90, (90, 201)), "", "younger");
    assert_eq!(led(|_| (), (90, 20)), "", "of another group");
    let mut other_boot = left().but(200, |one| one.pgid = 90);
    other_boot = other_boot.recorded((90, 20), &[]);
    other_boot.launches[0].chain[0].process.id.boot_id = "another".to_owned();
    assert_eq!(hint(other_boot, EvidenceSource::Run), "");
}

#[test]
fn what_the_log_has_of_a_servers_run_is_told() {
    let mut values = in_use().recorded((100, 100), &[]);
    values.launches[0].chain = vec![
        link((200, 200), LinkRole::Shim, SRV),
        link((100, 100), LinkRole::Holder, "client"),
    ];
    let values = values.logged(SessionState::Live, None);
    let told = hint(values, EvidenceSource::Log);
    assert!(
        told.starts_with("the log has run") && told.ends_with("as live"),
        "{told}"
    );
}

#[test]
fn a_control_group_of_its_own_says_what_it_is_of() {
    let group = |values: Values| {
        let values = values.closer(200, |closer| {
            closer.cgroup = Known::Yes("/user.slice/app-x.scope".into());
        });
        hint(values, EvidenceSource::ControlGroup)
    };
    assert_eq!(group(left()), "it is of app-x.scope");
    assert_eq!(group(in_use()), "");
}

#[test]
fn the_leader_of_its_group_lives_or_is_gone() {
    let led = |values: Values, pgid| {
        let values = values.but(200, |one| one.pgid = pgid);
        hint(values, EvidenceSource::ProcessGroup)
    };
    let gone = |pid: u32| format!("the leader of its process group, pid {pid}, is gone");
    let lives = "its process group is led by pid 50 (bash), which lives";
    assert_eq!(led(left(), 50), lives);
    assert_eq!(led(left(), 90), gone(90));
    assert_eq!(led(left(), 200), "", "itself");
    assert_eq!(
        led(left().with(201, 200, 210, "helper"), 201),
        "",
        "its own"
    );
    let at = |start| led(left().with(60, 50, start, "x"), 60);
    assert_eq!(
        at(200),
        "its process group is led by pid 60 (x), which lives"
    );
    assert_eq!(at(201), gone(60), "a later holder of the number");
    let zombie = left().but(50, |one| one.stat = "Z".to_owned());
    assert_eq!(led(zombie, 50), gone(50));
}

#[test]
fn what_started_within_a_second_may_be_the_same_clients() {
    let beside = |starts: &[u64], change: fn(&mut Process)| {
        let mut values = left();
        for (pid, start) in (210..).zip(starts) {
            values = values
                .with(pid, 1, *start, SRV)
                .abandoned(pid)
                .but(pid, change);
        }
        hint(values, EvidenceSource::StartTime)
    };
    let one = "it started within a second of pid 210";
    assert_eq!(beside(&[], |_| ()), "");
    assert_eq!(beside(&[300], |_| ()), one);
    assert_eq!(beside(&[100], |_| ()), one);
    assert_eq!(beside(&[301], |_| ()), "");
    let two = beside(&[200, 250], |_| ());
    assert_eq!(two, format!("{one} and 1 more servers"));
    assert_eq!(beside(&[200], |other| other.uid = 0), "", "another user's");
}
