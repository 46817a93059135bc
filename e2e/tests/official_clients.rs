//! Unmodified official clients beside the Python SDK 2.x: they list, call, give up and are refused properly.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Deadline, Finished, Held, Mode, Reply, Target, program, wait_until};

use crate::{
    agent::{refused, shim},
    gate::{Gate, SECRET},
};

const NODE_CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/client.mjs");
const PYTHON_CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client1.py");

/// An interpreter starts and imports a whole SDK.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns what `cargo xtask tools` installed, or where `variable` says it is.
fn installed(variable: &str, name: &str) -> PathBuf {
    let folder = env::var_os(variable).map_or_else(
        || {
            let target = program("lych");
            let target = target.ancestors().nth(2).expect("the target folder");
            target.join(name)
        },
        PathBuf::from,
    );
    assert!(
        folder.exists(),
        "{} is missing: run `cargo xtask tools` once",
        folder.display()
    );
    folder
}

fn node_modules() -> PathBuf {
    installed("LYCH_NODE_CLIENTS", "node-clients").join("node_modules")
}

/// The Node that the Inspector needs, which came with it.
fn node() -> PathBuf {
    node_modules().join(".bin/node")
}

/// How one client is started: everything before the shim's own command line.
struct Client {
    start: Vec<OsString>,
}

impl Client {
    fn node(which: &str, mode: &str) -> Self {
        let start: [OsString; 5] = [
            node().into(),
            NODE_CLIENT.into(),
            which.into(),
            node_modules().into(),
            mode.into(),
        ];
        Self {
            start: start.to_vec(),
        }
    }

    fn python1() -> Self {
        let python = installed("LYCH_PY1_VENV", "venv-mcp1").join("bin/python");
        Self {
            start: vec![python.into(), PYTHON_CLIENT.into()],
        }
    }

    fn run(&self, gate: &Gate, wanted: &Value) -> Value {
        let (first, rest) = self.start.split_first().expect("a program");
        let mut command: Command = gate.world.command(Path::new(first));
        command.args(rest).args(shim(&gate.world));
        let input = wanted.to_string();
        let deadline = Deadline::after(PATIENCE);
        let finished: Finished = gate.world.finish(&mut command, input.as_bytes(), deadline);
        let finished = finished.expect_code(0);
        assert!(
            !finished.stdout.contains(SECRET),
            "the client saw the secret"
        );
        finished.json()
    }
}

fn request(method: &str, path: &str) -> Value {
    json!({ "channel": "api", "method": method, "path": path })
}

fn lists_calls_and_is_refused(client: &Client) {
    let gate = Gate::before(Target::start());

    let read = json!({ "tool": "http_request", "arguments": request("GET", "/r/x") });
    let said = client.run(&gate, &read);
    let delete = json!({ "tool": "http_request", "arguments": request("DELETE", "/r/x") });
    let denied = client.run(&gate, &delete);

    assert_eq!(
        said["tools"],
        json!(["channels", "http_request"]),
        "{said:#}"
    );
    assert_ne!(said["result"]["isError"], json!(true), "{said:#}");
    assert_eq!(denied["result"]["isError"], json!(true), "{denied:#}");
    assert_eq!(refused(&denied["result"]), Some("denied"), "{denied:#}");
    assert_eq!(gate.target.count(), 1);
}

/// A call that is given up leaves the connection as it was, and what it did is on record.
fn gives_up_and_goes_on(client: &Client) {
    let gate = Gate::before(Target::answering(|_| Reply::json(200, "{}")));
    gate.target.set_mode(Mode::Hold);
    let wanted = json!({
        "tool": "channels",
        "arguments": {},
        "slow": request("POST", "/w/slow"),
    });

    let said = client.run(&gate, &wanted);

    assert_eq!(said["cancelled"], "cancelled", "{said:#}");
    assert_eq!(said["after"], "answered", "{said:#}");
    assert_eq!(gate.target.count(), 1, "it had left before it was given up");
    gate.target.release();
    gate.close();
}

#[test]
fn the_typescript_client_2_lists_calls_and_is_refused_in_both_eras() {
    for mode in ["legacy", "auto"] {
        lists_calls_and_is_refused(&Client::node("client2", mode));
    }
}

#[test]
fn the_typescript_client_2_gives_a_call_up_and_goes_on() {
    gives_up_and_goes_on(&Client::node("client2", "legacy"));
}

#[test]
fn the_typescript_sdk_1_lists_calls_and_is_refused() {
    lists_calls_and_is_refused(&Client::node("sdk1", "legacy"));
}

#[test]
fn the_typescript_sdk_1_gives_a_call_up_and_goes_on() {
    gives_up_and_goes_on(&Client::node("sdk1", "legacy"));
}

#[test]
fn the_python_sdk_1_lists_calls_and_is_refused() {
    lists_calls_and_is_refused(&Client::python1());
}

#[test]
fn the_python_sdk_1_gives_a_call_up_and_goes_on() {
    gives_up_and_goes_on(&Client::python1());
}

/// The Inspector's own command line, in front of a shim of this world.
fn inspector(gate: &Gate, args: &[&str]) -> Command {
    let mut command = gate.world.command(node());
    command
        .arg(node_modules().join(".bin/mcp-inspector"))
        .arg("--cli")
        .args(shim(&gate.world))
        .args(args);
    command
}

/// How the Inspector is told to call the one tool that acts.
const CALL: [&str; 4] = ["--method", "tools/call", "--tool-name", "http_request"];

/// It has no way to give a single call up: whoever does not want to wait ends it.
#[test]
fn an_inspector_that_is_ended_in_the_middle_of_a_call_leaves_its_outcome_on_record() {
    let gate = Gate::before(Target::start());
    gate.target.set_mode(Mode::Hold);
    let given = ["--tool-arg", "channel=api", "method=POST", "path=/w/x"];
    let mut command = inspector(&gate, &[&CALL[..], &given[..]].concat());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut held = Held::start(command.stderr(Stdio::null()));
    drop(gate.target.wait_for_requests(1, Deadline::after(PATIENCE)));

    held.crash();
    gate.target.release();

    let call = || {
        let listed = gate
            .world
            .run(["activity", "list", "--json"])
            .expect_code(0);
        listed.json()["calls"][0].clone()
    };
    wait_until(
        "the outcome to be on record",
        Deadline::after(PATIENCE),
        || call()["state"] == "answered",
    );
    let call = call();
    assert_eq!(call["status"], 200, "{call:#}");
    assert_eq!(gate.target.count(), 1, "it was sent once");
    gate.close();
}

#[test]
fn the_inspector_lists_calls_and_shows_a_refusal() {
    let gate = Gate::before(Target::start());
    let inspect = |args: &[&str]| {
        let mut command = inspector(&gate, args);
        gate.world
            .finish(&mut command, b"", Deadline::after(PATIENCE))
    };
    let call = |method: &str| {
        let method = format!("method={method}");
        let given = ["--tool-arg", "channel=api", &method, "path=/r/x"];
        inspect(&[&CALL[..], &given[..]].concat())
    };

    let listed = inspect(&["--method", "tools/list"]).expect_code(0).json();
    let read = call("GET");
    let denied = call("DELETE");

    assert_eq!(listed["tools"][1]["name"], "http_request", "{listed:#}");
    assert_ne!(read.json()["isError"], json!(true), "{read:?}");
    assert_eq!(refused(&denied.json()), Some("denied"), "{denied:?}");
    assert_eq!(gate.target.count(), 1);
}
