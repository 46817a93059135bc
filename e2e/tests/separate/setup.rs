//! Setting it up: root alone, for two users, with nothing in the hands of the agents' user.

use std::{
    fs,
    path::{Path, PathBuf},
};

use testkit::{Deadline, Target, User, World};

use super::separate;
use crate::{both_ends::daemons, gate::Gate};

#[test]
fn only_root_sets_it_up_and_only_for_two_users_of_whom_one_is_in_the_others_group() {
    let Some(gate) = separate() else { return };
    let two = gate.two();
    let outside = User::make(&[]).expect("another user");
    let up = |home: &Path, daemon: &str, agent: &str| {
        let mut command = gate.world.command(testkit::program("lych"));
        command.arg("--home").arg(home).args(["up", "--system"]);
        command.args(["--daemon-user", daemon, "--agent-user", agent]);
        gate.world.finish(&mut command, b"", Deadline::usual())
    };
    let fresh = gate.world.folder().join("fresh");
    for (daemon, agent, why) in [
        (two.daemon.name(), outside.name(), "not in the group"),
        (two.daemon.name(), two.daemon.name(), "two users"),
        (two.daemon.name(), "root", "two users"),
        ("root", two.agent.name(), "two users"),
        ("nobody-of-this-name", two.agent.name(), "no user"),
    ] {
        let said = up(&fresh, daemon, agent).expect_code(6);
        assert!(said.stderr.contains(why), "{}", said.stderr);
        assert!(!fresh.exists(), "{daemon} {agent}");
    }
    // Other users for a home that has its own.
    let again = up(gate.world.folder(), two.agent.name(), two.daemon.name());
    assert_ne!(again.code(), Some(0), "{again:?}");
    // The same users change nothing.
    drop(up(gate.world.folder(), two.daemon.name(), two.agent.name()).expect_code(0));
    // What was one user's home stays that.
    let one = Gate::in_world(World::new(), Target::start());
    let said = up(one.world.folder(), two.daemon.name(), two.agent.name()).expect_code(6);
    assert!(said.stderr.contains("home of one user"), "{}", said.stderr);
    // A home in a folder of the agents' user.
    let said = up(
        &gate.world.folder().join("agent/home"),
        two.daemon.name(),
        two.agent.name(),
    );
    let said = said.expect_code(6);
    assert!(
        said.stderr.contains("somebody else than root"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_program_that_the_agents_user_could_exchange_is_not_started_as_the_daemon() {
    let Some(gate) = separate() else { return };
    gate.close();
    let bin = gate.world.folder().join("agent/bin");
    fs::create_dir(&bin).expect("a folder");
    let copied: Vec<PathBuf> = ["lych", "lychd"]
        .map(|name| {
            let copy = bin.join(name);
            fs::copy(testkit::program(name), &copy).expect("a copy");
            copy
        })
        .to_vec();

    let mut up = gate.world.command(&copied[0]);
    up.arg("--home").arg(gate.world.folder()).arg("up");
    let said = gate.world.finish(&mut up, b"", Deadline::usual());

    let said = said.expect_code(6);
    assert!(
        said.stderr.contains("could be exchanged"),
        "{}",
        said.stderr
    );
    assert!(daemons(&gate.world).is_empty());
}
