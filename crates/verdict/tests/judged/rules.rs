//! Each rule of the verdict once where it holds and once where it just does not, on values.

use inventory::{Access, Descriptor, Target};
use model::{Foreign, Known, LinkRole};

use crate::values::{SRV, Values, in_use, left, link};

#[test]
fn a_held_wire_is_in_use_and_an_abandoned_one_left_over() {
    assert_eq!(in_use().words(200), "LIVE proven 200");
    assert_eq!(left().words(200), "OS_ORPHAN proven 200");
}

#[test]
fn an_adopter_is_known_by_number_by_name_or_by_session() {
    let below = |line: &str| {
        Values::new()
            .with(90, 50, 20, line)
            .with(200, 90, 200, SRV)
            .abandoned(200)
    };
    for name in ["systemd", "tini", "containerd-shim", "Relay(7)", "launchd"] {
        let values = below(name);
        assert_eq!(values.words(200), "OS_ORPHAN proven 200", "{name}");
    }
    assert_eq!(below("client").words(200), "DETACHED inferred 200");
    let other_session = below("client").but(90, |one| one.sid = 90);
    assert_eq!(other_session.words(200), "OS_ORPHAN proven 200");
    let own_session = below("client").but(200, |one| one.sid = 200);
    assert_eq!(own_session.words(200), "DETACHED inferred 200");
}

#[test]
fn number_one_is_an_adopter_only_where_all_processes_are_shown() {
    let below_number_one = || {
        left().but(1, |one| {
            one.comm = Foreign::from("client");
            one.sid = 50;
        })
    };
    let orphan = "OS_ORPHAN proven 200";
    assert_eq!(below_number_one().words(200), orphan);
    let other_gap = below_number_one().gap("unix sockets");
    assert_eq!(other_gap.words(200), orphan);
    let inside = below_number_one().gap("other processes");
    assert_eq!(inside.words(200), "DETACHED inferred 200");
}

#[test]
fn a_parent_that_is_not_seen_or_younger_gives_no_verdict() {
    let outside = left().but(200, |one| one.ppid = 0);
    assert_eq!(outside.words(200), "UNKNOWN unknown 200");
    let later = left().with(90, 50, 300, "x").but(200, |one| one.ppid = 90);
    assert_eq!(later.words(200), "UNKNOWN unknown 200");
    let same_tick = left().with(90, 50, 200, "x").but(200, |one| one.ppid = 90);
    assert_eq!(same_tick.words(200), "DETACHED inferred 200");
}

#[test]
fn proven_needs_a_match_and_nobody_who_takes_the_output() {
    let other = left().but(200, |one| {
        one.command = Known::Yes(vec![
            "python3".into(),
            "/opt/srv.py".into(),
            "--http".into(),
        ]);
    });
    assert_eq!(other.words(200), "OS_ORPHAN inferred 200");
    let read = Values::new()
        .with(90, 50, 20, "cat")
        .with(200, 1, 200, SRV)
        .pipe(1, None, Some((200, 0)))
        .pipe(2, Some((200, 1)), Some((90, 0)));
    assert_eq!(read.words(200), "OS_ORPHAN inferred 200");
}

#[test]
fn the_next_of_a_pipeline_uses_what_it_reads_and_only_from_its_standard_input_beside_it() {
    let pipeline = |fd, beside: u32| {
        Values::new()
            .with(90, beside, 20, "jq")
            .with(200, 50, 200, SRV)
            .pipe(1, None, Some((200, 0)))
            .pipe(2, Some((200, 1)), Some((90, fd)))
    };
    assert_eq!(pipeline(0, 50).words(200), "LIVE inferred 200");
    assert_eq!(pipeline(4, 50).words(200), "DETACHED suspected 200");
    assert_eq!(pipeline(0, 1).words(200), "DETACHED suspected 200");
    let other_job = pipeline(0, 50).but(90, |one| one.pgid = 90);
    assert_eq!(other_job.words(200), "DETACHED suspected 200");
}

#[test]
fn a_holder_that_only_inherited_the_end_makes_no_use_of_it() {
    let held = |parent: u32, inherited: bool| {
        Values::new()
            .with(90, parent, 150, "helper")
            .with(200, 1, 200, SRV)
            .pipe(1, Some((90, 4)), Some((200, 0)))
            .pipe(2, Some((200, 1)), None)
            .but(90, move |one| {
                let Known::Yes(open) = &mut one.descriptors else {
                    panic!("{one:?}");
                };
                open[0].close_on_exec = Some(!inherited);
            })
    };
    assert_eq!(held(1, true).words(200), "ORPHAN_HELD_OPEN inferred 200");
    assert_eq!(held(1, false).words(200), "ORPHAN_HELD_OPEN inferred 200");
    assert_eq!(held(50, true).words(200), "ORPHAN_HELD_OPEN inferred 200");
    assert_eq!(held(50, false).words(200), "LIVE inferred 200");
}

#[test]
fn a_fork_that_was_left_over_with_the_server_is_a_suspect_and_a_daemon_is_none() {
    let forked = || {
        Values::new()
            .with(90, 1, 150, "client")
            .with(200, 1, 200, SRV)
            .served(200, 90)
    };
    assert_eq!(forked().words(200), "LOGICAL_ORPHAN_SUSPECT suspected 200");
    let daemon = forked().but(90, |one| one.sid = 90);
    assert_eq!(daemon.words(200), "LIVE inferred 200");
    let has_parent = forked().but(90, |one| one.ppid = 50);
    assert_eq!(has_parent.words(200), "LIVE inferred 200");
}

#[test]
fn a_client_on_record_uses_what_it_holds_though_both_lost_their_parents() {
    let recorded = |pid: u32, start: u64| {
        let mut values = Values::new()
            .with(90, 1, 150, "client")
            .with(91, 50, 150, "other")
            .with(200, 1, 200, "lych mcp")
            .served(200, 90)
            .recorded((pid, start), &[]);
        let shim = link((200, 200), LinkRole::Shim, "lych mcp");
        values.launches[0].chain.insert(0, shim);
        values.words(200)
    };
    assert_eq!(recorded(90, 150), "LIVE inferred 200");
    assert_eq!(recorded(91, 150), "LOGICAL_ORPHAN_SUSPECT suspected 200");
    // Then that client is dead, and its number has another holder.
    assert_eq!(recorded(90, 149), "LOGICAL_ORPHAN_SUSPECT suspected 200");
}

#[test]
fn what_only_starts_and_reaps_holds_a_wire_for_somebody_else() {
    let engine = Values::new()
        .with(90, 1, 150, "containerd-shim")
        .with(200, 90, 200, SRV)
        .served(200, 90);
    assert_eq!(engine.words(200), "LIVE inferred 200");
}

#[test]
fn a_younger_server_as_configured_makes_a_forgotten_one_of_an_older_that_is_not() {
    let generations = |start: u64, line: &str| {
        in_use()
            .with(210, 100, start, line)
            .served(210, 100)
            .words(210)
    };
    let older = "LOGICAL_ORPHAN_SUSPECT suspected 210";
    assert_eq!(generations(150, "python3 /opt/srv.py --old"), older);
    assert_eq!(
        generations(250, "python3 /opt/srv.py --old"),
        "LIVE proven 210"
    );
    assert_eq!(generations(150, SRV), "LIVE proven 210");
    let of_one_moment = generations(200, "python3 /opt/srv.py --old");
    assert_eq!(of_one_moment, "LIVE proven 210");
    let beside = |younger: &str| {
        let older = Values::new()
            .with(100, 50, 100, "client")
            .with(210, 100, 150, "python3 /opt/srv.py --old")
            .served(210, 100);
        let both = older.with(200, 100, 200, younger).served(200, 100);
        both.words(210)
    };
    assert_eq!(beside(SRV), older);
    let another_server = beside("docker run -i mcp/boxed");
    assert_eq!(another_server, "LIVE proven 210");
    let as_little_configured = beside("python3 /opt/srv.py --older");
    assert_eq!(as_little_configured, "LIVE proven 210");
}

#[test]
fn a_wrapper_on_the_same_input_is_of_the_unit_and_a_shell_above_is_not() {
    let wrapped = Values::new()
        .with(190, 1, 190, "sh -c x")
        .with(200, 190, 200, SRV)
        .abandoned(200)
        .but(190, |one| {
            let input = Descriptor {
                fd: 0,
                access: Some(Access::Read),
                close_on_exec: None,
                locked: false,
                wakes_in_ms: None,
                named_pipe: None,
                target: Target::Pipe { inode: 2000 },
            };
            one.descriptors = Known::Yes(vec![input]);
        });
    assert_eq!(wrapped.words(200), "OS_ORPHAN proven 190");
    assert_eq!(in_use().words(50), "nothing");
    assert_eq!(in_use().words(100), "nothing");
}

#[test]
fn what_nobody_configured_is_told_of_only_if_it_lost_both_ends_and_its_parent() {
    let other = |ppid: u32, input: Option<(u32, u32)>, output: Option<(u32, u32)>| {
        Values::new()
            .with(90, 50, 20, "x")
            .with(200, ppid, 200, "python3 other.py")
            .pipe(1, input, Some((200, 0)))
            .pipe(2, Some((200, 1)), output)
            .words(200)
    };
    assert_eq!(other(1, None, None), "OS_ORPHAN inferred 200");
    assert_eq!(other(50, None, None), "nothing");
    assert_eq!(other(1, Some((90, 4)), None), "nothing");
    assert_eq!(other(1, None, Some((90, 4))), "nothing");
}
