//! A home that was closed in order: any byte of its log that is changed is found and placed, by the program.
//!
//! Every single byte is tried one floor down, in `audit`; here chance picks bytes of a log that the real
//! daemon wrote, and `lych audit verify` judges as a reviewer would run it: without daemon, vault or key.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ledger::Records;
use serde_json::Value;
use testkit::{Finished, Proof, Target};

use crate::{agent::Agent, gate::Gate};

/// A file of the log, and how many of its bytes are covered.
struct Covered {
    path: PathBuf,
    length: u64,
}

/// Makes a home with a few calls on record, and closes it.
fn closed_home() -> Gate {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    for number in 0..5 {
        let id = agent.send("POST", &format!("/w/{number}"));
        let answer = agent.answer(id, testkit::Deadline::usual());
        assert!(answer.is_some(), "no answer to call {number}");
    }
    drop(agent);
    gate.close();
    gate
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the log");
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Returns the files that a reviewer relies on: `LOG`, the segment up to its last record, the key files.
fn covered(audit: &Path) -> Vec<Covered> {
    let last = Records::open(audit)
        .expect("a log")
        .map(|record| record.expect("a record").1)
        .last()
        .expect("a log with records");
    let segment = ledger::segment_file(audit, last.place.segment);
    let whole = |path: PathBuf| Covered {
        length: fs::metadata(&path).expect("a file").len(),
        path,
    };
    let mut files = vec![
        whole(audit.join("LOG")),
        Covered {
            path: segment,
            length: last.place.offset,
        },
    ];
    files.extend(files_below(&audit.join("keys")).into_iter().map(whole));
    files
}

fn verify(gate: &Gate) -> Finished {
    gate.world.run(["audit", "verify", "--json"])
}

/// Changes one bit of a file and returns what gives it back.
fn flip(path: &Path, at: u64, bit: u64) -> Vec<u8> {
    let before = fs::read(path).expect("a file of the log");
    let mut after = before.clone();
    let at = usize::try_from(at).expect("a place in the file");
    after[at] ^= 1 << bit;
    fs::write(path, after).expect("a file that can be changed");
    before
}

#[test]
fn prove_tamper() {
    let mut proof = Proof::begin(60);
    let gate = closed_home();
    let files = covered(&gate.world.home().audit());
    assert!(files.len() >= 3, "no key file to change");
    drop(verify(&gate).expect_code(0));

    for round in 0..proof.n() {
        // Every file in turn, so that the small ones are not forgotten.
        let turn = usize::try_from(round).expect("a small number") % files.len();
        let file = &files[turn];
        let (at, bit) = (proof.below(file.length), proof.below(8));
        let before = flip(&file.path, at, bit);

        let finished = verify(&gate);
        fs::write(&file.path, before).expect("a file that can be given back");

        let what = format!("byte {at} of {}", file.path.display());
        assert_eq!(finished.code(), Some(3), "{what}: {finished:?}");
        let said = finished.json();
        assert_ne!(said["first_bad"], Value::Null, "{what}: no place: {said:#}");
    }
    drop(verify(&gate).expect_code(0));
    proof.row("bytes changed", proof.n());
    proof.row("found with exit 3, and placed", proof.n());
    proof.row("files", files.len());
    proof.end();
}
