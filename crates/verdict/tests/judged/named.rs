//! Servers whose input is a named pipe: real ones, and looks of values for what nobody can be made to see.
//!
//! Where it takes every process to be seen, the look is completed: what could not be read is said to hold nothing.

use inventory::{Access, Descriptor, NamedPipe, Process, Snapshot, Target};
use model::{Foreign, Known};
use verdict::{Confidence, EndState, Finding, LogFacts, Proof, Suggest, Verdict};

use crate::{
    scene::{Judged, Scene, evidence},
    values::{SRV, Values},
};

/// As root has it on a machine that shows it everything.
fn all_seen(snapshot: &mut Snapshot) {
    for process in &mut snapshot.processes {
        if process.descriptors.value().is_none() {
            process.descriptors = Known::Yes(Vec::new());
        }
    }
    snapshot.unreadable.clear();
}

fn judged(scene: &Scene, pid: u32) -> Finding {
    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), all_seen);
    judged.finding(pid).clone()
}

/// As whoever may not read the descriptors of one process.
fn judged_but_for_one(scene: &Scene) -> Finding {
    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        all_seen(snapshot);
        let mut processes = snapshot.processes.iter_mut();
        let first = processes.find(|one| one.pid() == 1).unwrap();
        first.descriptors = Known::unknown("permission denied");
    });
    judged.finding(scene.server()).clone()
}

fn what(found: &Finding) -> (Verdict, Confidence) {
    (found.verdict, found.confidence)
}

#[test]
fn whoever_writes_to_the_named_pipe_of_a_server_uses_it_and_its_crash_is_suspected_at_most() {
    let mut scene = Scene::start("fifo");
    let twin = Scene::start("fifo");
    scene.crash();

    let (found, of_twin) = (judged(&scene, scene.server()), judged(&twin, twin.server()));

    assert_eq!(
        what(&found),
        (Verdict::OsOrphan, Confidence::Suspected),
        "{}",
        evidence(&found)
    );
    assert_eq!(found.suggest, Suggest::Report);
    assert!(evidence(&found).contains("can open again at any time"));
    let end = &found.transport.stdin;
    assert_eq!(
        (end.state, end.proof),
        (EndState::Eof, Some(Proof::HolderScan))
    );
    assert_eq!(what(&of_twin), (Verdict::Live, Confidence::Proven));
    assert_eq!(of_twin.owner.unwrap().pid, twin.client());
    assert_eq!(of_twin.transport.stdin.holders[0].pid, twin.client());
}

#[test]
fn a_writer_that_may_not_have_been_seen_makes_it_unknown_and_one_that_was_still_uses_it() {
    let mut scene = Scene::start("fifo");
    let mut kept = Scene::start("fifo-kept");
    let twin = Scene::start("fifo-kept");
    scene.crash();
    kept.crash();

    for scene in [&scene, &kept] {
        let found = judged_but_for_one(scene);
        assert_eq!(what(&found), (Verdict::Unknown, Confidence::Unknown));
        assert!(evidence(&found).contains("not all processes were seen"));
    }
    let of_twin = judged_but_for_one(&twin);
    assert_eq!(what(&of_twin), (Verdict::Live, Confidence::Proven));
}

#[test]
fn a_named_pipe_without_a_name_shows_more_and_still_proves_nothing() {
    let mut scene = Scene::start("fifo-unlinked");
    let twin = Scene::start("fifo-unlinked");
    scene.crash();

    let found = judged(&scene, scene.server());

    assert_eq!(what(&found), (Verdict::OsOrphan, Confidence::Inferred));
    assert!(evidence(&found).contains("whose name is gone"));
    assert_eq!(judged(&twin, twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_server_that_holds_its_own_named_pipe_open_is_used_by_its_client_and_not_by_itself() {
    let mut scene = Scene::start("fifo-kept");
    let twin = Scene::start("fifo-kept");
    scene.crash();

    let found = judged(&scene, scene.server());

    let expected = (Verdict::OrphanHeldOpen, Confidence::Suspected);
    assert_eq!(what(&found), expected);
    let of_twin = judged(&twin, twin.server());
    assert_eq!(what(&of_twin), (Verdict::Live, Confidence::Proven));
    assert_eq!(of_twin.owner.unwrap().pid, twin.client());
}

#[test]
fn a_living_parent_that_has_let_go_of_a_named_pipe_may_open_it_again() {
    let scene = Scene::start("fifo-let-go");

    let found = judged(&scene, scene.server());

    assert_eq!(what(&found), (Verdict::Unknown, Confidence::Unknown));
    assert_eq!(found.suggest, Suggest::Report);
}

#[test]
fn a_wrapper_that_reads_from_the_same_named_pipe_is_of_the_unit() {
    let mut scene = Scene::start("fifo-wrapped");
    let twin = Scene::start("fifo-wrapped");
    scene.crash();
    let inner: u32 = scene.value("inner").parse().unwrap();

    let found = judged(&scene, inner);

    assert_eq!(what(&found), (Verdict::OsOrphan, Confidence::Suspected));
    assert_eq!(found.root.pid, scene.server());
    let inner: u32 = twin.value("inner").parse().unwrap();
    assert_eq!(judged(&twin, inner).verdict, Verdict::Live);
}

#[test]
fn ps_and_lsof_tell_named_pipes_apart_as_the_native_look_does() {
    let mut scene = Scene::start("fifo");
    let twin = Scene::start("fifo");
    scene.crash();

    let [_, of_scene] = Scene::judge_portable(&scene.expected());
    let [as_it_is, of_twin] = Scene::judge_portable(&twin.expected());

    let found = of_scene.finding(scene.server());
    assert_eq!(what(found), (Verdict::OsOrphan, Confidence::Suspected));
    for judged in [as_it_is, of_twin] {
        let found = judged.finding(twin.server());
        assert_eq!(what(found), (Verdict::Live, Confidence::Proven));
    }
}

/// Opens the named pipe of this number; all have one path.
fn hold(fd: u32, access: Access, inode: u64) -> impl FnOnce(&mut Process) {
    let open = Descriptor {
        fd,
        access: Some(access),
        close_on_exec: None,
        locked: false,
        wakes_in_ms: None,
        named_pipe: Some(NamedPipe { device: 1, inode }),
        target: Target::File {
            path: Foreign::from("/run/user/1000/requests"),
            deleted: false,
        },
    };
    move |process| process.descriptors = Known::Yes(vec![open])
}

#[test]
fn the_same_path_is_not_the_same_named_pipe() {
    let beside = |own, others| {
        let values = Values::new()
            .with(100, 50, 100, "agent")
            .with(200, 1, 200, SRV)
            .but(100, hold(9, Access::Write, others))
            .but(200, hold(0, Access::Read, own));
        let told = evidence(&values.clone().told(200).unwrap());
        (values.words(200), told)
    };
    let (words, told) = beside(7, 7);
    assert_eq!(words, "LIVE inferred 200");
    let held = "the other end of its standard input, a named pipe, is held by pid 100 (agent) fd 9";
    assert!(told.contains(held), "{told}");
    let (words, told) = beside(7, 8);
    assert_eq!(words, "OS_ORPHAN suspected 200");
    let nobody = "nobody writes to the named pipe that is its standard input";
    assert!(told.contains(nobody), "{told}");
    let again = "which whoever may write to it can open again at any time";
    assert!(told.contains(again), "{told}");
}

#[test]
fn the_same_end_is_known_less_where_not_all_is_seen_and_more_where_its_name_or_its_client_is_gone()
{
    let left = || {
        Values::new()
            .with(200, 1, 200, SRV)
            .but(200, hold(0, Access::Read, 7))
    };
    assert_eq!(left().words(200), "OS_ORPHAN suspected 200");
    let gap = left().gap("other processes");
    assert_eq!(gap.words(200), "UNKNOWN unknown 200");
    let client_dead = left().recorded((100, 100), &[(200, 200, 100, SRV)]);
    assert_eq!(client_dead.words(200), "OS_ORPHAN inferred 200");
    let no_name = left().but(200, |one| {
        let Known::Yes(open) = &mut one.descriptors else {
            return;
        };
        let path = Foreign::from("/run/user/1000/requests");
        let deleted = true;
        open[0].target = Target::File { path, deleted };
    });
    assert_eq!(no_name.words(200), "OS_ORPHAN inferred 200");
    let parent_lives = left()
        .with(100, 50, 100, "x")
        .but(200, |one| one.ppid = 100);
    assert_eq!(parent_lives.words(200), "UNKNOWN unknown 200");
}

#[test]
fn the_same_process_on_both_ends_holds_it_open_for_nobody_else() {
    let kept = || {
        Values::new()
            .with(200, 1, 200, SRV)
            .but(200, hold(0, Access::ReadWrite, 7))
    };
    assert_eq!(kept().words(200), "ORPHAN_HELD_OPEN suspected 200");
    let gap = kept().gap("other processes");
    assert_eq!(gap.words(200), "UNKNOWN unknown 200");
    let used = kept()
        .with(100, 50, 100, "agent")
        .but(100, hold(9, Access::Write, 7))
        .gap("other processes");
    assert_eq!(used.words(200), "LIVE inferred 200");
}

#[test]
fn the_same_named_pipe_makes_one_unit_of_a_wrapper_and_its_server() {
    let wrapped = |own, others| {
        let values = Values::new()
            .with(199, 1, 199, "sh")
            .with(200, 199, 200, SRV)
            .but(199, hold(0, Access::Read, others))
            .but(200, hold(0, Access::Read, own));
        values.words(200)
    };
    assert_eq!(wrapped(7, 7), "OS_ORPHAN suspected 199");
    assert_eq!(wrapped(7, 8), "UNKNOWN unknown 200");
}
