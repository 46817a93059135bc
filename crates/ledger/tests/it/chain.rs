//! The chain and its commits, and what is read from them.

use ledger::{EndorsedHow, Records, Verdict, VerifyOptions, verify};
use model::{Exit, Kind};
use proptest::prelude::*;

use crate::forge::*;

#[test]
fn what_a_second_writer_makes_by_the_format_is_intact() {
    let mut forge = Forge::begun();
    forge.open_run();
    let attempt = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(attempt));
    forge.of_call(Kind::Answered, Some(attempt));
    forge.commit();
    forge.record(Kind::EpochClosed, Says::default());
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(report.exit(), Exit::Done, "{report}");
    assert_eq!(report.checked.key_files, 2);
}

#[test]
fn a_commit_that_describes_other_records_is_found() {
    type Change = fn(ledger::Commit) -> ledger::Commit;
    let changes: [Change; 4] = [
        |commit| ledger::Commit {
            first_seq: commit.first_seq + 1,
            ..commit
        },
        |commit| ledger::Commit {
            segment: 1,
            ..commit
        },
        |commit| ledger::Commit {
            offset: commit.offset + 1,
            ..commit
        },
        |commit| ledger::Commit {
            epoch: model::EpochId::from_bytes([9; 10]),
            ..commit
        },
    ];
    for change in changes {
        let mut forge = Forge::begun();
        let at = forge.len();
        let key = forge.signing.clone();
        forge.commit_by(&key, change);
        forge.of_call(Kind::Attempt, None);
        forge.commit();

        let report = forge.judge();

        assert_eq!(report.verdict, Verdict::Tampered, "{report}");
        let offset = report.first_bad.unwrap().offset;
        assert_eq!(offset, u64::try_from(at).ok());
    }
}

#[test]
fn a_daemon_run_that_begins_inside_a_batch_is_found() {
    let mut forge = Forge::begun();
    forge.of_call(Kind::Attempt, None);
    forge.open_epoch();
    forge.commit();

    assert_eq!(forge.judge().verdict, Verdict::Tampered);
}

#[test]
fn a_log_that_does_not_begin_with_a_daemon_run_is_found() {
    let mut forge = Forge::new();
    forge.of_call(Kind::Attempt, None);
    forge.commit();

    assert_eq!(forge.judge().verdict, Verdict::Tampered);
}

#[test]
fn an_erased_key_on_record_is_no_damage() {
    let mut forge = Forge::begun();
    forge.open_run();
    forge.commit();
    forge.erase_run();
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.exit(), Exit::Done, "{report}");
    assert_eq!(report.checked.erased_keys, 1);
}

#[test]
fn records_end_with_the_last_commit() {
    let mut forge = Forge::begun();
    forge.of_call(Kind::Attempt, None);
    let last = forge.commit();
    forge.of_call(Kind::Denied, None);
    forge.write();

    let read: Vec<_> = Records::open(&forge.dir())
        .unwrap()
        .map(|record| record.unwrap().1.header.seq)
        .collect();

    assert_eq!(read, (1..=last).collect::<Vec<_>>());
}

#[test]
fn a_batch_of_which_only_the_commit_reached_the_disk_is_a_torn_tail() {
    let mut forge = Forge::begun();
    let last = forge.next() - 1;
    let from = forge.len();
    forge.of_call(Kind::Attempt, None);
    let to = forge.len();
    forge.commit();
    forge.write();
    let segment = ledger::segment_file(&forge.dir(), 0);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[from..to].fill(0);
    std::fs::write(&segment, bytes).unwrap();

    let report = verify(&forge.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::TornTail, "{report}");
    assert_eq!(report.last_seq, Some(last));
}

#[test]
fn the_same_loss_in_front_of_a_second_commit_is_tampering() {
    let mut forge = Forge::begun();
    let (from, to) = (forge.len(), forge.len() + 40);
    forge.of_call(Kind::Attempt, None);
    forge.commit();
    forge.of_call(Kind::Attempt, None);
    forge.commit();
    forge.write();
    let segment = ledger::segment_file(&forge.dir(), 0);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[from..to].fill(0);
    std::fs::write(&segment, bytes).unwrap();

    let report = verify(&forge.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
    assert_eq!(report.first_bad.unwrap().offset, u64::try_from(from).ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_verifier_panic_or_pass(
        at in 0usize..1_000, bytes in proptest::collection::vec(any::<u8>(), 1..300), cut in any::<bool>(),
    ) {
        let mut forge = Forge::begun();
        forge.open_run();
        let attempt = forge.of_call(Kind::Attempt, None);
        forge.of_call(Kind::Cleared, Some(attempt));
        forge.commit();
        let root = forge.root.clone();
        forge.endorse(&root, EndorsedHow::OwnRun, forge.epoch);
        forge.commit();
        forge.write();
        forge.pin();
        let segment = ledger::segment_file(&forge.dir(), 0);
        let whole = std::fs::read(&segment).unwrap();
        let at = at.min(forge.len() - 1);
        let mut changed = whole.clone();
        changed.splice(at..whole.len().min(at + bytes.len()), bytes);
        if cut {
            changed.truncate(at);
        }
        std::fs::write(&segment, &changed).unwrap();

        let report = verify(&forge.dir(), &VerifyOptions::default());

        let same = changed.get(..forge.len()) == whole.get(..forge.len());
        prop_assert_eq!(report.exit() == Exit::Done, same, "{}", report);
        let _ = report.to_string();
    }
}
