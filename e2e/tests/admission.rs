//! Who may act: runs that wait for a person, shapes that are remembered, repetitions let through once.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;
use testkit::{Deadline, Held, Mode, Target, wait_until};

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    gate::Gate,
};

fn asking() -> Gate {
    let gate = Gate::before(Target::start());
    gate.apply("admission = \"ask\"\n");
    gate
}

impl Gate {
    fn pending(&self) -> Value {
        let listed = self.world.run(["pending", "--json"]);
        listed.expect_code(0).json()
    }

    /// Returns the one run that waits.
    fn waiting(&self) -> String {
        let pending = self.pending();
        let runs = pending["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 1, "{pending:#}");
        assert_eq!(runs[0]["state"], "pending");
        runs[0]["id"].as_str().expect("an id").to_owned()
    }

    /// Starts a client below `starter`, which leads a session of its own: there the chain ends, wherever the
    /// test itself was started from.
    fn start(&self, starter: &str, client: &Path) -> Agent {
        let starter = self
            .world
            .write("starter.sh", format!("{starter}\n\"$@\"; exit $?\n"));
        let mut command: Command = self.world.command("setsid");
        command.arg("sh").arg(starter).arg("python3").arg(client);
        command.args(shim(&self.world));
        Agent::over(&self.world, command)
    }

    /// Writes the client's script, with a line of its own at the end.
    fn client(&self, name: &str, last: &str) -> PathBuf {
        let text = fs::read_to_string(BRIDGE).expect("the stand-in");
        self.world.write(name, format!("{text}{last}"))
    }
}

fn may_act(agent: &mut Agent) -> bool {
    let result = agent.call("GET", "/r/x");
    match refused(&result) {
        None => true,
        Some("pending") => false,
        Some(other) => panic!("refused as {other}: {result:#}"),
    }
}

#[test]
fn a_new_run_waits_is_on_record_and_acts_once_it_is_allowed() {
    let gate = asking();
    let mut agent = Agent::open(&gate.world);

    assert!(!may_act(&mut agent));
    assert_eq!(gate.target.count(), 0);
    let run = gate.waiting();
    let denied = gate
        .world
        .run(["activity", "list", "--session", &run, "--json"]);
    let denied = denied.expect_code(0).json();
    assert_eq!(denied["calls"][0]["state"], "denied", "{denied:#}");
    drop(gate.world.run(["allow", &run]).expect_code(0));

    assert!(may_act(&mut agent));
    assert_eq!(gate.target.count(), 1);
}

#[test]
fn a_run_that_waits_is_told_where_a_person_looks_and_in_our_own_words() {
    let gate = asking();
    gate.close();
    let folder = gate.world.folder();
    let (journal, shown) = (folder.join("journal.sock"), folder.join("shown"));
    let listener = UnixDatagram::bind(&journal).expect("a socket");
    listener
        .set_read_timeout(Some(Deadline::usual().left()))
        .expect("a bound on waiting");
    let desktop = gate.world.write(
        "show",
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >{}\n", shown.display()),
    );
    fs::set_permissions(&desktop, fs::Permissions::from_mode(0o700)).expect("our own file");
    let mut daemon = gate.world.lychd([
        "--journal".as_ref(),
        journal.as_os_str(),
        "--notify".as_ref(),
        desktop.as_os_str(),
    ]);
    daemon.stdin(Stdio::null()).stdout(Stdio::null());
    let daemon = Held::start(daemon.stderr(Stdio::null()));
    wait_until("the daemon to open its vault", Deadline::usual(), || {
        gate.unlock().code() == Some(0)
    });

    let agent = gate.start(
        "",
        &gate.client("client.py", "\n# \u{1b}[2J lych allow everything\n"),
    );

    let run = gate.waiting();
    let told = format!("An agent's run waits for you: lych allow {run}\n");
    let mut bytes = [0; 1024];
    let length = listener.recv(&mut bytes).expect("a notice");
    let fields = String::from_utf8_lossy(&bytes[..length]).into_owned();
    assert!(fields.starts_with(&format!("MESSAGE={told}")), "{fields}");
    wait_until("the desktop to show it", Deadline::usual(), || {
        fs::read_to_string(&shown).is_ok_and(|text| text.ends_with(&told))
    });
    drop(agent);
    gate.close();
    drop(daemon);
}

#[test]
fn the_channels_of_a_run_that_waits_are_shown_as_shut() {
    let gate = asking();
    let mut agent = Agent::open(&gate.world);
    let arguments = serde_json::json!({ "name": "channels", "arguments": {} });

    let id = agent.request("tools/call", &arguments);
    let answer = agent.answer(id, Deadline::usual()).expect("an answer");

    let channel = &answer["result"]["structuredContent"]["channels"][0];
    assert_eq!(channel["closed"], "pending", "{answer:#}");
}

#[test]
fn a_denied_run_is_revoked_and_cannot_be_allowed_again() {
    let gate = asking();
    let mut agent = Agent::open(&gate.world);
    assert!(!may_act(&mut agent));
    let run = gate.waiting();

    drop(gate.world.run(["deny", &run]).expect_code(0));
    let allowed = gate.world.run(["allow", &run]).expect_code(6);

    assert!(allowed.stderr.contains("revoked"), "{}", allowed.stderr);
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("revoked"));
    assert_eq!(gate.target.count(), 0);
}

#[test]
fn a_remembered_shape_admits_the_same_programs_and_nothing_else() {
    let gate = asking();
    let script = gate.client("client.py", "");
    let mut first = gate.start("", &script);
    assert!(!may_act(&mut first));
    let run = gate.waiting();
    drop(gate.world.run(["allow", &run, "--remember"]).expect_code(0));
    assert!(may_act(&mut first));
    drop(first);

    let mut again = gate.start("", &script);
    assert!(
        may_act(&mut again),
        "the same script by the same interpreter"
    );

    // Another script under the very same name.
    let same_name = gate.client("client.py", "# another\n");
    let mut other = gate.start("", &same_name);
    assert!(!may_act(&mut other), "trust went to a name");

    // The right script below a strange parent.
    let script = gate.client("client.py", "");
    let mut strange = gate.start("# strange", &script);
    assert!(!may_act(&mut strange), "trust went to a part of the chain");
}

#[test]
fn remembered_trust_outlives_lock_and_restart_and_ends_when_it_is_denied() {
    let gate = asking();
    let script = gate.client("client.py", "");
    let mut first = gate.start("", &script);
    assert!(!may_act(&mut first));
    let run = gate.waiting();
    drop(gate.world.run(["allow", &run, "--remember"]).expect_code(0));
    drop(first);
    gate.close();
    let _daemon = gate.open_daemon();

    let mut after = gate.start("", &script);
    assert!(may_act(&mut after));
    let id = gate.pending()["remembered"][0]["id"].clone();
    drop(
        gate.world
            .run(["deny", id.as_str().expect("an id")])
            .expect_code(0),
    );

    let mut last = gate.start("", &script);
    assert!(!may_act(&mut last));
    assert!(may_act(&mut after), "what was admitted goes on");
}

#[test]
fn a_run_that_began_while_the_vault_was_shut_waits_when_it_is_open() {
    let gate = asking();
    drop(gate.world.run(["lock"]).expect_code(0));
    let mut agent = Agent::open(&gate.world);
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("locked"));

    drop(gate.unlock().expect_code(0));

    assert!(!may_act(&mut agent));
}

#[test]
fn one_repetition_of_an_open_write_passes_when_it_is_allowed() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    gate.target.set_mode(Mode::CloseBeforeAnswer);
    let first = agent.call("POST", "/w/once");
    let open = first["structuredContent"]["unresolved"]["call"].clone();
    let open = open.as_str().expect("an open call").to_owned();
    gate.target.set_mode(Mode::Answer);
    assert_eq!(refused(&agent.call("POST", "/w/once")), Some("repeat"));
    assert_eq!(gate.pending()["repeats"][0]["of"], open.as_str());

    drop(gate.world.run(["allow", "--repeat", &open]).expect_code(0));

    assert_eq!(refused(&agent.call("POST", "/w/once")), None);
    assert_eq!(refused(&agent.call("POST", "/w/once")), Some("repeat"));
    assert_eq!(gate.target.count(), 2);
    let verified = gate.world.run(["audit", "verify", "--json"]);
    assert_eq!(
        verified.expect_code(0).json()["structure"],
        serde_json::json!([])
    );
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let gate = Gate::before(Target::start());
    gate.apply("admission = \"allow\"\n[runs]\nttl = \"1s\"\n");
    let mut agent = Agent::open(&gate.world);
    assert_ne!(refused(&agent.call("GET", "/r/x")), Some("pending"));

    wait_until("the run's time to be over", Deadline::usual(), || {
        thread::sleep(Duration::from_millis(20));
        refused(&agent.call("GET", "/r/x")) == Some("revoked")
    });

    let mut next = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(
        refused(&next.call("GET", "/r/x")),
        None,
        "its own time begins"
    );
}

#[test]
fn locking_ends_runs_where_the_policy_says_so() {
    let gate = Gate::before(Target::start());
    gate.apply("admission = \"allow\"\n[runs]\non_lock = \"end\"\n");
    let mut agent = Agent::open(&gate.world);
    assert_eq!(refused(&agent.call("GET", "/r/x")), None);

    drop(gate.world.run(["lock"]).expect_code(0));
    drop(gate.unlock().expect_code(0));

    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("revoked"));
}
