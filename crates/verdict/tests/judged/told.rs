//! What is said beside the verdict, on values: what else is true of a unit, what it is called, and how many there are.

use inventory::{Closer, Process, Target, TcpState, Wait};
use model::{Foreign, Known};
use verdict::{Also, Extent, Finding, Suggest, Verdict, command_text};

use crate::{
    scene::evidence,
    values::{SRV, Values, in_use, left},
};

fn of(values: Values) -> Finding {
    values.told(200).unwrap()
}

#[test]
fn only_what_is_left_over_for_sure_is_to_be_contained() {
    assert_eq!(of(left()).suggest, Suggest::Contain);
    assert_eq!(of(in_use()).suggest, Suggest::Leave);
    let zombie = in_use().but(200, |one| one.stat = "Z".to_owned());
    let zombie = zombie.with(201, 100, 201, SRV).served(201, 100);
    assert_eq!(of(zombie).suggest, Suggest::Leave);
    let inferred = left().but(200, |one| one.command = Known::Yes(vec!["x".into()]));
    assert_eq!(of(inferred).suggest, Suggest::Report);
}

#[test]
fn what_spins_runs_and_has_wanted_a_processor_for_more_than_half_of_its_life() {
    let with = |stat: &str, elapsed_ms, cpu_ms, runnable| {
        let change = |one: &mut Process| {
            one.stat = stat.to_owned();
            (one.elapsed_ms, one.cpu_ms) = (elapsed_ms, cpu_ms);
        };
        let values = left().but(200, change);
        of(values.closer(200, |closer| closer.runnable_ms = runnable)).also
    };
    for (stat, elapsed, cpu, runnable, spins) in [
        ("R", 1000, 1001, None, true),
        ("R", 1000, 1000, None, false),
        ("R", 4000, 2001, None, true),
        ("R", 4000, 2000, None, false),
        ("S", 4000, 4000, None, false),
        ("R", 4000, 0, Some(2001), true),
        ("R", 4000, 2001, Some(0), true),
    ] {
        let expected: &[Also] = if spins { &[Also::Spinning] } else { &[] };
        assert_eq!(with(stat, elapsed, cpu, runnable), expected, "{stat} {cpu}");
    }
    let spinning = |one: &mut Process| {
        one.stat = "R".to_owned();
        one.cpu_ms = 5000;
    };
    assert_eq!(of(in_use().but(200, spinning)).also, []);
}

#[test]
fn what_listens_or_holds_a_lock_holds_what_others_may_need() {
    let tcp = |state| of(left().tcp(Some((200, 5)), state, "127.0.0.1:8000", "10.0.0.1:1")).also;
    assert_eq!(tcp(TcpState::Listen), [Also::Holds]);
    assert_eq!(tcp(TcpState::Established), []);
    let file = |locked| {
        let path = Foreign::from("/tmp/database");
        let deleted = false;
        let opened = left().open((200, 5), Target::File { path, deleted });
        of(opened.but(200, |one| {
            let Known::Yes(open) = &mut one.descriptors else {
                return;
            };
            open.last_mut().unwrap().locked = locked;
        }))
        .also
    };
    assert_eq!((file(true), file(false)), (vec![Also::Holds], vec![]));
}

#[test]
fn what_withstands_sigterm_or_has_not_read_all_is_told_so() {
    let closer = |change: fn(&mut Closer)| of(left().closer(200, change)).also;
    let withstands = closer(|one| one.withstands_term = Known::Yes(true));
    assert_eq!(withstands, [Also::TermImmune]);
    assert_eq!(closer(|one| one.withstands_term = Known::Yes(false)), []);
    let unread = |bytes| {
        let values = left().but_pipe(2000, |pipe| pipe.unread_bytes = Known::Yes(bytes));
        of(values).also
    };
    assert_eq!((unread(1), unread(0)), (vec![Also::Busy], vec![]));
}

#[test]
fn what_will_wake_by_itself_is_told_of_what_is_left_over_only() {
    let sleeping = |values: Values| {
        let values = values.closer(200, |one| one.waits = Known::Yes(Wait::Time));
        evidence(&of(values)).contains("pid 200 will wake by itself")
    };
    assert!(sleeping(left()));
    assert!(!sleeping(in_use()));
}

#[test]
fn a_timer_the_main_thread_or_another_says_what_wakes_it_the_first_that_does() {
    let wakes = |change: fn(&mut Closer), timers: &[u64]| {
        let mut values = left().closer(200, change);
        for (fd, millis) in (5..).zip(timers) {
            let name = Foreign::from("anon_inode:[timerfd]");
            values = values.open((200, fd), Target::Kernel { name });
            values = values.but(200, |one| {
                let Known::Yes(open) = &mut one.descriptors else {
                    return;
                };
                open.last_mut().unwrap().wakes_in_ms = Some(*millis);
            });
        }
        let text = evidence(&of(values));
        let mut lines = text.lines();
        let how = lines.find_map(|line| line.strip_prefix("pid 200 will wake by itself: "));
        how.unwrap_or_default().to_owned()
    };
    let timer = "its timer at descriptor 6 goes off in 400 ms";
    assert_eq!(wakes(|_| (), &[500, 400]), timer);
    let main = |one: &mut Closer| {
        let at_most_ms = 30;
        one.waits = Known::Yes(Wait::OthersOrTime { at_most_ms });
    };
    assert_eq!(wakes(main, &[500, 400]), timer);
    assert_eq!(wakes(main, &[]), "it waits for 30 ms at most");
    let until = |one: &mut Closer| one.waits = Known::Yes(Wait::OthersOrUntil);
    assert_eq!(wakes(until, &[]), "it waits for others, or until a time");
    let thread = |one: &mut Closer| {
        let thread = |thread, wait| inventory::ThreadWait { thread, wait };
        one.waits = Known::Yes(Wait::Others);
        one.wakers = Known::Yes(vec![thread(7, Wait::Unclear), thread(8, Wait::Time)]);
    };
    assert_eq!(wakes(thread, &[]), "its thread 8 sleeps for a time");
    assert_eq!(wakes(|one| one.waits = Known::Yes(Wait::Nothing), &[]), "");
}

#[test]
fn what_a_process_is_called_is_its_command_line_or_why_there_is_none() {
    let text = |command| {
        let root = of(left().but(200, |one| one.command = command)).root;
        command_text(&root).raw().to_owned()
    };
    let words = ["srv", "--stdio"].map(Foreign::from).to_vec();
    assert_eq!(text(Known::Yes(words)), "srv --stdio");
    assert_eq!(text(Known::Yes(Vec::new())), "(no command line)");
    assert_eq!(text(Known::unknown("x")), "(command line not readable)");
}

/// One in use, one left over with a helper, one that nothing is known of, a suspect, and others' processes.
fn all_kinds() -> Values {
    let rss = |bytes| move |one: &mut Process| one.rss_bytes = bytes;
    in_use()
        .with(210, 1, 210, SRV)
        .abandoned(210)
        .but(210, rss(10))
        .with(211, 210, 211, "helper")
        .but(211, rss(5))
        .with(220, 50, 220, SRV)
        .with(230, 50, 230, "stopped-client")
        .but(230, |one| one.stat = "T".to_owned())
        .with(231, 230, 231, SRV)
        .served(231, 230)
        .with(300, 50, 300, "filter")
        .pipe(3000, Some((50, 9)), Some((300, 0)))
        .with(310, 50, 310, "own-wire")
        .pipe(3100, Some((310, 5)), Some((310, 0)))
        .with(400, 0, 1, "kworker")
        .but(400, |one| one.kernel_thread = true)
}

#[test]
fn the_sums_count_servers_only_and_memory_of_what_is_left_over() {
    let gaps = all_kinds()
        .gap_of(220, "memory")
        .gap_of(220, "program")
        .gap("unix sockets");
    for extent in [Extent::Servers, Extent::Everything] {
        let sums = gaps_of(&gaps, extent);
        assert_eq!(
            sums,
            "1 in use, 1 left over, 1 suspected, 1 unknown, 15 bytes, 1 hidden"
        );
    }
}

fn gaps_of(values: &Values, extent: Extent) -> String {
    let sums = values.clone().judge_to(extent).sums;
    format!(
        "{} in use, {} left over, {} suspected, {} unknown, {} bytes, {} hidden",
        sums.live,
        sums.orphaned,
        sums.suspected,
        sums.unknown,
        sums.orphaned_rss_bytes,
        sums.not_readable
    )
}

#[test]
fn among_all_processes_each_is_told_of_once_and_the_kernels_own_are_not() {
    let report = all_kinds().judge_to(Extent::Everything);

    let mut pids: Vec<u32> = report.findings.iter().map(|one| one.root.pid).collect();
    pids.sort_unstable();
    assert_eq!(pids, [1, 50, 100, 200, 210, 220, 230, 231, 300, 310]);
    let verdict_of = |pid| {
        let mut findings = report.findings.iter();
        findings.find(|one| one.root.pid == pid).unwrap().verdict
    };
    assert_eq!(verdict_of(300), Verdict::Live, "somebody holds its input");
    assert_eq!(verdict_of(310), Verdict::Unknown, "only itself does");
}

#[test]
fn what_has_ended_is_told_of_below_a_server_a_client_and_nobody_else() {
    let ended = |ppid| {
        let values = in_use().with(500, ppid, 500, "gone");
        let zombie = values.but(500, |one| one.stat = "Z".to_owned());
        zombie.words(500)
    };
    for ppid in [1, 100, 200] {
        assert_eq!(ended(ppid), "ZOMBIE proven 500", "{ppid}");
    }
    assert_eq!(ended(50), "nothing");
    let of_a_servers_line = in_use()
        .with(500, 50, 500, SRV)
        .but(500, |one| one.stat = "Z".to_owned());
    assert_eq!(of_a_servers_line.words(500), "nothing");
}

#[test]
fn a_closer_look_takes_servers_their_holders_and_what_records_name() {
    let values = in_use()
        .with(110, 100, 110, "other-child")
        .recorded((100, 100), &[]);
    let pids: Vec<u32> = values.candidates().into_iter().collect();
    assert_eq!(pids, [100, 110, 200]);
    assert!(Values::new().candidates().is_empty());
}
