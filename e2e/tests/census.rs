//! What the daemon saw below a connected client attributes it after a crash, also what is not ours at all.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;
use testkit::{Deadline, Target, World, wait_for, wait_until};

use crate::{
    agent::{Agent, shim},
    gate::Gate,
};

const CROWD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/crowd.py");

/// A client with an unwrapped server, which has a worker of its own; both end with the test.
struct Crowd<'a> {
    world: &'a World,
    agent: Agent,
}

impl<'a> Crowd<'a> {
    fn start(world: &'a World) -> Self {
        let mut command: Command = world.command("python3");
        command.arg(CROWD).arg(world.folder()).args(shim(world));
        let agent = Agent::over(world, command);
        Self { world, agent }
    }

    fn pid(&self, name: &str) -> u32 {
        let path = self.world.folder().join(format!("{name}.pid"));
        wait_for("a number", Deadline::usual(), || {
            fs::read_to_string(&path).ok()?.parse().ok()
        })
    }

    /// Waits until the daemon has written down that it saw this process below the client.
    fn seen(&self, pid: u32) -> Value {
        let folder = self.world.home().launches();
        wait_for("the census", Deadline::usual(), || {
            let records = fs::read_dir(&folder).ok()?.flatten();
            let mut all = records
                .filter_map(|entry| fs::read(entry.path()).ok())
                .filter_map(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
                .flat_map(|record| record["children"].as_array().cloned().unwrap_or_default());
            all.find(|child| child["process"]["id"]["pid"] == pid)
        })
    }

    fn told(&self, pid: u32) -> Value {
        let mut command = self.world.lych(["ps", "--json"]);
        // No configuration of anybody names these servers.
        command.env("HOME", self.world.folder());
        let done = self.world.finish(&mut command, b"", Deadline::usual());
        let report: Value = done.expect_code(0).json();
        let findings = report["findings"].as_array().expect("findings");
        let of = |finding: &&Value| {
            let members = finding["members"].as_array().expect("members");
            finding["root"]["pid"] == pid || members.iter().any(|one| one["pid"] == pid)
        };
        findings.iter().find(of).cloned().unwrap_or_default()
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        self.agent.crash();
        for name in ["server", "worker"] {
            kill(self.pid(name));
        }
    }
}

fn kill(pid: u32) {
    let mut kill = Command::new("kill");
    kill.args(["-KILL", &pid.to_string()]).stderr(Stdio::null());
    drop(kill.status());
}

fn evidence(finding: &Value, source: &str) -> String {
    let all = finding["evidence"].as_array().cloned().unwrap_or_default();
    let lines = all.iter().filter(|one| one["source"] == source);
    let words: Vec<&str> = lines.filter_map(|one| one["what"].as_str()).collect();
    words.join("\n")
}

#[test]
fn an_unwrapped_server_is_attributed_by_record_after_its_client_was_killed() {
    let gate = Gate::before(Target::start());
    let mut crowd = Crowd::start(&gate.world);
    let (server, client) = (crowd.pid("server"), crowd.agent.pid());
    let recorded = crowd.seen(server);
    let before = crowd.told(server);

    crowd.agent.crash();
    let mut after = Value::Null;
    wait_until("the server to be left over", Deadline::usual(), || {
        after = crowd.told(server);
        after["verdict"] == "OS_ORPHAN"
    });

    assert_eq!(recorded["ppid"], client);
    assert_eq!(recorded["pipes"].as_array().expect("wires").len(), 2);
    assert!(before["verdict"] != "OS_ORPHAN", "{before:#}");
    assert!(after["server"].is_null(), "nobody configured it: {after:#}");
    assert_eq!(after["owner"]["pid"], client, "{after:#}");
    assert_eq!(after["owner"]["alive"], false, "{after:#}");
    let run = evidence(&after, "census");
    assert!(run.contains(&format!("below pid {client}")), "{after:#}");
    assert!(
        !evidence(&after, "log").is_empty(),
        "the log confirms the run: {after:#}"
    );
}

#[test]
fn a_helper_without_a_wire_is_attributed_by_record_after_client_and_server_were_killed() {
    let gate = Gate::before(Target::start());
    let mut crowd = Crowd::start(&gate.world);
    let (client, server, worker) = (crowd.agent.pid(), crowd.pid("server"), crowd.pid("worker"));
    drop(crowd.seen(worker));

    crowd.agent.crash();
    kill(server);
    let mut after = Value::Null;
    wait_until("the helper to be left over", Deadline::usual(), || {
        after = crowd.told(worker);
        after["verdict"] == "LEFTOVER_CHILD"
    });

    assert_eq!(after["confidence"], "inferred", "{after:#}");
    assert_eq!(after["owner"]["pid"], client, "{after:#}");
    assert_eq!(after["owner"]["alive"], false, "{after:#}");
    assert!(evidence(&after, "census").contains(&format!("below pid {server}")));
}
