//! Sealing and opening of bodies: ChaCha20-Poly1305, nonce from the record's number, header as associated data.
//!
//! A data key exists for one run (or one daemon run), a number is given out once, so no nonce repeats under a key.
//! The body is JSON, padded with spaces to a multiple of 64 bytes, so that its length tells little and no padding
//! has to be undone.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit,
    aead::{Aead, Payload},
};
use ledger::{FRAME_PREFIX, HEADER_LEN, Header, KEY_CLEAR_LEN};
use model::{Body, Kind, Seq};

const STEP: usize = 64;
const TAG: usize = 16;

/// Returns the padded plaintext of a body; none if it cannot be written as JSON, which none of ours does.
pub(crate) fn plaintext(body: &Body) -> Option<Vec<u8>> {
    let mut text = serde_json::to_vec(body).ok()?;
    text.resize(text.len().next_multiple_of(STEP), b' ');
    Some(text)
}

/// Returns how long the frame of a sealed record will be.
pub(crate) const fn sealed_frame_len(kind: Kind, plain: usize) -> usize {
    let clear = if matches!(kind, Kind::SessionOpened) {
        KEY_CLEAR_LEN
    } else {
        0
    };
    FRAME_PREFIX + HEADER_LEN + clear + plain + TAG
}

/// Returns how long the frame of a record with a clear body will be.
pub(crate) const fn clear_frame_len(body: usize) -> usize {
    FRAME_PREFIX + HEADER_LEN + body
}

/// Returns the stored body: the clear part, then ciphertext and tag; none if the cipher refuses the length.
pub(crate) fn seal(key: &[u8; 32], header: &Header, clear: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let aad = [header.encode().as_slice(), clear].concat();
    let payload = Payload {
        msg: plain,
        aad: &aad,
    };
    let sealed = cipher(key)
        .encrypt(&nonce(header.seq).into(), payload)
        .ok()?;
    Some([clear, &sealed].concat())
}

/// Opens a stored body; none if it is not what was sealed under this key at this place.
pub(crate) fn open(key: &[u8; 32], header: &Header, body: &[u8]) -> Option<Body> {
    let clear = if header.kind == Kind::SessionOpened {
        KEY_CLEAR_LEN
    } else {
        0
    };
    let (clear, sealed) = body.split_at_checked(clear)?;
    let aad = [header.encode().as_slice(), clear].concat();
    let payload = Payload {
        msg: sealed,
        aad: &aad,
    };
    let plain = cipher(key)
        .decrypt(&nonce(header.seq).into(), payload)
        .ok()?;
    serde_json::from_slice(&plain).ok()
}

fn cipher(key: &[u8; 32]) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(key.into())
}

fn nonce(seq: Seq) -> [u8; 12] {
    let mut nonce = [0; 12];
    for (to, from) in nonce.iter_mut().skip(4).zip(seq.to_be_bytes()) {
        *to = from;
    }
    nonce
}

#[cfg(test)]
mod tests {
    use ledger::Sealing;
    use model::{Digest, Lost, LostBasis, OutcomeBody, SessionId, Stamp, Unsettled, Wall};

    use super::*;

    fn header(seq: Seq) -> Header {
        Header {
            kind: Kind::Unresolved,
            sealing: Sealing::Run,
            seq,
            stamp: Stamp {
                wall: Wall::from_millis(1),
                boot_ms: 2,
            },
            session: Some(SessionId::from_bytes([5; 10])),
            call: None,
            refers_to: Some(1),
            prev: Digest::from_bytes([7; 32]),
        }
    }

    fn body() -> Body {
        Body::Outcome(OutcomeBody::Unresolved {
            why: Unsettled::DaemonEnded,
        })
    }

    #[test]
    fn a_body_opens_only_at_its_own_place() {
        let sealed = seal(&[1; 32], &header(9), &[], &plaintext(&body()).unwrap()).unwrap();

        assert_eq!(open(&[1; 32], &header(9), &sealed), Some(body()));
        assert_eq!(open(&[1; 32], &header(10), &sealed), None);
        assert_eq!(open(&[2; 32], &header(9), &sealed), None);
    }

    /// Opened by another implementation of ChaCha20-Poly1305 too. If this fails, sealed bodies of version 1 that are on
    /// disk can no longer be opened.
    #[test]
    fn a_sealed_body_is_what_it_was() {
        let text = plaintext(&body()).unwrap();
        let sealed = seal(&[1; 32], &header(9), &[], &text).unwrap();

        let first = "{\"is\":\"outcome\",\"outcome\":\"unresolved\",\"why\":\"daemon_ended\"}";
        assert_eq!(str::from_utf8(&text).unwrap().trim_end(), first);
        assert_eq!(
            ledger::file_digest(&sealed).to_string(),
            "7f5a3ba794cc26d73144b40da6d3056102014ff4f84e8aa0c111c3c6efb27747"
        );
    }

    #[test]
    fn a_changed_header_closes_the_body() {
        let sealed = seal(&[1; 32], &header(9), b"clear", &plaintext(&body()).unwrap()).unwrap();
        let moved = Header {
            prev: Digest::from_bytes([8; 32]),
            ..header(9)
        };
        let other_run = Header {
            session: None,
            ..header(9)
        };

        for changed in [moved, other_run] {
            assert_eq!(open(&[1; 32], &changed, &sealed[5..]), None);
        }
        assert_eq!(
            open(&[1; 32], &header(9), &sealed[5..]),
            None,
            "without its clear part"
        );
    }

    #[test]
    fn a_nested_tagged_body_survives_json() {
        let lost = Body::ClientLost(Lost {
            basis: LostBasis::HolderExited,
            not_before: Wall::from_millis(5),
            not_after: Wall::from_millis(6),
            process: None,
        });

        for body in [lost, body(), Body::Empty] {
            let text = plaintext(&body).unwrap();

            assert_eq!(text.len() % STEP, 0);
            assert_eq!(serde_json::from_slice::<Body>(&text).unwrap(), body);
        }
    }
}
