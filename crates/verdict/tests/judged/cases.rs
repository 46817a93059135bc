//! How a unit is called and who holds it, on values: configuration, holders, clients that are stuck, dead or unreadable.

use clients::Client;
use inventory::{Process, Target};
use model::{Foreign, Known, LinkRole, Wall};
use verdict::{AuthorityLevel, Confidence, EndKind, Finding, Fits, Verdict};

use crate::{
    scene::evidence,
    values::{SRV, Values, configured, id, in_use, left, link},
};

fn of(values: Values) -> Finding {
    values.told(200).unwrap()
}

#[test]
fn a_server_is_called_as_it_is_configured_and_in_what_other_places_too() {
    let plain = of(in_use());
    let server = plain.server.as_ref().unwrap();
    assert_eq!(
        (server.name.raw(), server.client),
        ("fixture", Client::ClaudeCode)
    );
    let text = evidence(&plain);
    assert!(text.contains("its command line is the configured one of fixture in claude-code"));
    assert!(!text.contains("also of"), "{text}");

    let mut shared = in_use();
    let others = r#"{"mcpServers": {
        "same": {"command": "python3", "args": ["/opt/srv.py", "--stdio"]},
        "less": {"command": "python3", "args": ["/opt/srv.py"]},
        "other": {"command": "python4", "args": ["/opt/srv.py", "--stdio"]}}}"#;
    shared.expected.extend(configured(Client::Cursor, others));
    let text = evidence(&of(shared));
    assert!(
        text.contains(", also of same in cursor\n") || text.ends_with(", also of same in cursor"),
        "{text}"
    );

    let weak = in_use().but(200, |one| {
        one.command = Known::Yes(
            ["python3", "/opt/srv.py", "--http"]
                .map(Foreign::from)
                .to_vec(),
        );
    });
    let weights = |found: &Finding| {
        let mut told = found.evidence.iter();
        let of = told.find(|one| one.what.contains("fixture in claude-code"));
        of.map(|one| (one.what.starts_with("its program, but not"), one.strength))
    };
    let weak = weights(&of(weak));
    assert_eq!(weak, Some((true, verdict::EvidenceStrength::Weak)));
    let plain = weights(&plain);
    assert_eq!(plain, Some((false, verdict::EvidenceStrength::Medium)));
}

#[test]
fn what_fits_two_servers_as_little_is_said_to_fit_several() {
    let fits = |others: &str| {
        let mut values = in_use().but(200, |one| {
            let words = ["python3", "/opt/srv.py", "--http"];
            one.command = Known::Yes(words.map(Foreign::from).to_vec());
        });
        let text = format!(r#"{{"mcpServers": {{"other": {others}}}}}"#);
        values
            .expected
            .extend(configured(Client::ClaudeCode, &text));
        of(values).server.unwrap().fits
    };
    let other_line = fits(r#"{"command": "python3", "args": ["/opt/srv.py", "--sse"]}"#);
    assert_eq!(other_line, Fits::Ambiguous);
    let same_line = fits(r#"{"command": "python3", "args": ["/opt/srv.py", "--stdio"]}"#);
    assert_eq!(same_line, Fits::Weak);
    let another = fits(r#"{"command": "node", "args": ["other.js"]}"#);
    assert_eq!(another, Fits::Weak);
}

#[test]
fn a_later_holder_of_a_shims_number_is_of_no_run() {
    let session = |start| {
        let mut values = in_use().recorded((100, 100), &[]);
        values.launches[0]
            .chain
            .insert(0, link((200, start), LinkRole::Shim, SRV));
        of(values).session.is_some()
    };
    assert!(session(200));
    assert!(!session(199));
}

#[test]
fn of_a_server_behind_ssh_the_other_half_was_not_inspected() {
    let remote = |command: &str| {
        let mut values = in_use();
        let text = format!(
            r#"{{"mcpServers": {{"far": {{"command": "{command}", "args": ["host", "srv"]}}}}}}"#
        );
        values.expected = configured(Client::ClaudeCode, &text);
        let words = [command, "host", "srv"].map(Foreign::from).to_vec();
        let found = of(values.but(200, |one| one.command = Known::Yes(words)));
        assert!(found.server.is_some());
        evidence(&found).contains("runs on another machine")
    };
    assert!(remote("ssh") && remote("/usr/bin/ssh"));
    assert!(!remote("my-ssh"));
}

#[test]
fn who_holds_an_input_is_named_and_of_many_the_first_three() {
    let held_by = |more: u32| {
        let mut values = in_use();
        for number in 0..more {
            let pid = 600 + number;
            values = values.with(pid, 100, 600, "fork").hold_pipe(
                2000,
                (pid, 7),
                inventory::Access::Write,
            );
        }
        evidence(&of(values))
    };
    let one = "the other end of its standard input is held by pid 100 (client) fd 7";
    assert!(held_by(0).contains(&format!("{one}\n")));
    assert!(held_by(1).contains(&format!("{one}, pid 600 (fork) fd 7\n")));
    let many = format!("{one}, pid 600 (fork) fd 7, pid 601 (fork) fd 7 and 1 more\n");
    assert!(held_by(3).contains(&many), "{}", held_by(3));
    let gone = evidence(&of(left()));
    assert!(gone.contains("the other end of its standard input is gone, by the pipe itself"));
}

#[test]
fn a_client_is_stuck_if_it_cannot_run_or_has_not_for_half_a_minute_while_answers_wait() {
    let with = |stat: &'static str, still_ms: Option<u64>, unread| {
        let values = in_use()
            .but(100, |one| one.stat = stat.to_owned())
            .closer(100, |one| {
                if let Some(still) = still_ms {
                    one.last_ran = Known::Yes(Wall::from_millis(1_000_000 - still));
                }
            })
            .but_pipe(2001, |pipe| pipe.unread_bytes = Known::Yes(unread));
        let found = of(values);
        let text = evidence(&found);
        let how = text
            .lines()
            .find_map(|line| line.strip_prefix("its client pid 100 "));
        let how = how.map(|how| how.split(", since").next().unwrap().to_owned());
        (found.verdict, how.unwrap_or_default())
    };
    let suspect = |how: &str| (Verdict::LogicalOrphanSuspect, how.to_owned());
    let live = || (Verdict::Live, String::new());
    assert_eq!(with("T", None, 0), suspect("is stopped"));
    let kernel = "waits in the kernel for what no signal ends";
    assert_eq!(with("D", Some(30_000), 0), suspect(kernel));
    assert_eq!(with("D", Some(29_999), 0), live());
    let unread = "does not run while 5 bytes for it are not read";
    assert_eq!(with("S", Some(30_000), 5), suspect(unread));
    assert_eq!(with("S", Some(29_999), 5), live());
    assert_eq!(with("S", Some(30_000), 0), live());
    assert_eq!(with("S", None, 5), live());
}

#[test]
fn another_server_that_inherited_an_end_neither_uses_it_nor_takes_the_answers() {
    let sibling = || {
        Values::new()
            .with(100, 50, 100, "client")
            .with(300, 100, 300, SRV)
            .served(300, 100)
            .with(200, 1, 200, SRV)
    };
    let writes =
        sibling()
            .pipe(2000, Some((300, 9)), Some((200, 0)))
            .pipe(2001, Some((200, 1)), None);
    assert_eq!(writes.words(200), "ORPHAN_HELD_OPEN inferred 200");
    let reads =
        sibling()
            .pipe(2000, None, Some((200, 0)))
            .pipe(2001, Some((200, 1)), Some((300, 9)));
    assert_eq!(reads.words(200), "OS_ORPHAN proven 200");
    let no_server = sibling()
        .with(301, 100, 301, "helper")
        .pipe(2000, Some((301, 9)), Some((200, 0)))
        .pipe(2001, Some((200, 1)), None);
    assert_eq!(no_server.words(200), "LIVE inferred 200");
}

#[test]
fn a_client_that_is_dead_by_record_makes_an_orphan_below_a_parent_that_lives() {
    let below = || {
        Values::new()
            .with(90, 50, 20, "launcher")
            .with(200, 90, 200, SRV)
            .abandoned(200)
    };
    assert_eq!(below().words(200), "DETACHED inferred 200");
    let recorded = || below().recorded((100, 100), &[(200, 200, 90, SRV)]);
    assert_eq!(recorded().words(200), "OS_ORPHAN proven 200");
    let client_lives = recorded().with(100, 50, 100, "client");
    assert_eq!(client_lives.words(200), "DETACHED inferred 200");

    let by_census = evidence(&of(recorded()));
    assert!(
        by_census.contains("the daemon saw it below pid 100, the client of run"),
        "{by_census}"
    );
    let mut of_a_shim = recorded();
    let shim = link((200, 200), LinkRole::Shim, SRV);
    of_a_shim.launches[0].chain.insert(0, shim);
    let by_record = evidence(&of(of_a_shim));
    assert!(
        by_record.contains("its client, pid 100 at the start of run"),
        "{by_record}"
    );
}

#[test]
fn a_process_that_was_told_of_can_be_found_again_by_its_start_and_inode() {
    let told = |inode| {
        let root = of(left().but(200, |one| one.id.pidfd_inode = inode)).root;
        (root.start.clone(), root.identity("a boot").unwrap())
    };
    let expected = |pidfd_inode| model::ProcessId {
        pidfd_inode,
        ..id(200, 200)
    };
    assert_eq!(told(Some(7)), ("200.7".to_owned(), expected(Some(7))));
    assert_eq!(told(None), ("200".to_owned(), expected(None)));
    assert_eq!(of(left()).id, "f-200-200");
}

#[test]
fn the_words_of_a_report_are_those_of_its_json() {
    fn json<T: serde::Serialize>(word: T) -> String {
        let json = serde_json::to_value(word).unwrap();
        json.as_str().unwrap().to_owned()
    }
    for level in [
        AuthorityLevel::Unknown,
        AuthorityLevel::NoneSeen,
        AuthorityLevel::Refused,
        AuthorityLevel::Reachable,
        AuthorityLevel::Held,
    ] {
        assert_eq!(level.word(), json(level));
    }
    for confidence in [
        Confidence::Unknown,
        Confidence::Suspected,
        Confidence::Inferred,
        Confidence::Proven,
    ] {
        assert_eq!(confidence.word(), json(confidence));
    }
    for verdict in [
        Verdict::LogicalOrphan,
        Verdict::OsOrphan,
        Verdict::OrphanHeldOpen,
        Verdict::Detached,
        Verdict::LeftoverChild,
        Verdict::LogicalOrphanSuspect,
        Verdict::Unknown,
        Verdict::Zombie,
        Verdict::Recycled,
        Verdict::Shared,
        Verdict::Managed,
        Verdict::Live,
    ] {
        assert_eq!(verdict.word(), json(verdict));
    }
}

#[test]
fn what_nobody_says_to_be_a_server_is_told_so() {
    let doubt = "no record and no configuration says for sure that it is an MCP server";
    assert!(!evidence(&of(left())).contains(doubt));
    let unnamed = left().but(200, |one| one.command = Known::Yes(vec!["x".into()]));
    assert!(evidence(&of(unnamed)).contains(doubt));
}

#[test]
fn a_terminal_that_is_there_takes_the_output_and_one_that_is_gone_does_not() {
    let writes_to = |path: &str| {
        let path = Foreign::from(path);
        Values::new()
            .with(200, 1, 200, SRV)
            .pipe(2000, None, Some((200, 0)))
            .open((200, 1), Target::Terminal { path })
            .words(200)
    };
    assert_eq!(writes_to("/dev/pts/3"), "OS_ORPHAN inferred 200");
    assert_eq!(writes_to("/dev/pts/3 (deleted)"), "OS_ORPHAN proven 200");
}

#[test]
fn a_parent_whose_descriptors_could_not_be_read_may_hold_what_is_not_seen() {
    let hidden = |one: &mut Process| one.descriptors = Known::unknown("permission denied");
    let held = || {
        Values::new()
            .with(100, 50, 100, "client")
            .with(200, 100, 200, SRV)
            .with(201, 200, 201, "helper")
            .pipe(2000, Some((201, 9)), Some((200, 0)))
            .pipe(2001, Some((200, 1)), None)
    };
    assert_eq!(held().words(200), "DETACHED suspected 200");
    assert_eq!(held().but(100, hidden).words(200), "UNKNOWN unknown 200");

    let at_its_end = || {
        Values::new()
            .with(100, 50, 100, "client")
            .with(200, 100, 200, SRV)
            .abandoned(200)
    };
    assert_eq!(at_its_end().words(200), "DETACHED inferred 200");
    let found = of(at_its_end().but(100, hidden));
    assert_eq!(found.verdict, Verdict::Detached);
    assert_eq!(found.confidence, Confidence::Suspected);
    assert!(!evidence(&found).contains("holds no end"));
    assert_eq!(found.transport.stdin.kind, EndKind::Pipe);
}
