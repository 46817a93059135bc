//! Further kinds of leftovers from the corpus of real cases, each with what must not be said of it.

use model::{Foreign, Known};
use verdict::{Also, Confidence, EvidenceSource, Finding, LogFacts, Suggest, Verdict};

use crate::scene::{Judged, Scene, evidence, wait_until};

fn judge_with(scene: &Scene, flag: &str) -> Judged {
    Judged::of(&scene.expected_with(flag), &[], &LogFacts::default())
}

/// Crashes a client whose server was started with this flag.
fn crashed(flag: &str) -> (Scene, Finding) {
    let mut scene = Scene::start(&format!("flag:{flag}"));
    scene.crash();
    let found = judge_with(&scene, flag).finding(scene.server()).clone();
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    (scene, found)
}

#[test]
fn a_server_that_ignores_sigterm_is_told_so_before_anybody_tries() {
    let (_scene, found) = crashed("--ignore-term");
    let (_other, plain) = crashed("--stdio");

    assert!(found.also.contains(&Also::TermImmune));
    assert!(!plain.also.contains(&Also::TermImmune));
}

#[test]
fn an_orphan_with_a_lock_holds_something_that_others_need() {
    let (_scene, found) = crashed("--lock");
    let (_other, plain) = crashed("--stdio");

    assert!(found.also.contains(&Also::Holds));
    assert!(!plain.also.contains(&Also::Holds));
}

#[test]
fn an_orphan_whose_thread_sleeps_for_a_time_will_wake_by_itself_and_one_that_waits_will_not() {
    let (_scene, found) = crashed("--ticking");
    let (_other, plain) = crashed("--stdio");

    let text = evidence(&found);
    assert!(text.contains("will wake by itself: its thread "), "{text}");
    assert!(text.contains("sleeps for a time"), "{text}");
    assert!(!evidence(&plain).contains("will wake by itself"));
}

#[test]
fn a_process_in_a_container_says_in_which() {
    let mut scene = Scene::start("pipes");
    scene.crash();
    let pid = scene.server();
    let id = "0123456789abcdef".repeat(4);

    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        let mut processes = snapshot.processes.iter_mut();
        let process = processes.find(|one| one.pid() == pid).unwrap();
        let group = format!("/system.slice/docker-{id}.scope");
        process.closer.as_mut().unwrap().cgroup = Known::Yes(Foreign::from(group.as_str()));
    });

    let text = evidence(judged.finding(pid));
    assert!(text.contains("it runs in container 0123456789ab"), "{text}");
}

#[test]
fn a_name_that_a_process_gives_itself_changes_nothing() {
    let (_scene, found) = crashed("--rename");

    assert!(
        found
            .root
            .command
            .value()
            .is_some_and(|words| !words.is_empty())
    );
}

#[test]
fn the_server_of_a_gateway_that_is_left_over_is_no_live_server() {
    let mut scene = Scene::start("gateway");
    let twin = Scene::start("gateway");
    scene.crash();
    let inner: u32 = scene.value("inner").parse().unwrap();
    let twins_inner: u32 = twin.value("inner").parse().unwrap();
    let both = |scene: &Scene| {
        let mut expected = scene.expected_with("--gateway");
        expected.extend(scene.expected());
        Judged::of(&expected, &[], &LogFacts::default())
    };

    let (judged, of_twin) = (both(&scene), both(&twin));

    assert_eq!(judged.finding(scene.server()).verdict, Verdict::OsOrphan);
    let found = judged.finding(inner);
    assert_eq!(found.verdict, Verdict::LogicalOrphanSuspect);
    assert!(evidence(found).contains("left over itself"));
    assert_eq!(of_twin.finding(twin.server()).verdict, Verdict::Live);
    assert_eq!(of_twin.finding(twins_inner).verdict, Verdict::Live);
}

/// Looks once the scene's shell is left over: told of, and not more than that.
fn below_a_lost_shell(scene: &Scene) -> Judged {
    let shell: u32 = scene.value("shell").parse().unwrap();
    let is_lost = |judged: &Judged| {
        let found = judged.of_pid(shell);
        found.is_some_and(|found| found.verdict == Verdict::OsOrphan)
    };
    wait_until(|| is_lost(&scene.judge()));
    let judged = scene.judge();
    let found = judged.finding(shell);
    assert_eq!(
        (found.confidence, found.suggest),
        (Confidence::Inferred, Suggest::Report)
    );
    judged
}

#[test]
fn a_client_below_a_shell_that_lost_both_its_ends_still_holds_its_server() {
    let scene = Scene::start("lost:pipes");
    let client: u32 = scene.value("client").parse().unwrap();
    let judged = below_a_lost_shell(&scene);

    let found = judged.finding(scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::Live, Confidence::Proven),
        "{}",
        evidence(found)
    );
    assert_eq!(found.owner.as_ref().unwrap().pid, client);
    assert!(
        judged.of_pid(client).is_none(),
        "nothing of the living is claimed for the shell"
    );
}

#[test]
fn a_server_that_ended_below_a_shell_that_lost_both_its_ends_is_a_zombie_by_itself() {
    let scene = Scene::start("lost:zombie");
    let client: u32 = scene.value("client").parse().unwrap();

    let found = below_a_lost_shell(&scene).finding(scene.server()).clone();

    assert_eq!(found.verdict, Verdict::Zombie);
    assert!(evidence(&found).contains(&format!("parent pid {client}")));
}

#[test]
fn a_server_that_ended_and_was_not_collected_is_a_zombie_with_its_parent_named() {
    let scene = Scene::start("zombie");

    let judged = scene.judge();

    let found = judged.finding(scene.server());
    assert_eq!(found.verdict, Verdict::Zombie);
    assert!(evidence(found).contains(&format!("parent pid {}", scene.client())));
    assert_eq!(found.root.rss_bytes, 0, "no memory is claimed for it");
}

#[test]
fn a_services_main_process_is_managed_and_a_stray_of_the_same_line_is_not() {
    let mut service = Scene::start("service");
    let mut stray = Scene::start("service");
    service.crash();
    stray.crash();
    let pid = service.server();

    let judged = Judged::with(&service.expected(), &[], &LogFacts::default(), |snapshot| {
        let process = snapshot
            .processes
            .iter_mut()
            .find(|one| one.pid() == pid)
            .unwrap();
        let closer = process.closer.as_mut().unwrap();
        closer.cgroup = Known::Yes(Foreign::from("/system.slice/mcp-time.service"));
    });
    let of_stray = stray.judge();

    let found = judged.finding(pid);
    assert_eq!(found.verdict, Verdict::Managed);
    assert!(evidence(found).contains("mcp-time.service"));
    assert_eq!(of_stray.finding(stray.server()).verdict, Verdict::Unknown);
}

#[test]
fn a_client_that_is_number_one_of_its_own_world_holds_its_server() {
    if sys::process::own_uid() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let inside = ["unshare", "--pid", "--fork", "--kill-child", "python3"];
    let scene = Scene::start_in(folder, "pipes", &inside);

    let judged = scene.judge();

    // The number that the client tells is one of its own namespace.
    let findings = judged.report.findings.iter();
    let mut ours = findings.filter(|finding| {
        let words = finding.root.command.value().into_iter().flatten();
        words
            .map(Foreign::raw)
            .any(|word| word.starts_with(scene.folder().to_str().unwrap()))
    });
    assert_eq!(ours.next().unwrap().verdict, Verdict::Live);
}

/// Judges a scene whose server was started with a variable of this name.
fn marked(scene: &Scene, name: &str) -> Finding {
    let server = scene.server();
    let judged = Judged::with(&scene.expected(), &[], &LogFacts::default(), |snapshot| {
        let mut processes = snapshot.processes.iter_mut();
        let process = processes.find(|one| one.pid() == server).unwrap();
        let details = process.closer.as_mut().unwrap();
        details.env_names = Known::Yes(vec![Foreign::from(name)]);
    });
    judged.finding(server).clone()
}

#[test]
fn a_variable_that_only_one_client_sets_says_whose_an_orphan_was_or_contradicts() {
    let mut scene = Scene::start("pipes");
    let twin = Scene::start("pipes");
    scene.crash();

    let same = marked(&scene, "CLAUDE_CODE_SESSION_ID");
    let other = marked(&scene, "GEMINI_CLI");
    let live = marked(&twin, "GEMINI_CLI");
    let plain = marked(&twin, "CLAUDECODE");

    assert!(evidence(&same).contains("CLAUDE_CODE_SESSION_ID, which claude-code sets"));
    for found in [&other, &live] {
        let text = evidence(found);
        assert!(
            text.contains("contradicts the configuration of claude-code"),
            "{text}"
        );
    }
    assert!(!evidence(&plain).contains("CLAUDECODE"));
    assert_eq!(
        (live.verdict, plain.verdict),
        (Verdict::Live, Verdict::Live)
    );
}

#[test]
fn evidence_is_told_in_the_order_of_what_it_is_worth() {
    let mut scene = Scene::start("pipes");
    scene.crash();

    let found = scene.judge().finding(scene.server()).clone();

    let sources: Vec<_> = found.evidence.iter().map(|one| one.source).collect();
    assert!(sources.is_sorted(), "{sources:?}");
    let all = evidence(&found);
    assert!(all.contains("process group"), "{all}");
    assert!(sources.contains(&EvidenceSource::Configuration));
}
