//! The daemon as a user of its own: what the agents' user reaches, what it does not, and whose word is whose.

mod doors;
mod setup;
mod word;

use std::{
    fs,
    io::{Write, stdout},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use serde_json::Value;
use testkit::{Deadline, Finished, Operator, Target, Two, User, World, wait_until};

use crate::{
    agent::{Agent, BRIDGE, refused},
    gate::{Gate, SECRET},
    two_users::{KNOCK, READ, open_to_all, python, run},
};

/// Tests of trust that say nothing of who the daemon is: each must hold in this mode too. The operator is root.
const TRUST: &[&str] = &[
    "admission::a_new_run_waits_is_on_record_and_acts_once_it_is_allowed",
    "admission::a_run_ends_when_its_time_is_over",
    "admission::locking_ends_runs_where_the_policy_says_so",
    "admission::one_repetition_of_an_open_write_passes_when_it_is_allowed",
    "apart::",
    "foreign::from_an_agent_and_a_server_it_is_kept_as_data_and_shown_harmlessly",
    "log::the_pin_in_an_incident_confirms_the_log_and_catches_one_that_was_rolled_back",
    "memory::after_a_lock_the_secret_is_gone_from_the_daemons_memory",
    "memory::after_a_lock_the_secret_is_gone_also_where_it_went_over_tls",
    "probe::",
    "vault_files::an_old_vault_put_in_place_is_refused_and_a_restore_brings_it_back_on_record",
];

/// The same, with the daemon's own user as operator: root is another user, and is not asked for a PIN.
const PRESENCE: &[&str] = &[
    "presence::every_act_that_widens_asks_for_the_pin_and_does_nothing_without_it",
    "presence::with_the_pin_they_do_what_they_say",
    "presence::narrowing_never_asks",
    "presence::the_right_key_without_the_pin_opens_nothing",
    "presence::status_says_which_rule_holds_and_that_a_shut_vault_hides_it",
    "presence::the_record_says_how_presence_was_established",
];

fn separate() -> Option<Gate> {
    let world = World::separate(Operator::Root);
    if world.is_none() {
        let why = "NOT RUN: no users can be made here, or they cannot start the programs where they were built";
        drop(writeln!(stdout(), "{why}"));
    }
    Some(Gate::in_world(world?, Target::start()))
}

impl Gate {
    fn two(&self) -> &Two {
        self.world.two().expect("two users")
    }

    /// Runs `lych` as the agents' user.
    fn as_agent(&self, args: &[&str]) -> Finished {
        let mut command = self.world.as_agent(self.world.lych(args));
        self.world.finish(&mut command, b"", Deadline::usual())
    }

    fn runs(&self) -> Value {
        let listed = self.world.run(["sessions", "list", "--json"]);
        listed.expect_code(0).json()
    }
}

/// Runs tests of this program once more, in worlds whose daemon is a user of its own.
fn again(operator: &str, tests: &[&str]) {
    let Some(gate) = separate() else { return };
    drop(gate);
    let own = std::env::current_exe().expect("this test's own program");
    let said = Command::new(own)
        .env(World::MODE, operator)
        .args(tests)
        .args(["--test-threads", "2"])
        .output()
        .expect("a run of tests");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{text}");
    for test in tests {
        assert!(
            text.contains(&format!("test {test}")),
            "{test} was not run: {text}"
        );
    }
    assert!(!text.contains("NOT RUN"), "{text}");
}

#[test]
fn the_tests_of_trust_hold_where_the_daemon_is_a_user_of_its_own() {
    again("root", TRUST);
}

#[test]
fn the_tests_of_presence_hold_where_the_daemon_is_a_user_of_its_own() {
    again("daemon", PRESENCE);
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().expect("UTF-8").to_owned()
}

#[test]
fn neither_vault_nor_policy_nor_memory_nor_the_operators_door_is_in_the_agents_reach() {
    let Some(gate) = separate() else { return };
    let (home, agent) = (gate.world.home(), &gate.two().agent);
    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    assert_eq!(status["mode"], "separate_user");
    let pid = status["daemon"]["pid"].as_u64().expect("a pid");
    let private = home.vault().parent().expect("a folder").to_owned();
    let mut paths: Vec<String> = [home.vault(), home.identity(), home.daemon_log()]
        .map(text)
        .to_vec();
    paths.push(gate.key_file().to_owned());
    paths.extend(["mem", "environ", "maps"].map(|part| format!("/proc/{pid}/{part}")));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();

    assert_eq!(python(agent, &gate.world, READ, &paths).stdout, "");
    let knock = |socket: &Path| python(agent, &gate.world, KNOCK, &[&text(socket)]);
    let said = knock(&home.operator_socket());
    assert!(said.stderr.contains("PermissionError"), "{}", said.stderr);
    for args in [
        &["lock"][..],
        &["vault", "list"],
        &["down"],
        &["channels", "apply"],
        &["allow", "s-0000000000000000"],
        &["unlock", "--key-file", gate.key_file()],
        &["sessions", "list"],
        &["up", "--system"],
    ] {
        let said = gate.as_agent(args).expect_code(6);
        assert!(!said.stdout.contains(SECRET) && !said.stderr.contains(SECRET));
    }
    let mut signal = gate.world.command("/bin/sh");
    signal.args(["-c", &format!("kill -0 {pid}")]);
    assert_ne!(run(agent, &gate.world, &signal, b"").code(), Some(0));

    // Opened by mistake: the daemon itself looks who is there, whatever the folder's rights are.
    open_to_all(&private);
    open_to_all(&home.operator_socket());
    let said = knock(&home.operator_socket()).expect_code(0);
    assert!(said.stdout.contains("another user"), "{}", said.stdout);
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).expect("root may");
    drop(gate.world.run(["vault", "list"]).expect_code(0));
}

#[test]
fn whoever_is_in_the_group_looks_and_verifies_without_asking_the_daemon_and_others_do_not() {
    let Some(gate) = separate() else { return };
    let mut agent = Agent::apart(&gate.world, BRIDGE.as_ref());
    drop(agent.call("GET", "/r/x"));

    let verified = gate.as_agent(&["audit", "verify", "--json"]);
    let verified = verified.expect_code(0).json();
    assert_eq!(verified["structure"], serde_json::json!([]), "{verified:#}");
    let shown = gate.as_agent(&["audit", "export"]);
    assert!(shown.expect_code(0).stderr.contains("Clear headers only"));
    let seen = gate
        .as_agent(&["ps", "--json", "--all"])
        .expect_code(0)
        .json();
    let run = gate.runs()["sessions"][0]["id"].clone();
    let findings = seen["findings"].as_array().expect("findings");
    assert!(
        findings.iter().any(|finding| finding["session"] == run),
        "{findings:#?}"
    );
    let status = gate.as_agent(&["status", "--json"]).expect_code(1).json();
    assert_eq!(status["mode"], "separate_user");
    assert!(status["daemon"]["unknown"].is_string(), "{status:#}");
    assert!(gate.as_agent(&["status"]).stdout.contains("separate user"));

    let stranger = User::make(&[]).expect("another user");
    let mut verify = stranger.as_it(&gate.world.lych(["audit", "verify"]));
    let said = gate.world.finish(&mut verify, b"", Deadline::usual());
    assert_eq!(said.code(), Some(1), "{said:?}");
}

#[test]
fn a_revoked_run_is_refused_and_a_dead_client_is_seen_across_users() {
    let Some(gate) = separate() else { return };
    let mut one = Agent::apart(&gate.world, BRIDGE.as_ref());
    let mut two = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(refused(&one.call("GET", "/r/x")), None);
    assert_eq!(refused(&two.call("GET", "/r/x")), None);
    let runs = gate.runs();
    assert_eq!(runs["sessions"].as_array().map(Vec::len), Some(2));
    let first = runs["sessions"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();

    let revoke = ["sessions", "revoke", &first, "--reason", "r"];
    drop(gate.world.run(revoke).expect_code(0));
    let after = [one.call("GET", "/r/x"), two.call("GET", "/r/x")];
    let codes: Vec<Option<&str>> = after.iter().map(refused).collect();
    assert!(
        codes.contains(&Some("revoked")) && codes.contains(&None),
        "{codes:?}"
    );

    one.crash();
    two.crash();
    wait_until("both clients to be lost", Deadline::usual(), || {
        let runs = gate.runs();
        let all = runs["sessions"].as_array().expect("runs").clone();
        all.iter().all(|run| {
            let lost = run["lost"].as_array().expect("a list");
            lost.iter()
                .any(|lost| lost["lost"]["basis"] == "holder_exited")
        })
    });
}

/// Lays hands on every file below the home that the agents' user can write, or make, or put something in
/// place of.
const VANDAL: &str = r#"
import os, sys
theirs = sys.argv[2].encode()
done = []
for folder, folders, files in os.walk(sys.argv[1]):
    for act in (lambda: open(os.path.join(folder, "config.toml"), "ab").write(theirs),
                lambda: os.rename(os.path.join(folder, "config.toml"), os.path.join(folder, "x")),
                lambda: os.symlink("/dev/null", os.path.join(folder, "planted"))):
        try:
            act()
            done.append(folder)
        except OSError:
            pass
    for name in files:
        path = os.path.join(folder, name)
        for act in (lambda: open(path, "ab").write(theirs), lambda: os.chmod(path, 0o777),
                    lambda: os.unlink(path)):
            try:
                act()
                done.append(path)
            except OSError:
                pass
print("\n".join(done))
"#;

#[test]
fn an_adversary_of_the_agents_user_who_writes_all_he_can_gets_no_byte_of_the_secret_anywhere() {
    let Some(gate) = separate() else { return };
    let server = Target::start();
    let (agent, folder) = (&gate.two().agent, text(gate.world.folder()));
    let draft = format!(
        "admission = \"allow\"\n[channel.api]\nkind = \"http\"\nbase = \"{}/\"\nsecret = \"token\"\n\
         [[channel.api.operation]]\nname = \"all\"\nallow = [\"GET /**\"]\n",
        server.url()
    );

    let said = python(agent, &gate.world, VANDAL, &[&folder, &draft]).expect_code(0);
    let own = text(gate.world.folder().join("agent"));
    let reached: Vec<&str> = said.stdout.split_whitespace().collect();
    assert!(
        reached.iter().any(|path| path.starts_with(&own)),
        "{reached:?}"
    );
    assert!(
        reached.iter().all(|path| path.starts_with(&own)),
        "{reached:?}"
    );

    // Calls of every kind, from our shim and from a program of his that says it is one.
    let liar = gate.world.write("liar.py", word::LIAR);
    let mut hello = gate.world.command("python3");
    hello.arg(liar).arg(gate.world.home().agent_socket());
    for mut agent in [
        Agent::apart(&gate.world, BRIDGE.as_ref()),
        Agent::over(&gate.world, hello),
    ] {
        for path in [
            format!("{}/r/x", server.url()),
            format!("//{}/r/x", server.address()),
            format!("/r/../..@{}/", server.address()),
        ] {
            let said = agent.call("GET", &path).to_string();
            assert!(!said.contains(SECRET), "{said}");
        }
    }
    assert_eq!(server.count(), 0, "somebody called the adversary");
    // And what was in force still is.
    let mut honest = Agent::apart(&gate.world, BRIDGE.as_ref());
    assert_eq!(refused(&honest.call("GET", "/r/x")), None);
    assert!(gate.target.requests().iter().any(|request| {
        request
            .header("authorization")
            .is_some_and(|sent| sent.contains(SECRET))
    }));
}
