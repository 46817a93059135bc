//! Wrong input and wrong state: each says what happened, why and what to do next, with its frozen exit code.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use testkit::{Finished, Target, World};

use crate::gate::Gate;

/// Checks the form of an error: three lines on stderr, nothing on stdout, the code.
fn refused(finished: Finished, code: i32, what: &str) {
    let finished = finished.expect_code(code);
    let stderr = &finished.stderr;
    assert!(
        stderr.starts_with("error: "),
        "what happened comes first: {stderr}"
    );
    assert!(stderr.contains(what), "expected {what:?} in: {stderr}");
    assert!(
        stderr.contains("\ncause: "),
        "it does not say why: {stderr}"
    );
    assert!(
        stderr.contains("\nhint:  "),
        "it does not say what to do next: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(finished.stdout, "", "an error is no data");
}

#[test]
fn a_wrong_id_name_time_number_or_digest_is_a_usage_error() {
    let world = World::new();
    let cases: &[(&[&str], &str)] = &[
        (&["sessions", "show", "zz"], "\"zz\""),
        (
            &["sessions", "show", "c-0000000000000000"],
            "c-0000000000000000",
        ),
        (
            &["activity", "show", "c-000000000000000u"],
            "c-000000000000000u",
        ),
        (&["activity", "list", "--since", "yesterday"], "yesterday"),
        (
            &["vault", "add", "../x", "--for", "https://a.example"],
            "../x",
        ),
        (
            &[
                "vault",
                "add",
                "x",
                "--for",
                "https://a.example",
                "--from-fd",
                "four",
            ],
            "four",
        ),
        (&["audit", "verify", "--log-id", "12"], "\"12\""),
        (
            &[
                "reconcile",
                "resolve",
                "c-0000000000000000",
                "--as",
                "maybe",
                "--evidence",
                "e",
            ],
            "maybe",
        ),
        (&["inspect", "-1"], "-1"),
        (&["inspect", "99999999999"], "99999999999"),
    ];

    for (args, what) in cases {
        refused(world.run(*args), 2, what);
    }
}

#[test]
fn an_escape_sequence_in_an_argument_does_not_reach_the_terminal() {
    let world = World::new();

    let finished = world.run(["sessions", "show", "\u{1b}[2J"]).expect_code(2);

    assert!(!finished.stderr.contains('\u{1b}'), "{:?}", finished.stderr);
}

#[test]
fn without_a_daemon_operator_verbs_say_so_with_5_and_read_verbs_work() {
    let world = World::new();
    fs::set_permissions(world.folder(), fs::Permissions::from_mode(0o700)).expect("our folder");

    for args in [
        &["sessions", "list"][..],
        &["activity", "list"],
        &["reconcile", "list"],
        &["channels", "list"],
        &["vault", "list"],
        &["lock"],
        &["down"],
    ] {
        refused(world.run(args), 5, "cannot be reached");
    }
    drop(world.run(["ps", "--json"]).expect_code(0));
    drop(world.run(["audit", "verify", "--json"]).expect_code(1));
}

#[test]
fn a_hint_names_the_very_home_that_was_asked_for() {
    let world = World::new();

    let finished = world.run(["sessions", "list"]).expect_code(5);

    let home = format!("lych up --home '{}'", world.folder().display());
    assert!(finished.stderr.contains(&home), "{}", finished.stderr);
}

#[test]
fn a_verb_that_does_not_honour_the_homes_variable_says_so_and_which_home_it_is_about() {
    let world = World::new();
    let with_variable = |args: &[&str]| {
        let mut lych = world.command(testkit::program("lych"));
        let lych = lych.args(args).env("LYCH_HOME", world.folder());
        let output = lych.stdin(Stdio::null()).output().expect("lych");
        String::from_utf8(output.stderr).expect("UTF-8")
    };

    for args in [&["unlock"][..], &["vault", "list"], &["channels", "apply"]] {
        let stderr = with_variable(args);
        assert!(stderr.contains("LYCH_HOME is not honoured"), "{stderr}");
        assert!(stderr.contains(".local/state/lychgate/run"), "{stderr}");
    }
    let stderr = with_variable(&["sessions", "list"]);
    assert!(!stderr.contains("not honoured"), "{stderr}");
    assert!(stderr.contains(world.folder().to_str().expect("UTF-8")));
}

#[test]
fn a_locked_vault_is_4_and_says_how_to_open_it() {
    let gate = Gate::before(Target::start());
    drop(gate.world.run(["lock"]).expect_code(0));

    for args in [
        &["vault", "list"][..],
        &["channels", "list"],
        &["channels", "apply"],
    ] {
        let finished = gate.world.run(args).expect_code(4);
        assert!(
            finished.stderr.contains("locked") && finished.stderr.contains("lych unlock"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_wrong_passphrase_or_key_file_opens_nothing_and_says_why() {
    let gate = Gate::before(Target::start());
    drop(gate.world.run(["lock"]).expect_code(0));
    let other = gate.world.write("other.key", "not a key");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).expect("our file");
    let other = other.to_str().expect("UTF-8");

    for args in [
        &["unlock", "--key-file", other][..],
        &["unlock", "--key-file", "/nowhere/at/all"],
        &["unlock", "--passphrase-fd", "0"],
    ] {
        let finished = gate.world.run_with(args, b"wrong\n");
        assert!(
            matches!(finished.code(), Some(1 | 2 | 4 | 6)),
            "{args:?}: {:?} {}",
            finished.code(),
            finished.stderr
        );
        assert!(
            finished.stderr.starts_with("error: "),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains("hint:  "), "{}", finished.stderr);
    }
    drop(gate.world.run(["vault", "list"]).expect_code(4));
}

#[test]
fn an_unknown_run_call_or_channel_is_a_usage_error_that_names_it() {
    let gate = Gate::before(Target::start());

    for (args, what) in [
        (
            &["sessions", "show", "s-0000000000000000"][..],
            "s-0000000000000000",
        ),
        (
            &["sessions", "revoke", "s-0000000000000000", "--reason", "r"],
            "s-0000000000000000",
        ),
        (
            &["sessions", "revoke", "--channel", "nope", "--reason", "r"],
            "nope",
        ),
        (
            &["activity", "show", "c-0000000000000000"],
            "c-0000000000000000",
        ),
        (
            &[
                "reconcile",
                "resolve",
                "c-0000000000000000",
                "--as",
                "failed",
                "--evidence",
                "e",
            ],
            "c-0000000000000000",
        ),
    ] {
        let finished = gate.world.run(args).expect_code(2);
        assert!(finished.stderr.contains(what), "{}", finished.stderr);
        assert!(finished.stderr.contains("hint:  "), "{}", finished.stderr);
    }
}

#[test]
fn a_destination_that_two_readers_could_read_differently_is_refused() {
    let gate = Gate::before(Target::start());

    for bad in [
        "ftp://a.example",
        "https://user@a.example",
        "http://a.example",
        "https://2130706433",
        "https://a.example/../b",
    ] {
        let finished = gate
            .world
            .run_with(["vault", "add", "x", "--for", bad, "--from-stdin"], b"s");
        refused(finished, 2, bad);
    }
}

#[test]
fn a_draft_with_a_fault_names_the_place_and_leaves_the_applied_policy_alone() {
    let gate = Gate::before(Target::start());
    let before = gate
        .world
        .run(["channels", "list", "--json"])
        .expect_code(0)
        .json();

    for bad in [
        "admission = \"sometimes\"",
        "[channel.x]\nkind = \"http\"\nbase = 7",
        "[channel.x",
        "surprise = true",
    ] {
        gate.world.write("config.toml", bad);
        let finished = gate.world.run(["channels", "apply"]).expect_code(2);
        assert!(
            finished.stderr.contains("config.toml"),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains("hint:  "), "{}", finished.stderr);
    }

    assert_eq!(
        gate.world
            .run(["channels", "list", "--json"])
            .expect_code(0)
            .json(),
        before
    );
}

#[test]
fn an_older_vault_file_put_in_place_of_the_newest_is_refused() {
    let gate = Gate::before(Target::start());
    let vault = gate.world.home().vault();
    let older = fs::read(&vault).expect("the vault");
    drop(gate.world.run(["vault", "remove", "token"]).expect_code(0));
    drop(gate.world.run(["lock"]).expect_code(0));
    let newest = fs::read(&vault).expect("the vault");
    fs::write(&vault, older).expect("our own file");

    let refused = gate.unlock();

    assert_ne!(refused.code(), Some(0), "the removed secret would be back");
    assert!(refused.stderr.contains("hint:  "), "{}", refused.stderr);
    fs::write(&vault, newest).expect("our own file");
    drop(gate.unlock().expect_code(0));
}
