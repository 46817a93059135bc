//! The log against the machine it runs on: every figure is a ratio to something raw, measured in the same run.
//!
//! verify to SHA-256 over the same bytes; a durable append to write and fdatasync; many writers to one; and how long
//! the last calls of a long log take to list, those that were left open at its beginning, and its opening.
//! `LYCH_BENCH_RECORDS` sets how long it is.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot go on has nothing to tell"
)]

use std::{
    fs::{File, read_dir},
    io::{self, Read, Write, stdout},
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use audit::{Audit, CallFilter, KeyWrap, NewLog, Options, Sizes};
use ed25519_dalek::SigningKey;
use ledger::{VerifyOptions, verify};
use model::{
    Body, CallId, Clock, ConnectionId, Digest, Entry, Foreign, Journal, Kind, OutcomeBody,
    RequestKey, SessionId, Stamp, Target, Wall,
};
use sha2::Digest as _;

const ALONE: usize = 3_000;
const WRITERS: usize = 64;
const EACH: usize = 300;
/// Calls without an outcome at the log's beginning.
const LEFT_OPEN: usize = 1_000;
/// The best of so many: the machine may be doing something else meanwhile.
const TRIES: usize = 5;

/// Set for a process that only verifies the log in this folder and says how much memory that took.
const VERIFY_ONLY: &str = "LYCH_BENCH_VERIFY_ONLY";

struct Plain;

impl KeyWrap for Plain {
    fn wrap(&self, _: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        Ok(key.to_vec())
    }
}

struct Time(Instant);

impl Clock for Time {
    fn now(&self) -> Stamp {
        let ms = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(0);
        Stamp {
            wall: Wall::from_millis(1_764_400_000_000 + ms),
            boot_ms: ms,
        }
    }
}

fn open(dir: &Path) -> Audit {
    let root = SigningKey::from_bytes(&[1; 32]);
    let options = Options {
        dir: dir.to_owned(),
        clock: Arc::new(Time(Instant::now())),
        wrap: Arc::new(Plain),
        new_log: Some(NewLog {
            bootstrap_root: root.verifying_key().to_bytes(),
            recipient: "age1bench".to_owned(),
        }),
        sizes: Sizes::default(),
    };
    Audit::open(options).expect("a log").0
}

fn entry(
    kind: Kind,
    session: SessionId,
    call: Option<CallId>,
    at: Option<u64>,
    body: Body,
) -> Entry {
    Entry {
        kind,
        session: Some(session),
        call,
        refers_to: at,
        body,
    }
}

fn attempt(session: SessionId, call: CallId) -> Entry {
    let body = Body::Attempt {
        target: Target {
            channel: "builds".parse().expect("a name"),
            operation: "force".parse().ok(),
            method: Foreign::new("POST"),
            path: Foreign::new("/forceschedulers/nightly"),
        },
        connection: ConnectionId::from_bytes([7; 10]),
        arguments: Digest::from_bytes([9; 32]),
        key: Some(RequestKey("k".repeat(26))),
        is_write: true,
        destination: Foreign::new("https://ci.example.com/api/v2/"),
        probe: false,
    };
    entry(Kind::Attempt, session, Some(call), None, body)
}

fn answered(session: SessionId, call: CallId, seq: u64) -> Entry {
    let body = Body::Outcome(OutcomeBody::Answered {
        status: 201,
        delivered: Some(true),
        remote_id: Some(Foreign::new("4711")),
    });
    entry(Kind::Answered, session, Some(call), Some(seq), body)
}

fn open_run(audit: &Audit) -> SessionId {
    let session = SessionId::random().expect("randomness");
    let body = Body::Disconnected {
        connection: ConnectionId::from_bytes([7; 10]),
        transport_closed_at: Wall::from_millis(1),
    };
    let opened = entry(Kind::SessionOpened, session, None, None, body);
    audit.push(opened).wait().expect("a durable record");
    session
}

/// How long an attempt takes until it is on disk, with nobody else about, in turns with a raw write; and the rate.
fn alone(audit: &Audit, session: SessionId, raw: &Raw) -> (Vec<Duration>, Vec<Duration>, f64) {
    let (mut waits, mut bare) = (Vec::new(), Vec::new());
    for turn in 0..ALONE {
        let begun = Instant::now();
        let call = CallId::random().expect("randomness");
        audit.push(attempt(session, call)).wait().expect("durable");
        waits.push(begun.elapsed());
        bare.push(raw.append(turn));
    }
    let all: Duration = waits.iter().sum();
    waits.sort_unstable();
    bare.sort_unstable();
    (waits, bare, count(ALONE) / all.as_secs_f64())
}

fn together(audit: &Arc<Audit>, session: SessionId) -> f64 {
    let begun = Instant::now();
    let threads: Vec<_> = (0..WRITERS)
        .map(|_| {
            let audit = Arc::clone(audit);
            thread::spawn(move || {
                for _ in 0..EACH {
                    let call = CallId::random().expect("randomness");
                    audit.push(attempt(session, call)).wait().expect("durable");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a writer that did not fail");
    }
    count(WRITERS * EACH) / begun.elapsed().as_secs_f64()
}

/// As many bytes, written and waited for, and nothing else.
struct Raw {
    file: File,
    bytes: Vec<u8>,
}

impl Raw {
    /// An attempt and its commit.
    const LEN: usize = (4 + 88 + 384 + 16) + (4 + 88 + 98);

    fn new(folder: &Path) -> Self {
        let file = File::create(folder.join("raw")).expect("a file");
        let whole = u64::try_from(ALONE * Self::LEN).expect("a small number");
        sys::durable::reserve(&file, whole).expect("space");
        file.sync_all().expect("a disk");
        Self {
            file,
            bytes: vec![7; Self::LEN],
        }
    }

    fn append(&self, turn: usize) -> Duration {
        let at = u64::try_from(turn * Self::LEN).expect("a small number");
        let begun = Instant::now();
        self.file.write_all_at(&self.bytes, at).expect("a disk");
        self.file.sync_data().expect("a disk");
        begun.elapsed()
    }
}

/// Fills the log up to so many records, calls of three records each.
fn fill(audit: &Audit, session: SessionId, records: u64) {
    while audit.head().map_or(0, |head| head.seq) < records {
        let mut last = None;
        for _ in 0..2_000 {
            let call = CallId::random().expect("randomness");
            let ticket = audit.push(attempt(session, call));
            let seq = ticket.seq().expect("room in the queue");
            let cleared = entry(Kind::Cleared, session, Some(call), Some(seq), Body::Empty);
            drop(audit.push(cleared));
            last = Some(audit.push(answered(session, call, seq)));
        }
        last.map(|last| last.wait().expect("durable"));
    }
}

/// Leaves calls open, as a crash of the remote side would.
fn leave_open(audit: &Audit, session: SessionId) {
    for _ in 0..LEFT_OPEN {
        let call = CallId::random().expect("randomness");
        let seq = audit.push(attempt(session, call)).seq();
        let cleared = entry(Kind::Cleared, session, Some(call), seq, Body::Empty);
        audit.push(cleared).wait().expect("durable");
    }
}

fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> = read_dir(dir.join("seg"))
        .expect("segments")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect();
    all.sort();
    all
}

fn hash(files: &[std::path::PathBuf], used: u64) -> Duration {
    let begun = Instant::now();
    let mut hash = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut left = used;
    for path in files {
        let mut file = File::open(path).expect("a segment").take(left);
        loop {
            let read = file.read(&mut buffer).expect("a disk");
            if read == 0 {
                break;
            }
            hash.update(buffer.get(..read).unwrap_or_default());
            left -= u64::try_from(read).unwrap_or(0);
        }
    }
    std::hint::black_box(hash.finalize());
    begun.elapsed()
}

/// Kilobytes, from proc(5).
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Verifies in a new process, whose memory holds nothing else, and returns the most it had resident, in kilobytes.
fn in_a_process_of_its_own(dir: &Path) -> u64 {
    let this = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(this)
        .env(VERIFY_ONLY, dir)
        .output();
    let said = String::from_utf8(output.expect("this program").stdout).unwrap_or_default();
    said.trim().parse().expect("a number of kilobytes")
}

fn best<T>(mut what: impl FnMut() -> (Duration, T)) -> Duration {
    (0..TRIES).map(|_| what().0).min().unwrap_or_default()
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn at(waits: &[Duration], percent: usize) -> f64 {
    let index = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
    waits
        .get(index)
        .map_or(0.0, |wait| wait.as_secs_f64() * 1e6)
}

fn main() {
    if let Some(dir) = std::env::var_os(VERIFY_ONLY) {
        std::hint::black_box(verify(Path::new(&dir), &VerifyOptions::default()));
        drop(writeln!(stdout(), "{}", memory("VmHWM:")));
        return;
    }
    let records = std::env::var("LYCH_BENCH_RECORDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("audit");
    let mut rows = Vec::new();
    let mut row = |what: &str, goal: &str, ratio: f64, figures: String| {
        rows.push(format!("| {what} | {goal} | {ratio:.2} | {figures} |"));
    };

    let audit = Arc::new(open(&dir));
    let session = open_run(&audit);
    let raw = Raw::new(folder.path());
    let (waits, bare, rate) = alone(&audit, session, &raw);
    row(
        "a durable attempt, alone (p50) to write + fdatasync of as many bytes",
        "≤ 2",
        at(&waits, 50) / at(&bare, 50),
        format!(
            "{:.0} µs to {:.0} µs; p99 {:.0} to {:.0}",
            at(&waits, 50),
            at(&bare, 50),
            at(&waits, 99),
            at(&bare, 99)
        ),
    );
    let before = audit.stats();
    let many = together(&audit, session);
    let after = audit.stats();
    row(
        "rate of 64 writers to that of one",
        "≥ 8",
        many / rate,
        format!("{many:.0}/s to {rate:.0}/s"),
    );
    let per_sync = (after.records - before.records) as f64 / (after.syncs - before.syncs) as f64;
    row(
        "records per sync at 64 writers",
        "≥ 20",
        per_sync,
        format!(
            "{} records, {} syncs",
            after.records - before.records,
            after.syncs - before.syncs
        ),
    );

    leave_open(&audit, session);
    fill(&audit, session, records);
    let filter = CallFilter {
        last: Some(100),
        ..CallFilter::default()
    };
    let listing = best(|| {
        let begun = Instant::now();
        let calls = audit.calls(&filter, None).expect("a list");
        assert_eq!(calls.len(), 100);
        (begun.elapsed(), ())
    });
    let last = audit.head().map_or(0, |head| head.seq);
    row(
        "listing the last 100 calls, seconds",
        "≤ 1",
        listing.as_secs_f64(),
        format!("{last} records in the log"),
    );
    let listing = best(|| {
        let begun = Instant::now();
        let calls = audit.calls(&CallFilter::open(), None).expect("a list");
        assert_eq!(calls.len(), LEFT_OPEN);
        (begun.elapsed(), ())
    });
    row(
        "listing the calls left open at its beginning, seconds",
        "≤ 1",
        listing.as_secs_f64(),
        format!("{LEFT_OPEN} calls"),
    );
    audit.close().expect("a log that closes");
    drop(audit);

    let files = segments(&dir);
    let used: u64 = files
        .iter()
        .map(|file| file.metadata().map_or(0, |meta| meta.len()))
        .sum();
    // In turns, so that both meet the same company on the machine.
    let pairs: Vec<_> = (0..TRIES)
        .map(|_| {
            let hashed = hash(&files, used);
            let begun = Instant::now();
            let report = verify(&dir, &VerifyOptions::default());
            let verified = begun.elapsed();
            assert!(report.last_seq.is_some_and(|seq| seq >= last), "{report}");
            (hashed, verified)
        })
        .collect();
    let hashed = pairs.iter().map(|pair| pair.0).min().unwrap_or_default();
    let verified = pairs.iter().map(|pair| pair.1).min().unwrap_or_default();
    let grown = in_a_process_of_its_own(&dir);
    row(
        "verify to SHA-256 over the same bytes, one thread",
        "≤ 1.5",
        verified.as_secs_f64() / hashed.as_secs_f64(),
        format!(
            "{:.0} ms to {:.0} ms, {} MB, {last} records",
            verified.as_secs_f64() * 1e3,
            hashed.as_secs_f64() * 1e3,
            used / 1_000_000
        ),
    );
    let mib = grown as f64 / 1024.0;
    row(
        "resident memory of a process that verifies, MiB",
        "≤ 16",
        mib,
        format!("{} MB of log", used / 1_000_000),
    );

    let begun = Instant::now();
    drop(open(&dir));
    let opened = begun.elapsed();
    row(
        "opening it with those calls, to verify",
        "-",
        opened.as_secs_f64() / verified.as_secs_f64(),
        format!("{:.0} ms", opened.as_secs_f64() * 1e3),
    );

    let table = format!(
        "| measured | goal | got | figures |\n|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
    // Whoever closed the output does not want the table.
    drop(stdout().write_all(table.as_bytes()));
}
