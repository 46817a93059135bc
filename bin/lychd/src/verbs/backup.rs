//! The vault copied for a backup, and put back from one.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Act, Exit, Explain, Fault, Operator};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vault::Backup;
use wire::{VaultState, operator::Opener};

use super::{acted, init, no_vault, presence, sealed};
use crate::{daemon::Daemon, operator::Caller, store::Unwrap};

/// Copies the sealed files; nothing in them opens without the passphrase or key file.
pub(super) async fn copy(daemon: &Arc<Daemon>, by: &Operator) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    if daemon.store.state() == VaultState::None {
        return Err(no_vault());
    }
    let backup = Backup::of(&daemon.home).map_err(|error| error.explain())?;
    let sha256 = model::Digest::from_bytes(Sha256::digest(&backup.vault).into());
    acted(daemon, by, Act::VaultBackedUp { sha256 }).await?;
    Ok(
        json!({"schema": "lych.backup/v1", "log_id": daemon.audit.log_id(), "sha256": sha256,
        "vault": STANDARD.encode(&backup.vault), "identity": STANDARD.encode(&backup.identity)}),
    )
}

/// Puts a vault from a backup in place of the present one: secrets and policy are those of that day again.
pub(super) async fn restore(
    daemon: &Arc<Daemon>,
    caller: &mut Caller,
    (vault, identity): (&str, &str),
    given: Opener,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let backup = Backup {
        vault: decoded(vault)?,
        identity: decoded(identity)?,
    };
    let opener = init::opener(given)?;
    let home = daemon.home.clone();
    let (backup, vault) = init::slowly(move || {
        let vault = backup.open(&home, &opener)?;
        Ok((backup, vault))
    })
    .await?;
    let keys = Unwrap(&vault);
    // One that does not would leave its records sealed for ever.
    if !daemon.audit.is_opened_by(&keys) {
        return Err(of_another_log());
    }
    // Both rules: that of the vault which is open now, and that of the one which is to take its place.
    if daemon.store.with(|_| ()).is_some() {
        presence::require(daemon, caller).await?;
    }
    presence::by_rule(daemon, caller, &sealed::of(&vault)?).await?;
    let recorded = daemon
        .audit
        .last_vault(Some(&keys))
        .map_err(|error| error.explain())?;
    let above = recorded.map_or(0, |(generation, _)| generation);
    let act = Act::VaultRestored {
        generation: vault.generation(),
    };
    acted(daemon, &caller.by, act).await?;
    let home = daemon.home.clone();
    let vault = init::slowly(move || backup.put_in_place(&home, vault, above)).await?;
    let generation = vault.generation();
    daemon.store.shut();
    init::take_over(daemon, &caller.by, vault).await?;
    Ok(json!({"vault": "unlocked", "generation": generation}))
}

fn decoded(text: &str) -> Result<Vec<u8>, Explain> {
    STANDARD.decode(text).map_err(|error| {
        Explain::new(
            Exit::Usage,
            Fault::Caller,
            "the backup did not arrive whole",
        )
        .because(error)
    })
}

fn of_another_log() -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Operator,
        "this backup belongs to another log",
    )
    .because("its key does not open the records of this one")
    .next("put the audit folder that was backed up with it back first")
}
