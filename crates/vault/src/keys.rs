//! The log's keys: the root that signs for it, and the identity its data keys are wrapped to.

use age::{secrecy::ExposeSecret, x25519};
use ed25519_dalek::{Signer, SigningKey};
use model::Secret;
use zeroize::Zeroizing;

use crate::{VaultError, sealed};

/// Returns a new age X25519 identity for the log, and the recipient that belongs to it.
#[must_use]
pub fn new_log_identity() -> (Secret, String) {
    let identity = x25519::Identity::generate();
    (text_of(&identity), identity.to_public().to_string())
}

/// Wraps a data key to `recipient`: an ordinary age file of under 300 bytes.
///
/// # Errors
/// The text is no X25519 recipient.
pub fn wrap_to(recipient: &str, key: &[u8; 32]) -> Result<Vec<u8>, VaultError> {
    let recipient: x25519::Recipient = recipient
        .parse()
        .map_err(|_| VaultError::NotAnAgeKey("recipient"))?;
    sealed::seal(&recipient, key).map_err(|_| VaultError::Encrypt)
}

/// Unwraps a data key; none if the file is not for this identity, or holds no data key.
#[must_use]
pub fn unwrap_with(identity: &Secret, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    unwrap(&read_identity(identity.expose())?, file)
}

/// Draws a new Ed25519 root.
///
/// # Errors
/// The kernel has no randomness to give.
pub fn new_root_seed() -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut()).map_err(|_| VaultError::NoRandomness)?;
    Ok(seed)
}

/// Returns the public half of a root.
#[must_use]
pub fn root_public_of(seed: &[u8; 32]) -> [u8; 32] {
    SigningKey::from_bytes(seed).verifying_key().to_bytes()
}

/// Signs with a root.
#[must_use]
pub fn root_sign_with(seed: &[u8; 32], message: &[u8]) -> [u8; 64] {
    SigningKey::from_bytes(seed).sign(message).to_bytes()
}

pub(crate) fn unwrap(identity: &x25519::Identity, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let plain = sealed::open(identity, file).ok()?;
    <[u8; 32]>::try_from(plain.as_slice())
        .ok()
        .map(Zeroizing::new)
}

/// Reads `AGE-SECRET-KEY-1…`, with or without white space around it.
pub(crate) fn read_identity(text: &[u8]) -> Option<x25519::Identity> {
    str::from_utf8(text).ok()?.trim().parse().ok()
}

pub(crate) fn text_of(identity: &x25519::Identity) -> Secret {
    Secret::new(identity.to_string().expose_secret().as_bytes().to_vec())
}
