//! The file `HEAD`: a signed pin of the last acknowledged commit, kept beside the log and copied off the machine.
//!
//! JSON on one line, replaced as a whole, a little behind the log on purpose. Whoever holds a copy of it can tell
//! later whether the log was cut or rewritten up to there. Signed by the epoch, so that nobody without its key can
//! make one for an earlier place.

use ed25519_dalek::{Signature, VerifyingKey};
use model::{Digest, EpochId, LogId, Seq, Wall, hex};
use serde::{Deserialize, Serialize};

/// A signed pin of one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Version of this form.
    pub schema: String,
    /// Which log.
    pub log_id: LogId,
    /// The commit's number.
    pub seq: Seq,
    /// The commit's id.
    pub head: Digest,
    /// When it was committed.
    pub at: Wall,
    /// Which daemon run signs.
    pub epoch: EpochId,
    /// The epoch key's signature, 128 hexadecimal digits.
    pub signature: String,
}

/// Why `HEAD` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// It is not what version 1 writes.
    #[error("HEAD is not of the form {}", Head::SCHEMA)]
    Form,
    /// Its signature is not its epoch's.
    #[error("the signature in HEAD is not its epoch's")]
    Signature,
}

impl Head {
    /// The version of the form that this code writes.
    pub const SCHEMA: &'static str = "lych.head/v1";

    /// Returns a head whose signature is made by `sign`.
    pub fn signed(
        log_id: LogId,
        (seq, head, at): (Seq, Digest, Wall),
        epoch: EpochId,
        sign: impl FnOnce(&[u8]) -> [u8; 64],
    ) -> Self {
        let signature = sign(&message(log_id, seq, head, at, epoch));
        Self {
            schema: Self::SCHEMA.to_owned(),
            log_id,
            seq,
            head,
            at,
            epoch,
            signature: hex(&signature),
        }
    }

    /// Returns the stored bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A struct of plain fields always serialises; an empty file would be found as malformed.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Reads `HEAD`.
    ///
    /// # Errors
    /// It is not exactly what version 1 writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeadError> {
        let head: Self = serde_json::from_slice(bytes).map_err(|_| HeadError::Form)?;
        // One spelling only, so that a changed byte never passes as another way to write the same.
        let spelled = unhex(&head.signature).map(|bytes| hex(&bytes));
        if head.schema == Self::SCHEMA
            && spelled.as_ref() == Some(&head.signature)
            && head.encode() == bytes
        {
            Ok(head)
        } else {
            Err(HeadError::Form)
        }
    }

    /// Checks the signature against the epoch's public key.
    ///
    /// # Errors
    /// It was made by another key or over something else.
    pub fn check(&self, public: &[u8; 32]) -> Result<(), HeadError> {
        let message = message(self.log_id, self.seq, self.head, self.at, self.epoch);
        let signature = unhex(&self.signature).ok_or(HeadError::Signature)?;
        if signature_is_by(public, &message, &signature) {
            Ok(())
        } else {
            Err(HeadError::Signature)
        }
    }
}

fn message(log: LogId, seq: Seq, head: Digest, at: Wall, epoch: EpochId) -> Vec<u8> {
    [
        b"lychgate/head/v1\0".as_slice(),
        &log.to_bytes(),
        &seq.to_be_bytes(),
        &head.to_bytes(),
        &at.millis().to_be_bytes(),
        &epoch.to_bytes(),
    ]
    .concat()
}

fn unhex(text: &str) -> Option<[u8; 64]> {
    let (first, second) = text.split_at_checked(64)?;
    let mut out = [0; 64];
    let halves = [
        first.parse::<Digest>().ok()?.to_bytes(),
        second.parse::<Digest>().ok()?.to_bytes(),
    ];
    for (to, from) in out.iter_mut().zip(halves.iter().flatten()) {
        *to = *from;
    }
    Some(out)
}

/// Tells whether `public` signed `message`, by the strict rules (no malleable signature, no weak key).
pub(crate) fn signature_is_by(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| {
        key.verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    })
}
