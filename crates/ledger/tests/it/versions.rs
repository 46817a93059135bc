//! What a later version wrote is named, and not taken for damage.

use ledger::Verdict;
use model::{Exit, Kind};

use crate::forge::*;

#[test]
fn an_unknown_kind_under_a_valid_signature_leaves_no_judgement() {
    let mut forge = Forge::begun();
    forge.edited_record(Kind::Attempt, |frame| frame[5] = 99);
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
    assert_eq!(report.exit(), Exit::Failed);
    assert!(report.why.unwrap().contains("kind 99"));
}

#[test]
fn a_later_log_file_leaves_no_judgement() {
    let later = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap();
        text.replace("suite 1", "suite 2").into_bytes()
    };
    let mut forge = Forge::with_log(later);
    forge.open_epoch();
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
    assert!(report.why.unwrap().contains("suite 2"));
}

#[test]
fn a_later_segment_that_the_chain_vouches_for_leaves_no_judgement() {
    let mut forge = Forge::new();
    forge.edit_segment_header(|header| header[7] = b'2');
    forge.open_epoch();
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.verdict, Verdict::CannotJudge, "{report}");
}

#[test]
fn the_same_change_behind_the_chains_back_is_tampering() {
    let mut forge = Forge::new();
    forge.open_epoch();
    forge.commit();
    forge.write();
    forge.pin();
    let segment = ledger::segment_file(&forge.dir(), 0);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[7] = b'2';
    std::fs::write(&segment, bytes).unwrap();

    let report = ledger::verify(&forge.dir(), &ledger::VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
}
