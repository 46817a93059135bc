//! How long a record takes until it is on disk: one writer alone, and many at once, who share a commit.
//!
//! The clock is the wall's, the disk is the one below the temporary folder: say which when you quote a figure.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot go on has nothing to tell"
)]

use std::{
    io::{Write, stdout},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use audit::Audit;
use model::{
    Body, CallId, ConnectionId, Digest, Entry, Foreign, Journal, Kind, RequestKey, SessionId,
    Target,
};

/// How many records each writer appends; enough for a percentile, few enough for a coffee.
const EACH: usize = 2_000;

const WRITERS: [usize; 4] = [1, 4, 16, 64];

/// An attempt as the gateway records it, of ordinary size.
fn attempt(session: SessionId) -> Entry {
    Entry {
        kind: Kind::Attempt,
        session: Some(session),
        call: CallId::random().ok(),
        refers_to: None,
        body: Body::Attempt {
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
        },
    }
}

/// Appends until each writer has had its turns, and returns every wait.
fn append(audit: &Arc<Audit>, session: SessionId, writers: usize) -> (Vec<Duration>, Duration) {
    let begun = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let audit = Arc::clone(audit);
            thread::spawn(move || {
                let one = |_| {
                    let begun = Instant::now();
                    audit
                        .push(attempt(session))
                        .wait()
                        .expect("a durable record");
                    begun.elapsed()
                };
                (0..EACH / writers.min(4)).map(one).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut waits: Vec<Duration> = threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("a writer that did not fail"))
        .collect();
    waits.sort_unstable();
    (waits, begun.elapsed())
}

fn line(writers: usize, waits: &[Duration], all: Duration) -> String {
    let at = |percent: usize| {
        let index = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
        waits
            .get(index)
            .map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    };
    let count = u32::try_from(waits.len()).unwrap_or(u32::MAX);
    let rate = f64::from(count) / all.as_secs_f64();
    format!(
        "{writers:>7} {:>9} {:>9.2} {:>9.2} {:>9.2} {rate:>11.0}\n",
        waits.len(),
        at(50),
        at(99),
        at(100)
    )
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let audit = Arc::new(e2e::new_log(&folder.path().join("audit")));
    let session = SessionId::random().expect("randomness");
    let opened = Entry {
        kind: Kind::SessionOpened,
        session: Some(session),
        call: None,
        refers_to: None,
        body: Body::SessionOpened {
            chain: Vec::new(),
            ownership_complete: true,
            admission: "bench".to_owned(),
            uid: 0,
        },
    };
    audit.push(opened).wait().expect("a durable record");
    let mut table = "writers   records    p50 ms    p99 ms    max ms   records/s\n".to_owned();
    for writers in WRITERS {
        let (waits, all) = append(&audit, session, writers);
        table.push_str(&line(writers, &waits, all));
    }
    let stats = audit.stats();
    table.push_str(&format!(
        "{} records in {} commits, {} syncs\n",
        stats.records, stats.commits, stats.syncs
    ));
    audit.close().expect("a log that closes");
    // Whoever closed the output does not want the table.
    drop(stdout().write_all(table.as_bytes()));
}
