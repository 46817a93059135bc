//! A disk that is really full, and a log that is taken away from under the daemon.

use std::{fs, io::Write, path::PathBuf, process::Command};

use serde_json::{Value, json};
use testkit::{Deadline, Target, World, wait_until};

use crate::{
    agent::{Agent, refused},
    gate::Gate,
    operator::Line,
};

/// Room for two segments of the log, and some.
const SIZE: &str = "size=48m,mode=700";

/// A small file system of its own below a home, for as long as it is held.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts it; none if this user may not.
    fn below(world: &World) -> Option<Self> {
        let at = world.folder().to_owned();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "lychgate-test"])
            .arg(&at)
            .output();
        mount
            .is_ok_and(|output| output.status.success())
            .then_some(Self { at })
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let mut file = fs::File::create(self.at.join("fill")).expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        let tried = fs::write(self.at.join("more"), [1; 4096]);
        assert!(tried.is_err(), "the disk is not full");
        drop(fs::remove_file(self.at.join("more")));
    }

    fn free(&self) {
        fs::remove_file(self.at.join("fill")).expect("the filling");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: what a failed test left open must not keep it.
        drop(Command::new("umount").arg("-l").arg(&self.at).status());
    }
}

fn status(gate: &Gate) -> Value {
    gate.world.run(["status", "--json"]).expect_code(0).json()
}

fn doctor(gate: &Gate) -> (String, i32) {
    let finished = gate.world.run(["doctor"]);
    let code = finished.code().expect("it ended by itself");
    (finished.stdout, code)
}

/// Revokes everything and returns the record's number.
fn revoke(gate: &Gate) -> Value {
    let request = json!({"verb": "revoke", "scope": {"scope": "all"}, "reason": "test"});
    Line::open(&gate.world).say(&request)["done"]["seq"].clone()
}

/// Calls until one is refused because it cannot be recorded; returns what the agent was told.
fn call_until_refused(gate: &Gate) -> Value {
    let mut agent = Agent::open(&gate.world);
    let path = format!("/r/{}", "x".repeat(4_000));
    loop {
        let before = gate.target.count();
        let result = agent.call("GET", &path);
        if refused(&result).is_some() {
            assert_eq!(gate.target.count(), before, "it was sent all the same");
            return result;
        }
    }
}

#[test]
fn on_a_full_disk_calls_are_refused_operators_go_on_and_a_restart_works() {
    let world = World::new();
    let Some(disk) = SmallDisk::below(&world) else {
        eprintln!("NOT RUN: this user may not mount a small file system");
        return;
    };
    let gate = Gate::in_world(world, Target::start());
    disk.fill();
    let mut line = Line::open(&gate.world);
    for _ in 0..72 {
        line.note(200_000);
    }

    let told = call_until_refused(&gate);

    assert_eq!(refused(&told), Some("not_recorded"), "{told:#}");
    let fault = status(&gate)["log"]["fault"].clone();
    assert!(
        fault.to_string().contains("no space for the next segment"),
        "{fault}"
    );
    let (said, code) = doctor(&gate);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("calls are refused") && said.contains("free 32 MB"),
        "{said}"
    );
    let mut agent = Agent::open(&gate.world);
    let denied = agent.call("GET", "/elsewhere");
    let seq = denied["_meta"]["lychgate/receipt"]["seq"].to_string();
    let shown = gate
        .world
        .run(["audit", "show", &seq])
        .expect_code(0)
        .json();
    assert_eq!(shown["kind"], "denied", "{denied:#} {shown:#}");
    drop(agent);
    assert!(revoke(&gate).is_u64(), "a revocation is on record");
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(gate.unlock().expect_code(0));

    gate.close();
    let mut daemon = gate.open_daemon();
    assert_eq!(status(&gate)["vault"], "unlocked");
    assert!(revoke(&gate).is_u64(), "after a restart too");
    daemon.crash();
    let daemon = gate.open_daemon();
    assert!(revoke(&gate).is_u64(), "and after a crash");
    let report = gate.world.run(["audit", "verify", "--json"]).expect_code(0);
    drop(report);

    disk.free();
    wait_until("calls to be taken again", Deadline::usual(), || {
        revoke(&gate);
        status(&gate)["log"]["fault"].is_null()
    });
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(gate.unlock().expect_code(0));
    let mut agent = Agent::open(&gate.world);
    let result = agent.call("GET", "/r/again");
    assert_eq!(refused(&result), None, "{result:#}");
    drop(agent);
    drop(daemon);
    // Before the world looks whether its folder is empty.
    drop(disk);
}

#[test]
fn a_log_that_is_taken_away_stops_every_call_and_status_and_doctor_say_what_to_do() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", "/r/1");
    let before = gate.target.count();
    let (log, aside) = (gate.world.home().audit(), gate.world.folder().join("aside"));

    fs::rename(&log, &aside).expect("a log that can be moved");

    let result = agent.call("GET", "/r/2");
    assert!(refused(&result).is_some(), "{result:#}");
    assert_eq!(gate.target.count(), before, "it was sent unrecorded");
    let status = status(&gate);
    assert_eq!(status["log"]["poisoned"], true, "{status:#}");
    let (said, code) = doctor(&gate);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("nothing can be recorded") && said.contains("lych up"),
        "{said}"
    );
    assert_eq!(revoke(&gate), Value::Null, "it holds, and is not on record");
    for list in [
        &["pending"][..],
        &["sessions", "list"],
        &["activity", "list"],
    ] {
        let said = gate.world.run(list).expect_code(1);
        assert!(said.stderr.contains("LOG"), "{list:?}: {}", said.stderr);
    }

    // The remedy: the folder back, the daemon again.
    fs::rename(&aside, &log).expect("the log back");
    drop(gate.world.run(["down"]));
    drop(agent);
    let daemon = gate.open_daemon();
    drop(gate.world.run(["audit", "verify"]).expect_code(0));
    let mut agent = Agent::open(&gate.world);
    assert!(refused(&agent.call("GET", "/r/3")).is_none());
    drop(agent);
    drop(daemon);
}

#[test]
fn an_act_that_cannot_be_recorded_is_not_done() {
    let gate = Gate::before(Target::start());
    gate.apply("admission = \"ask\"\n");
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", "/r/1");
    let run = gate.only_run();
    let vault = gate.world.home().vault();
    let before = fs::read(&vault).expect("the vault");
    let url = gate.target.url();
    gate.world.write("config.toml", "admission = \"allow\"\n");
    let (log, aside) = (gate.world.home().audit(), gate.world.folder().join("aside"));

    fs::rename(&log, &aside).expect("a log that can be moved");

    for args in [
        &["vault", "add", "new", "--for", &url, "--from-stdin"][..],
        &["vault", "rotate", "token", "--from-stdin"],
        &["vault", "remove", "token"],
        &["channels", "apply"],
        &["allow", &run],
    ] {
        let said = gate.world.run_with(args, b"value-of-later").expect_code(1);
        let why = "nothing was done, because it could not be recorded";
        assert!(said.stderr.contains(why), "{args:?}: {}", said.stderr);
    }

    assert_eq!(fs::read(&vault).expect("the vault"), before);
    let listed = gate.world.run(["channels", "list"]).expect_code(0);
    assert!(listed.stdout.contains("api"), "{}", listed.stdout);
    fs::rename(&aside, &log).expect("the log back");
    let pending = gate.world.run(["pending"]).expect_code(0);
    assert!(pending.stdout.contains(&run), "{}", pending.stdout);
    drop(agent);
}

#[test]
fn a_run_is_revoked_whatever_became_of_the_log() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    assert_eq!(refused(&agent.call("GET", "/r/1")), None);
    let run = gate.only_run();
    let (log, aside) = (gate.world.home().audit(), gate.world.folder().join("aside"));

    fs::rename(&log, &aside).expect("a log that can be moved");

    let revoke = ["sessions", "revoke", &run, "--reason", "test"];
    let said = gate.world.run(revoke);
    assert!(said.stderr.contains("NOT recorded"), "{}", said.stderr);
    let told = agent.call("GET", "/r/2");
    assert_eq!(refused(&told), Some("revoked"), "{told:#}");
    fs::rename(&aside, &log).expect("the log back");
    drop(agent);
}

#[test]
fn an_idle_daemon_says_within_seconds_that_its_log_is_gone() {
    let gate = Gate::before(Target::start());
    fs::remove_dir_all(gate.world.home().audit()).expect("a log that can be removed");

    wait_until("the daemon to notice", Deadline::usual(), || {
        status(&gate)["log"]["poisoned"] == true
    });
}
