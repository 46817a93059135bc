//! `ps`, `inspect` and `snapshot`.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use crate::scene::{Scene, User, finding, text};

#[test]
fn ps_tells_an_orphan_from_its_living_twin_without_daemon_vault_or_set_up() {
    let mut orphan = Scene::start(User::Own);
    let twin = Scene::start(User::Own);
    orphan.crash();

    let report = orphan.report_as(User::Own);
    let of_twin = twin.report_as(User::Own);

    let found = finding(&report, orphan.server()).unwrap();
    assert_eq!(found["verdict"], "OS_ORPHAN");
    assert_eq!(found["confidence"], "proven");
    assert_eq!(found["server"]["client"], "claude-code");
    assert_eq!(found["suggest"], "contain");
    let live = finding(&of_twin, twin.server()).unwrap();
    assert_eq!(live["verdict"], "LIVE");
    assert_eq!(live["owner"]["pid"], twin.client());
    let left: Vec<_> = fs::read_dir(orphan.path(".")).unwrap().flatten().collect();
    assert_eq!(left.len(), 4, "looking left files behind: {left:?}");
}

#[test]
fn an_unprivileged_owner_gets_the_same_verdicts_and_so_does_root() {
    let Some(user) = User::other() else {
        return;
    };
    let mut orphan = Scene::start(user);
    let twin = Scene::start(user);
    orphan.crash();

    for looks in [user, User::Own] {
        let report = orphan.report_as(looks);
        let found = finding(&report, orphan.server()).unwrap();
        assert_eq!(found["verdict"], "OS_ORPHAN", "{looks:?}");
        assert_eq!(found["confidence"], "proven", "{looks:?}");
        let report = twin.report_as(looks);
        assert_eq!(
            finding(&report, twin.server()).unwrap()["verdict"],
            "LIVE",
            "{looks:?}"
        );
    }
}

#[test]
fn another_users_processes_are_unknown_and_never_guessed() {
    let Some(stranger) = User::other() else {
        return;
    };
    let mut orphan = Scene::start(User::Own);
    let twin = Scene::start(User::Own);
    orphan.crash();

    for scene in [&orphan, &twin] {
        let report = scene.report_as(stranger);

        let found = finding(&report, scene.server()).unwrap();
        assert_eq!(
            (&found["verdict"], &found["confidence"]),
            (&"UNKNOWN".into(), &"unknown".into())
        );
        assert_eq!(report["complete"], false);
        let gaps = report["unreadable"].as_array().unwrap();
        let named = gaps
            .iter()
            .any(|gap| gap["pid"] == scene.server() && gap["what"] == "descriptors");
        assert!(named, "the failed probe is named");
    }
}

#[test]
fn the_json_has_exactly_the_fields_that_others_build_on() {
    let mut scene = Scene::start(User::Own);
    scene.crash();

    let report = scene.report_as(User::Own);

    let keys = |value: &Value| {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(report["schema"], "lych.ps/v1");
    assert_eq!(
        keys(&report),
        "boot_id complete findings observed_at schema sums unreadable"
    );
    let found = finding(&report, scene.server()).unwrap();
    assert_eq!(
        keys(found),
        "also authority confidence evidence id members owner root server session suggest transport verdict"
    );
    assert_eq!(
        keys(&found["root"]),
        "command cpu_ms cwd elapsed_ms exe observed_at pgid pid ppid rss_bytes sid start stat user"
    );
    assert_eq!(keys(&found["server"]), "client match name");
    assert_eq!(
        keys(&found["transport"]["stdin"]),
        "holders kind proof state unread_bytes"
    );
    assert_eq!(
        keys(&found["authority"]),
        "because consumes env_names files level sockets tcp"
    );
    assert_eq!(keys(&found["evidence"][0]), "at source strength what");
    assert!(found["session"].is_null() && found["owner"].is_null());
}

#[test]
fn what_a_client_logged_about_the_server_it_started_is_told_as_evidence() {
    let mut scene = Scene::start(User::Own);
    let server = scene.path("server.py").display().to_string();
    let now = model::Wall::from(std::time::SystemTime::now());
    let logs = scene.path(".config/Claude/logs");
    fs::create_dir_all(&logs).unwrap();
    let line = format!(
        "{now} [fixture] [info] Using MCP server command: python3 with args and path: {{\n\
         metadata: {{ args: [ '{server}', '--stdio', [length]: 2 ] }}\n"
    );
    fs::write(logs.join("mcp.log"), line).unwrap();
    scene.crash();

    let report = scene.report_as(User::Own);

    let found = finding(&report, scene.server()).unwrap();
    let mut evidence = found["evidence"].as_array().unwrap().iter();
    let logged = evidence.find(|one| one["source"] == "launch_log").unwrap();
    let what = logged["what"].as_str().unwrap();
    assert!(
        what.starts_with(&format!("claude-desktop logged at {now}")),
        "{what}"
    );
    assert!(
        what.contains("contradicts the configuration of claude-code"),
        "{what}"
    );
}

#[test]
fn the_page_fits_a_terminal_names_the_server_and_ends_with_one_command() {
    let mut scene = Scene::start(User::Own);
    scene.crash();

    let page = text(&scene.lych(&["ps"]).stdout);

    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(page.lines().next().unwrap().contains("left over"), "{page}");
    assert!(page.contains("fixture (claude-code)"), "{page}");
    assert!(page.contains("LEFT OVER: its client is gone"), "{page}");
    assert_eq!(page.matches("Next: ").count(), 1, "{page}");
}

/// Runs `ps` on a terminal of its own, and returns what that was sent.
fn on_a_terminal(scene: &Scene, setting: &str) -> String {
    let lych = scene.path("lych").display().to_string();
    let spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))";
    let words = [
        "env",
        "TERM=xterm",
        setting,
        "python3",
        "-c",
        spawn,
        &lych,
        "ps",
    ];
    text(&scene.run(&words).stdout)
}

#[test]
fn heads_are_in_colour_on_a_terminal_only_and_not_if_somebody_said_no() {
    let mut scene = Scene::start(User::Own);
    scene.crash();

    let coloured = on_a_terminal(&scene, "NO_COLOR=");
    let plain = on_a_terminal(&scene, "NO_COLOR=1");
    let dumb = on_a_terminal(&scene, "TERM=dumb");
    let piped = text(&scene.lych(&["ps"]).stdout);

    assert!(coloured.contains("\u{1b}[1;31mLEFT OVER"), "{coloured}");
    assert!(coloured.contains("\u{1b}[1mNext: "), "{coloured}");
    for page in [plain, dumb, piped] {
        assert!(
            !page.contains('\u{1b}') && page.contains("LEFT OVER"),
            "{page}"
        );
    }
}

#[test]
fn a_wrong_word_is_answered_with_the_verb_that_it_followed() {
    let scene = Scene::start(User::Own);

    for (args, hint) in [
        (&["inspect", "abc"][..], "see `lych inspect --help`"),
        (&["ps", "extra"], "see `lych ps --help`"),
        (
            &["snapshot", "-o", "/nonexistent/x"],
            "choose a folder that is there",
        ),
    ] {
        let said = text(&scene.lych(args).stderr);
        assert!(said.contains(hint), "{args:?}: {said}");
    }
}

#[test]
fn the_exit_code_speaks_only_if_it_was_asked() {
    let mut scene = Scene::start(User::Own);
    scene.crash();

    assert_eq!(scene.lych(&["ps"]).status.code(), Some(0));
    assert_eq!(scene.lych(&["ps", "--exit-code"]).status.code(), Some(3));
}

#[test]
fn all_lists_processes_that_nobody_configured_too() {
    let scene = Scene::start(User::Own);

    let output = scene.lych(&["ps", "--all", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert!(finding(&report, std::process::id()).is_some());
    assert_eq!(finding(&report, scene.server()).unwrap()["verdict"], "LIVE");
}

#[test]
fn inspect_tells_who_holds_the_other_end_and_why_the_verdict() {
    let scene = Scene::start(User::Own);

    let page = text(&scene.lych(&["inspect", &scene.server().to_string()]).stdout);

    assert!(
        page.contains(&format!("written by pid {}", scene.client())),
        "{page}"
    );
    assert!(page.contains("IN USE (proven)"), "{page}");
    assert!(page.contains("above it"), "{page}");
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn watch_tells_again_only_what_has_changed_and_ends_when_nobody_reads() {
    let scene = Scene::start(User::Own);

    let once = scene.lych(&["watch", "--json", "--looks", "1"]);
    let unread = scene.run(&[
        "sh",
        "-c",
        &format!("{} watch --every 1 | true", scene.path("lych").display()),
    ]);

    let report: Value = serde_json::from_slice(&once.stdout).unwrap();
    assert_eq!(finding(&report, scene.server()).unwrap()["verdict"], "LIVE");
    assert!(unread.status.success());
}

#[test]
fn inspecting_nobody_says_what_to_do() {
    let scene = Scene::start(User::Own);

    let output = scene.lych(&["inspect", "4194305"]);

    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("there is no process 4194305") && said.contains("hint:"),
        "{said}"
    );
}

#[test]
fn a_snapshot_is_a_private_new_file_and_never_overwritten() {
    let scene = Scene::start(User::Own);
    let path = scene.path("evidence.json");
    let name = path.display().to_string();

    let first = scene.lych(&["snapshot", "-o", &name]);
    let again = scene.lych(&["snapshot", "-o", &name]);

    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let kept: inventory::Snapshot = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let seen = kept.process(scene.server()).unwrap();
    assert!(seen.closer.is_some(), "evidence is looked at closer");
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn the_read_verbs_send_no_signal() {
    let mut scene = Scene::start(User::Own);
    let there = scene.run(&["sh", "-c", "command -v strace"]).status;
    assert!(
        there.success(),
        "strace is missing: run `cargo xtask tools` once"
    );
    scene.crash();
    let program = scene.path("lych").display().to_string();
    let server = scene.server().to_string();
    let calls = "trace=kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal";

    for verb in [
        vec!["ps", "--all"],
        vec!["inspect", &server],
        vec!["snapshot"],
        vec!["watch", "--looks", "2", "--every", "1"],
    ] {
        let trace = scene.path("trace").display().to_string();
        let mut words = vec!["strace", "-f", "-qq", "-o", &trace, "-e", calls, &program];
        words.extend(&verb);
        let output = scene.run(&words);

        assert!(output.status.success(), "{}", text(&output.stderr));
        let sent = fs::read_to_string(&trace).unwrap();
        assert!(!sent.contains('('), "{verb:?} sent {sent}");
    }
}
