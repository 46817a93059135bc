//! The folder of vectors: logs with their verdicts, for this verifier and for any other.
//!
//! Each is made here from fixed keys, so that the committed folder can be compared with what the code makes.
//! `LYCH_WRITE_VECTORS=1` writes it anew.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use ledger::{VerifyOptions, verify};
use serde_json::{Value, json};
use tempfile::TempDir;

mod cases;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/vectors");

/// One log, and what the verifier is told besides.
pub struct Vector {
    pub name: &'static str,
    pub about: &'static str,
    pub folder: TempDir,
    pub log_id: Option<String>,
    pub pin: Option<Value>,
    pub require_pin: bool,
}

impl Vector {
    fn pin_file(&self) -> PathBuf {
        self.folder.path().join("pin.json")
    }

    /// Has it judged, and returns what both verifiers must say.
    fn verdict(&self) -> Value {
        let mut pins = Vec::new();
        if let Some(pin) = &self.pin {
            fs::write(self.pin_file(), format!("{pin}\n")).unwrap();
            pins.push(self.pin_file());
        }
        let report = verify(
            &self.folder.path().join("log"),
            &VerifyOptions {
                log_id: self.log_id.as_ref().map(|id| id.parse().unwrap()),
                pins,
                require_pin: self.require_pin,
            },
        );
        let bad = report.first_bad.as_ref();
        // A pin's own path is not the same everywhere.
        let place = bad.map(|bad| {
            let named = bad.file.rsplit('/').next() == Some("pin.json");
            let file = if named { "pin.json" } else { bad.file.as_str() };
            json!({ "file": file, "offset": bad.offset, "seq": bad.seq })
        });
        let seqs = |all: Vec<u64>| Value::from(all);
        json!({
            "about": self.about,
            "log_id": self.log_id,
            "require_pin": self.require_pin,
            "verdict": report.verdict,
            "exit": report.exit().code(),
            "first_bad": place,
            "first_seq": report.first_seq,
            "last_seq": report.last_seq,
            "head": report.head,
            "repairs": report.repairs.len(),
            "prunes": report.prunes.len(),
            "unendorsed": report.unendorsed.iter().map(|run| run.epoch.to_string()).collect::<Vec<_>>(),
            "structure": seqs(report.structure.iter().map(|broken| broken.seq).collect()),
            "open_attempts": seqs(report.open_attempts.iter().map(|open| open.seq).collect()),
        })
    }
}

/// Every file below `folder`, by its name there.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn made() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for vector in cases::all() {
        let verdict = vector.verdict();
        let said = serde_json::to_string_pretty(&verdict).unwrap() + "\n";
        let mine = files(vector.folder.path());
        let at = |name: &Path| Path::new(vector.name).join(name);
        all.extend(mine.into_iter().map(|(name, bytes)| (at(&name), bytes)));
        all.insert(at(Path::new("verdict.json")), said.into_bytes());
    }
    all
}

#[test]
fn every_vector_has_the_verdict_and_the_bytes_that_are_on_record() {
    let made = made();
    if std::env::var_os("LYCH_WRITE_VECTORS").is_some() {
        let _ = fs::remove_dir_all(FOLDER);
        for (name, bytes) in &made {
            let path = Path::new(FOLDER).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    let kept = files(Path::new(FOLDER));

    assert_eq!(
        kept.keys().collect::<Vec<_>>(),
        made.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &made {
        assert!(kept.get(name) == Some(bytes), "{} differs", name.display());
    }
    assert!(cases::all().len() >= 60);
}
