//! Every byte and every length of a log of twenty kilobytes, before a pin from outside.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    sync::Mutex,
    thread,
};

use audit::Sizes;
use ledger::{Report, verify};
use model::Exit;
use testkit::Proof;

use crate::world::*;

const LONG: usize = 20_000;
/// So many places where a change was not found are told.
const TOLD: usize = 10;

/// Writes a log of two daemon runs in one segment, and returns how much of it is used.
fn write(world: &World) -> usize {
    loop {
        let (audit, _) = world.open();
        let session = open_run(&audit);
        for _ in 0..8 {
            let call = attempt(&audit, session);
            clear(&audit, session, call);
            answer(&audit, session, call);
        }
        revoke(&audit, session);
        audit.close().unwrap();
        drop(audit);
        if world.used_of_last_segment() >= LONG {
            assert_eq!(world.segments(), 1);
            return world.used_of_last_segment();
        }
    }
}

/// How many places there are, how many were tried, and where a change was not found.
struct Tried {
    proof: Proof,
    used: usize,
    places: usize,
    passed: Vec<Option<String>>,
}

impl Tried {
    /// Has places below `used` tried, all of them if `n` allows it, by as many threads as there are processors, each with
    /// its own copy. What is tried returns the report if the change was not found.
    fn places(
        world: &World,
        used: usize,
        tried: impl Fn(&Path, &File, usize) -> Option<Report> + Sync,
    ) -> Self {
        let proof = Proof::begin(1_000_000);
        let step = used.div_ceil(usize::try_from(proof.n()).unwrap().min(used));
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let passed = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for worker in 0..workers {
                let copy = world.copy(&format!("copy-{worker}"));
                let (tried, passed) = (&tried, &passed);
                scope.spawn(move || {
                    let segment = copy.join("seg/0000000000.seg");
                    let segment = File::options().write(true).open(segment).unwrap();
                    // Cut behind the last record, as when it is full: the zeros would be read each time.
                    segment.set_len(used as u64).unwrap();
                    let mine = (0..used.div_ceil(step)).rev().map(|turn| turn * step);
                    for at in mine.filter(|at| (at / step) % workers == worker) {
                        if let Some(report) = tried(&copy, &segment, at) {
                            let mut passed = passed.lock().unwrap();
                            let told = passed.len() < TOLD;
                            passed.push(told.then(|| format!("at {at}: {report}")));
                        }
                    }
                });
            }
        });
        Self {
            proof,
            used,
            places: used.div_ceil(step),
            passed: passed.into_inner().unwrap(),
        }
    }

    /// Leaves the table; nothing may have passed.
    fn end(mut self, what: &str) {
        self.proof.row("bytes of the log's segment", self.used);
        self.proof.row(what, self.places);
        self.proof.row("of these judged intact", self.passed.len());
        self.proof.end();
        let told: Vec<_> = self.passed.iter().flatten().map(String::as_str).collect();
        assert!(self.passed.is_empty(), "{}", told.join("\n"));
    }
}

fn pinned_world() -> (World, usize) {
    let world = World::of(Sizes {
        segment: 64 * 1024,
        reserve: 4 * 1024,
    });
    let used = write(&world);
    fs::copy(world.dir().join("HEAD"), world.folder.path().join("pin")).unwrap();
    (world, used)
}

/// The report, if it does not say that something is wrong.
fn passed(report: Report) -> Option<Report> {
    (report.exit() != Exit::Negative).then_some(report)
}

#[test]
fn prove_audit_bytes() {
    let (world, used) = pinned_world();
    let pin = pinned(&world.folder.path().join("pin"));
    let whole = fs::read(world.last_segment()).unwrap();

    let tried = Tried::places(&world, used, |copy, segment, at| {
        let place = at as u64;
        segment
            .write_all_at(&[whole[at] ^ 1 << (at % 8)], place)
            .unwrap();
        let report = verify(copy, &pin);
        segment.write_all_at(&[whole[at]], place).unwrap();
        passed(report)
    });

    assert_eq!(verify(&world.dir(), &pin).exit(), Exit::Done);
    tried.end("bytes flipped, one at a time, before a pin");
}

#[test]
fn prove_audit_cuts() {
    let (world, used) = pinned_world();
    let pin = pinned(&world.folder.path().join("pin"));

    // From the end on, so that each copy gets shorter and shorter.
    let tried = Tried::places(&world, used, |copy, segment, len| {
        segment.set_len(len as u64).unwrap();
        passed(verify(copy, &pin))
    });

    tried.end("lengths it was cut to, before a pin");
}
