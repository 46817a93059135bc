//! Small things that several verbs need: values for answers, secrets derived from the root.

use model::{Exit, Explain, Fault};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use vault::Vault;
use zeroize::Zeroizing;

/// Turns a view into the value of an answer.
pub(crate) fn to_value<T: Serialize>(view: &T) -> Result<Value, Explain> {
    serde_json::to_value(view).map_err(|error| {
        Explain::new(Exit::Failed, Fault::Ours, "an answer cannot be written").because(error)
    })
}

/// Derives the secret behind request ids from the vault's root: the same for the vault's whole life, so
/// that a call's id can be computed again, and unknown to anybody without the vault.
///
/// A signature serves as the secret: Ed25519 is deterministic (RFC 8032, 5.1.6), and the message is
/// signed for nothing else.
pub(crate) fn id_secret(vault: &Vault) -> Zeroizing<[u8; 32]> {
    let signature = Zeroizing::new(vault.root_sign(b"lychgate/request-id-secret/v1"));
    Zeroizing::new(Sha256::digest(signature.as_slice()).into())
}
