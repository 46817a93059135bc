//! A verb that reads sends no signal, whatever it reads: under strace(1), with a daemon, a run and a call there.

use std::{collections::BTreeSet, fs};

use testkit::{Target, World, program};

use crate::{agent::Agent, gate::Gate};

/// The verbs that read; `RUN`, `CALL` and `INCIDENT` stand for what there is, `PID` for a living process.
const READING: &[&str] = &[
    "ps --all",
    "watch --looks 2 --every 1",
    "inspect PID",
    "snapshot",
    "incident list",
    "incident show INCIDENT",
    "incident export INCIDENT",
    "status",
    "doctor",
    "vault list",
    "channels list",
    "sessions list",
    "sessions show RUN",
    "pending",
    "activity list",
    "activity show CALL",
    "reconcile list",
    "audit verify",
    "audit head",
    "audit show 1",
    "audit export",
];

/// The verbs that act, each for a reason of its own: they are not in question here.
const ACTING: &[&str] = &[
    "contain",
    "incident open",
    "incident note",
    "incident attach",
    "incident close",
    "init",
    "up",
    "down",
    "unlock",
    "lock",
    "vault add",
    "vault rotate",
    "vault presence",
    "vault passphrase",
    "vault recipients",
    "vault backup",
    "vault restore",
    "vault remove",
    "channels apply",
    "sessions revoke",
    "allow",
    "deny",
    "reconcile resolve",
    "audit ship",
    "audit prune",
    "audit erase",
    "audit adopt",
    "mcp",
    "drill self",
];

const CALLS: &str = "trace=kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal";

#[test]
fn no_verb_that_reads_sends_a_signal() {
    let gate = Gate::before(Target::start());
    let world = &gate.world;
    let mut agent = Agent::open(world);
    drop(agent.call("GET", "/r/1"));
    let pid = std::process::id().to_string();
    let opened = world
        .run(["incident", "open", &pid, "--json"])
        .expect_code(0);
    let incident = opened.json()["id"].as_str().expect("an id").to_owned();
    let calls = world
        .run(["activity", "list", "--json"])
        .expect_code(0)
        .json();
    let call = calls["calls"][0]["id"].as_str().expect("an id").to_owned();
    let run = gate.only_run();

    for verb in READING {
        let words = verb.split(' ').map(|word| match word {
            "RUN" => run.clone(),
            "CALL" => call.clone(),
            "INCIDENT" => incident.clone(),
            "PID" => pid.clone(),
            word => word.to_owned(),
        });
        let sent = signals(world, words.collect());
        assert!(sent.is_empty(), "{verb} sent {sent}");
    }
    drop(agent);
}

/// Runs a verb and returns the signals it sent; it must have done what it is for.
fn signals(world: &World, words: Vec<String>) -> String {
    let trace = world.folder().join("trace");
    let mut command = world.command("strace");
    command.args(["-f", "-qq", "-o"]).arg(&trace);
    command.args(["-e", CALLS]).arg(program("lych"));
    command.arg("--home").arg(world.folder()).args(&words);
    let finished = world.finish(&mut command, b"", testkit::Deadline::usual());
    // What was found may be worth a code of its own; 2 and above 3 would mean that nothing was read.
    let code = finished.code();
    assert!(matches!(code, Some(0 | 3)), "{words:?}: {finished:?}");
    let sent = fs::read_to_string(&trace).expect("strace wrote");
    sent.lines()
        .filter(|line| line.contains('('))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_verb_there_is_is_told_to_read_or_to_act() {
    let world = World::new();
    let mut verbs = BTreeSet::new();
    for verb in commands(&world, &[]) {
        let below = commands(&world, &[&verb]);
        if below.is_empty() {
            verbs.insert(verb);
        } else {
            verbs.extend(below.iter().map(|inner| format!("{verb} {inner}")));
        }
    }

    let name = |line: &str| {
        let words = line.split(' ');
        let names = words.take_while(|word| word.chars().all(|letter| letter.is_ascii_lowercase()));
        names.collect::<Vec<_>>().join(" ")
    };
    let told = READING.iter().chain(ACTING).map(|line| name(line));
    assert_eq!(told.collect::<BTreeSet<_>>(), verbs);
}

/// Reads the commands below a verb out of its help.
fn commands(world: &World, verb: &[&str]) -> Vec<String> {
    let help = world
        .run(verb.iter().copied().chain(["--help"]))
        .expect_code(0);
    let listed = help
        .stdout
        .split_once("Commands:\n")
        .map_or("", |(_, after)| after);
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}
