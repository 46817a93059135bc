//! A program of the agents' user that wants the gate to stand still, not to open.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::Duration,
};

use sys::socket::{Keeper, connect};
use testkit::{Deadline, Held, Mode, Target, wait_until};

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    gate::Gate,
};

/// Descriptors of the besieged daemon: fewer than the connections that are made.
const DESCRIPTORS: usize = 400;

/// Connections that say nothing.
const QUIET: usize = 600;

/// Far below the time after which a connection that says nothing is closed.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A gate whose daemon has few descriptors.
fn besieged() -> (Gate, Held) {
    let gate = Gate::before(Target::start());
    gate.close();
    let lychd = gate.world.lychd([""; 0]);
    let mut few = gate.world.command("sh");
    few.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$@\""), "sh"]);
    few.arg(lychd.get_program()).args(lychd.get_args());
    few.stdin(Stdio::null()).stdout(Stdio::null());
    let daemon = Held::start(few.stderr(Stdio::null()));
    wait_until("the daemon to open its vault", Deadline::usual(), || {
        gate.unlock().code() == Some(0)
    });
    (gate, daemon)
}

#[test]
fn connections_that_say_nothing_do_not_keep_the_operator_out() {
    let (gate, daemon) = besieged();
    let mut agent = Agent::open(&gate.world);
    assert_eq!(refused(&agent.call("GET", "/r/x")), None);
    // A listener whose queue is full turns away; that is no connection, and no harm.
    let besiege = |socket: &Path| -> Vec<_> {
        let all = (0..QUIET).filter_map(|_| connect(socket, Keeper::ourselves()).ok());
        all.collect()
    };

    let quiet = besiege(&gate.world.home().agent_socket());
    assert!(quiet.len() > 100, "{}", quiet.len());
    let mut status = gate.world.lych(["status", "--json"]);
    let deadline = Deadline::after(AT_ONCE);
    drop(gate.world.finish(&mut status, b"", deadline).expect_code(0));
    drop(quiet);

    // At his own door he waits until those who say nothing are shown out, though they would stay.
    let quiet = besiege(&gate.world.home().operator_socket());
    let revoke = ["sessions", "revoke", "--channel", "api", "--reason", "r"];
    wait_until("the operator to be let in", Deadline::usual(), || {
        gate.world.run(revoke).code() == Some(0)
    });
    drop(quiet);
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("revoked"));
    gate.close();
    drop(daemon);
}

#[test]
fn a_draft_that_is_a_pipe_or_has_no_end_holds_nobody_up() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    let draft = gate.world.home().config_file();
    let pipe = || {
        let made = gate.world.finish(
            gate.world.command("mkfifo").arg(&draft),
            b"",
            Deadline::usual(),
        );
        drop(made.expect_code(0));
    };
    let endless = || {
        let file = File::create(&draft).expect("a file of the user");
        file.set_len(1 << 40).expect("a file without blocks");
    };

    for make in [&pipe as &dyn Fn(), &endless] {
        fs::remove_file(&draft).expect("a file of the user");
        make();
        // As many as there are threads to be held up, and more.
        for _ in 0..4 {
            let status = gate.world.run(["status", "--json"]).expect_code(0).json();
            let differs = &status["draft_differs"];
            assert!(differs["unknown"].is_string(), "{differs:#}");
        }
        let applied = gate.world.run(["channels", "apply"]).expect_code(2);
        assert!(applied.stderr.contains("cannot be read"), "{applied:?}");
        let result = agent.call("GET", "/r/x");
        assert_eq!(refused(&result), None, "{result:#}");
    }
    assert_eq!(gate.target.count(), 2);
}

#[test]
fn a_flood_of_calls_to_a_server_that_does_not_answer_leaves_the_operator_in() {
    let (gate, daemon) = besieged();
    gate.target.set_mode(Mode::Hold);
    let mut agents: Vec<Agent> = (0..7).map(|_| Agent::open(&gate.world)).collect();
    for agent in &mut agents {
        for _ in 0..60 {
            agent.send("GET", "/r/x");
        }
    }
    // More than there is room for: some of them are refused, and then all of them have been looked at.
    let refusal = agents
        .iter_mut()
        .find_map(|agent| agent.next(Deadline::after(AT_ONCE)));

    let revoke = ["sessions", "revoke", "--channel", "api", "--reason", "r"];
    let mut revoke = gate.world.lych(revoke);
    let deadline = Deadline::after(AT_ONCE);
    drop(gate.world.finish(&mut revoke, b"", deadline).expect_code(0));

    let refusal = refusal.expect("a refusal");
    assert_eq!(refused(&refusal["result"]), Some("busy"), "{refusal:#}");
    gate.target.release();
    drop(agents);
    gate.close();
    drop(daemon);
}

/// A client in a session of its own: nothing above it is counted with it.
fn stranger(gate: &Gate) -> Agent {
    let mut client = gate.world.command("setsid");
    client.args(["python3", BRIDGE]).args(shim(&gate.world));
    Agent::over(&gate.world, client)
}

#[test]
fn one_client_that_connects_without_end_leaves_places_to_others() {
    let (gate, daemon) = besieged();
    let mut own: Vec<Agent> = (0..8).map(|_| Agent::open(&gate.world)).collect();

    let mut one_more = gate.world.lych(["mcp"]);
    let one_more = gate.world.finish(&mut one_more, b"", Deadline::usual());
    assert_ne!(one_more.code(), Some(0), "{one_more:?}");
    assert!(
        one_more
            .stderr
            .contains("this client has 8 connections already")
            && one_more.stderr.contains("so that others find one"),
        "{one_more:?}"
    );
    let mut other = stranger(&gate);
    assert_eq!(refused(&other.call("GET", "/r/x")), None);

    // Whoever ends one of his own may begin another, and what he has is served.
    drop(own.pop());
    wait_until("a place of his own", Deadline::usual(), || {
        let mut probe = gate.world.lych(["mcp"]);
        let probe = gate.world.finish(&mut probe, b"", Deadline::usual());
        probe.code() == Some(0)
    });
    for agent in &mut own {
        assert_eq!(refused(&agent.call("GET", "/r/y")), None);
    }
    drop((own, other));
    gate.close();
    drop(daemon);
}

#[test]
fn one_program_at_the_operators_door_leaves_places_to_others() {
    let (gate, daemon) = besieged();
    let socket = gate.world.home().operator_socket();
    let quiet: Vec<_> = (0..QUIET)
        .filter_map(|_| connect(&socket, Keeper::ourselves()).ok())
        .collect();
    assert!(quiet.len() > 100, "{}", quiet.len());

    let mut status = gate.world.lych(["status", "--json"]);
    let seen = gate
        .world
        .finish(&mut status, b"", Deadline::after(AT_ONCE));

    assert_eq!(seen.code(), Some(0), "{seen:?}");
    drop(quiet);
    gate.close();
    drop(daemon);
}

#[test]
fn connections_that_say_nothing_do_not_keep_an_agent_out() {
    let (gate, daemon) = besieged();
    let socket = gate.world.home().agent_socket();
    let quiet: Vec<_> = (0..QUIET)
        .filter_map(|_| connect(&socket, Keeper::ourselves()).ok())
        .collect();
    assert!(quiet.len() > 100, "{}", quiet.len());
    wait_until("the daemon to see them", Deadline::after(AT_ONCE), || {
        connect(&socket, Keeper::ourselves()).is_ok()
    });

    let mut shim = gate.world.lych(["mcp"]);
    let seen = gate.world.finish(&mut shim, b"", Deadline::after(AT_ONCE));

    assert_eq!(seen.code(), Some(0), "{seen:?}");
    drop(quiet);
    gate.close();
    drop(daemon);
}
