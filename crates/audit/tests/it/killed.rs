//! A daemon that is killed while it writes: nothing that was promised is missing afterwards.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

use ledger::{Verdict, VerifyOptions, verify};
use model::Receipt;

use crate::world::*;

const FOLDER: &str = "LYCH_TEST_AUDIT_DIR";

/// Run by the test below in a process of its own, which is then killed.
#[test]
#[ignore = "a part of another test"]
fn the_one_who_is_killed() {
    let Some(dir) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let world = World::new();
    let (audit, _) = world.try_open_at(&dir).unwrap();
    audit.endorse(&world.root).unwrap();
    let session = open_run(&audit);
    let mut out = std::io::stdout();
    loop {
        let call = call_id();
        let receipt = durable(&audit, attempt_entry(session, call));
        writeln!(out, "receipt {}", serde_json::to_string(&receipt).unwrap()).unwrap();
        out.flush().unwrap();
        clear(&audit, session, (call, receipt.seq));
    }
}

#[test]
fn no_promised_record_is_missing_after_sigkill() {
    let world = World::new();
    let mut last = None;

    for round in 0..6 {
        let receipt = kill_after(&world, 5 + round * 7);
        let pin = world.folder.path().join("receipt.json");
        std::fs::write(&pin, serde_json::to_vec(&receipt).unwrap()).unwrap();
        let before = verify(&world.dir(), &pinned(&pin));
        let (audit, recovered) = world.open();
        audit.close().unwrap();
        let after = verify(&world.dir(), &pinned(&pin));

        assert!(
            matches!(before.verdict, Verdict::IntactPinned | Verdict::TornTail),
            "{before}"
        );
        assert_eq!(after.verdict, Verdict::IntactPinned, "{after}");
        assert!(after.structure.is_empty(), "{after}");
        assert!(!recovered.open_calls.is_empty());
        assert!(Some(receipt.seq) > last);
        last = Some(receipt.seq);
    }

    let report = verify(&world.dir(), &VerifyOptions::default());
    let unresolved = report
        .open_attempts
        .iter()
        .all(|open| open.state == model::CallState::Unresolved);
    assert!(unresolved, "{report}");
}

/// Starts the writer, kills it after so many receipts, and returns the last one it told.
fn kill_after(world: &World, receipts: usize) -> Receipt {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::the_one_who_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, world.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut last = None;
    let mut line = String::new();
    let mut told = 0;
    while told < receipts && lines.read_line(&mut line).unwrap() > 0 {
        last = parse(&line).or(last);
        told += usize::from(parse(&line).is_some());
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it told before it died counts too.
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let last = rest.lines().filter_map(parse).next_back().or(last);
    last.expect("the writer told of at least one record")
}

fn parse(line: &str) -> Option<Receipt> {
    let (_, json) = line.split_once("receipt ")?;
    serde_json::from_str(json.trim()).ok()
}
