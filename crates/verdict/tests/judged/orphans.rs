//! What a crashed client leaves behind is found, and its living twin is left alone.

use std::{io::Write, net::TcpStream};

use inventory::Target;
use model::{Known, Wall};
use verdict::{
    Also, AuthorityLevel, Confidence, EndKind, EndState, Fits, LogFacts, Proof, Suggest, Verdict,
};

use crate::scene::{Judged, Scene, evidence};

/// Crashes one of two equal clients and returns both with the judgement.
fn orphan_and_twin(style: &str) -> (Scene, Scene, Judged, Judged) {
    let mut orphan = Scene::start(style);
    let twin = Scene::start(style);
    orphan.crash();
    let of_orphan = orphan.judge();
    let of_twin = twin.judge();
    (orphan, twin, of_orphan, of_twin)
}

#[test]
fn a_server_that_ignores_the_end_of_its_pipe_is_a_proven_orphan_and_its_twin_is_live() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("pipes");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert_eq!(found.suggest, Suggest::Contain);
    assert_eq!(found.transport.stdin.kind, EndKind::Pipe);
    assert_eq!(found.transport.stdin.state, EndState::Eof);
    assert_eq!(found.transport.stdin.proof, Some(Proof::PipeHup));
    let server = found.server.as_ref().unwrap();
    assert_eq!((server.name.raw(), server.fits), ("fixture", Fits::Exact));
    let live = of_twin.finding(twin.server());
    assert_eq!(
        (live.verdict, live.confidence),
        (Verdict::Live, Confidence::Proven)
    );
    assert_eq!(live.owner.as_ref().unwrap().pid, twin.client());
    assert_eq!(live.transport.stdin.holders[0].pid, twin.client());
}

#[test]
fn a_server_on_a_socketpair_as_node_gives_it_is_a_proven_orphan_and_its_twin_is_live() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("socketpair");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert_eq!(found.transport.stdin.kind, EndKind::Socketpair);
    assert_eq!(found.transport.stdin.proof, Some(Proof::UnixDiag));
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_server_in_a_session_of_its_own_is_found_all_the_same() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("own-session");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_wrapper_and_its_server_are_one_finding_whose_root_is_the_wrapper() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("wrapped");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert_eq!(found.root.pid, orphan.server());
    assert_eq!(found.members.len(), 1);
    let live = of_twin.finding(twin.server());
    assert_eq!((live.verdict, live.members.len()), (Verdict::Live, 1));
}

#[test]
fn a_pipe_that_a_sibling_inherited_makes_an_orphan_held_open_and_names_the_holder() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("leak");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(found.verdict, Verdict::OrphanHeldOpen);
    assert_eq!(found.confidence, Confidence::Inferred);
    assert_eq!(found.suggest, Suggest::Report);
    assert_eq!(found.transport.stdin.state, EndState::HeldOpen);
    assert_eq!(found.transport.stdin.holders[0].pid, orphan.helper());
    assert!(
        of_orphan.of_pid(orphan.helper()).is_none(),
        "the holder is innocent"
    );
    let live = of_twin.finding(twin.server());
    assert_eq!(
        (live.verdict, live.confidence),
        (Verdict::Live, Confidence::Proven)
    );
}

#[test]
fn a_parent_that_lives_and_has_let_go_leaves_a_detached_server_that_is_not_proven() {
    let scene = Scene::start("let-go");
    let judged = scene.judge();

    let found = judged.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::Detached, Confidence::Inferred)
    );
    assert_eq!(found.owner.as_ref().unwrap().pid, scene.client());
    assert_eq!(found.suggest, Suggest::Report);
}

#[test]
fn a_server_that_moved_its_wire_is_found_by_all_its_descriptors_and_never_proven() {
    let mut orphan = Scene::start("moved");
    let twin = Scene::start("moved");
    orphan.crash();
    let judge = |scene: &Scene| {
        let expected = scene.expected_with("--moved");
        Judged::of(&expected, &[], &LogFacts::default())
    };

    let (of_orphan, of_twin) = (judge(&orphan), judge(&twin));

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Inferred)
    );
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_server_whose_terminal_is_gone_is_no_server_in_use_and_never_proven() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("terminal");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Inferred)
    );
    assert_eq!(found.transport.stdin.state, EndState::Eof);
    assert!(evidence(found).contains("its terminal is gone"));
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_fork_of_a_dead_client_that_still_holds_both_ends_makes_a_suspect_and_names_it() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("forked");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence, found.suggest),
        (
            Verdict::LogicalOrphanSuspect,
            Confidence::Suspected,
            Suggest::Report
        )
    );
    let text = evidence(found);
    assert!(text.contains(&format!("pid {}", orphan.helper())), "{text}");
    assert!(text.contains("was left over with it"), "{text}");
    let live = of_twin.finding(twin.server());
    assert_eq!(
        (live.verdict, live.confidence),
        (Verdict::Live, Confidence::Proven)
    );
}

#[test]
fn other_arguments_than_configured_are_no_proof() {
    let (orphan, twin, of_orphan, of_twin) = orphan_and_twin("other-arguments");

    let found = of_orphan.finding(orphan.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Inferred)
    );
    assert_eq!(found.server.as_ref().unwrap().fits, Fits::Weak);
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
}

#[test]
fn a_server_that_nobody_configured_is_inferred_and_only_reported() {
    let mut scene = Scene::start("pipes");
    let before = scene.judge_unconfigured();
    scene.crash();
    let judged = scene.judge_unconfigured();

    assert!(before.of_pid(scene.server()).is_none());
    let found = judged.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Inferred)
    );
    assert_eq!(found.suggest, Suggest::Report);
    assert!(found.server.is_none());
}

#[test]
fn requests_that_were_delivered_and_never_read_are_counted() {
    let mut scene = Scene::start("unread");
    scene.crash();
    let judged = scene.judge();

    let found = judged.finding(scene.server());
    let unread = found.transport.stdin.unread_bytes.as_ref().unwrap();
    assert_eq!(unread.value(), Some(&20));
    assert!(found.also.contains(&Also::Busy));
}

#[test]
fn an_orphan_that_others_are_connected_to_is_shared_and_says_who() {
    let mut scene = Scene::start("listener");
    let port: u16 = scene.value("port").parse().unwrap();
    scene.crash();
    let mut expected = scene.expected();
    expected[0].args.push("--listen".into());
    let judge = || Judged::of(&expected, &[], &LogFacts::default());

    let alone = judge();
    let mut user = TcpStream::connect(("127.0.0.1", port)).unwrap();
    user.write_all(b"x").unwrap();
    crate::scene::wait_until(|| judge().finding(scene.server()).verdict != Verdict::OsOrphan);
    let used = judge();

    let found = alone.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert!(found.also.contains(&Also::Holds));
    let found = used.finding(scene.server());
    assert_eq!(found.verdict, Verdict::Shared);
    assert!(evidence(found).contains(&std::process::id().to_string()));
    assert!(found.authority.level >= AuthorityLevel::Reachable);
    assert_eq!(found.authority.tcp.len(), 2);
}

#[test]
fn a_client_that_is_stopped_makes_its_server_a_suspect() {
    let scene = Scene::start("pipes");
    let pid = scene.client().to_string();
    let signal = |name: &str| {
        let status = std::process::Command::new("kill")
            .args([name, &pid])
            .status()
            .unwrap();
        assert!(status.success());
    };
    let before = Wall::from(std::time::SystemTime::now());
    signal("-STOP");
    let client = sys::process::Handle::open(scene.client()).unwrap();
    crate::scene::wait_until(|| client.stat_now().unwrap().state.is_stopped());
    let judged = scene.judge();
    signal("-CONT");

    let found = judged.finding(scene.server());
    assert_eq!(found.verdict, Verdict::LogicalOrphanSuspect);
    let since = found.owner.as_ref().unwrap().stuck_since.clone().unwrap();
    let since = since.value().unwrap().millis();
    // The scheduler's clock is a little apart on each processor of a virtual machine.
    assert!(since.abs_diff(before.millis()) < 10_000, "{since} {before}");
}

/// Judges a scene whose client has not run for so long, with so many bytes for it.
fn with_a_client_still_for(scene: &Scene, still_ms: u64, unread: u64) -> (Verdict, String) {
    let (client, server) = (scene.client(), scene.server());
    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        let open = snapshot.process(server).unwrap().descriptor(1).unwrap();
        let Target::Pipe { inode } = open.target else {
            panic!("{open:?}");
        };
        let pipes = &mut snapshot.pipes;
        let pipe = pipes.iter_mut().find(|pipe| pipe.inode == inode).unwrap();
        assert_eq!(pipe.unread_bytes.value(), Some(&0), "the client was asked");
        pipe.unread_bytes = Known::Yes(unread);
        let mut processes = snapshot.processes.iter_mut();
        let process = processes.find(|one| one.pid() == client).unwrap();
        let ran = process.observed_at.millis() - still_ms;
        process.closer.as_mut().unwrap().last_ran = Known::Yes(Wall::from_millis(ran));
    });
    let found = judged.finding(server);
    let stuck = found.owner.as_ref().unwrap().stuck_since.is_some();
    assert_eq!(stuck, found.verdict == Verdict::LogicalOrphanSuspect);
    (found.verdict, evidence(found))
}

#[test]
fn a_client_that_lets_answers_lie_for_half_a_minute_is_stuck_and_an_idle_one_is_not() {
    let scene = Scene::start("pipes");

    let (stuck, why) = with_a_client_still_for(&scene, 31_000, 10);

    assert_eq!(stuck, Verdict::LogicalOrphanSuspect);
    assert!(
        why.contains("does not run while 10 bytes for it are not read"),
        "{why}"
    );
    for (still_ms, unread) in [(31_000, 0), (600_000, 0), (29_000, 10)] {
        let (verdict, _) = with_a_client_still_for(&scene, still_ms, unread);
        assert_eq!(verdict, Verdict::Live, "{still_ms} ms, {unread} bytes");
    }
}

#[test]
fn ps_and_lsof_lead_to_the_same_verdicts_as_the_kernel_itself() {
    for style in [
        "pipes",
        "socketpair",
        "own-session",
        "wrapped",
        "leak",
        "unread",
        "listener",
    ] {
        let mut orphan = Scene::start(style);
        let twin = Scene::start(style);
        let mut expected = orphan.expected();
        expected.extend(twin.expected());
        orphan.crash();

        let native = Judged::of(&expected, &[], &LogFacts::default());
        let [as_it_is, all_listed] = Scene::judge_portable(&expected);

        for pid in [orphan.server(), twin.server()] {
            let verdict = native.finding(pid).verdict;
            let other = all_listed.finding(pid);
            assert_eq!(verdict, other.verdict, "{style}: {other:#?}");
            // Nobody may list all descriptors here: then an end is not seen, and not guessed.
            let told = as_it_is.finding(pid).verdict;
            assert!(
                told == verdict || told == Verdict::Unknown,
                "{style}: {told:?}"
            );
        }
        assert!(native.finding(orphan.server()).verdict.is_orphan() || style == "listener");
        assert_eq!(
            native.finding(twin.server()).verdict,
            Verdict::Live,
            "{style}"
        );
    }
}
