//! A disk that loses what was not synced: any sector of it, in any order, at any moment.

use std::{
    collections::HashSet,
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use ledger::{Records, Report, Verdict, VerifyOptions, verify};
use model::{Kind, Receipt};
use tempfile::TempDir;
use testkit::Proof;

use super::{open, push, store_of};
use crate::{Audit, Sizes, segments::Store, writer::lock};

/// A write of one sector is whole or not there.
const SECTOR: usize = 512;

/// One segment holds all that a log takes here: the next one would not lie on the simulated disk.
const WIDE: Sizes = Sizes {
    segment: 1024 * 1024,
    reserve: 16 * 1024,
};

/// Rounds beyond this many show nothing new.
const MOST: u64 = 1_000;

/// What goes wrong, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A write comes to half its length, and the next one says that the disk is full.
    Full,
    /// A write fails.
    Write,
    /// A sync fails.
    Sync,
}

/// Keeps what was written in memory until it is synced. Once something went wrong it does nothing any more, as after a
/// power cut.
struct Lossy {
    file: Box<dyn Store>,
    state: Arc<Mutex<State>>,
}

struct State {
    unsynced: Vec<(u64, Vec<u8>)>,
    /// So many operations pass before the fault.
    left: u64,
    fault: Fault,
    dead: bool,
    chance: Proof,
    syncs_after_death: usize,
}

impl State {
    /// Counts an operation of the kind that the fault hits.
    fn is_due(&mut self, hit: bool) -> bool {
        if !hit {
            return false;
        }
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }
}

impl Lossy {
    /// Lets chance decide which sectors of what was not synced reached the disk.
    fn lose(&self, state: &mut State) -> io::Result<()> {
        state.dead = true;
        for (offset, bytes) in std::mem::take(&mut state.unsynced) {
            let mut at = offset;
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let to_border = SECTOR - usize::try_from(at).unwrap() % SECTOR;
                let (sector, behind) = rest.split_at(to_border.min(rest.len()));
                if state.chance.below(2) == 1 {
                    write_all(&*self.file, sector, at)?;
                }
                at += u64::try_from(sector.len()).unwrap();
                rest = behind;
            }
        }
        self.file.sync()
    }
}

fn write_all(file: &dyn Store, bytes: &[u8], at: u64) -> io::Result<()> {
    let written = file.write_at(bytes, at)?;
    assert_eq!(written, bytes.len());
    Ok(())
}

impl Store for Lossy {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = lock(&self.state);
        if state.dead {
            return Err(io::Error::other("the power is off"));
        }
        let hit = matches!(state.fault, Fault::Full | Fault::Write);
        if state.is_due(hit) {
            if state.fault == Fault::Full {
                let half = bytes[..bytes.len() / 2].to_vec();
                state.unsynced.push((offset, half));
            }
            self.lose(&mut state)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        // As many as chance will: the writer goes on behind them.
        let some = 1 + usize::try_from(state.chance.below(bytes.len() as u64)).unwrap();
        state.unsynced.push((offset, bytes[..some].to_vec()));
        Ok(some)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.dead {
            state.syncs_after_death += 1;
            return Err(io::Error::other("the power is off"));
        }
        let hit = state.fault == Fault::Sync;
        if state.is_due(hit) {
            self.lose(&mut state)?;
            return Err(io::Error::other("the disk is gone"));
        }
        for (offset, bytes) in std::mem::take(&mut state.unsynced) {
            write_all(&*self.file, &bytes, offset)?;
        }
        self.file.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

/// Puts the lossy disk under the segment.
fn make_lossy(audit: &Audit, fault: Fault, left: u64, chance: Proof) -> Arc<Mutex<State>> {
    let state = Arc::new(Mutex::new(State {
        unsynced: Vec::new(),
        left,
        fault,
        dead: false,
        chance,
        syncs_after_death: 0,
    }));
    let shared = Arc::clone(&state);
    store_of(audit, |file| {
        Box::new(Lossy {
            file,
            state: shared,
        })
    });
    state
}

/// Writes until something fails, and returns what was promised before.
fn write_until_it_fails(audit: &Audit) -> Vec<Receipt> {
    let mut promised = Vec::new();
    loop {
        assert!(promised.len() < 1_000, "the fault never comes");
        // Two at a time, so that a group has several records.
        let tickets = [push(audit, Kind::Attempt), push(audit, Kind::Denied)];
        for ticket in tickets {
            match ticket.wait() {
                Ok(receipt) => promised.push(receipt),
                Err(_) => return promised,
            }
        }
    }
}

fn calm(report: &Report) -> bool {
    matches!(
        report.verdict,
        Verdict::IntactLocalPin | Verdict::IntactUnpinned | Verdict::TornTail
    )
}

#[derive(Default)]
struct Sums {
    torn: usize,
    faults: [usize; 3],
    promised: usize,
    lost: usize,
}

/// One log that loses its disk so many times.
fn cut_off(rounds: std::ops::Range<u64>, proof: &mut Proof, sums: &mut Sums) {
    let folder = TempDir::new().unwrap();
    let mut promised = Vec::new();
    for round in rounds {
        let audit = open(&folder, WIDE);
        let which = usize::try_from(round % 3).unwrap();
        let fault = [Fault::Full, Fault::Write, Fault::Sync][which];
        let left = proof.below(24);
        let state = make_lossy(&audit, fault, left, proof.fork());

        promised.extend(write_until_it_fails(&audit));
        assert!(audit.is_poisoned(), "round {round}: {fault:?}");
        drop(audit);

        let report = verify(&folder.path().join("audit"), &VerifyOptions::default());
        assert!(calm(&report), "round {round}: {fault:?}: {report}");
        let again = lock(&state).syncs_after_death;
        assert_eq!(again, 0, "a sync was asked for again");
        sums.torn += usize::from(report.verdict == Verdict::TornTail);
        sums.faults[which] += 1;
    }
    let audit = open(&folder, WIDE);
    let present: HashSet<_> = Records::open(audit.dir())
        .unwrap()
        .map(|record| record.unwrap().1)
        .map(|stored| (stored.header.seq, stored.id))
        .collect();
    let lost = promised
        .iter()
        .filter(|receipt| !present.contains(&(receipt.seq, receipt.id)));
    sums.lost += lost.count();
    sums.promised += promised.len();
}

#[test]
fn prove_audit_loss() {
    let mut proof = Proof::begin(40);
    let rounds = proof.n().min(MOST);
    let mut sums = Sums::default();
    for first in (0..rounds).step_by(10) {
        let some = first..rounds.min(first + 10);
        cut_off(some, &mut proof, &mut sums);
    }
    proof.row("times the power was cut", rounds);
    proof.row("at a write on a full disk", sums.faults[0]);
    proof.row("at a write that failed", sums.faults[1]);
    proof.row("at a sync that failed", sums.faults[2]);
    proof.row("logs with a torn tail", sums.torn);
    proof.row("records promised", sums.promised);
    proof.row("promised records lost", sums.lost);
    proof.row("false alarms of verify", 0);
    proof.row("syncs asked for again", 0);
    proof.end();
    assert_eq!(sums.lost, 0);
    assert!(sums.torn > 0 && sums.promised > 0);
}
