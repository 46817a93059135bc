//! What only a shim can tell of its client stays its word, and a lie gets nothing.

use std::{fs, process::Stdio};

use testkit::Held;

use super::{separate, text};
use crate::agent::{Agent, BRIDGE, refused};

#[test]
fn what_the_shim_says_of_its_client_is_marked_as_its_word_wherever_it_is_shown() {
    let Some(gate) = separate() else { return };
    let mut agent = Agent::apart(&gate.world, BRIDGE.as_ref());

    assert_eq!(refused(&agent.call("GET", "/r/x")), None);
    assert_eq!(
        refused(&agent.call("POST", "/w/x")),
        None,
        "it has an owner"
    );

    assert_eq!(gate.target.count(), 2);
    let runs = gate.runs();
    let run = &runs["sessions"][0];
    let roles: Vec<&str> = run["chain"]
        .as_array()
        .expect("a chain")
        .iter()
        .filter_map(|link| link["role"].as_str())
        .collect();
    assert_eq!(
        roles
            .iter()
            .filter(|role| **role == "holder_reported")
            .count(),
        1
    );
    assert!(!roles.contains(&"holder"), "{roles:?}");
    let id = run["id"].as_str().expect("an id");
    for shown in [
        gate.world.run(["sessions", "list"]),
        gate.world.run(["sessions", "show", id]),
    ] {
        let shown = shown.expect_code(0).stdout;
        assert!(shown.contains("reported by its shim, not seen"), "{shown}");
    }
    // The launch record is what others read; nothing in it is said to be seen that was not.
    let records = fs::read_dir(gate.world.home().launches()).expect("launches");
    for record in records.flatten() {
        let text = fs::read_to_string(record.path()).expect("a record");
        assert!(text.contains("holder_reported"), "{text}");
        assert!(!text.contains("\"holder\""), "{text}");
    }
}

#[test]
fn a_shim_that_names_a_stranger_as_its_client_owns_nothing_and_writes_nothing() {
    let Some(gate) = separate() else { return };
    // It says whatever it likes, since the daemon cannot see which program it is.
    let liar = gate.world.write("liar.py", LIAR);
    let socket = text(gate.world.home().agent_socket());
    // Above it, and root's; its user's, and not above it; and nobody.
    let mut sleep = gate.world.command("sleep");
    sleep.arg("1000").stdin(Stdio::null());
    let apart = Held::start(&mut gate.world.as_agent(sleep));
    let (ours, theirs) = (std::process::id().to_string(), apart.pid().to_string());
    for named in [Some(&ours), Some(&theirs), None] {
        let mut command = gate.world.command("python3");
        command.arg(&liar).arg(&socket).args(named);
        let mut agent = Agent::over(&gate.world, command);

        assert_eq!(refused(&agent.call("GET", "/r/x")), None);
        let result = agent.call("POST", "/w/x");

        assert_eq!(refused(&result), Some("denied"), "{result:#}");
        let why = &result["structuredContent"]["refused"]["why"];
        assert_eq!(why, "ownership_incomplete", "{result:#}");
    }
    assert_eq!(gate.target.count(), 3, "one read each");
}

/// Says a hello of its own making, then copies: the number behind the socket is named as its client.
pub const LIAR: &str = r#"
import json, os, socket, sys, threading
def of(pid):
    stat = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    return {"boot_id": boot, "pid": pid, "start_ticks": int(stat[19])}
hello = {"min": 1, "max": 1, "version": "0.1.0", "role": "mcp", "stdin_inode": None,
    "stdout_inode": None, "parent": os.getppid(), "argv0": "lych"}
if len(sys.argv) > 2:
    hello["holder"] = of(int(sys.argv[2]))
wire = socket.socket(socket.AF_UNIX)
wire.connect(sys.argv[1])
wire.sendall(json.dumps(hello).encode() + b"\n")
back = wire.makefile("rb")
back.readline()
def answers():
    for line in back:
        os.write(1, line)
threading.Thread(target=answers, daemon=True).start()
for line in sys.stdin.buffer:
    wire.sendall(line)
"#;

#[test]
fn a_shape_that_nobody_but_the_shim_could_tell_is_not_remembered() {
    let Some(gate) = separate() else { return };
    gate.apply("admission = \"ask\"\n");
    let mut agent = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("pending"));
    let run = gate.only_run();

    let remember = gate.world.run(["allow", &run, "--remember"]).expect_code(6);
    assert!(
        remember.stderr.contains("another user"),
        "{}",
        remember.stderr
    );
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("pending"));

    drop(gate.world.run(["allow", &run]).expect_code(0));
    assert_eq!(refused(&agent.call("GET", "/r/x")), None);
}
