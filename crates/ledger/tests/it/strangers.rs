//! Whoever lacks a key cannot make its holder say something.

use ed25519_dalek::SigningKey;
use ledger::{EndorsedHow, Verdict, VerifyOptions, verify};
use model::{EpochId, Exit, Kind};

use crate::forge::*;

fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[66; 32])
}

#[test]
fn a_rechained_history_without_the_epochs_key_is_found_at_its_first_commit() {
    let mut forge = Forge::begun();
    forge.of_call(Kind::Attempt, None);
    let at = forge.len();
    let seq = forge.commit_by(&stranger(), |commit| commit);
    forge.of_call(Kind::Attempt, None);
    forge.commit_by(&stranger(), |commit| commit);
    forge.of_call(Kind::Attempt, None);
    forge.commit_by(&stranger(), |commit| commit);

    let report = forge.judge();

    let bad = report.first_bad.clone().unwrap();
    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
    assert_eq!((bad.seq, bad.offset), (Some(seq), u64::try_from(at).ok()));
}

#[test]
fn records_that_a_stranger_appends_are_no_more_than_a_torn_tail() {
    let mut forge = Forge::begun();
    let last = forge.next() - 1;
    forge.pin();
    forge.of_call(Kind::Attempt, None);
    forge.commit_by(&stranger(), |commit| commit);
    forge.write();

    let report = verify(&forge.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::TornTail, "{report}");
    assert_eq!(report.last_seq, Some(last));
}

#[test]
fn a_daemon_run_that_a_stranger_opens_is_unendorsed() {
    let mut forge = Forge::begun();
    forge.record(Kind::EpochClosed, Says::default());
    forge.commit();
    forge.epoch = EpochId::from_bytes([4; 10]);
    forge.signing = stranger();
    forge.open_epoch();
    forge.commit();

    let report = forge.judge();

    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(report.exit(), Exit::Negative);
    assert_eq!(report.unendorsed[0].epoch, EpochId::from_bytes([4; 10]));
}

#[test]
fn an_endorsement_by_another_root_is_found() {
    let mut forge = Forge::new();
    forge.open_epoch();
    forge.endorse(&stranger(), EndorsedHow::OwnRun, forge.epoch);
    forge.commit();

    assert_eq!(forge.judge().verdict, Verdict::Tampered);
}

#[test]
fn an_endorsement_of_an_earlier_run_as_the_present_one_is_found() {
    let mut forge = Forge::begun();
    let first = forge.epoch;
    forge.epoch = EpochId::from_bytes([4; 10]);
    forge.open_epoch();
    let root = forge.root.clone();
    forge.endorse(&root, EndorsedHow::OwnRun, first);
    forge.commit();

    assert_eq!(forge.judge().verdict, Verdict::Tampered);
}

#[test]
fn a_head_signed_by_a_stranger_is_found() {
    let mut forge = Forge::begun();
    forge.write();
    let own = std::mem::replace(&mut forge.signing, stranger());
    forge.pin();
    forge.signing = own;

    let report = verify(&forge.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::Tampered, "{report}");
    assert_eq!(report.first_bad.unwrap().file, "HEAD");
}

#[test]
fn a_new_root_needs_both_signatures() {
    let new = SigningKey::from_bytes(&[5; 32]);
    let root = Forge::new().root;
    let cases = [
        ([&root, &new], &root, Verdict::IntactLocalPin),
        ([&stranger(), &new], &root, Verdict::Tampered),
        ([&root, &stranger()], &root, Verdict::Tampered),
        ([&stranger(), &new], &stranger(), Verdict::Tampered),
    ];
    for (signers, old, verdict) in cases {
        let mut forge = Forge::begun();
        forge.hand_over((old, &new), signers);
        forge.commit();

        let report = forge.judge();

        assert_eq!(report.verdict, verdict, "{report}");
    }
}

#[test]
fn the_bootstrap_root_vouches_for_nothing_after_the_hand_over() {
    let new = SigningKey::from_bytes(&[5; 32]);
    let mut forge = Forge::begun();
    let root = forge.root.clone();
    forge.hand_over((&root, &new), [&root, &new]);
    forge.endorse(&root, EndorsedHow::OwnRun, forge.epoch);
    forge.commit();

    assert_eq!(forge.judge().verdict, Verdict::Tampered);
}
