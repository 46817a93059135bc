//! Both ends let in the two users that root named, each at its own door, and nobody else.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        net::UnixListener,
    },
};

use testkit::{Deadline, Mode, User};

use super::{separate, text};
use crate::{
    agent::{Agent, BRIDGE},
    both_ends::daemons,
    two_users::{KNOCK, open_to_all, python},
};

#[test]
fn only_the_two_users_and_root_are_let_in_each_at_its_own_door() {
    let Some(gate) = separate() else { return };
    let home = gate.world.home();
    let third = User::make(&[gate.two().daemon.name()]).expect("a third user");

    // In the group, so the socket is in reach; not the user who is served.
    let said = python(&third, &gate.world, KNOCK, &[&text(home.agent_socket())]);
    assert!(said.stdout.contains("serves another user"), "{said:?}");
    // Root is an operator and no agent.
    let mut knock = gate.world.command("/usr/bin/python3");
    knock.args(["-c", KNOCK, &text(home.agent_socket())]);
    let said = gate.world.finish(&mut knock, b"", Deadline::usual());
    assert!(said.stdout.contains("serves another user"), "{said:?}");
    // Neither is the daemon's own user.
    let daemon = &gate.two().daemon;
    let said = python(daemon, &gate.world, KNOCK, &[&text(home.agent_socket())]);
    assert!(said.stdout.contains("serves another user"), "{said:?}");
    // Out of the group: not even the socket.
    let fourth = User::make(&[]).expect("a fourth user");
    let said = python(&fourth, &gate.world, KNOCK, &[&text(home.agent_socket())]);
    assert!(said.stderr.contains("PermissionError"), "{said:?}");
    assert_eq!(gate.target.count(), 0);
}

#[test]
fn root_is_another_user_and_needs_no_pin_and_that_is_on_record() {
    let Some(gate) = separate() else { return };
    gate.set_pin("2580");
    let mut agent = Agent::apart(&gate.world, BRIDGE.as_ref());
    gate.target.set_mode(Mode::CloseBeforeAnswer);
    let result = agent.call("POST", "/w/x");
    let call = &result["structuredContent"]["unresolved"]["call"];
    let call = call.as_str().expect("an open call");

    let resolve = ["reconcile", "resolve", call, "--as", "failed"];
    let resolved = gate.world.run(resolve.iter().chain(&["--evidence", "e"]));
    drop(resolved.expect_code(0));

    let shown = gate.world.run(["activity", "show", call, "--json"]);
    let by = &shown.expect_code(0).json()["call"]["reconciled"]["by"];
    assert_eq!(by["presence"], "other_uid", "{by:#}");
    assert_eq!(by["uid"], 0);
}

#[test]
fn without_its_daemon_an_agent_is_told_who_starts_it_and_starts_none() {
    let Some(gate) = separate() else { return };
    gate.close();

    let said = gate.as_agent(&["mcp"]).expect_code(5);

    assert!(
        said.stderr.contains("only root starts it"),
        "{}",
        said.stderr
    );
    assert!(daemons(&gate.world).is_empty());
    // Root does, as the daemon's user and with nothing of its own.
    drop(gate.world.run(["up"]).expect_code(0));
    let pid = daemons(&gate.world);
    let status = fs::read_to_string(format!("/proc/{}/status", pid[0])).expect("a status");
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.expect("a line")
            .split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let uid = gate.two().daemon.uid().to_string();
    assert_eq!(line("Uid:"), [uid.as_str(); 4].join(" "));
    assert_eq!(line("Groups:"), "");
    assert_eq!(line("CapEff:"), "0000000000000000");
}

#[test]
fn a_squatted_socket_and_a_home_that_root_did_not_make_are_refused_by_the_shim() {
    let Some(gate) = separate() else { return };
    gate.close();
    let home = gate.world.home();
    let two = gate.two();
    let (run, socket) = (home.run_folder().to_owned(), home.agent_socket());
    drop(fs::remove_file(&socket));
    // Root made it, but not the daemon listens.
    let squatter = UnixListener::bind(&socket).expect("a socket");
    squatter.set_nonblocking(true).expect("no waiting");
    open_to_all(&socket);
    let said = gate.as_agent(&["mcp"]).expect_code(6);
    assert!(said.stderr.contains("listens there"), "{}", said.stderr);
    let mut heard = [0; 64];
    let (mut stream, _) = squatter.accept().expect("the connection");
    stream.set_nonblocking(true).expect("no waiting");
    let heard = std::io::Read::read(&mut stream, &mut heard).unwrap_or(0);
    assert_eq!(heard, 0, "a word was said");

    // The agents' user owns the folder.
    chown(&run, Some(two.agent.uid()), None).expect("root may");
    drop(gate.as_agent(&["mcp"]).expect_code(6));
    chown(&run, Some(two.daemon.uid()), None).expect("root may");
    // The group may write into it.
    fs::set_permissions(&run, fs::Permissions::from_mode(0o770)).expect("root may");
    drop(gate.as_agent(&["mcp"]).expect_code(6));
    fs::set_permissions(&run, fs::Permissions::from_mode(0o750)).expect("root may");
    assert!(squatter.accept().is_err(), "somebody was spoken to");

    // A home in which somebody else says who the daemon is.
    let theirs = gate.world.folder().join("agent");
    let file = theirs.join("separate-user");
    fs::copy(gate.world.folder().join("separate-user"), &file).expect("a copy");
    let mut shim = gate.world.command(testkit::program("lych"));
    shim.arg("--home").arg(&theirs).arg("mcp");
    let mut shim = gate.world.as_agent(shim);
    let said = gate.world.finish(&mut shim, b"", Deadline::usual());
    let said = said.expect_code(6);
    assert!(said.stderr.contains("not root's alone"), "{}", said.stderr);
}
