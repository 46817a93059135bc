//! Presence: whether a person stands behind an act that widens what agents may do.
//!
//! Narrowing acts (lock, deny, revoke, stop) never ask. Where the vault is shut the rule is not known, so
//! only unlocking is left, and it is checked against the rule that it uncovers.

use std::{sync::Arc, time::Instant};

use model::{Act, Explain, Operator, Presence};
use serde_json::{Value, json};
use wire::operator::{Request, SecretText, WardenAct};

use super::{acted, sealed::seal, sealed_now};
use crate::{
    daemon::Daemon,
    operator::Caller,
    pin::{self, PinHash},
    sealed::Sealed,
};

/// Tells whether a request widens what agents may do, unlocking apart.
pub(super) const fn widens(request: &Request) -> bool {
    match request {
        Request::VaultAdd { .. }
        | Request::VaultRotate { .. }
        | Request::ChannelsApply { dry_run: false }
        | Request::Allow { .. }
        | Request::AllowRepeat { .. }
        | Request::PresenceChoose { .. }
        | Request::VaultOpener { .. }
        | Request::VaultRecovery { .. }
        | Request::VaultMachine { key_file: Some(_) }
        | Request::AuditErase { .. }
        | Request::AuditAdopt { .. }
        | Request::AuditPrune { .. }
        | Request::StandBehind { .. }
        | Request::Resolve { .. } => true,
        Request::Status
        | Request::Init { .. }
        | Request::Unlock { .. }
        | Request::Present { .. }
        | Request::Pending
        | Request::Forget { .. }
        | Request::Lock
        | Request::Stop
        | Request::VaultRemove { .. }
        | Request::VaultList
        | Request::VaultMachine { key_file: None }
        | Request::VaultBackup
        | Request::VaultRestore { .. }
        | Request::ChannelsList
        | Request::ChannelsApply { dry_run: true }
        | Request::SessionsList
        | Request::SessionShow { .. }
        | Request::Revoke { .. }
        | Request::Probe { .. }
        | Request::ActivityList { .. }
        | Request::ActivityShow { .. }
        | Request::AuditBodies { .. }
        | Request::IncidentStep { .. } => false,
    }
}

/// Establishes presence for one act, by the rule that is in force.
///
/// # Errors
/// The vault is shut, or the PIN is missing or wrong; a wrong one is on record.
pub(super) async fn require(daemon: &Arc<Daemon>, caller: &mut Caller) -> Result<(), Explain> {
    let sealed = sealed_now(daemon)?;
    by_rule(daemon, caller, &sealed).await
}

/// Establishes presence by this rule, which the vault that is being opened holds.
pub(super) async fn by_rule(
    daemon: &Arc<Daemon>,
    caller: &mut Caller,
    sealed: &Sealed,
) -> Result<(), Explain> {
    let Some(hash) = &sealed.pin else {
        return Ok(());
    };
    match caller.by.presence {
        // Another user than the agent's is what no program of the agent's user can be.
        Presence::OtherUid | Presence::Pin => return Ok(()),
        Presence::Tty | Presence::None => {}
    }
    let given = caller.pin.clone().ok_or_else(pin::needed)?;
    // One at a time: tries made at once would all be looked at before the first wrong one counts.
    let _turn = daemon.pin_turn.lock().await;
    if let Some(left) = daemon.tries.wait(Instant::now()) {
        refused(daemon, &caller.by).await;
        return Err(pin::too_soon(left));
    }
    let hash = hash.clone();
    let right = tokio::task::spawn_blocking(move || hash.is(&given))
        .await
        .unwrap_or(false);
    daemon.tries.tried(right, Instant::now());
    if right {
        caller.by.presence = Presence::Pin;
        return Ok(());
    }
    refused(daemon, &caller.by).await;
    Err(pin::wrong())
}

/// A refused try is evidence; that it cannot be recorded changes nothing about the refusal.
async fn refused(daemon: &Arc<Daemon>, by: &Operator) {
    drop(acted(daemon, by, Act::PresenceRefused).await);
}

/// Puts on record that somebody stands behind what the warden does by itself.
pub(super) async fn stand_behind(
    daemon: &Arc<Daemon>,
    by: &Operator,
    act: WardenAct,
) -> Result<Value, Explain> {
    let act = match act {
        WardenAct::IncidentClose { incident } => Act::IncidentClosed { incident },
        WardenAct::ForceKill => Act::ForceKill,
    };
    acted(daemon, by, act).await?;
    Ok(json!({"presence": by.presence}))
}

/// Hashes the PIN of a request, on a thread that may take its time.
pub(super) async fn hash(text: Option<SecretText>) -> Result<Option<PinHash>, Explain> {
    let Some(text) = text else { return Ok(None) };
    let pin = pin::of(&text)?;
    match tokio::task::spawn_blocking(move || PinHash::new(&pin)).await {
        Ok(hash) => hash.map(Some),
        Err(error) => {
            Err(
                Explain::new(model::Exit::Failed, model::Fault::Ours, "the hasher ended")
                    .because(error),
            )
        }
    }
}

/// Chooses how presence is established from now on.
pub(super) async fn choose(
    daemon: &Arc<Daemon>,
    by: &Operator,
    pin: Option<SecretText>,
) -> Result<Value, Explain> {
    let pin = hash(pin).await?;
    let _turn = daemon.vault_turn.lock().await;
    let sealed = Sealed {
        pin,
        ..sealed_now(daemon)?
    };
    let rule = sealed.presence();
    acted(daemon, by, Act::PresenceChosen { rule }).await?;
    seal(daemon, by, &sealed).await?;
    Ok(json!({"presence": rule}))
}
