//! The main job on real processes: both crashes, every claim, and the log that is left of it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ledger::{Report, VerifyOptions};
use model::Exit;
use testkit::{Deadline, Proof, World};

/// Longer than the demo's own deadline of 40 s, since other tests run beside it.
const DRILL: Duration = Duration::from_secs(150);

/// Both crashes end in a contained incident, and every changed byte of the log that is left is found.
#[test]
fn prove_audit_drill() {
    let mut proof = Proof::begin(EVERYDAY);
    let world = World::new();
    let home = world.folder().join("drill");
    let mut command = world.command(testkit::program("lych"));
    command
        .arg("--home")
        .arg(&home)
        .args(["drill", "self", "--json"]);

    let finished = world.finish(&mut command, b"", Deadline::after(DRILL));

    let report = finished.expect_code(0).json();
    assert_eq!(report["schema"], "lych.drill/v1");
    let points = report["points"].as_array().expect("points");
    let names: Vec<_> = points.iter().map(|point| point["point"].clone()).collect();
    assert_eq!(names, ["before_send", "after_accept"]);
    for point in points {
        assert_eq!(point["met"], true, "{point:#}");
        assert_eq!(point["left"], serde_json::json!([]));
    }
    let log = Log::of(&home.join("audit"));
    let places = log.places(&mut proof);
    log.finds_every_changed_byte(&places, &world.folder().join("copies"));
    log.the_program_names_the_place(&world, &home);
    proof.end();
}

/// A log that was closed, and where its records end: the rest of the segment is preallocated zeros.
struct Log {
    folder: PathBuf,
    end: usize,
}

const SEGMENT: &str = "seg/0000000000.seg";
/// The header of the segment and the record that opens the daemon run, every byte of which is tried.
const FRONT: usize = 512;
/// How many bytes behind them are tried on an ordinary day.
const EVERYDAY: u64 = 1_001;

impl Log {
    fn of(folder: &Path) -> Self {
        let last = ledger::Records::open(folder)
            .expect("a log")
            .map(|record| record.expect("a record").1)
            .last()
            .expect("a log with records");
        let frame = ledger::FRAME_PREFIX + ledger::HEADER_LEN + last.body.len();
        assert_eq!(last.place.segment, 0, "the demo fits into one segment");
        Self {
            folder: folder.to_owned(),
            end: usize::try_from(last.place.offset).expect("a small offset") + frame,
        }
    }

    /// Every byte of `LOG` and of the key files, and as many of the segment's as are asked for. Every byte of a smaller
    /// log is tried where the verifier lives; here it is the log of real daemons, shims and crashes.
    fn places(&self, proof: &mut Proof) -> Vec<(String, usize)> {
        let mut places = Vec::new();
        let keys = fs::read_dir(self.folder.join("keys")).expect("a folder");
        let keys = keys.map(|key| {
            let name = key.expect("an entry").file_name();
            format!("keys/{}", name.to_str().expect("a name of ours"))
        });
        for name in keys.chain(["LOG".to_owned()]) {
            let length = fs::metadata(self.folder.join(&name)).expect("a part of the log");
            places.extend((0..length.len()).map(|at| (name.clone(), at as usize)));
        }
        proof.row("bytes of LOG and the key files, each flipped", places.len());
        let wanted = usize::try_from(proof.n()).expect("a number");
        let step = self.end.div_ceil(wanted).max(1);
        let chosen = (0..self.end).filter(|at| *at < FRONT || at % step == 0);
        let before = places.len();
        places.extend(chosen.map(|at| (SEGMENT.to_owned(), at)));
        proof.row("bytes of the segment", self.end);
        proof.row("of these flipped", places.len() - before);
        // A single one that is not found ends the test.
        proof.row("not found, or not in the file that holds it", 0);
        places
    }

    fn finds_every_changed_byte(&self, places: &[(String, usize)], copies: &Path) {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for (number, part) in places.chunks(places.len().div_ceil(workers)).enumerate() {
                let copy = self.copy(&copies.join(number.to_string()));
                scope.spawn(move || {
                    assert_eq!(verify(&copy).exit(), Exit::Done, "intact before a change");
                    part.iter().for_each(|(name, at)| found(&copy, name, *at));
                });
            }
        });
    }

    /// Copies the log, with the segment cut to its used length as a full one would be: the preallocated zeros would be
    /// read again for each byte.
    fn copy(&self, to: &Path) -> PathBuf {
        for folder in ["seg", "keys"] {
            fs::create_dir_all(to.join(folder)).expect("a folder of our own");
            for file in files(&self.folder.join(folder)) {
                let name = file.file_name().expect("a name");
                fs::copy(&file, to.join(folder).join(name)).expect("a copy");
            }
        }
        for name in ["LOG", "HEAD"] {
            fs::copy(self.folder.join(name), to.join(name)).expect("a copy");
        }
        let segment = File::options().write(true).open(to.join(SEGMENT));
        let end = u64::try_from(self.end).expect("a small offset");
        let cut = segment.and_then(|segment| segment.set_len(end));
        cut.expect("our own file");
        to.to_owned()
    }

    /// The same by the program, as whoever reviews an incident runs it, on the home as the daemon left it.
    fn the_program_names_the_place(&self, world: &World, home: &Path) {
        let key = files(&self.folder.join("keys")).remove(0);
        let key = key.file_name().and_then(|name| name.to_str());
        let key = format!("keys/{}", key.expect("a name of ours"));
        let places = [
            ("LOG", 30),
            (key.as_str(), 100),
            (SEGMENT, 40),
            (SEGMENT, self.end / 2),
            (SEGMENT, self.end - 1),
        ];
        for (name, at) in places {
            let before = change(&self.folder.join(name), at, 1);
            let mut command = world.command(testkit::program("lych"));
            command.arg("--home").arg(home);
            command.args(["audit", "verify", "--json"]);
            let finished = world.finish(&mut command, b"", Deadline::usual());
            change(&self.folder.join(name), at, 1);

            let said = finished.expect_code(Exit::Negative.code().into()).json();
            assert_eq!(
                said["first_bad"]["file"], name,
                "byte {at}, {before}: {said:#}"
            );
        }
    }
}

fn found(audit: &Path, name: &str, at: usize) {
    let path = audit.join(name);
    change(&path, at, 1 << (at % 8));
    let report = verify(audit);
    change(&path, at, 1 << (at % 8));

    assert_eq!(report.exit(), Exit::Negative, "{name} at {at}: {report}");
    let bad = report.first_bad.as_ref().expect("a place");
    assert_eq!(bad.file, name, "at {at}: {report}");
}

/// Changes some bits of a byte, and returns what it was.
fn change(path: &Path, at: usize, bits: u8) -> u8 {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("a part of the log");
    let at = u64::try_from(at).expect("a small offset");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ bits], at)
        .expect("our own file");
    byte[0]
}

fn verify(audit: &Path) -> Report {
    ledger::verify(audit, &VerifyOptions::default())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}
