//! What only looks like an orphan is never proven to be one.

use std::process::{Command, Stdio};

use model::Known;
use testkit::Leftover;
use verdict::{Confidence, Finding, LogFacts, Suggest, Verdict};

use crate::scene::{Judged, Scene, evidence, fifo, wait_until, write};

const JOB: &str = "import os, signal, sys\n\
    open(os.path.join(os.path.dirname(sys.argv[0]), 'fifo'), 'w').write(str(os.getpid()))\n\
    sys.stdin.read()\nsignal.pause()\n";

#[test]
fn a_background_job_behind_a_finished_pipe_is_no_finding_at_all() {
    let folder = tempfile::tempdir().unwrap();
    fifo(folder.path());
    write(folder.path(), "job.py", JOB);
    let scene = Scene::start_in(folder, "nohup", &["python3"]);

    let judged = scene.judge();

    assert!(judged.of_pid(scene.server()).is_none());
}

#[test]
fn a_background_job_is_not_proven_even_if_somebody_configured_its_very_line() {
    let folder = tempfile::tempdir().unwrap();
    fifo(folder.path());
    write(folder.path(), "job.py", JOB);
    let scene = Scene::start_in(folder, "nohup", &["python3"]);
    let mut expected = scene.expected();
    expected[0].args = vec![
        scene
            .folder()
            .join("job.py")
            .display()
            .to_string()
            .as_str()
            .into(),
    ];

    let judged = Judged::of(&expected, &[], &LogFacts::default());

    let found = judged.finding(scene.server());
    assert_ne!(found.confidence, Confidence::Proven, "{}", evidence(found));
}

#[test]
fn descriptors_that_may_not_be_read_give_unknown_and_no_guess() {
    let mut scene = Scene::start("pipes");
    scene.crash();
    let pid = scene.server();

    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        let process = snapshot
            .processes
            .iter_mut()
            .find(|one| one.pid() == pid)
            .unwrap();
        process.descriptors = Known::unknown("permission denied");
    });

    let found = judged.finding(pid);
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::Unknown, Confidence::Unknown)
    );
    assert!(evidence(found).contains("permission denied"));
    assert_eq!(judged.report.sums.unknown, 1);
}

#[test]
fn a_writer_that_cannot_be_seen_gives_unknown_and_no_end_of_file() {
    let scene = Scene::start("pipes");
    let client = scene.client();

    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        let process = snapshot
            .processes
            .iter_mut()
            .find(|one| one.pid() == client)
            .unwrap();
        process.descriptors = Known::unknown("permission denied");
        for pipe in &mut snapshot.pipes {
            pipe.holders.retain(|holder| holder.pid != client);
        }
    });

    let found = judged.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::Unknown, Confidence::Unknown)
    );
}

#[test]
fn another_users_configuration_says_nothing_about_this_process() {
    let mut scene = Scene::start("pipes");
    scene.crash();
    let mut expected = scene.expected();
    expected[0].owner_uid = 4711;

    let judged = Judged::of(&expected, &[], &LogFacts::default());

    let found = judged.finding(scene.server());
    assert!(found.server.is_none());
    assert_ne!(found.confidence, Confidence::Proven);
}

#[test]
fn the_innocent_neighbours_of_this_very_test_are_no_findings() {
    let scene = Scene::start("pipes");

    let judged = scene.judge();

    assert!(judged.of_pid(std::process::id()).is_none());
    assert!(judged.of_pid(scene.client()).is_none());
}

#[test]
fn a_configured_server_in_the_middle_of_a_pipeline_is_in_use_by_whoever_reads_it() {
    let scene = Scene::start("pipeline");

    let judged = scene.judge();

    let found = judged.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::Live, Confidence::Inferred),
        "{}",
        evidence(found)
    );
    assert!(evidence(found).contains("takes its output"));
}

/// Runs what a person would type, and returns what is said of the processes that stay.
fn typed(script: &str, stay: usize) -> Vec<(u32, Option<Finding>)> {
    let folder = tempfile::tempdir().unwrap();
    let home = Home(folder);
    let shell = Command::new("sh")
        .args(["-c", script])
        .current_dir(home.0.path())
        .env("TMUX_TMPDIR", home.0.path())
        .env("FIXTURE_HOME", home.0.path())
        // Whose own shell may be one that lets nobody in; a multiplexer starts what this names.
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(shell.success(), "{script}");
    wait_until(|| Leftover::of(home.0.path()).len() >= stay);

    let judged = Judged::of(&[], &[], &LogFacts::default());

    let stayed = Leftover::of(home.0.path());
    let said = stayed
        .iter()
        .map(|one| (one.pid, judged.of_pid(one.pid).cloned()));
    said.collect()
}

/// A folder whose processes are ended with it.
struct Home(tempfile::TempDir);

impl Drop for Home {
    fn drop(&mut self) {
        wait_until(|| {
            let left = Leftover::of(self.0.path());
            for one in &left {
                let pid = one.pid.to_string();
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
            }
            left.is_empty()
        });
    }
}

#[track_caller]
fn is_left_alone(said: &[(u32, Option<Finding>)]) {
    for (pid, found) in said {
        let told = found.as_ref().map(|one| (one.verdict, one.confidence));
        assert!(told.is_none(), "pid {pid} is called {told:?}");
    }
}

#[test]
fn a_terminal_multiplexer_and_what_runs_in_it_are_left_alone() {
    is_left_alone(&typed(
        "tmux -L lych -f /dev/null new-session -d 'exec sleep 1000'",
        2,
    ));
}

#[test]
fn a_web_server_of_python_is_left_alone() {
    let serve = "setsid python3 -m http.server --bind 127.0.0.1 0 </dev/null >log 2>&1 &";
    is_left_alone(&typed(serve, 1));
}

#[test]
fn a_build_in_a_session_of_its_own_behind_a_finished_pipe_is_left_alone() {
    let build = "echo all | setsid sh -c 'sleep 1000; true' >log 2>&1 &";
    is_left_alone(&typed(build, 2));
}

/// A real `ssh -fN` to a real sshd, both of this test alone: own keys, an unprivileged port of this machine.
#[test]
fn a_tunnel_of_ssh_and_the_server_it_leads_to_are_left_alone() {
    let there = std::path::Path::new("/usr/sbin/sshd").exists();
    assert!(there, "sshd is missing: run `cargo xtask tools` once");
    let script = include_str!("tunnel.sh");
    let said = typed(script, 2);

    // Both are there: ssh goes into the background only once it has logged in.
    assert!(said.len() >= 2, "{said:?}");
    is_left_alone(&said);
}

#[test]
fn a_job_that_lost_both_its_neighbours_in_a_pipeline_is_reported_and_never_proven() {
    let job = "echo x | nohup sh -c 'sleep 1000; true' 2>/dev/null | true &";
    let said = typed(job, 2);

    for (pid, found) in said {
        if let Some(found) = found {
            assert_ne!(found.confidence, Confidence::Proven, "pid {pid}");
            assert_eq!(found.suggest, Suggest::Report, "pid {pid}");
        }
    }
}
