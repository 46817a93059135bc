//! Data keys: one file per run and one per epoch, bound into the chain by digest and by commitment.
//!
//! A key file is `keys/<run or epoch id>.age`, the 32-byte key wrapped to the log's recipient. Its digest stands in
//! the clear part of the record that opens the run or epoch, so that a changed file is found without a key and an
//! erased one is told from a lost one. The commitment keeps anybody from presenting another key later under which
//! the same bytes would decrypt to another story: ChaCha20-Poly1305 alone does not prevent that.

use std::path::{Path, PathBuf};

use model::Digest;

use crate::bytes::{Fields, sha256};

/// Length of the clear part in front of a sealed `session_opened` body.
pub const KEY_CLEAR_LEN: usize = 64;

/// What the chain says about a data key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyClear {
    /// SHA-256 of the key file.
    pub file: Digest,
    /// Commitment to the key itself.
    pub commitment: Digest,
}

impl KeyClear {
    /// Says that a run has no key of its own: its file could not be made, and its records are sealed under the
    /// daemon run's key.
    pub const NONE: Self = Self {
        file: Digest::from_bytes([0; 32]),
        commitment: Digest::from_bytes([0; 32]),
    };

    /// Returns the stored bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; KEY_CLEAR_LEN] {
        let mut out = [0; KEY_CLEAR_LEN];
        let both = [self.file.to_bytes(), self.commitment.to_bytes()];
        for (to, from) in out.iter_mut().zip(both.iter().flatten()) {
            *to = *from;
        }
        out
    }

    pub(crate) fn take(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            file: Digest::from_bytes(fields.array()?),
            commitment: Digest::from_bytes(fields.array()?),
        })
    }

    /// Splits a stored `session_opened` body into this and the ciphertext.
    #[must_use]
    pub fn split(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = Fields(body);
        let clear = Self::take(&mut fields)?;
        Some((clear, fields.0))
    }
}

/// Returns the commitment to a data key.
#[must_use]
pub fn key_commitment(key: &[u8; 32]) -> Digest {
    Digest::from_bytes(sha256(&[b"lychgate/data-key/v1\0", key]))
}

/// Returns the path of the key file of the run or epoch with this id.
#[must_use]
pub fn key_file_of(dir: &Path, id: impl std::fmt::Display) -> PathBuf {
    dir.join("keys").join(format!("{id}.age"))
}

/// Returns the digest of a file's bytes, as records and quarantine names hold it.
#[must_use]
pub fn file_digest(bytes: &[u8]) -> Digest {
    Digest::from_bytes(sha256(&[bytes]))
}
