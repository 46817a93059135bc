//! What the log's verbs promise, end to end: erase, adopt, export, and a pin out of an incident.

use std::{fs, path::Path, process::Stdio};

use serde_json::{Value, json};
use testkit::{Deadline, Finished, Held, Target, wait_until};

use crate::{agent::Agent, gate::Gate};

const CLIENT: &str = include_str!("../../crates/verdict/tests/judged/client.py");
const SERVER: &str = include_str!("../../crates/verdict/tests/judged/server.py");

/// What a sealed body says and a clear header never does.
const PATH: &str = "/r/canary-4b7e";

pub fn verify(gate: &Gate, args: &[&str]) -> (Value, i32) {
    let mut all = vec!["audit", "verify", "--json"];
    all.extend(args);
    let finished = gate.world.run(all);
    let code = finished.code().expect("it ended by itself");
    (finished.json(), code)
}

pub fn audit(gate: &Gate, args: &[&str]) -> Finished {
    let mut all = vec!["audit"];
    all.extend(args);
    gate.world.run(all)
}

/// A gate with one run and one call on record.
fn used() -> Gate {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", PATH);
    gate
}

fn export(gate: &Gate, args: &[&str]) -> (Vec<Value>, Finished) {
    let mut all = vec!["export"];
    all.extend(args);
    let finished = audit(gate, &all).expect_code(0);
    let lines = finished.stdout.lines();
    let records = lines.map(|line| serde_json::from_str(line).expect("one record a line"));
    (records.collect(), finished)
}

/// How many acts of operators are on record, and what the log itself says of keys and daemon runs.
fn acts(records: &[Value]) -> usize {
    let kinds = ["acted", "key_erased", "epoch_endorsed"];
    let is = |record: &&Value| kinds.iter().any(|kind| record["kind"] == **kind);
    records.iter().filter(is).count()
}

/// Starts the daemon and leaves its vault shut.
fn locked_daemon(gate: &Gate) -> Held {
    let mut command = gate.world.lychd([""; 0]);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Held::start(&mut command);
    wait_until("the daemon to answer", Deadline::usual(), || {
        gate.world.run(["status"]).code() == Some(0)
    });
    daemon
}

#[test]
fn an_erased_runs_details_never_open_again_and_the_chain_stays_whole() {
    let gate = used();
    let run = gate.only_run();
    let (before, _) = export(&gate, &[]);
    let tells = |records: &[Value]| json!(records).to_string().contains(PATH);
    assert!(tells(&before), "the call is on record");

    drop(audit(&gate, &["erase", &run]).expect_code(0));

    let (after, _) = export(&gate, &[]);
    assert!(!tells(&after), "the call's details are still there");
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["checked"]["erased_keys"], 1, "{report:#}");
    gate.close();
    let daemon = gate.open_daemon();
    let (again, _) = export(&gate, &[]);
    assert!(!tells(&again), "a new daemon opens what was erased");
    drop(audit(&gate, &["erase", &run]).expect_code(2));
    drop(daemon);
}

#[test]
fn erasing_what_is_not_there_changes_nothing_and_is_not_on_record() {
    let gate = used();
    let records = || acts(&export(&gate, &[]).0);
    let before = records();

    drop(audit(&gate, &["erase", "s-0000000000000000"]).expect_code(2));
    drop(audit(&gate, &["erase", "everything"]).expect_code(2));
    drop(audit(&gate, &["erase"]).expect_code(2));

    assert_eq!(records(), before);
    let run = gate.only_run();
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(audit(&gate, &["erase", &run]).expect_code(4));
    gate.close();
    drop(audit(&gate, &["erase", &run]).expect_code(5));
}

#[test]
fn a_daemon_run_whose_vault_was_never_open_is_named_until_an_operator_adopts_it() {
    let gate = used();
    gate.close();
    let mut locked = locked_daemon(&gate);
    locked.crash();
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 3, "{report:#}");
    let epoch = report["unendorsed"][0]["epoch"]
        .as_str()
        .expect("its id")
        .to_owned();

    let daemon = gate.open_daemon();
    let (_, still) = verify(&gate, &[]);
    assert_eq!(still, 3, "opening the vault vouches for its own run only");
    drop(audit(&gate, &["adopt", &epoch]).expect_code(0));

    let (report, code) = verify(&gate, &[]);
    assert_eq!((code, &report["unendorsed"]), (0, &json!([])), "{report:#}");
    let records = acts(&export(&gate, &[]).0);
    let again = audit(&gate, &["adopt", &epoch]).expect_code(0);
    assert!(again.stderr.contains("already"), "{again:?}");
    assert_eq!(acts(&export(&gate, &[]).0), records, "nothing was done");
    drop(daemon);
}

#[test]
fn adopting_what_is_not_there_is_a_usage_error_and_a_shut_vault_vouches_for_nothing() {
    let gate = Gate::before(Target::start());
    drop(audit(&gate, &["adopt", "e-0000000000000000"]).expect_code(2));
    drop(audit(&gate, &["adopt", "s-0000000000000000"]).expect_code(2));
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(audit(&gate, &["adopt", "e-0000000000000000"]).expect_code(4));
    gate.close();
    drop(audit(&gate, &["adopt", "e-0000000000000000"]).expect_code(5));
}

#[test]
fn an_export_has_the_bodies_while_the_vault_is_open_and_clear_headers_otherwise() {
    let gate = used();

    let (open, _) = export(&gate, &[]);
    drop(gate.world.run(["lock"]).expect_code(0));
    let (locked, said) = export(&gate, &[]);
    gate.close();
    let (alone, _) = export(&gate, &[]);
    let log = gate.world.home().audit();
    let (elsewhere, _) = export(&gate, &["--dir", log.to_str().expect("UTF-8")]);

    let attempt = open.iter().find(|record| record["kind"] == "attempt");
    let attempt = attempt.expect("an attempt");
    assert_eq!(attempt["body"]["is"], "attempt", "{attempt:#}");
    assert!(attempt["body"].to_string().contains(PATH), "{attempt:#}");
    assert!(
        open.iter()
            .all(|record| record["body"].get("unknown").is_none())
    );
    assert!(said.stderr.contains("locked"), "{said:?}");
    for records in [&locked, &alone, &elsewhere] {
        assert!(records.len() >= open.len());
        let sealed = records.iter().filter(|record| record["kind"] == "attempt");
        for record in sealed {
            assert_eq!(record["body"], json!({"unknown": "sealed"}));
            assert_eq!(record["schema"], "lych.record/v1");
            assert_eq!(record["call"], attempt["call"]);
        }
        assert!(!json!(records).to_string().contains(PATH));
    }
}

#[test]
fn one_record_is_shown_as_the_export_has_it() {
    let gate = used();
    let (records, _) = export(&gate, &[]);
    let attempt = records.iter().find(|record| record["kind"] == "attempt");
    let seq = attempt.expect("an attempt")["seq"].to_string();

    let shown = audit(&gate, &["show", &seq]).expect_code(0).json();

    assert_eq!(Some(&shown), attempt);
    drop(audit(&gate, &["show", "999999"]).expect_code(2));
    drop(audit(&gate, &["show", "first"]).expect_code(2));
    drop(audit(&gate, &["export", "--dir", "/nowhere"]).expect_code(1));
}

/// A client of this world with its server; the client is killed, the server stays and is contained.
fn contained(gate: &Gate) -> (String, Value) {
    let client = gate.world.write("client.py", CLIENT);
    let server = gate.world.write("server.py", SERVER).display().to_string();
    gate.world.write(
        ".claude.json",
        format!(
            r#"{{"mcpServers": {{"fixture": {{"command": "python3", "args": ["{server}", "--stdio"]}}}}}}"#
        ),
    );
    let mut command = gate.world.command("python3");
    command.arg(client).arg("pipes");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Held::start(&mut command);
    let pid = first_line(&mut client);
    let pid = pid
        .strip_prefix("server ")
        .expect("the server's number")
        .to_owned();
    client.crash();
    let ppid = format!("/proc/{pid}/stat");
    wait_until("the server to be adopted", Deadline::usual(), || {
        fs::read_to_string(&ppid).is_ok_and(|stat| {
            let parent = stat
                .rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1));
            parent != Some(&client.pid().to_string())
        })
    });
    let done = gate.world.run(["contain", &pid, "--yes", "--json"]);
    let shown = done.json();
    let id = shown["id"].as_str().expect("an incident").to_owned();
    (id, shown)
}

fn first_line(held: &mut Held) -> String {
    use std::io::{BufRead, BufReader};

    let mut line = String::new();
    let stdout = held.take_stdout().expect("a piped output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

#[test]
fn the_pin_in_an_incident_confirms_the_log_and_catches_one_that_was_rolled_back() {
    let gate = used();
    let log = gate.world.home().audit();
    let backup = gate.world.folder().join("backup");
    gate.close();
    copy(&log, &backup);
    let daemon = gate.open_daemon();
    let (incident, shown) = contained(&gate);
    drop(daemon);

    let (report, code) = verify(&gate, &["--since", &incident]);
    assert_eq!(
        (&report["verdict"], code),
        (&json!("intact_pinned"), 0),
        "{report:#} {shown:#}"
    );
    fs::remove_dir_all(&log).expect("the log");
    copy(&backup, &log);
    let (report, code) = verify(&gate, &["--since", &incident]);
    assert_eq!((&report["verdict"], code), (&json!("truncated"), 3));
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(copied.expect("cp runs").success());
}

#[test]
fn a_pin_that_cannot_be_used_is_no_judgement_and_a_wrong_name_no_incident() {
    let gate = used();
    let other = Gate::before(Target::start());
    let (report, _) = verify(&other, &[]);
    let foreign = report["log_id"].as_str().expect("an id").to_owned();
    let empty = gate.world.write("empty.json", "{}");
    let empty = empty.to_str().expect("UTF-8");
    gate.close();

    drop(audit(&gate, &["verify", "--since", "i-0000000000000000"]).expect_code(2));
    drop(audit(&gate, &["verify", "--since", "yesterday"]).expect_code(2));
    drop(audit(&gate, &["verify", "--log-id", "12"]).expect_code(2));
    let (report, code) = verify(&gate, &["--log-id", &foreign]);
    assert_eq!((&report["verdict"], code), (&json!("forked"), 3));
    for args in [
        &["--pin", "/nowhere"][..],
        &["--pin", empty],
        &["--require-pin"],
        &["--dir", "/nowhere"],
    ] {
        let (report, code) = verify(&gate, args);
        assert_eq!(
            (&report["verdict"], code),
            (&json!("cannot_judge"), 1),
            "{args:?}"
        );
    }
}

#[test]
fn a_list_of_calls_says_that_it_leaves_earlier_ones_out() {
    let gate = used();
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", "/r/second");
    agent.call("GET", "/r/third");
    let list = |args: &[&str]| {
        let mut all = vec!["activity", "list", "--json"];
        all.extend(args);
        gate.world.run(all).expect_code(0)
    };
    let paths = |said: &Value| {
        let calls = said["calls"].as_array().expect("calls").clone();
        let path = |call: &Value| call["target"]["path"].as_str().expect("a path").to_owned();
        calls.iter().map(path).collect::<Vec<_>>()
    };

    let (some, all) = (list(&["--last", "2"]), list(&["--all"]));

    assert_eq!(paths(&some.json()), ["/r/second", "/r/third"]);
    assert_eq!(some.json()["earlier_left_out"], true);
    assert!(some.stderr.contains("--all"), "{some:?}");
    assert_eq!(paths(&all.json()), [PATH, "/r/second", "/r/third"]);
    assert_eq!(all.json()["earlier_left_out"], false);
}
