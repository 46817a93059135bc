//! A run whose every process died with its client: nobody is left to ask, so we ask, and say that it was us.

use serde_json::Value;
use testkit::{Deadline, Target, wait_for};

use crate::{
    agent::{Agent, BRIDGE},
    gate::Gate,
};

/// A run that made one read and then lost its client to SIGKILL; the shim ends with its wire.
fn lost_run(gate: &Gate) -> String {
    let mut agent = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_ne!(agent.call("GET", "/r/last")["isError"], true);
    agent.crash();
    wait_for("the run to be lost", Deadline::usual(), || {
        let all = gate.world.run(["sessions", "list", "--json"]).json();
        let runs = all["sessions"].as_array()?;
        let lost = runs.iter().find(|run| run["state"] == "lost")?;
        Some(lost["id"].as_str()?.to_owned())
    })
}

fn calls_of(gate: &Gate, run: &str) -> Vec<Value> {
    let listed = ["activity", "list", "--session", run, "--json"];
    let all = gate.world.run(listed).json();
    all["calls"].as_array().expect("calls").clone()
}

#[test]
fn a_run_that_nobody_is_left_of_is_contained_by_our_own_probe_which_is_named_as_that() {
    let gate = Gate::before(Target::start());
    let run = lost_run(&gate);
    let before = gate.target.count();

    let done = gate
        .world
        .run(["contain", "--session", &run, "--yes", "--json"])
        .expect_code(0)
        .json();

    assert_eq!(done["state"], "contained", "{done:#}");
    assert_eq!(done["confirmation"]["kind"], "refused");
    assert_eq!(done["confirmation"]["by"], "probe");
    let row = &done["rows"][0];
    assert_eq!(row["last_attempt_call"], row["calls"][0]["id"], "{row:#}");
    assert_eq!(
        row["calls"].as_array().expect("calls").len(),
        1,
        "the probe is none of the run's calls: {row:#}"
    );
    assert_eq!(gate.target.count(), before, "nothing of it left");
    let calls = calls_of(&gate, &run);
    let last = calls.last().expect("the probe");
    assert_eq!(
        (&last["probe"], &last["state"]),
        (&true.into(), &"denied".into())
    );
    assert_eq!(last["settled_seq"], done["confirmation"]["seq"]);
    assert_eq!(calls[0]["probe"], false);
    drop(gate.world.run(["audit", "verify"]).expect_code(0));
}

#[test]
fn a_probe_of_an_earlier_incident_is_not_taken_for_the_survivors_own_attempt() {
    let gate = Gate::before(Target::start());
    let run = lost_run(&gate);
    let contain = ["contain", "--session", &run, "--yes", "--json"];
    let first = gate.world.run(contain).expect_code(0).json();

    let second = gate.world.run(contain).expect_code(0).json();

    assert_eq!(second["confirmation"]["by"], "probe");
    assert_ne!(second["id"], first["id"]);
    let seqs = [&first, &second].map(|one| one["confirmation"]["seq"].as_u64());
    assert!(seqs[0] < seqs[1], "{seqs:?}");
}
