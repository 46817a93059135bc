//! The vectors, one after the other: what is good, what is changed, what is cut, what is given up.

use std::{fs, path::PathBuf};

use ed25519_dalek::SigningKey;
use ledger::{EndorsedHow, KeyClear, SEGMENT_HEADER_LEN, TailRepaired, segment_file};
use model::{Digest, EpochId, Kind, SessionId};
use serde_json::{Value, json};

use super::Vector;
use crate::forge::*;

const SECOND: EpochId = EpochId::from_bytes([4; 10]);

fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[66; 32])
}

fn new_root() -> SigningKey {
    SigningKey::from_bytes(&[5; 32])
}

/// A run with one answered and one open call, closed in order: records 1 to 14.
fn story() -> Forge {
    let mut forge = Forge::begun();
    forge.open_run();
    let first = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(first));
    forge.of_call(Kind::Answered, Some(first));
    forge.commit();
    let second = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(second));
    forge.commit();
    forge.record(Kind::EpochClosed, Says::default());
    forge.commit();
    forge
}

/// Another daemon run goes on, under another key.
fn second_run(forge: &mut Forge, key: u8) {
    forge.epoch = SECOND;
    forge.signing = SigningKey::from_bytes(&[key; 32]);
    forge.open_epoch();
    forge.commit();
}

fn endorse(forge: &mut Forge, how: EndorsedHow) {
    let root = forge.root.clone();
    forge.endorse(&root, how, forge.epoch);
    forge.commit();
}

/// Three segments, the second begun in the first's daemon run.
fn long() -> Forge {
    let mut forge = Forge::begun();
    forge.open_run();
    let open = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(open));
    forge.commit();
    forge.next_segment();
    forge.of_call(Kind::Answered, Some(open));
    forge.commit();
    forge.next_segment();
    forge.record(Kind::EpochClosed, Says::default());
    forge.commit();
    forge
}

/// The first segment is given up; what it held that still matters is carried over.
fn pruned() -> (Forge, PathBuf) {
    let mut forge = Forge::begun();
    forge.open_run();
    let open = forge.of_call(Kind::Attempt, None);
    forge.of_call(Kind::Cleared, Some(open));
    forge.commit();
    let carried = forge.frames_of_first(&[1, 3, 5, 6, 7]);
    forge.next_segment();
    forge.prune(&carried);
    forge.of_call(Kind::Answered, Some(open));
    forge.commit();
    let first = segment_file(&forge.dir(), 0);
    (forge, first)
}

fn write(name: &'static str, about: &'static str, forge: Forge) -> Vector {
    forge.write();
    forge.pin();
    kept(name, about, forge)
}

fn kept(name: &'static str, about: &'static str, forge: Forge) -> Vector {
    let folder = tempfile::TempDir::new().unwrap();
    copy(&forge.dir(), &folder.path().join("log"));
    Vector {
        name,
        about,
        folder,
        log_id: None,
        pin: None,
        require_pin: false,
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(path, there).unwrap();
        }
    }
}

impl Vector {
    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join("log").join(name)
    }

    fn edit(self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = fs::read(self.log(name)).unwrap();
        edit(&mut bytes);
        fs::write(self.log(name), bytes).unwrap();
        self
    }

    fn without(self, name: &str) -> Self {
        fs::remove_file(self.log(name)).unwrap();
        self
    }

    fn pinned(mut self, pin: Value) -> Self {
        self.pin = Some(pin);
        self
    }

    fn head(&self) -> Value {
        serde_json::from_slice(&fs::read(self.log("HEAD")).unwrap()).unwrap()
    }
}

const FIRST: &str = "seg/0000000000.seg";

pub fn all() -> Vec<Vector> {
    let mut all = whole();
    all.extend(changed());
    all.extend(cut());
    all.extend(ends());
    all.extend(runs());
    all.extend(segments());
    all.extend(keys());
    all.extend(later());
    all.extend(order());
    all
}

fn whole() -> Vec<Vector> {
    let mut one = Forge::new();
    one.open_epoch();
    one.commit();
    let good = write(
        "good_pinned",
        "a copy of HEAD kept elsewhere confirms it",
        story(),
    );
    let pin = good.head();
    let expected = good.head()["log_id"].as_str().unwrap().to_owned();
    let mut named = write("good_named", "the expected id is that of the log", story());
    named.log_id = Some(expected);
    let mut required = write(
        "pin_required",
        "a pin is required and none is given",
        story(),
    );
    required.require_pin = true;
    vec![
        write("good", "closed in order, confirmed by HEAD alone", story()),
        good.pinned(pin),
        write("good_without_head", "nothing confirms the end", story()).without("HEAD"),
        named,
        required,
        write("empty", "a segment without a record", Forge::new()).without("HEAD"),
        write("unborn", "the making of a log was cut short", Forge::new())
            .without("HEAD")
            .without("LOG"),
        write(
            "one_record",
            "a daemon run began, and nobody endorsed it",
            one,
        ),
        write(
            "one_run",
            "a daemon run began and was endorsed",
            Forge::begun(),
        ),
        write("several_segments", "three segments, chained", long()),
    ]
}

fn changed() -> Vec<Vector> {
    let of = |name, about| write(name, about, story());
    let (a, b, c) = (frame(5), frame(6), frame(7));
    let bytes = story_bytes();
    let with = |name, about, middle: Vec<u8>| {
        let tail = bytes[c.1..].to_vec();
        of(name, about).edit(FIRST, |file| {
            file.truncate(a.0);
            file.extend(middle);
            file.extend(tail);
        })
    };
    let one = bytes[a.0..a.1].to_vec();
    let two = bytes[b.0..b.1].to_vec();
    let three = bytes[c.0..c.1].to_vec();
    let mut other = Forge::with_log(|text| {
        String::from_utf8(text)
            .unwrap()
            .replace("age1forged", "age1other")
            .into_bytes()
    });
    other.open_epoch();
    other.of_call(Kind::Attempt, None);
    other.commit();
    let foreign = other.frames_of_first(&[2]);
    vec![
        of("edited_body", "one bit of a sealed body").edit(FIRST, |b| b[frame(6).1 - 1] ^= 1),
        of("edited_time", "one bit of a record's time").edit(FIRST, |b| b[frame(6).0 + 20] ^= 1),
        of("edited_length", "one bit of a frame's length").edit(FIRST, |b| b[frame(6).0 + 3] ^= 1),
        of("edited_commit", "one bit of a commit's signature")
            .edit(FIRST, |b| b[frame(9).1 - 1] ^= 1),
        of(
            "edited_last_commit",
            "the same at the end, where HEAD confirms it",
        )
        .edit(FIRST, |b| b[frame(14).1 - 1] ^= 1),
        of(
            "edited_segment_header",
            "one bit of the first segment's header",
        )
        .edit(FIRST, |b| b[60] ^= 1),
        of("edited_log", "another day of birth").edit("LOG", |b| {
            let at = b.len() - 4;
            b[at] ^= 1;
        }),
        of("edited_log_form", "LOG without its last line feed").edit("LOG", |b| {
            b.pop();
        }),
        of("edited_head", "HEAD with another time").edit("HEAD", |b| {
            let text = String::from_utf8(b.clone())
                .unwrap()
                .replace("00:00:00.009", "00:00:00.008");
            *b = text.into_bytes();
        }),
        of("head_respelled", "HEAD with one space more").edit("HEAD", |b| b.insert(1, b' ')),
        of("log_missing", "LOG is gone").without("LOG"),
        with(
            "swapped",
            "two records have changed places",
            [two.clone(), one.clone(), three.clone()].concat(),
        ),
        with(
            "duplicated",
            "a record stands there twice",
            [one.clone(), two.clone(), two.clone(), three.clone()].concat(),
        ),
        with(
            "dropped",
            "a record is missing",
            [one.clone(), three.clone()].concat(),
        ),
        with(
            "spliced_record",
            "a record of another log",
            [one, foreign, three].concat(),
        ),
        of("spliced_segment", "the whole segment of another log").edit(FIRST, |b| {
            other.write();
            *b = fs::read(segment_file(&other.dir(), 0)).unwrap();
        }),
        rechained(
            "rechained",
            "edited and chained anew by somebody without the daemon's key, HEAD too",
        ),
        rechained(
            "rechained_no_head",
            "the same without HEAD: what he added counts for nothing",
        )
        .without("HEAD"),
        malleable(),
    ]
}

fn rechained(name: &'static str, about: &'static str) -> Vector {
    let mut forge = Forge::begun();
    for _ in 0..3 {
        forge.of_call(Kind::Attempt, None);
        forge.commit_by(&stranger(), |commit| commit);
    }
    forge.signing = stranger();
    write(name, about, forge)
}

/// S + L signs the same for a lenient verifier (RFC 8032, 5.1.7).
fn malleable() -> Vector {
    const L: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let about = "the last signature is spelled another way";
    write("malleable_signature", about, story())
        .without("HEAD")
        .edit(FIRST, |bytes| {
            let end = frame(14).1;
            let mut carry = 0u16;
            for (byte, add) in bytes[end - 32..end].iter_mut().zip(L) {
                let sum = u16::from(*byte) + u16::from(add) + carry;
                *byte = u8::try_from(sum & 0xff).unwrap();
                carry = sum >> 8;
            }
        })
}

fn cut() -> Vec<Vector> {
    let places = [
        ("cut_in_segment_header", "cut_in_segment_header_no_head", 50),
        (
            "cut_behind_segment_header",
            "cut_behind_segment_header_no_head",
            SEGMENT_HEADER_LEN,
        ),
        ("cut_in_length", "cut_in_length_no_head", frame(10).0 + 2),
        ("cut_in_header", "cut_in_header_no_head", frame(10).0 + 40),
        ("cut_in_body", "cut_in_body_no_head", frame(10).1 - 3),
        (
            "cut_behind_record",
            "cut_behind_record_no_head",
            frame(10).1,
        ),
        (
            "cut_in_signature",
            "cut_in_signature_no_head",
            frame(12).1 - 5,
        ),
        (
            "cut_behind_commit",
            "cut_behind_commit_no_head",
            frame(12).1,
        ),
    ];
    let of = |name, at: usize| {
        write(name, "cut off, HEAD left", story()).edit(FIRST, |b| b.truncate(at))
    };
    let mut all = Vec::new();
    for (with, without, at) in places {
        all.push(of(with, at));
        let bare = write(without, "cut off, and HEAD removed", story());
        all.push(bare.without("HEAD").edit(FIRST, |b| b.truncate(at)));
    }
    all
}

fn ends() -> Vec<Vector> {
    let torn = || {
        let mut forge = story();
        forge.pin();
        second_run_open(&mut forge);
        forge
    };
    let mut lost = torn();
    let from = lost.len();
    lost.of_call(Kind::Attempt, None);
    let to = lost.len();
    lost.commit();
    lost.write();
    let mut half = torn();
    half.of_call(Kind::Attempt, None);
    half.write();
    let mut second = torn();
    let gone = (second.len(), second.len() + 40);
    second.of_call(Kind::Attempt, None);
    second.commit();
    second.of_call(Kind::Attempt, None);
    second.commit();
    second.write();
    let mut foreign = torn();
    foreign.of_call(Kind::Attempt, None);
    foreign.commit_by(&stranger(), |commit| commit);
    foreign.write();
    let mut repaired = story();
    second_run_open(&mut repaired);
    let says = TailRepaired {
        segment: 0,
        offset: 1,
        len: 2,
        sha256: Digest::from_bytes([6; 32]),
    };
    repaired.record(
        Kind::TailRepaired,
        Says {
            body: says.encode(),
            ..Says::default()
        },
    );
    repaired.commit();
    let good = write(
        "replayed_backup",
        "an old backup, HEAD with it; a newer receipt exists",
        story(),
    );
    let newer = json!({ "log_id": good.head()["log_id"], "seq": 40, "id": "ab".repeat(32) });
    let fork = write("forked", "a pin names another record 12", story());
    let other = json!({ "log_id": fork.head()["log_id"], "seq": 12, "id": "ab".repeat(32) });
    let receipt = write(
        "receipt",
        "a receipt confirms the log up to its record",
        story(),
    );
    let genuine = receipt_of(&receipt, 6);
    let strange = write("pin_of_another_log", "a pin of another log", story());
    let mut another = write("another_log", "not the log that is expected", story());
    another.log_id = Some("09".repeat(32));
    let incident = write("incident", "an incident holds an earlier report", story());
    let report = json!({ "id": "i-1", "verify": {
        "log_id": incident.head()["log_id"], "last_seq": incident.head()["seq"], "head": incident.head()["head"] } });
    vec![
        kept(
            "torn_tail",
            "half of an unacknowledged write follows the last commit",
            half,
        ),
        kept(
            "torn_tail_commit_only",
            "of the last write only its commit reached the disk",
            lost,
        )
        .edit(FIRST, |b| b[from..to].fill(0)),
        kept(
            "lost_in_front_of_a_commit",
            "the same in front of a second commit is no torn write",
            second,
        )
        .edit(FIRST, |b| b[gone.0..gone.1].fill(0)),
        kept(
            "foreign_tail",
            "records and a commit that somebody without the key appended",
            foreign,
        ),
        write(
            "repaired",
            "a torn write was moved to quarantine, on record",
            repaired,
        ),
        good.pinned(newer),
        fork.pinned(other),
        receipt.pinned(genuine),
        strange.pinned(json!({ "log_id": "07".repeat(32), "seq": 3, "id": "ab".repeat(32) })),
        another,
        incident.pinned(report),
        write("pin_unreadable", "a pin that is none", story()).pinned(json!({ "schema": "x" })),
    ]
}

/// A daemon run that is endorsed and goes on.
fn second_run_open(forge: &mut Forge) {
    second_run(forge, 9);
    endorse(forge, EndorsedHow::OwnRun);
}

fn receipt_of(vector: &Vector, seq: u64) -> Value {
    let bytes = fs::read(vector.log(FIRST)).unwrap();
    let (from, to) = frame(seq);
    json!({ "log_id": vector.head()["log_id"], "seq": seq, "id": ledger::frame_id(&bytes[from..to]) })
}

fn runs() -> Vec<Vector> {
    let two = |how: Option<EndorsedHow>, key| {
        let mut forge = story();
        second_run(&mut forge, key);
        if let Some(how) = how {
            endorse(&mut forge, how);
        }
        forge
    };
    let mut late = two(None, 9);
    let earlier = late.epoch;
    let earlier_key = late.signing.clone();
    late.epoch = EpochId::from_bytes([6; 10]);
    late.signing = SigningKey::from_bytes(&[10; 32]);
    late.open_epoch();
    late.commit();
    endorse(&mut late, EndorsedHow::OwnRun);
    let present = (late.epoch, late.signing.clone());
    (late.epoch, late.signing) = (earlier, earlier_key);
    let root = late.root.clone();
    late.endorse(&root, EndorsedHow::Adopted, earlier);
    (late.epoch, late.signing) = present;
    late.commit();
    let mut forged = two(None, 66);
    forged.endorse(&stranger(), EndorsedHow::OwnRun, forged.epoch);
    forged.commit();
    let mut stale = story();
    let first = stale.epoch;
    second_run(&mut stale, 9);
    let root = stale.root.clone();
    stale.endorse(&root, EndorsedHow::OwnRun, first);
    stale.commit();
    let hand_over = |signers: [SigningKey; 2], endorse: SigningKey| {
        let mut forge = Forge::begun();
        let root = forge.root.clone();
        forge.hand_over((&root, &new_root()), [&signers[0], &signers[1]]);
        forge.endorse(&endorse, EndorsedHow::OwnRun, forge.epoch);
        forge.commit();
        forge
    };
    let root = Forge::new().root;
    vec![
        write(
            "two_runs",
            "a second daemon run, endorsed",
            two(Some(EndorsedHow::OwnRun), 9),
        ),
        write(
            "unendorsed_run",
            "a second daemon run that nobody endorsed",
            two(None, 9),
        ),
        write(
            "adopted_run",
            "an operator adopted a run afterwards, on record",
            late,
        ),
        write(
            "forged_run",
            "a run that somebody opened and endorsed under a root of his own",
            forged,
        ),
        write(
            "stale_endorsement",
            "the root's word for an earlier run, given out as the present one",
            stale,
        ),
        write(
            "new_root",
            "the vault's root took over",
            hand_over([root.clone(), new_root()], new_root()),
        ),
        write(
            "new_root_unsigned",
            "the old root did not sign",
            hand_over([stranger(), new_root()], new_root()),
        ),
        write(
            "old_root_again",
            "the old root vouches after the hand-over",
            hand_over([root.clone(), new_root()], root),
        ),
    ]
}

fn segments() -> Vec<Vector> {
    let third = "seg/0000000002.seg";
    let second = "seg/0000000001.seg";
    let gone = |name, about, cut: bool| {
        let (forge, first) = pruned();
        forge.write();
        forge.pin();
        if cut {
            fs::remove_file(first).unwrap();
        }
        kept(name, about, forge)
    };
    let cert = "pruned/0000000001.cert";
    let (mut none, first) = {
        let mut forge = Forge::begun();
        forge.open_run();
        forge.commit();
        let carried = forge.frames_of_first(&[1, 3, 5]);
        forge.next_segment();
        (forge, carried)
    };
    let header = ledger::SegmentHeader {
        log_id: none.log_id,
        index: 1,
        first_seq: none.next(),
        prev: none.last(),
    };
    none.of_call(Kind::Attempt, None);
    none.commit();
    none.write();
    none.pin();
    let forged = ledger::Certificate::new(none.log_id, (1, header.first_seq, header.prev), &first);
    let path = ledger::Certificate::path(&none.dir(), 1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, forged.bytes()).unwrap();
    fs::remove_file(segment_file(&none.dir(), 0)).unwrap();
    vec![
        write(
            "first_segment_missing",
            "the first segment was removed",
            long(),
        )
        .without(FIRST),
        write(
            "middle_segment_missing",
            "the second of three was removed",
            long(),
        )
        .without(second),
        write("last_segment_missing", "the last was removed", long()).without(third),
        write(
            "sealed_segment_cut",
            "a complete segment lost its end",
            long(),
        )
        .edit(second, |b| {
            b.pop();
        }),
        write(
            "sealed_segment_longer",
            "a byte behind a complete segment",
            long(),
        )
        .edit(second, |b| b.push(7)),
        gone("pruned", "the first segment was given up, on record", true),
        gone(
            "pruned_not_yet_removed",
            "the record is there, the file too: the removal was cut short",
            false,
        ),
        gone(
            "pruned_without_certificate",
            "given up on record, and the certificate is gone",
            true,
        )
        .without(cert),
        gone(
            "pruned_certificate_edited",
            "one bit of the certificate",
            true,
        )
        .edit(cert, |b| b[200] ^= 1),
        gone(
            "pruned_certificate_shortened",
            "a carried record was taken out",
            true,
        )
        .edit(cert, |b| {
            let len = b.len() - 98;
            b.truncate(len);
        }),
        kept(
            "removed_with_a_made_up_certificate",
            "removed, and no record vouches for the certificate",
            none,
        ),
    ]
}

fn keys() -> Vec<Vector> {
    let run = format!("keys/{RUN}.age");
    let epoch = format!("keys/{}.age", Forge::new().epoch);
    let mut erased = Forge::begun();
    erased.open_run();
    erased.commit();
    erased.erase_run();
    erased.commit();
    let mut none = Forge::begun();
    none.record(
        Kind::SessionOpened,
        Says {
            session: Some(SessionId::from_bytes([8; 10])),
            body: [KeyClear::NONE.encode().as_slice(), b"sealed"].concat(),
            ..Says::default()
        },
    );
    none.commit();
    vec![
        write("key_missing", "a run's key file is gone", story()).without(&run),
        write("key_flipped", "one bit of a run's key file", story()).edit(&run, |b| b[3] ^= 1),
        write(
            "epoch_key_missing",
            "a daemon run's key file is gone",
            story(),
        )
        .without(&epoch),
        write("key_erased", "a run's key was erased, on record", erased),
        write("key_never_made", "a run without a key of its own", none),
    ]
}

fn later() -> Vec<Vector> {
    let record = |name, about, edit: fn(&mut [u8])| {
        let mut forge = Forge::begun();
        forge.edited_record(Kind::Attempt, edit);
        forge.commit();
        write(name, about, forge)
    };
    let suite = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap();
        text.replace("suite 1", "suite 2").into_bytes()
    };
    let mut log = Forge::with_log(suite);
    log.open_epoch();
    log.commit();
    let mut segment = Forge::new();
    segment.edit_segment_header(|header| header[7] = b'2');
    segment.open_epoch();
    segment.commit();
    vec![
        record("later_version", "a record of version 2", |frame| {
            frame[4] = 2
        }),
        record(
            "older_version",
            "a record of a version before the first",
            |frame| frame[4] = 0,
        ),
        record(
            "later_kind",
            "a record of a kind that version 1 does not have",
            |frame| frame[5] = 99,
        ),
        record("wrong_field", "a reserved byte is not zero", |frame| {
            frame[7] = 1
        }),
        write("later_suite", "LOG of suite 2", log),
        write("later_segment", "a segment of version 2, chained", segment),
        write(
            "segment_version_edited",
            "the same change behind the chain's back",
            story(),
        )
        .edit(FIRST, |b| b[7] = b'2'),
    ]
}

fn order() -> Vec<Vector> {
    use Kind::*;
    let ways: [(&str, &str, &[Kind]); 6] = [
        (
            "cleared_after_revoked",
            "a call was cleared after its run was revoked",
            &[Attempt, Revoked, Cleared],
        ),
        (
            "answer_without_clearance",
            "an answer came to a call that was never cleared",
            &[Attempt, Answered],
        ),
        (
            "two_outcomes",
            "a call was answered and withdrawn",
            &[Attempt, Cleared, Answered, Withdrawn],
        ),
        (
            "denied_after_clearance",
            "a call was denied after it had been cleared",
            &[Attempt, Cleared, Denied],
        ),
        (
            "answer_noted_twice",
            "a second answer says that it was delivered",
            &[Attempt, Cleared, Answered, Answered],
        ),
        (
            "reconciled",
            "an operator found out",
            &[Attempt, Cleared, Unresolved, Reconciled],
        ),
    ];
    let mut all = Vec::new();
    for (name, about, kinds) in ways {
        let mut forge = Forge::begun();
        forge.open_run();
        let mut attempt = None;
        for kind in kinds {
            let refers = attempt.filter(|_| *kind != Revoked);
            let seq = forge.of_call(*kind, refers);
            attempt = attempt.or(Some(seq));
        }
        forge.commit();
        all.push(write(name, about, forge));
    }
    let mut after = story();
    after.of_call(Attempt, None);
    after.commit();
    all.push(write(
        "record_after_the_end",
        "a record follows the end of its daemon run",
        after,
    ));
    all
}

fn story_bytes() -> Vec<u8> {
    let forge = story();
    forge.write();
    fs::read(segment_file(&forge.dir(), 0)).unwrap()
}

/// Where a record of the story begins and ends.
fn frame(seq: u64) -> (usize, usize) {
    let bytes = story_bytes();
    let mut at = SEGMENT_HEADER_LEN;
    for _ in 1..seq {
        at += 4 + u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    }
    (
        at,
        at + 4 + u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize,
    )
}
