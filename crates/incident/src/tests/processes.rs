//! What becomes of processes that resist, come back or are born on the way.

use std::time::Duration;

use model::Exit;
use supervise::{Force, Plan};

use super::{json, session};
use crate::{
    Ending, Eyes, Sight, Stage, State, View,
    fixture::{Fake, ProcEyes, Scene, brief, by, gentle, process},
    preserve,
};

const IGNORES: &str = "signal.signal(signal.SIGTERM, signal.SIG_IGN)";

fn forced(reason: &str) -> Ending {
    by(brief().plan.forced(Force::because(reason).unwrap()))
}

#[test]
fn a_survivor_is_killed_only_when_the_incident_is_taken_up_with_a_reason() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program(IGNORES);
    let done = scene.contain(&[held.pid()], &brief());
    assert_eq!(done.state(), State::Survived);
    assert_eq!(done.state().exit(), Exit::Negative);
    assert_eq!(
        json(done.case())["rows"][0]["termination"]["result"],
        "ignores_term"
    );
    assert_eq!(json(done.case())["follow_up"][0]["kind"], "end");

    let again = done.again().unwrap();
    assert!(matches!(again, Stage::Confirmed(_)));
    let done = scene.go_on(again, &forced("it keeps the port")).unwrap();

    assert_eq!(done.state(), State::Contained);
    let ended = &json(done.case())["rows"][0]["termination"];
    assert_eq!(ended["signal"], "SIGKILL");
    assert_eq!(ended["result"], "gone");
    assert!(
        ended["forced"]
            .as_str()
            .unwrap()
            .contains("cleanup possibly incomplete")
    );
}

#[test]
fn a_process_that_somebody_starts_again_makes_the_incident_respawned() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let supervisor = scene.program(
        "server = [sys.executable, '-c', 'import signal; signal.pause()']\n\
         first = subprocess.Popen(server)\n\
         def again(*a):\n    signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n    first.wait(); subprocess.Popen(server)\n\
         signal.signal(signal.SIGCHLD, again)",
    );
    let child = child_of(supervisor.pid());

    let done = scene.contain(&[child], &Ending::by(Plan::gentle()));

    assert_eq!(done.state(), State::Respawned);
    let shown = json(done.case());
    let id = format!("stop:{}", supervisor.pid());
    assert_eq!(shown["follow_up"][0]["id"], id);
    end_child_of(supervisor.pid());
}

/// As of hundreds of equal leftovers, one of which is ended to see what happens.
#[test]
fn an_equal_one_of_the_same_parent_that_was_there_before_has_not_come_back() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("import os; equal = 1");
    let twin = scene.program("import os; equal = 1");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(done.state(), State::Contained);
    assert_eq!(json(done.case())["follow_up"], serde_json::json!([]));
    drop(twin);
}

/// Waits for a child that runs its own program: between fork and exec it still has its parent's command line.
fn child_of(pid: u32) -> u32 {
    testkit::wait_for("a child", testkit::Deadline::usual(), || {
        let all = ProcEyes.look().unwrap().processes;
        let parent = all.iter().find(|one| one.process.id.pid == pid)?;
        let is_child = |one: &&Sight| one.parent.as_ref().is_some_and(|above| above.pid == pid);
        all.iter()
            .filter(is_child)
            .find(|one| one.process.command != parent.process.command)
            .map(|one| one.process.id.pid)
    })
}

/// The second child outlives its parent, which the test kills.
fn end_child_of(pid: u32) {
    let child = process(child_of(pid));
    let evidence = supervise::Evidence {
        process: child,
        standing: supervise::Standing::Endable,
    };
    let target = supervise::Target::verify(&evidence).unwrap();
    let clock = sys::clock::SystemClock;
    let plan = Plan {
        grace: Duration::ZERO,
        ..forced("the test is over").plan
    };
    supervise::terminate(vec![target], &plan, &mut supervise::Alone, &clock);
}

#[test]
fn a_child_that_is_born_during_the_ending_is_preserved_and_ended() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene
        .program("signal.signal(signal.SIGTERM, lambda *a: subprocess.Popen(['sleep', '300']))");

    let done = scene.contain(&[held.pid()], &brief());

    let kept: Vec<String> = View::of(done.case())
        .steps
        .iter()
        .flat_map(|step| step.evidence.iter().map(|file| file.file.clone()))
        .collect();
    assert!(
        kept.iter().any(|file| file.starts_with("05-child-")),
        "{kept:?}"
    );
    assert_eq!(scene.world.processes().len(), 1, "only the parent is left");
}

#[test]
fn a_child_that_no_finding_counts_is_left_alone_and_named() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("subprocess.Popen(['sleep', '300'])");
    let child = child_of(held.pid());

    let done = scene.contain(&[held.pid()], &gentle());

    let shown = json(done.case());
    assert_eq!(shown["follow_up"][0]["id"], format!("look:child-{child}"));
    assert!(
        sys::process::Handle::open(child)
            .unwrap()
            .is_alive()
            .unwrap()
    );
    let evidence = supervise::Evidence {
        process: process(child),
        standing: supervise::Standing::Endable,
    };
    let target = supervise::Target::verify(&evidence).unwrap();
    supervise::terminate(
        vec![target],
        &Plan::gentle(),
        &mut supervise::Alone,
        &sys::clock::SystemClock,
    );
}

#[test]
fn a_process_in_use_is_not_signalled() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let mut held = scene.program("");
    let mut selection = scene.select(&[held.pid()]);
    selection.subjects[0].standing = supervise::Standing::Live;
    let home = scene.world.home().clone();
    let preserved = preserve(&home, selection, &mut scene.desk()).unwrap();

    let done = scene.go_on(Stage::Preserved(preserved), &brief()).unwrap();

    assert_eq!(done.state(), State::Survived);
    assert_eq!(held.ended(), None);
    assert_eq!(
        json(done.case())["rows"][0]["termination"]["result"],
        "not_signalled"
    );
}
