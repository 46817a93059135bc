//! Presence: acts that widen what agents may do ask for the PIN, narrowing ones never do.

use std::fs;

use testkit::{Deadline, Finished, Mode, Target, World, wait_until};

use crate::{agent::Agent, gate::Gate};

const PIN: &str = "2580";

impl Gate {
    fn guarded() -> Self {
        let gate = Self::before(Target::start());
        gate.set_pin(PIN);
        gate
    }
}

/// Runs `lych ARGS --pin-fd 3` with a PIN there.
fn with_pin(world: &World, args: &[&str], pin: &str, input: &str) -> Finished {
    let file = world.write("pin", pin);
    let mut command = world.command("sh");
    command
        .args(["-c", "exec \"$@\" --pin-fd 3 3<\"$0\""])
        .arg(file)
        .arg(testkit::program("lych"))
        .arg("--home")
        .arg(world.folder())
        .args(args);
    let mut command = world.as_operator(command);
    world.finish(&mut command, input.as_bytes(), Deadline::usual())
}

#[test]
fn every_act_that_widens_asks_for_the_pin_and_does_nothing_without_it() {
    let gate = Gate::guarded();
    let add = [
        "vault",
        "add",
        "new",
        "--for",
        "https://a.example",
        "--from-stdin",
    ];
    let vault = gate.world.home().vault();
    let before = fs::read(&vault).expect("the vault");

    for args in [
        &add[..],
        &["vault", "rotate", "token", "--from-stdin"],
        &["vault", "presence", "--none"],
        &["channels", "apply"],
        &["allow", "s-0000000000000000"],
        &["allow", "--repeat", "c-0000000000000000"],
        &[
            "reconcile",
            "resolve",
            "c-0000000000000000",
            "--as",
            "failed",
            "--evidence",
            "e",
        ],
    ] {
        let finished = gate.world.run_with(args, b"value").expect_code(6);
        assert!(
            finished.stderr.contains("a PIN is needed"),
            "{args:?}: {}",
            finished.stderr
        );
        let finished = with_pin(&gate.world, args, "2581", "value").expect_code(6);
        assert!(
            finished.stderr.contains("PIN"),
            "{args:?}: {}",
            finished.stderr
        );
    }

    assert_eq!(fs::read(&vault).expect("the vault"), before);
}

#[test]
fn with_the_pin_they_do_what_they_say() {
    let gate = Gate::guarded();
    let add = [
        "vault",
        "add",
        "new",
        "--for",
        "https://a.example",
        "--from-stdin",
    ];

    drop(with_pin(&gate.world, &add, PIN, "value").expect_code(0));
    drop(with_pin(&gate.world, &["channels", "apply"], PIN, "").expect_code(0));
    drop(with_pin(&gate.world, &["vault", "presence", "--none"], PIN, "").expect_code(0));

    drop(gate.world.run(["channels", "apply"]).expect_code(0));
}

#[test]
fn narrowing_never_asks() {
    let gate = Gate::guarded();

    for args in [
        &["channels", "apply", "--dry-run"][..],
        &["sessions", "revoke", "--channel", "api", "--reason", "r"],
        &["vault", "remove", "token"],
        &["lock"],
        &["down"],
    ] {
        drop(gate.world.run(args).expect_code(0));
    }
}

#[test]
fn the_right_key_without_the_pin_opens_nothing() {
    let gate = Gate::guarded();
    drop(gate.world.run(["lock"]).expect_code(0));

    drop(gate.unlock().expect_code(6));
    drop(gate.world.run(["vault", "list"]).expect_code(4));
    let unlock = ["unlock", "--key-file", gate.key_file()];
    drop(with_pin(&gate.world, &unlock, "2581", "").expect_code(6));
    drop(gate.world.run(["vault", "list"]).expect_code(4));

    drop(with_pin(&gate.world, &unlock, PIN, "").expect_code(0));
    drop(gate.world.run(["vault", "list"]).expect_code(0));
}

#[test]
fn status_says_which_rule_holds_and_that_a_shut_vault_hides_it() {
    let gate = Gate::guarded();
    let presence = || {
        let status = gate.world.run(["status", "--json"]).expect_code(0).json();
        status["presence"].clone()
    };

    assert_eq!(presence(), "pin");
    drop(gate.world.run(["lock"]).expect_code(0));

    assert!(presence()["unknown"].is_string());
}

#[test]
fn the_record_says_how_presence_was_established() {
    let gate = Gate::guarded();
    let mut agent = Agent::open(&gate.world);
    gate.target.set_mode(Mode::CloseBeforeAnswer);
    let result = agent.call("POST", "/w/x");
    let call = result["structuredContent"]["unresolved"]["call"].clone();
    let call = call.as_str().expect("an open call");

    let resolve = [
        "reconcile",
        "resolve",
        call,
        "--as",
        "failed",
        "--evidence",
        "e",
    ];
    drop(with_pin(&gate.world, &resolve, PIN, "").expect_code(0));

    let shown = gate.world.run(["activity", "show", call, "--json"]);
    let shown = shown.expect_code(0).json();
    assert_eq!(
        shown["call"]["reconciled"]["by"]["presence"], "pin",
        "{shown:#}"
    );
}

#[test]
fn killing_by_force_and_closing_an_incident_ask_for_the_pin_and_do_nothing_without_it() {
    let gate = Gate::guarded();
    let mut agent = Agent::open(&gate.world);
    drop(agent.call("GET", "/r/x"));
    drop(agent);
    let sessions = || gate.world.run(["sessions", "list", "--json"]).json();
    wait_until("the run to end", Deadline::usual(), || {
        sessions()["sessions"][0]["state"] != "live"
    });
    let session = sessions()["sessions"][0]["id"].clone();
    let session = session.as_str().expect("a run");
    let contain = [
        "contain",
        "--session",
        session,
        "--force-kill",
        "--reason",
        "r",
        "--yes",
        "--json",
    ];
    let incidents = || {
        let list = gate.world.run(["incident", "list", "--json"]).json();
        list["incidents"].as_array().expect("a list").len()
    };

    drop(gate.world.run(contain).expect_code(6));
    drop(with_pin(&gate.world, &contain, "2581", "").expect_code(6));
    assert_eq!(incidents(), 0, "it was begun without the PIN");

    let contained = with_pin(&gate.world, &contain, PIN, "").json();
    let operator = &contained["rows"][0]["revocation"]["operator"];
    let id = contained["id"].as_str().expect("an incident");
    assert_eq!(incidents(), 1, "{contained:#} {operator}");

    let close = ["incident", "close", id, "--accept-open", "--reason", "r"];
    drop(gate.world.run(close).expect_code(6));
    assert_ne!(state(&gate.world, id), "closed");
    drop(with_pin(&gate.world, &close, PIN, "").expect_code(0));
    assert_eq!(state(&gate.world, id), "closed");
    let folder = gate.world.home().incidents().join(id);
    let closing = fs::read_dir(folder).expect("the incident").flatten();
    let closing = closing.map(|entry| entry.path());
    let closing = closing.filter(|path| path.to_string_lossy().contains("close"));
    let text: String = closing
        .map(|path| fs::read_to_string(path).unwrap_or_default())
        .collect();
    assert!(
        text.contains("\"presence\":\"pin\"") || text.contains("\"presence\": \"pin\""),
        "{text}"
    );
}

fn state(world: &World, id: &str) -> String {
    let shown = world.run(["incident", "show", id, "--json"]).json();
    shown["state"].as_str().expect("a state").to_owned()
}

#[test]
fn that_nothing_asks_must_be_chosen() {
    let world = World::new();
    let key = world.folder().join("k");
    let key = key.to_str().expect("UTF-8");

    let init = world.run(["init", "--key-file", key, "--agent-readable"]);

    let init = init.expect_code(2);
    assert!(init.stderr.contains("--presence none"), "{}", init.stderr);
}
