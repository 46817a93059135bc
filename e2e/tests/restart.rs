//! What a restart of the daemon, or a client that is hard to write down, changes about who may act: nothing.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt};

use serde_json::Value;
use testkit::Target;

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    gate::Gate,
};

fn runs(gate: &Gate) -> Vec<Value> {
    let listed = gate.world.run(["sessions", "list", "--json"]);
    let listed = listed.expect_code(0).json();
    listed["sessions"].as_array().expect("runs").clone()
}

fn named<'a>(runs: &'a [Value], id: &Value) -> &'a Value {
    let found = runs.iter().find(|run| run["id"] == *id);
    found.expect("a run that is on record")
}

#[test]
fn what_was_revoked_stays_so_for_its_client_over_a_restart_and_earlier_runs_stay_on_record() {
    let gate = Gate::before(Target::start());
    // We are its client, and live on.
    let mut revoked = Agent::open(&gate.world);
    assert_eq!(refused(&revoked.call("GET", "/r/revoked")), None);
    let first = gate.only_run();
    let mut other = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(refused(&other.call("GET", "/r/other")), None);
    let before = runs(&gate);
    let revoke = ["sessions", "revoke", &first, "--reason", "r"];
    drop(gate.world.run(revoke).expect_code(0));
    drop((revoked, other));

    gate.close();
    let _daemon = gate.open_daemon();
    let mut again = Agent::open(&gate.world);
    let mut fresh = Agent::apart(&gate.world, BRIDGE.as_ref());

    assert_eq!(refused(&again.call("GET", "/r/x")), Some("revoked"));
    assert_eq!(refused(&fresh.call("GET", "/r/x")), None);
    let after = runs(&gate);
    for run in &before {
        let now = named(&after, &run["id"]);
        assert_eq!(now["chain"], run["chain"], "{now:#}");
        assert_ne!(now["state"], "live", "{now:#}");
        let id = run["id"].as_str().expect("an id");
        let calls = ["activity", "list", "--session", id, "--json"];
        let calls = gate.world.run(calls).expect_code(0).json();
        assert!(
            calls["calls"]
                .as_array()
                .is_some_and(|calls| !calls.is_empty()),
            "{calls:#}"
        );
    }
}

#[test]
fn a_client_whose_command_line_fits_into_no_record_is_on_record_all_the_same() {
    let gate = Gate::before(Target::start());
    // Each of these takes six bytes as JSON has it, and one argument may have 128 KiB (execve(2)).
    let long = OsString::from_vec(vec![0x1b; 120_000]);
    let mut command = gate.world.command("sh");
    command.args(["-c", "shift 6; \"$@\"; exit $?", "sh"]);
    command.args(vec![&long; 6]);
    command.arg("python3").arg(BRIDGE).args(shim(&gate.world));
    let mut agent = Agent::over(&gate.world, command);

    assert_eq!(refused(&agent.call("GET", "/r/x")), None);

    for record in fs::read_dir(gate.world.home().launches())
        .expect("launches")
        .flatten()
    {
        let size = record.metadata().expect("a file").len();
        assert!(size < 64 << 10, "{size} bytes");
    }
    let run = gate.only_run();
    drop(agent);
    gate.close();
    let _daemon = gate.open_daemon();
    let all = runs(&gate);
    let on_record = named(&all, &Value::from(run));
    let chain = on_record["chain"].as_array().expect("a chain");
    let said = |link: &Value| link["process"]["command"].to_string();
    assert!(
        chain.iter().any(|link| said(link).contains("bytes more]")),
        "{on_record:#}"
    );
    assert_eq!(on_record["ownership_complete"], true, "{on_record:#}");
}
