//! The daemon is killed at chance moments under load, and started again.
//!
//! Whatever the moment: the outside system never received a call without a durable attempt, nothing that was
//! acknowledged is missing, no log that was only torn is called tampered with, and what nobody can know is
//! called unresolved.

use std::{
    collections::BTreeMap,
    thread::{self, JoinHandle},
    time::Duration,
};

use ledger::Records;
use serde_json::{Value, json};
use testkit::{Deadline, Held, Proof, Target, wait_for};

use crate::{agent::Agent, gate::Gate};

/// Connections that call at the same time.
const AGENTS: usize = 4;

/// The kill comes within this many microseconds of the round's first call at the target.
const WINDOW: u64 = 60_000;

/// Where a record stands, as an answer told an agent: its place and the chain's hash up to it.
type Receipt = (u64, String);

/// Calls without end until no answer comes any more, and returns the receipts of all that came.
fn load(gate: &Gate, round: u64, agent: usize) -> JoinHandle<Vec<Receipt>> {
    let mut client = Agent::open(&gate.world);
    thread::spawn(move || {
        let mut receipts = Vec::new();
        for number in 0.. {
            let id = client.send("POST", &format!("/w/{round}-{agent}-{number}"));
            let Some(answer) = client.answer(id, Deadline::usual()) else {
                break;
            };
            let receipt = &answer["result"]["_meta"]["lychgate/receipt"];
            let (Some(seq), Some(id)) = (receipt["seq"].as_u64(), receipt["id"].as_str()) else {
                panic!("an answer without a receipt: {answer:#}");
            };
            receipts.push((seq, id.to_owned()));
        }
        receipts
    })
}

/// One daemon run: load, a kill at a chance moment, and what had been acknowledged by then.
fn crash_under_load(gate: &Gate, proof: &mut Proof, round: u64) -> Vec<Receipt> {
    let mut daemon: Held = gate.open_daemon();
    let before = gate.target.count();
    let agents: Vec<_> = (0..AGENTS).map(|agent| load(gate, round, agent)).collect();
    drop(gate.target.wait_for_requests(before + 1, Deadline::usual()));
    // Not a wait for anything: the moment itself is what is drawn.
    thread::sleep(Duration::from_micros(proof.below(WINDOW)));
    daemon.crash();
    agents
        .into_iter()
        .flat_map(|agent| agent.join().expect("an agent that did not fail"))
        .collect()
}

fn verdict(gate: &Gate) -> Value {
    let verified = gate.world.run(["audit", "verify", "--json"]);
    verified.expect_code(0).json()["verdict"].clone()
}

/// Returns the id of every record in the log by its place.
fn log(gate: &Gate) -> BTreeMap<u64, String> {
    Records::open(&gate.world.home().audit())
        .expect("a log")
        .map(|record| {
            let (_, stored) = record.expect("a record that can be read");
            (stored.header.seq, stored.id.to_string())
        })
        .collect()
}

/// Returns the state of every call that carried a key, once the daemon has settled what a dead one left open.
fn settled(gate: &Gate) -> BTreeMap<String, String> {
    let what = "every call of the dead daemons to be settled";
    wait_for(what, Deadline::usual(), || {
        let listed = gate
            .world
            .run(["activity", "list", "--json"])
            .expect_code(0);
        let calls = listed.json()["calls"].as_array().cloned().expect("calls");
        let text = |call: &Value, field: &str| call[field].as_str().map(str::to_owned);
        let states: BTreeMap<String, String> = calls
            .iter()
            .filter_map(|call| Some((text(call, "key")?, text(call, "state")?)))
            .collect();
        let open = ["attempted", "cleared"];
        let none_open = !states.values().any(|state| open.contains(&state.as_str()));
        none_open.then_some(states)
    })
}

#[test]
fn prove_crash() {
    let mut proof = Proof::begin(20);
    let gate = Gate::before(Target::start());
    gate.close();
    let mut receipts = Vec::new();
    for round in 0..proof.n() {
        receipts.extend(crash_under_load(&gate, &mut proof, round));
        let verdict = verdict(&gate);
        let fine = ["intact_local_pin", "intact_unpinned", "torn_tail"];
        assert!(
            fine.iter().any(|known| verdict == json!(known)),
            "round {round}, seed {}: {verdict}",
            proof.seed()
        );
    }

    let daemon = gate.open_daemon();
    let states = settled(&gate);
    let received = gate.target.requests();
    for request in &received {
        let key = request.idempotency_key().expect("every write has its key");
        let state = states.get(key).map(String::as_str);
        assert!(
            matches!(state, Some("answered" | "unresolved")),
            "{} was received and is on record as {state:?}",
            request.path
        );
    }
    let log = log(&gate);
    for (seq, id) in &receipts {
        assert_eq!(log.get(seq), Some(id), "record {seq} was acknowledged");
    }
    assert!(!receipts.is_empty(), "nothing was proved");
    drop(daemon);

    let count = |state: &str| states.values().filter(|known| *known == state).count();
    proof.row("calls on record", states.len());
    proof.row("calls received outside", received.len());
    proof.row("received and not on record", 0);
    proof.row("answers acknowledged to an agent", receipts.len());
    proof.row("acknowledged and not in the log", 0);
    proof.row("unresolved", count("unresolved"));
    proof.row("withdrawn", count("withdrawn"));
    proof.row("logs called tampered with", 0);
    proof.end();
}
