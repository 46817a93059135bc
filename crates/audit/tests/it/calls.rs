//! Every system call that the log makes on files, failed or cut off by a kill, one after the other, by strace(1).
//!
//! The one who writes is a process of its own: it opens the log, makes attempts and outcomes, says what it was promised
//! and "sends" (a line in a file) only what it was promised before. What is left is then judged against its promises.

use std::{
    collections::BTreeMap,
    env, fs,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ledger::{Records, Report, Verdict, verify};
use model::{Body, Entry, Journal, Kind, OutcomeBody, Receipt, Seq, SessionId};
use testkit::Proof;

use crate::world::*;

const FOLDER: &str = "LYCH_TEST_AUDIT_CALLS";
const CALLS: &str = "openat,write,pwrite64,fdatasync,fsync,rename,fallocate,ftruncate,mkdir,unlink,flock,fstat,statx,read,pread64";
const KINDS: [&str; 4] = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=SIGKILL"];

/// Run by the test below in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn the_one_who_is_disturbed() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    idle();
    let world = World::new();
    let Ok((audit, _)) = world.try_open_at(&folder.join("audit")) else {
        return;
    };
    let promise = |entry: Entry| {
        let receipt = audit.push(entry).wait().ok()?;
        note(&folder, "promised", &serde_json::to_string(&receipt).ok()?)?;
        Some(receipt)
    };
    // A log that cannot be endorsed goes on.
    drop(audit.endorse(&world.root));
    let session = SessionId::random().unwrap();
    promise(opened(session));
    for _ in 0..2 {
        let call = call_id();
        let Some(receipt) = promise(attempt_entry(session, call)) else {
            continue;
        };
        note(&folder, "sent", &receipt.seq.to_string());
        let clear = entry(
            Kind::Cleared,
            session,
            Some(call),
            Some(receipt.seq),
            Body::Empty,
        );
        drop(audit.push(clear));
        let body = Body::Outcome(OutcomeBody::Answered {
            status: 200,
            delivered: Some(true),
            remote_id: None,
        });
        promise(entry(
            Kind::Answered,
            session,
            Some(call),
            Some(receipt.seq),
            body,
        ));
    }
    drop(audit.close());
}

fn opened(session: SessionId) -> Entry {
    let body = Body::Disconnected {
        connection: model::ConnectionId::from_bytes([4; 10]),
        transport_closed_at: model::Wall::from_millis(1),
    };
    entry(Kind::SessionOpened, session, None, None, body)
}

fn note(folder: &Path, name: &str, line: &str) -> Option<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join(name))
        .ok()?;
    file.write_all(format!("{line}\n").as_bytes()).ok()
}

/// A log with one daemon run in it already, so that both a start and a life are disturbed.
fn begun() -> World {
    let world = World::new();
    world.write_small_log();
    world
}

fn disturb(world: &World, inject: &[String]) -> String {
    let trace = world.folder.path().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &format!("trace={CALLS}")])
        .args(inject)
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "calls::the_one_who_is_disturbed",
            "--ignored",
            "--test-threads=1",
        ])
        .env(FOLDER, world.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("strace, which this test needs: install it");
    fs::read_to_string(trace).unwrap_or_default()
}

/// How often the busiest thread makes each call; strace counts per thread.
fn counted(trace: &str) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in trace.lines() {
        let mut words = line.split_whitespace();
        let thread = words.next().unwrap_or_default().to_owned();
        if let Some((name, _)) = words.next().unwrap_or_default().split_once('(') {
            *counts.entry((name.to_owned(), thread)).or_default() += 1;
        }
    }
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    for ((name, _), count) in counts {
        let known = most.entry(name).or_default();
        *known = count.max(*known);
    }
    most
}

/// The loader makes these calls too, in the first thread; the writer's thread makes so many idle ones first, and only
/// what follows is disturbed.
const LOADERS: [&str; 4] = ["openat", "read", "fstat", "statx"];
const IDLE: usize = 40;

fn idle() {
    for _ in 0..IDLE {
        let mut file = fs::File::open("/dev/null").unwrap();
        let _ = file.metadata();
        let _ = std::io::Read::read(&mut file, &mut [0]);
    }
}

/// One place where one thing goes wrong.
struct Point {
    call: String,
    nth: usize,
    kind: &'static str,
}

fn points() -> Vec<Point> {
    let counts = counted(&disturb(&begun(), &[]));
    let mut points = Vec::new();
    for (call, all) in counts {
        let idle = if LOADERS.contains(&call.as_str()) {
            IDLE
        } else {
            0
        };
        for nth in idle + 1..=all {
            points.extend(KINDS.map(|kind| Point {
                call: call.clone(),
                nth,
                kind,
            }));
        }
    }
    points
}

/// What the writer was promised and what it sent.
fn told(world: &World) -> (Vec<Receipt>, Vec<Seq>) {
    let read = |name: &str| fs::read_to_string(world.folder.path().join(name)).unwrap_or_default();
    let promised = read("promised");
    // A line that was cut off was told to nobody.
    let receipts = promised
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let sent = read("sent");
    (
        receipts.collect(),
        sent.lines().filter_map(|line| line.parse().ok()).collect(),
    )
}

#[derive(Default)]
struct Sums {
    promised: usize,
    lost: usize,
    sent: usize,
    sent_unrecorded: usize,
    alarms: usize,
    not_opened: usize,
    troubles: Vec<String>,
}

/// Judges what is left, as it is and after another start.
fn judge(world: &World, sums: &mut Sums, what: &str) {
    let (receipts, sent) = told(world);
    sums.promised += receipts.len();
    sums.sent += sent.len();
    let mut pins = Vec::new();
    for (number, receipt) in receipts.iter().enumerate() {
        let pin = world.folder.path().join(format!("pin-{number}"));
        fs::write(&pin, serde_json::to_vec(receipt).unwrap()).unwrap();
        pins.push(pin);
    }
    let look = || {
        verify(
            &world.dir(),
            &ledger::VerifyOptions {
                pins: pins.clone(),
                ..Default::default()
            },
        )
    };
    let calm = |report: &Report| {
        matches!(
            report.verdict,
            Verdict::IntactPinned | Verdict::IntactLocalPin | Verdict::TornTail
        ) && report.structure.is_empty()
    };
    let first = look();
    match world.try_open() {
        Ok((audit, _)) => drop(audit.close()),
        Err(error) => {
            sums.troubles
                .push(format!("{what}: not opened again: {error}"));
            sums.not_opened += 1;
        }
    }
    let second = look();
    for report in [&first, &second] {
        if !calm(report) {
            sums.troubles.push(format!("{what}: {report}"));
            sums.alarms += 1;
        }
    }
    let present: Vec<_> = Records::open(&world.dir())
        .unwrap()
        .filter_map(Result::ok)
        .map(|(_, stored)| (stored.header.seq, stored.id, stored.header.kind))
        .collect();
    let lost = receipts.iter().filter(|receipt| {
        !present
            .iter()
            .any(|(seq, id, _)| (*seq, *id) == (receipt.seq, receipt.id))
    });
    sums.lost += lost.count();
    let unrecorded = sent.iter().filter(|sent| {
        !present
            .iter()
            .any(|(seq, _, kind)| seq == *sent && *kind == Kind::Attempt)
    });
    sums.sent_unrecorded += unrecorded.count();
}

#[test]
fn prove_audit() {
    let mut proof = Proof::begin(12);
    let points = points();
    let wanted = usize::try_from(proof.n()).unwrap().min(points.len());
    let mut sums = Sums::default();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for turn in 0..wanted {
        let point = points.get(turn * points.len() / wanted).unwrap();
        let world = begun();
        let rule = format!("inject={}:{}:when={}", point.call, point.kind, point.nth);
        disturb(&world, &["-e".to_owned(), rule.clone()]);
        judge(&world, &mut sums, &rule);
        *kinds.entry(point.call.clone()).or_default() += 1;
    }
    proof.row("points", wanted);
    proof.row("points there are", points.len());
    for (call, count) in kinds {
        proof.row(&format!("at {call}"), count);
    }
    proof.row("records promised", sums.promised);
    proof.row("promised records lost", sums.lost);
    proof.row("attempts sent", sums.sent);
    proof.row("sent without a durable attempt", sums.sent_unrecorded);
    proof.row(
        "false alarms of verify, before or after the next start",
        sums.alarms,
    );
    proof.row("logs that the next start did not open", sums.not_opened);
    proof.end();
    assert_eq!((sums.lost, sums.sent_unrecorded), (0, 0));
    assert!(sums.troubles.is_empty(), "{}", sums.troubles.join("\n"));
    assert!(sums.promised > 0 && sums.sent > 0);
}
