//! Reading and writing what is sealed beside the secrets.

use std::sync::Arc;

use model::{Act, Exit, Explain, Fault, Operator};

use super::{acted, closed};
use crate::{daemon::Daemon, sealed::Sealed};

/// Returns what the open vault holds.
///
/// # Errors
/// The vault is shut, or a later version wrote it.
pub(crate) fn sealed(daemon: &Arc<Daemon>) -> Result<Sealed, Explain> {
    let read = daemon.store.with(|vault| of(vault));
    read.ok_or_else(|| closed(daemon))?
}

/// Returns what a vault holds, also one that is not in the store yet.
pub(super) fn of(vault: &vault::Vault) -> Result<Sealed, Explain> {
    Sealed::from_bytes(vault.policy()).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "what the vault holds beside secrets cannot be read",
        )
        .because(error)
        .next("use the version that wrote it")
    })
}

/// Writes it, and puts the new file's generation and digest on record.
pub(super) async fn seal(
    daemon: &Arc<Daemon>,
    by: &Operator,
    sealed: &Sealed,
) -> Result<(), Explain> {
    let bytes = sealed.to_bytes();
    let written = daemon.store.with(|vault| {
        vault
            .set_policy(bytes)
            .map(|()| (vault.generation(), vault.sha256()))
    });
    let (generation, sha256) = written
        .ok_or_else(|| closed(daemon))?
        .map_err(|error| error.explain())?;
    acted(daemon, by, Act::VaultWritten { generation, sha256 }).await
}
