//! What only looks like an orphan, run by one user and looked at by three: it is never proven to be one.

use std::process::{Command, Stdio};

use testkit::{Deadline, Leftover, wait_until};

use crate::{scene::User, stage::Stage};

/// Lets an owner type this, and returns what is said of the processes that stay, at least so many.
fn told(owner: User, script: &str, stay: usize) -> Vec<String> {
    let stage = Stage::open(owner, 0);
    stage.configure("pipes");
    let prefix = owner.prefix();
    let typed = Command::new(prefix[0])
        .args(&prefix[1..])
        .args(["sh", "-c", script])
        .current_dir(stage.folder())
        .env("PATH", owner.path())
        // Whose own shell may be one that lets nobody in; a multiplexer starts what this names.
        .env("SHELL", "/bin/sh")
        .env("TMUX_TMPDIR", stage.folder())
        .env("FIXTURE_HOME", stage.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(typed.success(), "{script}");
    let stayed = || Leftover::of(stage.folder());
    wait_until("what was typed to run", Deadline::usual(), || {
        stayed().len() >= stay
    });
    let stayed: Vec<u32> = stayed().iter().map(|one| one.pid).collect();
    let mut told = Vec::new();
    for observer in [Some(owner), Some(User::Own), User::stranger()]
        .into_iter()
        .flatten()
    {
        let report = stage.report(observer, false);
        for finding in report["findings"].as_array().unwrap() {
            let members = finding["members"].as_array().unwrap().iter();
            let mut all = members.chain([&finding["root"]]);
            if all.any(|one| stayed.iter().any(|pid| one["pid"] == *pid)) {
                let (verdict, confidence) = (&finding["verdict"], &finding["confidence"]);
                told.push(format!("{observer:?}: {verdict} {confidence}"));
            }
        }
    }
    told
}

fn somebody() -> User {
    User::other().unwrap_or(User::Own)
}

#[track_caller]
fn is_left_alone(owner: User, script: &str, stay: usize) {
    let told = told(owner, script, stay);
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_background_job_behind_a_finished_pipe_is_left_alone_by_all() {
    is_left_alone(
        somebody(),
        "echo x | nohup sh -c 'sleep 1000; true' >log 2>&1 &",
        2,
    );
}

#[test]
fn a_terminal_multiplexer_and_what_runs_in_it_are_left_alone_by_all() {
    is_left_alone(
        somebody(),
        "tmux -L lych -f /dev/null new-session -d 'exec sleep 1000'",
        2,
    );
}

#[test]
fn a_web_server_of_python_is_left_alone_by_all() {
    is_left_alone(
        somebody(),
        "setsid python3 -m http.server --bind 127.0.0.1 0 </dev/null >log 2>&1 &",
        1,
    );
}

#[test]
fn a_build_in_a_session_of_its_own_is_left_alone_by_all() {
    is_left_alone(
        somebody(),
        "echo all | setsid sh -c 'sleep 1000; true' >log 2>&1 &",
        2,
    );
}

/// A real `ssh -fN` to a real sshd, by whoever runs the test: another user may have no shell to log in with.
#[test]
fn a_tunnel_of_ssh_is_left_alone_by_all() {
    let there = std::path::Path::new("/usr/sbin/sshd").exists();
    assert!(there, "sshd is missing: run `cargo xtask tools` once");
    let script = include_str!("../../../../crates/verdict/tests/judged/tunnel.sh");
    is_left_alone(User::Own, script, 2);
}

#[test]
fn a_job_that_lost_both_its_neighbours_is_proven_to_nobody() {
    let told = told(
        somebody(),
        "echo x | nohup sh -c 'sleep 1000; true' 2>/dev/null | true &",
        2,
    );

    assert!(!told.iter().any(|one| one.contains("proven")), "{told:?}");
    let stranger = format!("{:?}", User::Stranger);
    assert!(
        told.iter()
            .all(|one| !one.starts_with(&stranger) || one.contains("UNKNOWN")),
        "{told:?}"
    );
}
