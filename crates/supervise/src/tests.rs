//! Real processes that end, refuse to end, or come back.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use model::{Known, ProcessId};
use sys::{clock::SystemClock, process::Handle};
use testkit::{Deadline, Held, World, wait_until};

use crate::{
    Alone, Delivery, End, EndRecord, Evidence, Family, Force, HowEnded, NotATarget, Origin, Plan,
    Remains, Signal, Standing, Target, terminate,
};

mod respawn;

/// A Python program that says when it is ready and then waits for signals.
fn program(world: &World, setup: &str) -> Held {
    let script = format!(
        "import os, signal, subprocess, sys, time\n{setup}\nprint('ready', flush=True)\n\
         while True: signal.pause()\n"
    );
    let mut held = Held::start(
        world
            .command("python3")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped()),
    );
    let mut line = String::new();
    BufReader::new(held.take_stdout().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    held
}

fn evidence(pid: u32) -> Evidence {
    Evidence {
        process: Handle::open(pid).unwrap().describe().unwrap(),
        standing: Standing::Endable,
    }
}

fn target(pid: u32) -> Target {
    Target::verify(&evidence(pid)).unwrap()
}

fn brief() -> Plan {
    Plan {
        grace: Duration::from_millis(400),
        look_every: Duration::from_millis(20),
        force: None,
    }
}

fn patient() -> Plan {
    Plan {
        grace: Duration::from_secs(20),
        ..brief()
    }
}

fn end(targets: Vec<Target>, plan: &Plan) -> Vec<EndRecord> {
    terminate(targets, plan, &mut Alone, &SystemClock)
}

/// Ends one child of ours while another thread collects it, as its parent would.
fn end_one(mut held: Held, plan: &Plan) -> EndRecord {
    let target = target(held.pid());
    let collector = thread::spawn(move || {
        held.wait(Deadline::usual());
    });
    let record = end(vec![target], plan).remove(0);
    collector.join().unwrap();
    record
}

fn remains(record: &EndRecord) -> &Remains {
    match &record.end {
        End::Remains { why, .. } => why,
        End::Gone { .. } | End::Unclear { .. } => panic!("it should remain: {:?}", record.end),
    }
}

/// Finds children in `/proc`, as the inventory does.
struct Children;

impl Family for Children {
    fn new_children(&mut self, of: &[ProcessId]) -> Vec<Target> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.parse::<u32>().ok()
        });
        pids.filter_map(|pid| Handle::open(pid).ok())
            .filter(|handle| of.iter().any(|id| id.pid == handle.stat().ppid))
            .filter(|handle| !of.iter().any(|id| id.same(handle.id())))
            .map(|handle| target(handle.id().pid))
            .collect()
    }
}

#[test]
fn a_process_without_a_handler_ends_by_the_signal_and_the_record_says_so() {
    let world = World::new();

    let record = end_one(program(&world, ""), &patient());

    assert!(record.is_gone());
    assert_eq!(record.signals.len(), 1);
    assert_eq!(record.signals[0].signal, Signal::Term);
    assert_eq!(record.signals[0].delivery, Delivery::Taken);
    assert_eq!(record.forced, None);
    assert_eq!(record.parent.unwrap().pid, std::process::id());
    if let End::Gone {
        how: Known::Yes(how),
        ..
    } = record.end
    {
        assert_eq!(
            how,
            HowEnded::Signal {
                signal: 15,
                core_dumped: false
            }
        );
    }
}

#[test]
fn the_exit_code_of_an_orderly_end_is_on_record() {
    let world = World::new();
    let held = program(
        &world,
        "signal.signal(signal.SIGTERM, lambda *a: os._exit(7))",
    );

    let record = end_one(held, &patient());

    match &record.end {
        End::Gone {
            how: Known::Yes(how),
            ..
        } => assert_eq!(*how, HowEnded::Exit { code: 7 }),
        End::Gone {
            how: Known::Unknown { unknown },
            ..
        } => assert!(unknown.contains("kernel"), "{unknown}"),
        End::Remains { .. } | End::Unclear { .. } => panic!("{:?}", record.end),
    }
}

#[test]
fn a_zombie_counts_as_gone() {
    let world = World::new();
    let held = program(&world, "");

    let record = end(vec![target(held.pid())], &patient()).remove(0);

    let End::Gone { how, .. } = record.end else {
        panic!("it has ended: {record:?}");
    };
    assert_eq!(how.why(), Some("its parent has not collected it"));
}

#[test]
fn a_process_that_ignores_term_remains_and_is_not_killed_without_a_reason() {
    let world = World::new();
    let held = program(&world, "signal.signal(signal.SIGTERM, signal.SIG_IGN)");

    let record = end(vec![target(held.pid())], &brief()).remove(0);

    assert_eq!(*remains(&record), Remains::IgnoresTerm);
    assert_eq!(record.signals.len(), 1);
    assert_eq!(record.forced, None);
}

#[test]
fn a_blocked_term_is_told_from_an_ignored_one() {
    let world = World::new();
    let held = program(
        &world,
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])",
    );

    let record = end(vec![target(held.pid())], &brief()).remove(0);

    assert_eq!(*remains(&record), Remains::BlocksTerm);
}

#[test]
fn a_stopped_process_is_reported_as_stopped() {
    let world = World::new();
    let mut held = Held::start(
        world
            .command("python3")
            .args([
                "-c",
                "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
            ])
            .stdin(Stdio::null()),
    );
    let handle = Handle::open(held.pid()).unwrap();
    wait_until("the program to stop", Deadline::usual(), || {
        handle.stat_now().unwrap().state.is_stopped()
    });

    let record = end(vec![target(held.pid())], &brief()).remove(0);

    assert_eq!(*remains(&record), Remains::Stopped);
    held.crash();
}

#[test]
fn a_process_that_took_the_signal_is_shutting_down() {
    let world = World::new();
    let held = program(&world, "signal.signal(signal.SIGTERM, lambda *a: None)");

    let record = end(vec![target(held.pid())], &brief()).remove(0);

    assert_eq!(*remains(&record), Remains::ShuttingDown);
}

#[test]
fn a_process_that_waits_for_a_stubborn_child_is_held_by_it() {
    let world = World::new();
    let stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                    print(1, flush=True)\nwhile True: signal.pause()";
    let held = program(
        &world,
        &format!(
            "signal.signal(signal.SIGTERM, lambda *a: None)\n\
             p = subprocess.Popen([sys.executable, '-c', {stubborn:?}], stdout=subprocess.PIPE)\n\
             p.stdout.readline()"
        ),
    );

    let records = terminate(
        vec![target(held.pid())],
        &brief(),
        &mut Children,
        &SystemClock,
    );

    assert_eq!(records.len(), 2);
    let child = records[1].process.id.clone();
    assert_eq!(records[1].origin, Origin::NewChild);
    assert_eq!(*remains(&records[1]), Remains::IgnoresTerm);
    assert_eq!(
        *remains(&records[0]),
        Remains::HeldByChild {
            children: vec![child.clone()]
        }
    );
    let plan = brief().forced(Force::because("the test is over").unwrap());
    let killed = end(vec![target(child.pid)], &plan);
    assert!(killed[0].is_gone());
}

#[test]
fn a_child_that_is_born_while_its_parent_ends_is_ended_too() {
    let world = World::new();
    let held = program(
        &world,
        "signal.signal(signal.SIGTERM, lambda *a: subprocess.Popen(['sleep', '300']))",
    );

    let records = terminate(
        vec![target(held.pid())],
        &brief(),
        &mut Children,
        &SystemClock,
    );

    let child = records.iter().find(|r| r.origin == Origin::NewChild);
    assert!(child.unwrap().is_gone(), "{records:?}");
}

#[test]
fn a_forced_ending_comes_after_term_and_says_that_cleanup_may_be_incomplete() {
    let world = World::new();
    let held = program(&world, "signal.signal(signal.SIGTERM, signal.SIG_IGN)");
    let plan = brief().forced(Force::because("it keeps a port").unwrap());

    let record = end_one(held, &plan);

    assert!(record.is_gone());
    let sent: Vec<Signal> = record.signals.iter().map(|sent| sent.signal).collect();
    assert_eq!(sent, [Signal::Term, Signal::Kill]);
    let forced = record.forced.unwrap();
    assert_eq!(forced.reason, "it keeps a port");
    assert!(forced.note.contains("cleanup possibly incomplete"));
}

#[test]
fn a_process_that_ends_in_time_is_not_killed_by_a_plan_that_may() {
    let world = World::new();
    let plan = patient().forced(Force::because("in a hurry").unwrap());

    let record = end_one(program(&world, ""), &plan);

    assert_eq!(record.signals.len(), 1);
    assert_eq!(record.forced, None);
}

#[test]
fn a_forced_ending_without_a_reason_cannot_be_asked_for() {
    assert!(Force::because(" \n").is_err());
}

#[test]
fn what_lives_is_managed_or_shared_is_refused() {
    let world = World::new();
    let held = program(&world, "");

    for standing in [Standing::Live, Standing::Managed, Standing::Shared] {
        let refused = Target::verify(&Evidence {
            standing,
            ..evidence(held.pid())
        });

        assert!(matches!(
            refused,
            Err(NotATarget::Live(_) | NotATarget::Managed(_) | NotATarget::Shared(_))
        ));
    }
    assert!(Handle::open(held.pid()).unwrap().is_alive().unwrap());
}

#[test]
fn a_process_that_runs_another_program_now_is_not_the_one_of_the_evidence() {
    let world = World::new();
    let held = program(&world, "");
    let mut evidence = evidence(held.pid());
    evidence.process.exe_id.as_mut().unwrap().ino += 1;

    let refused = Target::verify(&evidence).unwrap_err();

    assert!(matches!(refused, NotATarget::Changed(_)));
}

#[test]
fn a_process_that_ended_before_its_signal_is_already_gone() {
    let world = World::new();
    let mut held = program(&world, "");
    let target = target(held.pid());
    held.crash();

    let record = end(vec![target], &patient()).remove(0);

    assert_eq!(record.signals[0].delivery, Delivery::AlreadyGone);
    assert!(record.is_gone());
}

/// Makes the kernel give `pid` to a new process, where it lets us choose (CAP_CHECKPOINT_RESTORE).
fn reuse(pid: u32, world: &World) -> Option<Held> {
    for _ in 0..300 {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let held = Held::start(world.command("sleep").arg("300").stdin(Stdio::null()));
        if held.pid() == pid {
            return Some(held);
        }
    }
    None
}

#[test]
fn a_later_holder_of_the_number_gets_no_signal() {
    let world = World::new();
    let mut first = program(&world, "");
    let evidence = evidence(first.pid());
    let held_on = Target::verify(&evidence).unwrap();
    first.crash();
    let Some(mut stranger) = reuse(evidence.process.id.pid, &world) else {
        eprintln!("this machine does not let process numbers be chosen");
        return;
    };

    let by_evidence = Target::verify(&evidence).unwrap_err();
    let plan = brief().forced(Force::because("even so").unwrap());
    let record = end(vec![held_on], &plan).remove(0);

    assert!(by_evidence.is_gone());
    assert_eq!(record.signals[0].delivery, Delivery::AlreadyGone);
    assert_eq!(stranger.ended(), None);
}

const NOBODY: u32 = 65534;

#[test]
fn a_process_of_another_user_is_refused_by_the_kernel_and_the_record_has_its_errno() {
    if let Ok(pid) = std::env::var("LYCH_TEST_FOREIGN_PID") {
        let record = end(vec![target(pid.parse().unwrap())], &brief()).remove(0);
        println!("{}", serde_json::to_string(&record).unwrap());
        return;
    }
    let world = World::new();
    let held = program(&world, "");
    // Only root can become somebody else; for anybody else there is a foreign process anyway.
    let Ok(output) = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("tests::a_process_of_another_user_is_refused_by_the_kernel_and_the_record_has_its_errno")
        .env("LYCH_TEST_FOREIGN_PID", held.pid().to_string())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
    else {
        eprintln!("this test can only run as root");
        return;
    };

    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find_map(|line| line.find('{').map(|at| &line[at..]));
    let record: EndRecord = serde_json::from_str(line.expect(&text)).unwrap();
    assert!(matches!(
        record.signals[0].delivery,
        Delivery::Refused { errno: Some(1), .. }
    ));
    assert_eq!(*remains(&record), Remains::NotSignalled);
}

#[test]
fn all_of_a_plan_are_ended_one_by_one_and_nobody_beside_it() {
    let world = World::new();
    let mut all: Vec<Held> = (0..3).map(|_| program(&world, "")).collect();
    let mut bystander = all.pop().unwrap();
    let twice = [0, 1, 0].map(|index| target(all[index].pid()));

    let records = end(Vec::from(twice), &patient());

    assert_eq!(records.len(), 2);
    assert!(records.iter().all(EndRecord::is_gone));
    assert_eq!(bystander.ended(), None);
}

static FLAG: AtomicBool = AtomicBool::new(false);

#[test]
fn new_children_are_asked_for_before_the_first_signal() {
    struct Watch(u32);
    impl Family for Watch {
        fn new_children(&mut self, _of: &[ProcessId]) -> Vec<Target> {
            let alive = Handle::open(self.0).is_ok();
            FLAG.fetch_or(alive, Ordering::SeqCst);
            Vec::new()
        }
    }
    let world = World::new();
    let held = program(&world, "");
    let target = target(held.pid());

    terminate(
        vec![target],
        &patient(),
        &mut Watch(held.pid()),
        &SystemClock,
    );

    assert!(FLAG.load(Ordering::SeqCst));
}
