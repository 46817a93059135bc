//! What must hold for any input at the borders where foreign bytes come in.
//!
//! Each check takes bytes and panics if its claim is broken. The fuzz targets hand over what libFuzzer makes
//! up; a test of every day hands over seeded mutations of good input.

use channels::Policy;
use model::{Destination, Secret};
use wire::{Hello, LineBuffer};

/// A cap small enough that mutations reach it.
const CAP: usize = 64;

/// Lines come out the same however their bytes are cut, and none is longer than the cap.
pub fn line(bytes: &[u8]) {
    let (cut, bytes) = bytes
        .split_first()
        .map_or((1, bytes), |(cut, rest)| (usize::from(*cut) + 1, rest));
    let whole = lines(std::iter::once(bytes));
    let cut = lines(bytes.chunks(cut));
    assert_eq!(whole, cut);
    assert!(whole.iter().flatten().all(|line| line.len() <= CAP));
}

/// Returns the lines of these pieces; none stands for one that was refused.
fn lines<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut buffer = LineBuffer::new(CAP);
    let mut all = Vec::new();
    for piece in pieces {
        buffer.push(piece);
        loop {
            match buffer.next_line() {
                Ok(Some(line)) => all.push(Some(line)),
                Ok(None) => break,
                Err(_) => all.push(None),
            }
        }
    }
    all
}

/// A hello that can be read can be written, and reads back to the same.
pub fn hello(bytes: &[u8]) {
    let Ok(hello) = wire::decode::<Hello>(bytes) else {
        return;
    };
    let line = wire::encode(&hello).expect("what was read can be written");
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    assert_eq!(wire::decode::<Hello>(line).expect("what we wrote"), hello);
}

/// A draft that is taken seals to bytes that read back to the same policy; one that is not says why.
pub fn draft(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Policy::parse_draft(text) {
        Ok(policy) => {
            let again = Policy::from_canonical(&policy.canonical()).expect("what we sealed");
            assert_eq!(again, policy);
            assert!(again.diff(Some(&policy)).is_empty());
            assert!(!again.describe().is_empty());
        }
        Err(error) => assert!(!error.explain().what.is_empty()),
    }
}

/// Sealed bytes are read only if they are exactly what we would write.
pub fn policy(bytes: &[u8]) {
    if let Ok(policy) = Policy::from_canonical(bytes) {
        assert_eq!(policy.canonical(), bytes);
    }
}

/// A destination has one spelling, says its host without a user, and covers itself.
pub fn destination(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(destination) = text.parse::<Destination>() else {
        return;
    };
    let spelled = destination.to_string();
    let again: Destination = spelled.parse().expect("what we spelled");
    assert_eq!(again, destination);
    assert_eq!(again.to_string(), spelled);
    assert!(destination.covers(&destination));
    let host = destination.host();
    assert!(
        !host.is_empty() && !host.contains(['@', '/', '\\', '%', ' ', '?', '#']),
        "{host}"
    );
    assert!(
        destination.is_tls() || destination.ip().is_none_or(|ip| ip.is_loopback()),
        "{spelled}"
    );
}

/// A secret that stands in an answer does not stand in what is left of it.
pub fn redactor(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else {
        return;
    };
    let length = 8 + usize::from(*length % 25);
    if rest.len() < length {
        return;
    }
    let (secret, answer) = rest.split_at(length);
    // Secrets are printable: the vault takes no others.
    let secret: Vec<u8> = secret.iter().map(|byte| 0x21 + byte % 0x5e).collect();
    let at = answer.len() / 2;
    let answer = [&answer[..at], &secret, &answer[at..]].concat();
    let (clean, removed) = channels::scrubbed(&Secret::new(secret.clone()), answer);
    assert!(removed > 0);
    assert!(!clean.windows(secret.len()).any(|window| window == secret));
}

/// A file of a log: where it stands, and its bytes.
type Part = (&'static str, &'static [u8]);

macro_rules! parts_of {
    ($vector:literal: $($name:literal),+) => {
        &[$((
            $name,
            include_bytes!(concat!("../../crates/ledger/testdata/vectors/", $vector, "/log/", $name)),
        )),+]
    };
}

/// A small log that was closed in order.
pub const CLOSED: &[Part] = parts_of!("good": "LOG", "HEAD", "seg/0000000000.seg",
    "keys/e-0c1g60r30c1g60r3.age", "keys/s-040g2081040g2081.age");

/// A log whose first segment was given up.
pub const PRUNED: &[Part] = parts_of!("pruned": "LOG", "HEAD", "pruned/0000000001.cert",
    "seg/0000000001.seg", "keys/e-0c1g60r30c1g60r3.age", "keys/s-040g2081040g2081.age");

/// Whatever stands in a segment's place, only what was written there passes before a pin from outside.
pub fn segment(bytes: &[u8]) {
    in_place_of(CLOSED, "seg/0000000000.seg", bytes);
}

/// The same for the certificate of what was given up.
pub fn certificate(bytes: &[u8]) {
    in_place_of(PRUNED, "pruned/0000000001.cert", bytes);
}

/// Returns a segment up to the end of its last record.
pub fn used(segment: &[u8]) -> &[u8] {
    let mut at = ledger::SEGMENT_HEADER_LEN;
    while let Some(prefix) = segment.get(at..).and_then(|rest| rest.first_chunk()) {
        match u32::from_be_bytes(*prefix) {
            0 => break,
            len => at += ledger::FRAME_PREFIX + len as usize,
        }
    }
    segment.get(..at).expect("whole records")
}

/// Has the log read with these bytes in a file's place, by each of its readers.
fn in_place_of(log: &[Part], name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (dir, pin) = (folder.path().join("log"), folder.path().join("pin"));
    let mut written: &[u8] = &[];
    for (part, good) in log {
        let path = dir.join(part);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let now = if *part == name { bytes } else { good };
        std::fs::write(path, now).expect("a file");
        if *part == "HEAD" {
            std::fs::write(&pin, good).expect("a pin");
        }
        if *part == name {
            written = good;
        }
    }
    let options = ledger::VerifyOptions {
        pins: vec![pin],
        ..ledger::VerifyOptions::default()
    };

    let report = ledger::verify(&dir, &options);

    let passes = report.exit() == model::Exit::Done;
    // Behind a segment's last record there may be remains of a torn write.
    let intact = bytes == written || (name.starts_with("seg/") && bytes.starts_with(used(written)));
    assert!(intact || !passes, "{report}");
    assert!(passes || bytes != written, "{report}");
    let records = ledger::Records::open(&dir).expect("there is LOG");
    let read = records.map_while(Result::ok).count() as u64;
    assert!(!passes || report.last_seq >= Some(read), "{report}");
    for part in ledger::parts(&dir).expect("a folder") {
        let mut behind = 0;
        let walked = ledger::walk(&dir, part, u64::MAX, |record| {
            assert!(record.place.offset >= behind, "it goes on");
            behind = record.place.offset + 1;
            std::ops::ControlFlow::Continue(())
        });
        walked.expect("a file that can be read");
    }
}
