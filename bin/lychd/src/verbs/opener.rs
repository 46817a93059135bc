//! The keys to the vault: its passphrase or key file, a recovery key, and the machine's.

use std::sync::Arc;

use model::{Act, Explain, Operator, Presence};
use serde_json::Value;
use vault::Vault;
use wire::{VaultState, operator::Opener};

use super::{acted, closed, init, secrets};
use crate::daemon::Daemon;

/// Locks the vault's identity anew. Whoever kept the old file and the old passphrase still opens what he kept.
pub(super) async fn change(
    daemon: &Arc<Daemon>,
    by: &Operator,
    given: Opener,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let opener = init::opener(given)?;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    acted(daemon, by, Act::OpenerChanged).await?;
    let store = Arc::clone(&daemon.store);
    let changed =
        init::slowly(move || store.with(|vault| vault.change_opener(&opener)).transpose()).await?;
    changed.ok_or_else(|| closed(daemon))?;
    Ok(Value::Null)
}

/// Names the key that opens the vault's file when nothing else does.
pub(super) async fn recovery(
    daemon: &Arc<Daemon>,
    by: &Operator,
    recipient: Option<String>,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    let named = recipient.clone();
    acted(daemon, by, Act::RecoveryChosen { recipient: named }).await?;
    secrets::change(daemon, by, |vault| vault.set_recovery(recipient.as_deref())).await
}

/// Lets the daemon open the vault by itself at its start, or no longer.
pub(super) async fn machine(
    daemon: &Arc<Daemon>,
    by: &Operator,
    key_file: Option<String>,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    let home = daemon.home.clone();
    let act = |recipient| Act::MachineChosen { recipient };
    let Some(key_file) = key_file else {
        acted(daemon, by, act(None)).await?;
        return secrets::change(daemon, by, |vault| vault.forget_machine(&home)).await;
    };
    let mut named = String::new();
    let done = secrets::change(daemon, by, |vault| {
        named = vault.enrol_machine(&home, key_file.as_ref())?;
        Ok(())
    })
    .await?;
    acted(daemon, by, act(Some(named))).await?;
    Ok(done)
}

/// Opens the vault with the key that the service manager handed over, if it did; called once, at the start.
///
/// What goes wrong is said in the daemon's notes: the vault then stays shut, and a person can still open it.
pub(crate) async fn by_machine(daemon: &Arc<Daemon>) {
    let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") else {
        return;
    };
    let key_file = std::path::Path::new(&folder).join(CREDENTIAL);
    if daemon.store.state() != VaultState::Locked || !key_file.exists() {
        return;
    }
    let _turn = daemon.vault_turn.lock().await;
    let by = Operator {
        uid: sys::process::own_uid(),
        login_uid: None,
        presence: Presence::None,
    };
    let home = daemon.home.clone();
    let opened = init::slowly(move || Vault::open_by_machine(&home, &key_file)).await;
    let done = match opened {
        Ok(vault) => init::opened_by_machine(daemon, &by, vault).await,
        Err(error) => {
            drop(acted(daemon, &by, Act::UnlockRefused).await);
            Err(error)
        }
    };
    if let Err(error) = done {
        let why = error.why.unwrap_or_default();
        daemon.notes.say(&format!(
            "the machine's key did not open the vault: {} {why}",
            error.what
        ));
    }
}

/// The name of the credential (systemd.exec(5), `LoadCredential=`).
const CREDENTIAL: &str = "lychgate-vault";
