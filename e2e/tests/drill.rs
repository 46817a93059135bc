//! The main job on real processes: both crashes, every claim, and the log that is left of it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ledger::{Report, VerifyOptions};
use model::Exit;
use testkit::{Deadline, World};

/// Longer than the demo's own deadline of 40 s, since other tests run beside it.
const DRILL: Duration = Duration::from_secs(150);

#[test]
fn both_crashes_end_in_a_contained_incident_whose_log_finds_every_changed_byte() {
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
    every_changed_byte_is_found(&home.join("audit"));
}

fn every_changed_byte_is_found(audit: &Path) {
    assert_eq!(
        verify(audit).exit(),
        Exit::Done,
        "the log is intact before it is touched"
    );
    let end = used_length(audit);
    for (path, length, step) in parts(audit, end) {
        for at in (0..length).step_by(step) {
            let report = with_changed_byte(audit, &path, at);
            assert_eq!(
                report.exit(),
                Exit::Negative,
                "byte {at} of {}: {report}",
                path.display()
            );
            assert!(
                report.first_bad.is_some(),
                "it names no place: byte {at} of {}",
                path.display()
            );
        }
    }
}

/// Each file with how much of it counts and how densely it is tried. Every byte of a smaller log is tried
/// where the verifier lives; here it is the log of real daemons, shims and crashes.
fn parts(audit: &Path, end: usize) -> Vec<(PathBuf, usize, usize)> {
    let mut parts = vec![(audit.join("LOG"), length(&audit.join("LOG")), 7)];
    for key in files(&audit.join("keys")) {
        let length = length(&key);
        parts.push((key, length, 41));
    }
    // Primes, so that the steps do not stay in one field of equal records.
    parts.push((audit.join("seg/0000000000.seg"), end, 4_999));
    parts
}

fn with_changed_byte(audit: &Path, path: &Path, at: usize) -> Report {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("a part of the log");
    let at = u64::try_from(at).expect("a small offset");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("our own file");
    let report = verify(audit);
    file.write_all_at(&byte, at).expect("our own file");
    report
}

fn verify(audit: &Path) -> Report {
    ledger::verify(audit, &VerifyOptions::default())
}

/// How much of the segment is written: the rest of it is preallocated zeros.
fn used_length(audit: &Path) -> usize {
    let segment = fs::read(audit.join("seg/0000000000.seg")).expect("the segment");
    let used = segment
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("records");
    used + 1
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

fn length(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).expect("a part of the log").len()).expect("a small file")
}
