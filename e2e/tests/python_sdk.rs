//! An unmodified client of the official Python SDK works with `lych mcp`, in both protocol eras.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Deadline, Finished, Mode, Reply, Target, program};

use crate::gate::{Gate, SECRET};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");

/// Two interpreters start, and one of them imports a whole SDK.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the interpreter of the environment that `cargo xtask tools` makes.
fn python() -> PathBuf {
    let venv = env::var_os("LYCH_PY_VENV").map_or_else(
        || {
            let target = program("lych");
            let target = target.ancestors().nth(2).expect("the target folder");
            target.join("venv-mcp2")
        },
        PathBuf::from,
    );
    let python = venv.join("bin/python");
    assert!(
        python.exists(),
        "{} is missing: run `cargo xtask tools` once",
        python.display()
    );
    python
}

fn mcp_json(gate: &Gate) -> PathBuf {
    let entry = json!({ "mcpServers": { "lychgate": {
        "command": program("lych"),
        "args": ["--home", gate.world.folder(), "mcp"],
    }}});
    gate.world.write(".mcp.json", entry.to_string())
}

fn client(gate: &Gate, config: &Path, mode: &str, tool: &str, arguments: &Value) -> Finished {
    let mut command: Command = gate.world.command(python());
    command
        .arg(SCRIPT)
        .arg(config)
        .args(["lychgate", mode, tool, &arguments.to_string()]);
    gate.world
        .finish(&mut command, b"", Deadline::after(PATIENCE))
}

fn lists_tools_and_calls_one(mode: &str) {
    let gate = Gate::before(Target::start());
    let config = mcp_json(&gate);
    let call = json!({ "channel": "api", "method": "GET", "path": "/r/hello" });

    let finished = client(&gate, &config, mode, "http_request", &call).expect_code(0);
    let said = finished.json();
    gate.close();

    let tools = said["tools"].as_array().expect("a list of tools");
    assert!(tools.contains(&json!("channels")), "{tools:?}");
    assert!(tools.contains(&json!("http_request")), "{tools:?}");
    assert_ne!(said["result"]["isError"], json!(true), "{said:#}");
    let requests = gate.target.requests();
    assert_eq!(requests.len(), 1, "{said:#}");
    assert_eq!(requests[0].path, "/r/hello");
    assert_eq!(
        requests[0].header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    assert!(
        !finished.stdout.contains(SECRET),
        "the client saw the secret"
    );
}

#[test]
fn a_client_that_gives_a_call_up_goes_on_in_both_eras() {
    for mode in ["legacy", "auto"] {
        let gate = Gate::before(Target::answering(|_| Reply::json(200, "{}")));
        gate.target.set_mode(Mode::Hold);
        let config = mcp_json(&gate);
        let slow = json!({ "channel": "api", "method": "POST", "path": "/w/slow" });
        let mut command: Command = gate.world.command(python());
        command.arg(SCRIPT).arg(config);
        command.args(["lychgate", mode, "channels", "{}", &slow.to_string()]);

        let said = gate
            .world
            .finish(&mut command, b"", Deadline::after(PATIENCE));
        let said = said.expect_code(0).json();

        assert_eq!(said["cancelled"], "cancelled", "{said:#}");
        assert_eq!(said["after"], "answered", "{said:#}");
        assert_eq!(gate.target.count(), 1, "it had left before it was given up");
        gate.target.release();
        gate.close();
    }
}

#[test]
fn a_client_that_discovers_lists_tools_and_makes_a_call() {
    lists_tools_and_calls_one("auto");
}

#[test]
fn a_client_that_initializes_lists_tools_and_makes_a_call() {
    lists_tools_and_calls_one("legacy");
}

#[test]
fn a_call_that_no_operation_allows_is_refused_in_words_and_does_not_leave() {
    let gate = Gate::before(Target::start());
    let config = mcp_json(&gate);
    let call = json!({ "channel": "api", "method": "DELETE", "path": "/r/hello" });

    let finished = client(&gate, &config, "auto", "http_request", &call).expect_code(0);
    let said = finished.json();
    gate.close();

    assert_eq!(said["result"]["isError"], json!(true), "{said:#}");
    let refused = &said["result"]["structuredContent"]["refused"];
    assert_eq!(refused["code"], json!("denied"), "{said:#}");
    assert!(refused["what_to_do"].is_string(), "{said:#}");
    assert_eq!(gate.target.requests().len(), 0);
}
