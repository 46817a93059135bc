//! The copy outside: kept up to date, verified apart, and a pin that shows what was done to the log at home.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use ledger::Head;
use serde_json::Value;
use testkit::{Deadline, Finished, Held, Target, World, wait_until};

use crate::{agent::Agent, gate::Gate, operator::Line};

/// What is promised of a copy that is kept up to date.
const WITHIN: Duration = Duration::from_secs(60);

fn outside(world: &World) -> PathBuf {
    world.folder().join("outside")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a world's folder is UTF-8")
}

fn ship(world: &World) -> Finished {
    world.run(["audit", "ship", "--to", text(&outside(world))])
}

fn verify(world: &World, args: &[&str]) -> (Value, i32) {
    let mut all = vec!["audit", "verify", "--json"];
    all.extend(args);
    let finished = world.run(all);
    let code = finished.code().expect("it ended by itself");
    (finished.json(), code)
}

fn reaches(copy: &Path) -> u64 {
    fs::read(copy.join("HEAD"))
        .ok()
        .and_then(|bytes| Head::decode(&bytes).ok())
        .map_or(0, |head| head.seq)
}

fn put_in_place(from: &Path, to: &Path) {
    drop(fs::remove_dir_all(to));
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp runs").success());
}

/// A daemon run with a few calls on record, closed in order.
fn one_day(gate: &Gate) {
    let mut agent = Agent::open(&gate.world);
    for number in 0..3 {
        agent.call("GET", &format!("/r/{number}"));
    }
    drop(agent);
    gate.close();
}

#[test]
fn a_log_rolled_back_to_an_older_backup_passes_alone_and_is_caught_by_the_copy_outside() {
    let gate = Gate::before(Target::start());
    let (log, copy) = (gate.world.home().audit(), outside(&gate.world));
    one_day(&gate);
    let backup = gate.world.folder().join("backup");
    put_in_place(&log, &backup);
    drop(gate.open_daemon());
    drop(ship(&gate.world).expect_code(0));
    let head = fs::read(copy.join("HEAD")).expect("a signed head");
    let pin = copy.join("HEAD");

    let (apart, code) = verify(&gate.world, &["--dir", text(&copy)]);
    assert_eq!(code, 0, "{apart:#}");
    let (pinned, code) = verify(&gate.world, &["--pin", text(&pin)]);
    assert_eq!((&pinned["verdict"], code), (&"intact_pinned".into(), 0));
    put_in_place(&backup, &log);
    let (alone, code) = verify(&gate.world, &[]);
    assert_eq!((&alone["verdict"], code), (&"intact_local_pin".into(), 0));
    let (caught, code) = verify(&gate.world, &["--pin", text(&pin)]);
    assert_eq!((&caught["verdict"], code), (&"truncated".into(), 3));

    let again = ship(&gate.world).expect_code(3);
    assert!(again.stderr.contains("nothing was copied"), "{again:?}");
    assert_eq!(
        fs::read(&pin).expect("the head"),
        head,
        "the copy was touched"
    );
}

#[test]
fn a_followed_copy_has_what_was_acknowledged_within_a_minute_while_the_daemon_works() {
    let gate = Gate::before(Target::start());
    let copy = outside(&gate.world);
    let mut agent = Agent::open(&gate.world);
    let mut command = gate
        .world
        .lych(["audit", "ship", "--follow", "--to", text(&copy)]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let _following = Held::start(&mut command);
    wait_until("the first copy", Deadline::after(WITHIN), || {
        reaches(&copy) > 0
    });

    let result = agent.call("GET", "/r/late");
    let seq = result["_meta"]["lychgate/receipt"]["seq"]
        .as_u64()
        .expect("a receipt");
    wait_until("the copy to hold the call", Deadline::after(WITHIN), || {
        reaches(&copy) >= seq
    });

    let (report, code) = verify(&gate.world, &["--dir", text(&copy)]);
    assert_eq!(code, 0, "{report:#}");
    assert!(report["last_seq"].as_u64() >= Some(seq), "{report:#}");
}

/// What a process has read and written so far, from proc(5).
fn traffic(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).expect("our own child");
    let counts = io.lines().filter_map(|line| line.split_once("char: "));
    counts
        .map(|(_, count)| count.parse::<u64>().expect("a number"))
        .sum()
}

#[test]
fn a_followed_copy_reads_and_writes_what_is_new_and_not_the_segment() {
    let gate = Gate::before(Target::start());
    let copy = outside(&gate.world);
    let mut line = Line::open(&gate.world);
    for _ in 0..30 {
        drop(line.note(200_000));
    }
    let mut command = gate
        .world
        .lych(["audit", "ship", "--follow", "--to", text(&copy)]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let following = Held::start(&mut command);
    wait_until("the first copy", Deadline::after(WITHIN), || {
        reaches(&copy) > 0
    });
    let before = traffic(following.pid());
    assert!(before > 6_000_000, "{before}");

    for _ in 0..2 {
        let seq = line.note(1_000)["done"]["seq"].as_u64().expect("a record");
        wait_until("the copy to hold it", Deadline::after(WITHIN), || {
            reaches(&copy) >= seq
        });
    }

    let after = traffic(following.pid());
    assert!(after - before < 3_000_000, "{} bytes", after - before);
    let (report, code) = verify(&gate.world, &["--dir", text(&copy)]);
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn complete_segments_are_copied_once_and_one_that_changes_here_is_not_copied_over() {
    let gate = Gate::before(Target::start());
    let copy = outside(&gate.world);
    Line::open(&gate.world).fill_segments(1);
    drop(ship(&gate.world).expect_code(0));
    gate.close();
    let first = gate.world.home().audit().join("seg/0000000000.seg");
    let good = fs::read(copy.join("seg/0000000000.seg")).expect("a copied segment");
    assert_eq!(fs::read(&first).expect("the segment"), good);
    assert!(copy.join("seg/0000000001.seg").exists());

    let mut changed = good.clone();
    changed[5_000] ^= 1;
    fs::write(&first, changed).expect("a segment that can be changed");

    drop(ship(&gate.world).expect_code(3));
    let kept = fs::read(copy.join("seg/0000000000.seg")).expect("a copied segment");
    assert_eq!(kept, good);
    let (report, code) = verify(&gate.world, &["--dir", text(&copy)]);
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn a_key_destroyed_on_record_goes_from_the_copy_too_and_one_that_is_merely_gone_stays_there() {
    let gate = Gate::before(Target::start());
    let copy = outside(&gate.world);
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", "/r/1");
    drop(agent);
    drop(ship(&gate.world).expect_code(0));
    let run = gate.only_run();
    let key = format!("keys/{run}.age");
    assert!(copy.join(&key).exists());
    let other = fs::read_dir(copy.join("keys"))
        .expect("the keys")
        .flatten()
        .map(|entry| entry.file_name())
        .find(|name| name.to_string_lossy().starts_with("e-"))
        .expect("the key of the daemon run");

    drop(gate.world.run(["audit", "erase", &run]).expect_code(0));
    gate.close();
    fs::remove_file(gate.world.home().audit().join("keys").join(&other)).expect("a key");
    drop(ship(&gate.world).expect_code(0));

    assert!(!copy.join(&key).exists(), "the erased key is still there");
    assert!(copy.join("keys").join(&other).exists());
}

#[test]
fn two_logs_never_share_a_copy() {
    let (one, two) = (Gate::before(Target::start()), Gate::before(Target::start()));
    drop(ship(&one.world).expect_code(0));
    let copy = outside(&one.world);
    let before = fs::read(copy.join("LOG")).expect("a LOG");

    let refused = two
        .world
        .run(["audit", "ship", "--to", text(&copy)])
        .expect_code(3);

    assert!(refused.stderr.contains("another log"), "{refused:?}");
    assert_eq!(fs::read(copy.join("LOG")).expect("a LOG"), before);
}

#[test]
fn a_place_that_is_none_is_refused_and_says_why() {
    let gate = Gate::before(Target::start());
    let log = gate.world.home().audit();
    let file = gate.world.write("file", "x");
    let ship = |to: &Path| gate.world.run(["audit", "ship", "--to", text(to)]);

    drop(ship(&log).expect_code(2));
    drop(ship(&log.join("seg/copy")).expect_code(2));
    drop(ship(&file).expect_code(1));
    drop(gate.world.run(["audit", "ship"]).expect_code(2));
    let empty = World::new();
    drop(crate::ship::ship(&empty).expect_code(1));
}

#[test]
fn status_says_how_old_the_newest_copy_outside_is_and_that_there_never_was_one() {
    let gate = Gate::before(Target::start());
    let never = gate.world.run(["status", "--json"]).expect_code(0).json();
    let words = gate.world.run(["status"]).expect_code(0).stdout;
    assert_eq!(never["outside_copy"], Value::Null);
    assert!(words.contains("never"), "{words}");

    drop(ship(&gate.world).expect_code(0));

    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    let copy = &status["outside_copy"];
    assert_eq!(copy["to"], text(&outside(&gate.world)));
    assert!(
        copy["age_ms"].as_u64().is_some_and(|age| age < 60_000),
        "{copy}"
    );
    assert!(copy["seq"].as_u64() > Some(0), "{copy}");
    gate.close();
    let off = gate.world.run(["status", "--json"]).expect_code(5).json();
    assert_eq!(off["outside_copy"]["seq"], copy["seq"]);
}
