//! Every way to change a log that a closed one must not survive.

use std::{fs, os::unix::fs::FileExt, path::Path};

use ledger::{Verdict, VerifyOptions, verify};
use model::Exit;

use crate::world::*;

#[test]
fn any_flipped_byte_of_a_closed_log_is_found_and_placed() {
    let world = World::new();
    world.write_small_log();
    let used = world.used_of_last_segment();
    let mut tried = 0;

    for file in world.files() {
        let name = world.name_of(&file);
        if name == "LOCK" || name == "seg/spare" || name.starts_with("held/") {
            continue;
        }
        let whole = fs::read(&file).unwrap();
        let len = if name.starts_with("seg/") {
            used
        } else {
            whole.len()
        };
        for at in 0..len {
            put(&file, at, whole[at] ^ 1 << (at % 8));
            let report = verify(&world.dir(), &VerifyOptions::default());
            put(&file, at, whole[at]);

            assert_eq!(report.exit(), Exit::Negative, "{name} at {at}: {report}");
            let bad = report.first_bad.as_ref().expect("a place");
            let frame = frames(&whole).into_iter().find(|frame| frame.contains(&at));
            let place = name
                .starts_with("seg/")
                .then(|| frame.map_or(0, |frame| frame.start));
            assert_eq!(bad.file, name, "at {at}: {report}");
            let offset = bad.offset.map(|offset| usize::try_from(offset).unwrap());
            assert_eq!(offset, place, "{name} at {at}: {report}");
            tried += 1;
        }
    }

    assert!(tried > 2_000, "{tried}");
    let restored = verify(&world.dir(), &VerifyOptions::default());
    assert_eq!(restored.exit(), Exit::Done, "{restored}");
}

/// Writes one byte in place: writing the file anew makes some file systems wait for the disk each time.
fn put(file: &Path, at: usize, byte: u8) {
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&[byte], u64::try_from(at).unwrap())
        .unwrap();
}

#[test]
fn a_log_cut_at_a_commit_is_truncated_by_head_and_passes_without_any_pin() {
    let world = World::new();
    world.write_small_log();
    let shorter = world.copy("shorter");
    world.append_one_run();
    let head = fs::read(world.dir().join("HEAD")).unwrap();
    fs::write(shorter.join("HEAD"), head).unwrap();

    let with_head = verify(&shorter, &VerifyOptions::default());
    fs::remove_file(shorter.join("HEAD")).unwrap();
    let without = verify(&shorter, &VerifyOptions::default());

    assert_eq!(with_head.verdict, Verdict::Truncated, "{with_head}");
    assert_eq!(without.verdict, Verdict::IntactUnpinned, "{without}");
    assert!(
        without
            .does_not_prove
            .iter()
            .any(|line| line.contains("cut or rolled back"))
    );
}

#[test]
fn an_edit_in_front_of_a_later_commit_is_no_torn_tail_even_without_head() {
    let world = World::new();
    world.write_small_log();
    fs::remove_file(world.dir().join("HEAD")).unwrap();
    world.flip("seg/0000000000.seg", 700);

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
}

#[test]
fn swapped_doubled_and_dropped_records_are_found() {
    let world = World::new();
    world.write_small_log();
    let segment = world.last_segment();
    let whole = fs::read(&segment).unwrap();
    let frames = frames(&whole);
    let of = |index: usize| whole[frames[index].clone()].to_vec();
    let (start, end) = (frames[2].start, frames[4].start);
    let changes = [
        [of(3), of(2)].concat(),
        [of(2), of(2), of(3)].concat(),
        of(3),
        Vec::new(),
    ];

    for middle in changes {
        let mut changed = whole[..start].to_vec();
        changed.extend(middle);
        changed.extend(&whole[end..]);
        changed.resize(whole.len(), 0);
        fs::write(&segment, &changed).unwrap();
        let report = verify(&world.dir(), &VerifyOptions::default());
        assert_eq!(report.verdict, Verdict::Tampered, "{report}");
        assert!(report.first_bad.unwrap().offset.is_some());
    }
}

#[test]
fn a_missing_segment_is_found_wherever_it_was() {
    let world = World::new();
    world.write_long_log();
    let last = world.segments() - 1;

    for index in [0, 1, last] {
        let file = world.dir().join(format!("seg/{index:010}.seg"));
        let aside = world.folder.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        let report = verify(&world.dir(), &VerifyOptions::default());
        fs::rename(&aside, &file).unwrap();
        let expected = if index == last {
            Verdict::Truncated
        } else {
            Verdict::Tampered
        };
        assert_eq!(report.verdict, expected, "segment {index}: {report}");
    }
}

#[test]
fn a_segment_of_another_log_does_not_fit_in() {
    let (one, two) = (World::new(), World::new());
    one.write_long_log();
    two.write_long_log();
    let segment = "seg/0000000001.seg";
    fs::copy(two.dir().join(segment), one.dir().join(segment)).unwrap();

    let report = verify(&one.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
    assert_eq!(report.first_bad.unwrap().file, segment);
}

#[test]
fn a_rewritten_history_is_forked_by_an_older_pin() {
    let world = World::new();
    world.write_small_log();
    let fork = world.copy("fork");
    world.append_one_run();
    let pin = world.folder.path().join("pin");
    fs::copy(world.dir().join("HEAD"), &pin).unwrap();
    let (audit, _) = world.try_open_at(&fork).unwrap();
    audit.endorse(&world.root).unwrap();
    (0..5).for_each(|_| {
        open_run(&audit);
    });
    audit.close().unwrap();

    let report = verify(&fork, &pinned(&pin));

    assert_eq!(report.verdict, Verdict::Forked, "{report}");
    assert_eq!(report.exit(), Exit::Negative);
}

#[test]
fn a_key_file_that_is_gone_without_a_record_is_found() {
    let world = World::new();
    world.write_small_log();
    let keys: Vec<_> = fs::read_dir(world.dir().join("keys"))
        .unwrap()
        .map(|key| key.unwrap().path())
        .collect();

    for key in keys {
        let bytes = fs::read(&key).unwrap();
        fs::remove_file(&key).unwrap();
        let report = verify(&world.dir(), &VerifyOptions::default());
        fs::write(&key, bytes).unwrap();
        assert_eq!(report.verdict, Verdict::Tampered, "{report}");
        assert_eq!(report.first_bad.unwrap().file, world.name_of(&key));
    }
}

#[test]
fn bytes_behind_a_sealed_segment_are_found() {
    let world = World::new();
    world.write_long_log();
    let file = world.dir().join("seg/0000000000.seg");
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(7);
    fs::write(&file, bytes).unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
}

#[test]
fn a_segment_as_long_as_the_disk_is_refused_not_read() {
    let world = World::new();
    world.write_small_log();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(world.last_segment())
        .unwrap();
    file.set_len(1 << 40).unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
}
