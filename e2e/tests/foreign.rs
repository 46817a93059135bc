//! Text that somebody else wrote, wherever it comes in and wherever it is shown: nothing of it acts on a terminal.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStringExt,
};

use serde_json::{Value, json};
use testkit::{Deadline, Finished, Reply, Target};

use crate::{
    agent::{Agent, BRIDGE, shim},
    gate::Gate,
};

/// An escape sequence, a C1 control, a direction override, a forged line, a carriage return, a bell, a zero width.
const TRICKS: [&str; 7] = [
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{9b}2J",
    "a\u{202e}b",
    "x\nerror: forged line",
    "x\rforged",
    "\u{7}",
    "in\u{200b}visible",
];

/// Longer than any screen.
fn long() -> String {
    "\u{1b}[31m".repeat(20_000)
}

/// What a person sees of it has no character that acts or hides.
fn assert_harmless(what: &str, finished: &Finished) {
    for text in [&finished.stdout, &finished.stderr] {
        let acts = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let found = text.chars().find(|c| acts(*c));
        assert_eq!(found, None, "{what}: {text:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("error: forged")),
            "{what}: {text}"
        );
    }
    assert!(
        !finished.stderr.contains("panicked"),
        "{what}: {}",
        finished.stderr
    );
}

fn tricks() -> Vec<String> {
    let mut all: Vec<String> = TRICKS.iter().map(|&trick| trick.to_owned()).collect();
    all.push(long());
    all
}

#[test]
fn in_arguments_it_is_shown_harmlessly_and_is_a_usage_error() {
    let gate = Gate::before(Target::start());
    let mut arguments: Vec<OsString> = tricks().into_iter().map(OsString::from).collect();
    arguments.push(OsString::from_vec(b"\xff\xfe\x1b[2J\xc3\x28".to_vec()));

    for trick in &arguments {
        let word = |text: &'static str| OsStr::new(text);
        for args in [
            vec![word("sessions"), word("show"), trick],
            vec![
                word("vault"),
                word("add"),
                trick,
                word("--for"),
                word("https://a.example"),
            ],
            vec![
                word("vault"),
                word("add"),
                word("n"),
                word("--from-stdin"),
                word("--for"),
                trick,
            ],
            vec![word("inspect"), trick],
            vec![word("allow"), trick],
            vec![word("reconcile"), word("check"), trick],
            vec![word("audit"), word("verify"), word("--log-id"), trick],
            vec![word("audit"), word("verify"), word("--dir"), trick],
            vec![trick],
        ] {
            let finished = gate.world.run(&args);
            assert_ne!(finished.code(), Some(0), "{args:?}");
            assert_harmless(&format!("{:.80?}", args), &finished);
        }
    }
}

#[test]
fn from_an_agent_and_a_server_it_is_kept_as_data_and_shown_harmlessly() {
    // What the other side says: its id of the job stands in the operator's journal.
    let gate = Gate::before(Target::answering(|request| {
        let trick = TRICKS[request.number % TRICKS.len()];
        let reply = match request.number % 3 {
            0 => json!({"id": trick, "text": trick}).to_string().into_bytes(),
            1 => json!({"id": long()}).to_string().into_bytes(),
            _ => b"{\"id\": \"\xff\xfe\x1b[2J\xc3\x28\"}".to_vec(),
        };
        Reply::bytes(200, reply).with("x-trick", "a\u{9b}b")
    }));
    let config = fs::read_to_string(gate.world.home().config_file()).expect("the draft");
    let with_job = config + "job = { id = \"/id\" }\n";
    gate.world.write("config.toml", with_job);
    drop(gate.world.run(["channels", "apply"]).expect_code(0));
    // Its own name and arguments come from outside too.
    let client = gate.world.write(
        "a\u{1b}[2J\u{202e}b.py",
        fs::read(BRIDGE).expect("the stand-in"),
    );
    // What stands above it has a command line as a stranger writes one: long, and no UTF-8.
    let mut command = gate.world.command("sh");
    command.args(["-c", "shift 2; \"$@\"; exit $?", "sh"]);
    command.arg(OsString::from_vec(
        b"\xff\xfe\x1b[2J\xc3\x28\nerror: forged line".to_vec(),
    ));
    command.arg(long());
    command.arg("python3").arg(client).args(shim(&gate.world));
    let mut agent = Agent::over(&gate.world, command);

    for trick in tricks() {
        for (tool, arguments) in [
            (trick.as_str(), json!({})),
            (
                "http_request",
                json!({"channel": trick, "method": "GET", "path": "/r/x"}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": trick, "path": "/r/x"}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": "GET", "path": trick}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": "GET", "path": "/r/x", "headers": {"a": trick}}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": "GET", "path": "/r/x", "headers": {trick.as_str(): "a"}}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": "GET", "path": "/r/x", trick.as_str(): 1}),
            ),
            (
                "http_request",
                json!({"channel": "api", "method": "POST", "path": "/w/x", "query": {trick.as_str(): "a"}}),
            ),
        ] {
            let id = agent.request("tools/call", &json!({"name": tool, "arguments": arguments}));
            let answer = agent.answer(id, Deadline::usual()).expect("an answer");
            assert!(
                answer["result"].is_object() || answer["error"].is_object(),
                "{answer:.200}"
            );
        }
    }
    let calls = gate
        .world
        .run(["activity", "list", "--json"])
        .expect_code(0)
        .json();
    let calls = calls["calls"].as_array().expect("calls");
    assert!(calls.len() > 10, "{}", calls.len());
    let known: Vec<&str> = calls
        .iter()
        .filter_map(|call| call["id"].as_str())
        .collect();

    for args in [
        vec!["activity", "list"],
        vec!["activity", "list", "--json"],
        vec!["sessions", "list", "--json"],
        vec!["ps", "--all", "--json"],
        vec!["sessions", "list"],
        vec!["reconcile", "list"],
        vec!["pending"],
        vec!["ps", "--all"],
        vec!["audit", "show"],
        vec!["status"],
    ] {
        assert_harmless(&format!("{args:?}"), &gate.world.run(&args));
    }
    for call in known {
        assert_harmless(call, &gate.world.run(["activity", "show", call]));
    }
    let sessions = gate.world.run(["sessions", "list", "--json"]).json();
    let session = sessions["sessions"][0]["id"].as_str().expect("a run");
    assert_harmless("the run", &gate.world.run(["sessions", "show", session]));
    let log = fs::read_to_string(gate.world.home().daemon_log()).expect("its notes");
    assert!(!log.chars().any(|c| c.is_control() && c != '\n'), "{log:?}");
}

#[test]
fn in_the_configuration_it_is_refused_and_shown_harmlessly() {
    let gate = Gate::before(Target::start());
    let applied = || -> Value {
        gate.world
            .run(["channels", "list", "--json"])
            .expect_code(0)
            .json()
    };
    let before = applied();
    let mut drafts: Vec<Vec<u8>> = vec![b"\xff\xfe\x1b[2J".to_vec(), vec![b'['; 100_000]];
    for trick in tricks() {
        let quoted = serde_json::to_string(&trick)
            .expect("text")
            .replace('\u{7f}', "\\u007f");
        for draft in [
            format!("[channel.{quoted}]\nkind = \"http\"\nbase = \"https://a.example\"\n"),
            format!("[channel.a]\nkind = {quoted}\n"),
            format!("[channel.a]\nkind = \"http\"\nbase = {quoted}\n"),
            format!(
                "[channel.a]\nkind = \"http\"\nbase = \"https://a.example\"\nsecret = {quoted}\n"
            ),
            format!("{quoted} = 1\n"),
            format!("admission = {quoted}\n"),
            trick.clone(),
        ] {
            drafts.push(draft.into_bytes());
        }
    }

    for draft in drafts {
        gate.world.write("config.toml", &draft);
        for args in [
            &["channels", "apply"][..],
            &["channels", "apply", "--dry-run"],
            &["channels", "check"],
        ] {
            let finished = gate.world.run(args);
            let shown = String::from_utf8_lossy(&draft)
                .chars()
                .take(80)
                .collect::<String>();
            if args.len() == 2 && args[1] == "apply" {
                assert_ne!(finished.code(), Some(0), "{shown:?}");
            }
            assert_harmless(&format!("{args:?} {shown:?}"), &finished);
        }
    }

    assert_eq!(applied(), before);
}
