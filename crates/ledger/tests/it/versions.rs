//! What a later version wrote is named, and not taken for damage.

use ed25519_dalek::SigningKey;
use ledger::{Verdict, file_digest};
use model::{Exit, Kind};

use crate::forge::*;

/// A log of version 1 with every kind of clear body. If this fails the stored form has changed: then it needs a new
/// version number, and this one must stay readable.
#[test]
fn the_bytes_of_version_1_are_what_they_were() {
    let new = SigningKey::from_bytes(&[5; 32]);
    let mut forge = Forge::begun();
    let root = forge.root.clone();
    forge.open_run();
    let attempt = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(attempt));
    forge.of_call(Kind::Answered, Some(attempt));
    forge.hand_over((&root, &new), [&root, &new]);
    forge.commit();
    forge.erase_run();
    forge.record(Kind::EpochClosed, Says::default());
    forge.commit();

    let report = forge.judge();

    let digest = |name: &str| file_digest(&std::fs::read(forge.dir().join(name)).unwrap());
    assert_eq!(report.exit(), Exit::Done, "{report}");
    let stored = ["LOG", "seg/0000000000.seg", "HEAD"].map(|name| digest(name).to_string());
    assert_eq!(
        stored,
        [
            "ecbdaeff09af658144bba27aed70da5fd2f89275d5466767c14418069a243556",
            "3469ea53cc4e96997dddeb3ac1ee5c87c1bb973e7184622956ecaf2fd51669bd",
            "0480fcf525f64ca8770bed5400940b006cd5504e866d5059a13aae100348223d",
        ]
    );
}

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
