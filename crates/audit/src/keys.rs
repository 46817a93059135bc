//! What the log needs of the vault, as traits: rooms on one floor do not know each other.

use std::io;

use zeroize::Zeroizing;

/// Wraps data keys to the log's public recipient; works while the vault is locked.
pub trait KeyWrap: Send + Sync {
    /// Returns the bytes of a key file that only the holder of the recipient's private key can open.
    ///
    /// # Errors
    /// The recipient is not one, or there is no randomness.
    fn wrap(&self, recipient: &str, key: &[u8; 32]) -> io::Result<Vec<u8>>;
}

/// Opens key files; exists only while the vault is unlocked.
pub trait KeyUnwrap {
    /// Returns the data key in a key file; none if it is not ours to open.
    fn unwrap(&self, file: &[u8]) -> Option<Zeroizing<[u8; 32]>>;
}

/// A root key that vouches for daemon runs.
pub trait RootSigner {
    /// Returns the Ed25519 public key.
    fn public(&self) -> [u8; 32];

    /// Signs `message` by Ed25519.
    fn sign(&self, message: &[u8]) -> [u8; 64];
}
