//! Making, opening and shutting the vault.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use channels::OnLock;
use model::{Act, Exit, Explain, Fault, Foreign, Operator, Scope, Secret, SessionState, hex};
use serde_json::{Value, json};
use vault::{Seed, Vault, WorkFactor};
use wire::{
    VaultState,
    operator::{Opener, SecretText},
};

use super::{acted, no_vault, presence, sealed, unrecorded};
use crate::{bounds, daemon::Daemon, operator::Caller, sealed::Sealed, store::Unwrap};

pub(super) fn opener(given: Opener) -> Result<vault::Opener, Explain> {
    match given {
        Opener::Passphrase(text) => {
            let bytes = STANDARD.decode(text.expose()).map_err(|error| {
                Explain::new(
                    Exit::Usage,
                    Fault::Caller,
                    "the passphrase did not arrive whole",
                )
                .because(error)
            })?;
            Ok(vault::Opener::Passphrase(
                Secret::new(bytes),
                WorkFactor::STANDARD,
            ))
        }
        Opener::KeyFile(path) => Ok(vault::Opener::KeyFile(path.into())),
    }
}

/// Key derivation takes a second and 128 MiB on purpose: not on a thread that serves others.
pub(super) async fn slowly<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, vault::VaultError> + Send + 'static,
) -> Result<T, Explain> {
    match tokio::task::spawn_blocking(what).await {
        Ok(result) => result.map_err(|error| error.explain()),
        Err(error) => {
            Err(Explain::new(Exit::Failed, Fault::Ours, "the vault's worker ended").because(error))
        }
    }
}

pub(super) async fn init(
    daemon: &Arc<Daemon>,
    caller: &mut Caller,
    given: Opener,
    pin: Option<SecretText>,
) -> Result<Value, Explain> {
    let pin = presence::hash(pin).await?;
    let _turn = daemon.vault_turn.lock().await;
    if daemon.store.state() != VaultState::None {
        return Err(
            Explain::new(Exit::Refused, Fault::Caller, "there is a vault already")
                .next("open it with `lych unlock`"),
        );
    }
    let opener = opener(given)?;
    let identity = daemon
        .store
        .with_bootstrap(|keys| Secret::new(keys.log_identity().expose().to_vec()));
    let Some(log_identity) = identity else {
        return Err(Explain::new(
            Exit::Failed,
            Fault::Operator,
            "the log's bootstrap keys are gone",
        )
        .because("bootstrap.key is missing and there is no vault")
        .next("move the audit folder away to start a new log; the old one stays verifiable"));
    };
    acted(daemon, &caller.by, Act::Init).await?;
    let home = daemon.home.clone();
    let vault = slowly(move || {
        let root_seed = vault::new_root_seed()?;
        Vault::create(
            &home,
            &opener,
            Seed {
                root_seed,
                log_identity,
            },
        )
    })
    .await?;
    let sealed = Sealed {
        pin,
        ..Sealed::nothing()
    };
    let rule = sealed.presence();
    let mut vault = vault;
    vault
        .set_policy(sealed.to_bytes())
        .map_err(|error| error.explain())?;
    acted(daemon, &caller.by, Act::PresenceChosen { rule }).await?;
    take_over(daemon, &caller.by, vault).await?;
    Ok(
        json!({"schema": "lych.init/v1", "vault": "unlocked", "presence": rule,
        "log_id": daemon.audit.log_id(), "root": hex(&daemon.audit.root())}),
    )
}

pub(super) async fn unlock(
    daemon: &Arc<Daemon>,
    caller: &mut Caller,
    given: Opener,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    match daemon.store.state() {
        VaultState::None => return Err(no_vault()),
        VaultState::Unlocked => return Ok(json!({"vault": "unlocked", "already": true})),
        VaultState::Locked => {}
    }
    let opener = opener(given)?;
    let home = daemon.home.clone();
    let vault = match slowly(move || Vault::open(&home, &opener)).await {
        Ok(vault) => vault,
        Err(explain) => {
            // A refused unlock is evidence; that it cannot be recorded changes nothing about the refusal.
            drop(acted(daemon, &caller.by, Act::UnlockRefused).await);
            return Err(explain);
        }
    };
    let vault = newest(daemon, vault).await?;
    // The rule lies in the vault itself: it is known now, and nothing has taken effect yet.
    presence::by_rule(daemon, caller, &sealed::of(&vault)?).await?;
    take_over(daemon, &caller.by, vault).await?;
    Ok(json!({"vault": "unlocked", "already": false}))
}

/// Makes a vault effective that the machine's key opened. Presence was shown when that key was named.
pub(super) async fn opened_by_machine(
    daemon: &Arc<Daemon>,
    by: &Operator,
    vault: Vault,
) -> Result<(), Explain> {
    let vault = newest(daemon, vault).await?;
    acted(daemon, by, Act::UnlockedByMachine).await?;
    take_over(daemon, by, vault).await
}

/// Makes an opened vault effective: its root signs, its policy holds, its secrets may be used.
pub(super) async fn take_over(
    daemon: &Arc<Daemon>,
    by: &Operator,
    vault: Vault,
) -> Result<(), Explain> {
    acted(daemon, by, Act::Unlock).await?;
    let written = Act::VaultWritten {
        generation: vault.generation(),
        sha256: vault.sha256(),
    };
    acted(daemon, by, written).await?;
    daemon.store.put(vault);
    if let Err(error) = endorse(daemon) {
        daemon.notes.say(&format!(
            "this run of the log could not be endorsed: {error}"
        ));
    }
    super::policy::open_sealed(daemon).await
}

/// Compares the vault with what the log has as written last, so that an older file put in its place, with
/// secrets or a policy that were taken away since, is refused.
async fn newest(daemon: &Arc<Daemon>, vault: Vault) -> Result<Vault, Explain> {
    let daemon = Arc::clone(daemon);
    slowly(move || {
        let keys = Unwrap(&vault);
        // A log that cannot be read back, or names none, judges nothing; it is told when it is opened.
        if let Ok(Some((generation, sha256))) = daemon.audit.last_vault(Some(&keys)) {
            vault.not_older_than(generation, sha256)?;
        }
        Ok(vault)
    })
    .await
}

/// Has the vault's root vouch for this daemon run; the first time, it takes over from the bootstrap root.
fn endorse(daemon: &Arc<Daemon>) -> Result<(), String> {
    daemon
        .store
        .endorse(&daemon.audit)
        .map_err(|error| error.to_string())?;
    // Only now: until the log names the vault's root, the bootstrap keys are the only ones it knows.
    daemon
        .store
        .end_bootstrap(&daemon.home)
        .map_err(|error| error.to_string())
}

pub(super) async fn lock(daemon: &Arc<Daemon>, by: &Operator) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let closed = daemon.gateway.close(
        Scope::All,
        Foreign::new("the vault was locked"),
        Some(by.clone()),
    );
    if daemon.rules().on_lock() == OnLock::End {
        for run in daemon.gate.runs() {
            if !matches!(run.state, SessionState::Revoked | SessionState::Ended) {
                bounds::end(daemon, run.id, "the vault was locked (runs.on_lock)");
            }
        }
    }
    daemon.gateway.shut();
    daemon.store.shut();
    let in_flight = closed.in_flight;
    match closed.ticket.await {
        Ok(receipt) => Ok(json!({"seq": receipt.seq, "in_flight": in_flight})),
        Err(error) => Err(unrecorded(&error)
            .next("the vault IS locked; restart the daemon once the log can be written")),
    }
}
