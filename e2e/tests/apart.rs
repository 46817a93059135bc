//! Two runs never mix: equal ids, interleaved cancels, a client that reads nothing, a flood.

use std::{
    collections::BTreeSet,
    process::Stdio,
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Deadline, Held, Mode, Reply, Target};

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    gate::Gate,
};

/// Runs at the same time.
const RUNS: usize = 6;

/// Calls of each, all on the way at once.
const CALLS: usize = 40;

/// A target whose answer says what was asked.
fn echo() -> Gate {
    Gate::before(Target::answering(|request| {
        Reply::json(200, format!("{{\"path\":\"{}\"}}", request.path))
    }))
}

fn path_of(result: &Value) -> &str {
    result["structuredContent"]["body"]
        .as_str()
        .unwrap_or_default()
}

/// Sends every call before it reads an answer, and checks that each answer is that of its own question.
fn own_answers_only(mut agent: Agent, run: usize) -> JoinHandle<usize> {
    thread::spawn(move || {
        let asked: Vec<(u64, String)> = (0..CALLS)
            .map(|number| {
                let path = format!("/r/{run}-{number}");
                (agent.send("GET", &path), path)
            })
            .collect();
        let mut seen = BTreeSet::new();
        while seen.len() < CALLS {
            let answer = agent.next(Deadline::usual()).expect("an answer");
            let id = answer["id"].as_u64().expect("a number as id");
            let (_, path) = asked
                .iter()
                .find(|(asked, _)| *asked == id)
                .expect("an id of ours");
            let body = path_of(&answer["result"]);
            assert_eq!(
                body,
                format!("{{\"path\":\"{path}\"}}"),
                "run {run}, id {id}"
            );
            assert!(seen.insert(id), "run {run}: two answers to {id}");
        }
        seen.len()
    })
}

#[test]
fn runs_that_use_equal_ids_get_their_own_answers_beside_a_flood_and_a_client_that_reads_nothing() {
    let gate = echo();
    let _stuck = stuck(&gate);
    let mut flood = Agent::apart(&gate.world, BRIDGE.as_ref());
    let agents: Vec<_> = (0..RUNS)
        .map(|_| Agent::apart(&gate.world, BRIDGE.as_ref()))
        .collect();
    let flooding = thread::spawn(move || {
        // More than may be on the way at once: some are refused, and all of them are answered.
        let ids: Vec<u64> = (0..200).map(|_| flood.send("GET", "/r/flood")).collect();
        ids.iter()
            .filter(|_| flood.next(Deadline::usual()).is_some())
            .count()
    });

    let running: Vec<_> = agents
        .into_iter()
        .enumerate()
        .map(|(run, agent)| own_answers_only(agent, run))
        .collect();

    for run in running {
        assert_eq!(run.join().expect("a run that did not fail"), CALLS);
    }
    assert_eq!(flooding.join().expect("the flood"), 200);
    let listed = gate
        .world
        .run(["sessions", "list", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(RUNS + 2));
}

/// A client that asks without end and never reads.
fn stuck(gate: &Gate) -> Held {
    use std::io::Write;

    let mut command = gate.world.command("python3");
    command.arg(BRIDGE).args(shim(&gate.world));
    let mut command = gate.world.as_agent(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut held = Held::start(&mut command);
    let mut stdin = held.take_stdin().expect("a piped input");
    thread::spawn(move || {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "stuck", "version": "1"}}});
        drop(writeln!(stdin, "{hello}"));
        for id in 1.. {
            let ask = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}});
            if writeln!(stdin, "{ask}").is_err() {
                return;
            }
        }
    });
    held
}

#[test]
fn a_cancel_in_one_run_leaves_the_call_of_the_same_id_in_another_alone() {
    let gate = echo();
    let mut one = Agent::apart(&gate.world, BRIDGE.as_ref());
    let mut two = Agent::apart(&gate.world, BRIDGE.as_ref());
    gate.target.set_mode(Mode::Hold);
    let first = one.send("GET", "/r/one");
    let second = two.send("GET", "/r/two");
    assert_eq!(
        first, second,
        "the ids must be equal for this to say anything"
    );
    drop(gate.target.wait_for_requests(2, Deadline::usual()));

    one.cancel(first);
    // The cancel went through before the answers: what follows it on the wire was answered.
    let ping = one.request("ping", &json!({}));
    assert!(one.answer(ping, Deadline::usual()).is_some());
    gate.target.release();

    let answer = two.answer(second, Deadline::usual()).expect("an answer");
    assert_eq!(path_of(&answer["result"]), "{\"path\":\"/r/two\"}");
    assert!(
        one.answer(first, Deadline::after(Duration::from_millis(200)))
            .is_none(),
        "a cancelled request gets no answer"
    );
}

#[test]
fn revoking_one_run_leaves_its_neighbour_alone() {
    let gate = echo();
    let mut one = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(refused(&one.call("GET", "/r/x")), None);
    let listed = gate
        .world
        .run(["sessions", "list", "--json"])
        .expect_code(0)
        .json();
    let run = listed["sessions"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let mut two = Agent::apart(&gate.world, BRIDGE.as_ref());

    drop(
        gate.world
            .run(["sessions", "revoke", &run, "--reason", "r"])
            .expect_code(0),
    );

    assert_eq!(refused(&one.call("GET", "/r/x")), Some("revoked"));
    assert_eq!(refused(&two.call("GET", "/r/x")), None);
}
