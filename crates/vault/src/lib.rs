//! The vault: secrets sealed with where they may go, in files that the plain `age` tool opens.
//!
//! Two files. `vault.age` holds everything (secrets, applied policy, the log's root and key) for an X25519
//! identity; that identity lies in `identity.age` under a passphrase, or under the identity of a key file.
//! The layout, and how to recover without this program, is told in `docs/vault-format.md`.
//!
//! # What a file in the right place does not prove
//! Whoever knows the public recipient can write a `vault.age` of his own. So its content carries a MAC under
//! a key that is derived from the secret identity: such a file is [`VaultError::Substituted`]. An *old* vault
//! has a good MAC; [`Vault::not_older_than`] compares it with what the log says was written last.
//!
//! # A crash while writing
//! Every change is a whole new file, beside the old one, synced and renamed; the generation before it stays
//! as `vault.age.prev`. What is in memory changes only when the file has.

mod content;
mod error;
mod keys;
mod opener;
mod recovery;
mod sealed;
mod vault;

#[cfg(test)]
mod tests;

pub use error::{KeyFileFault, VaultError};
pub use keys::{
    new_log_identity, new_root_seed, root_public_of, root_sign_with, unwrap_with, wrap_to,
};
pub use opener::{Opener, OpensBy, WorkFactor};
pub use recovery::Backup;
pub use vault::{NewSecret, SealedSecret, SecretListing, Seed, Vault};
