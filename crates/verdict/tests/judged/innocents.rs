//! What only looks like an orphan is never proven to be one.

use model::Known;
use verdict::{Confidence, LogFacts, Verdict};

use crate::scene::{Judged, Scene, evidence, fifo, write};

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
