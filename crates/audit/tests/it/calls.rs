//! Every system call that the log makes on files, failed or cut off by a kill, one after the other, by strace(1).
//!
//! The one who writes is a process of its own: it opens the log, makes attempts and outcomes, says what it was promised
//! and "sends" (a line in a file) only what it was promised before. What is left is then judged against its promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    process::{Command, Stdio},
};

use ledger::{Records, Report, Verdict, key_file_of, verify};
use model::{Kind, Receipt, Seq, SessionId};
use testkit::Proof;

use crate::world::*;
use disturbed::{IDLE, LOADERS};

mod disturbed;

const FOLDER: &str = "LYCH_TEST_AUDIT_CALLS";
const LIFE: &str = "LYCH_TEST_AUDIT_LONG_LIFE";
const CALLS: &str = "openat,write,pwrite64,fdatasync,fsync,rename,fallocate,ftruncate,mkdir,unlink,flock,fstat,statx,read,pread64,getdents64";
const KINDS: [&str; 4] = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=SIGKILL"];

/// What the disturbed writer finds, and how long he lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// A log that was closed in order.
    Closed,
    /// No log.
    New,
    /// A log whose last write was torn.
    Torn,
    /// A log that was closed in order; he fills a segment, revokes, erases and prunes.
    LongLife,
}

const SCENES: [Scene; 4] = [Scene::Closed, Scene::New, Scene::Torn, Scene::LongLife];

impl Scene {
    fn set(self) -> World {
        let world = World::new();
        match self {
            Self::New => {}
            Self::Closed | Self::LongLife => world.write_small_log(),
            Self::Torn => {
                world.write_small_log();
                world.overwrite_tail(&[0x5a; 300]);
            }
        }
        world
    }

    fn disturb(self, world: &World, inject: &[String]) -> String {
        let trace = world.folder.path().join("trace");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o"])
            .arg(&trace)
            .args(["-e", &format!("trace={CALLS}")])
            .args(inject)
            .arg(env::current_exe().unwrap())
            .args([
                "--exact",
                "calls::disturbed::the_one_who_is_disturbed",
                "--ignored",
                "--test-threads=1",
            ])
            .env(FOLDER, world.folder.path())
            // What a killed one leaves goes with the world.
            .env("TMPDIR", world.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if self == Self::LongLife {
            command.env(LIFE, "1");
        }
        let status = command.status();
        status.expect("strace, which this test needs: install it");
        fs::read_to_string(trace).unwrap_or_default()
    }
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

/// One place where one thing goes wrong.
struct Point {
    scene: Scene,
    call: String,
    nth: usize,
    kind: &'static str,
}

impl Point {
    fn rule(&self) -> String {
        format!("inject={}:{}:when={}", self.call, self.kind, self.nth)
    }
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for scene in SCENES {
        for (call, all) in counted(&scene.disturb(&scene.set(), &[])) {
            let idle = if LOADERS.contains(&call.as_str()) {
                IDLE
            } else {
                0
            };
            for nth in idle + 1..=all {
                points.extend(KINDS.map(|kind| Point {
                    scene,
                    call: call.clone(),
                    nth,
                    kind,
                }));
            }
        }
    }
    points
}

/// What the writer was told, and what he did about it.
struct Told {
    promised: Vec<Receipt>,
    sent: Vec<Seq>,
    erased: Vec<SessionId>,
}

impl Told {
    fn read(world: &World) -> Self {
        // A line that was cut off was told to nobody.
        let lines = |name: &str| {
            let text = fs::read_to_string(world.folder.path().join(name)).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines
        };
        let promised = lines("promised");
        Self {
            promised: promised
                .iter()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            sent: lines("sent")
                .iter()
                .filter_map(|line| line.parse().ok())
                .collect(),
            erased: lines("erased")
                .iter()
                .filter_map(|line| line.parse().ok())
                .collect(),
        }
    }
}

#[derive(Default)]
struct Sums {
    promised: usize,
    lost: usize,
    sent: usize,
    sent_unrecorded: usize,
    alarms: usize,
    not_opened: usize,
    not_erased: usize,
    troubles: Vec<String>,
}

impl Sums {
    fn trouble(&mut self, what: String) {
        self.troubles.push(what);
    }
}

/// Judges what is left, as it is and after another start.
fn judge(world: &World, sums: &mut Sums, what: &str) {
    let told = Told::read(world);
    sums.promised += told.promised.len();
    sums.sent += told.sent.len();
    let first = look(world, &told.promised);
    match world.try_open() {
        Ok((audit, _)) => drop(audit.close()),
        Err(error) => {
            sums.trouble(format!("{what}: not opened again: {error}"));
            sums.not_opened += 1;
        }
    }
    let second = look(world, &told.promised);
    for report in [&first, &second] {
        // Before anything was promised there may be no log yet.
        let unborn = told.promised.is_empty() && report.verdict == Verdict::CannotJudge;
        if !calm(report) && !unborn {
            sums.trouble(format!("{what}: {report}"));
            sums.alarms += 1;
        }
    }
    let kept = Kept::read(world);
    // What was given up is so on record, or `verify` would have raised an alarm.
    let begins = second.first_seq.unwrap_or(0);
    let missing = |receipt: &&Receipt| {
        receipt.seq >= begins && !kept.records.contains(&(receipt.seq, receipt.id))
    };
    sums.lost += told.promised.iter().filter(missing).count();
    let unrecorded = |seq: &&Seq| **seq >= begins && !kept.attempts.contains(*seq);
    sums.sent_unrecorded += told.sent.iter().filter(unrecorded).count();
    let still = |run: &&SessionId| key_file_of(&world.dir(), **run).exists();
    sums.not_erased += told.erased.iter().filter(still).count();
}

fn look(world: &World, promised: &[Receipt]) -> Report {
    let mut pins = Vec::new();
    for (number, receipt) in promised.iter().enumerate() {
        let pin = world.folder.path().join(format!("pin-{number}"));
        fs::write(&pin, serde_json::to_vec(receipt).unwrap()).unwrap();
        pins.push(pin);
    }
    let options = ledger::VerifyOptions {
        pins,
        ..Default::default()
    };
    verify(&world.dir(), &options)
}

fn calm(report: &Report) -> bool {
    let intact = matches!(
        report.verdict,
        Verdict::IntactPinned
            | Verdict::IntactLocalPin
            | Verdict::IntactUnpinned
            | Verdict::TornTail
    );
    intact && report.structure.is_empty()
}

struct Kept {
    records: BTreeSet<(Seq, model::Digest)>,
    attempts: BTreeSet<Seq>,
}

impl Kept {
    fn read(world: &World) -> Self {
        let records = Records::open(&world.dir()).into_iter().flatten();
        let (mut all, mut attempts) = (BTreeSet::new(), BTreeSet::new());
        for (_, stored) in records.filter_map(Result::ok) {
            all.insert((stored.header.seq, stored.id));
            if stored.header.kind == Kind::Attempt {
                attempts.insert(stored.header.seq);
            }
        }
        Self {
            records: all,
            attempts,
        }
    }
}

/// Whoever has read a file's times is shown finer ones by its next write, which a sync then has to write as well.
#[test]
fn between_two_syncs_a_segment_is_asked_for_its_number_and_not_for_its_times() {
    let trace = Scene::Closed.disturb(&Scene::Closed.set(), &[]);

    let syncing = trace
        .lines()
        .skip_while(|line| !line.contains(" fdatasync("));
    let looks: Vec<&str> = syncing
        .filter(|line| line.contains(" statx(") && line.contains(".seg\""))
        .collect();
    assert!(!looks.is_empty(), "{trace}");
    for look in looks {
        assert!(look.contains(" STATX_INO, "), "{look}");
    }
}

#[test]
fn prove_audit() {
    let mut proof = Proof::begin(16);
    let points = points();
    let wanted = usize::try_from(proof.n()).unwrap().min(points.len());
    let mut sums = Sums::default();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for turn in 0..wanted {
        let point = points.get(turn * points.len() / wanted).unwrap();
        let world = point.scene.set();
        point
            .scene
            .disturb(&world, &["-e".to_owned(), point.rule()]);
        judge(
            &world,
            &mut sums,
            &format!("{:?}: {}", point.scene, point.rule()),
        );
        *kinds.entry(format!("at {}", point.call)).or_default() += 1;
        *kinds
            .entry(format!("in a log {:?}", point.scene))
            .or_default() += 1;
    }
    proof.row("points", wanted);
    proof.row("points there are", points.len());
    for (kind, count) in kinds {
        proof.row(&kind, count);
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
    proof.row(
        "erased keys that the next start left there",
        sums.not_erased,
    );
    proof.end();
    assert_eq!(
        (sums.lost, sums.sent_unrecorded, sums.not_erased),
        (0, 0, 0)
    );
    assert!(sums.troubles.is_empty(), "{}", sums.troubles.join("\n"));
    assert!(sums.promised > 0 && sums.sent > 0);
}
