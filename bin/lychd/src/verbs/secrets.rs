//! Secrets: added, replaced, removed, listed; never shown.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Act, Clock, Destination, Exit, Explain, Fault, Operator, Secret, SecretName};
use serde_json::{Value, json};
use vault::NewSecret;
use wire::operator::SecretText;

use super::{acted, closed};
use crate::daemon::Daemon;

/// A secret to be added.
pub(super) struct New {
    pub(super) name: SecretName,
    pub(super) value: SecretText,
    pub(super) destinations: Vec<String>,
    pub(super) header: Option<String>,
}

fn value_of(text: &SecretText) -> Result<Secret, Explain> {
    STANDARD
        .decode(text.expose())
        .map(Secret::new)
        .map_err(|_| {
            Explain::new(
                Exit::Usage,
                Fault::Caller,
                "the secret did not arrive whole",
            )
            .next("try again")
        })
}

pub(super) async fn add(daemon: &Arc<Daemon>, by: &Operator, new: New) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let value = value_of(&new.value)?;
    let mut destinations: Vec<Destination> = Vec::new();
    for text in &new.destinations {
        let parsed = text.parse().map_err(|error: model::DestinationError| {
            Explain::new(
                Exit::Usage,
                Fault::Caller,
                format!("{text:?} is no destination"),
            )
            .because(error)
            .next("write it as https://api.example.com or https://api.example.com:8443/prefix")
        })?;
        destinations.push(parsed);
    }
    let names = destinations.iter().map(ToString::to_string).collect();
    let looked_for = channels::is_looked_for(&value);
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    acted(
        daemon,
        by,
        Act::SecretAdded {
            secret: new.name.clone(),
            destinations: names,
        },
    )
    .await?;
    let secret = NewSecret {
        name: new.name,
        value,
        destinations,
        header: new.header,
    };
    let now = daemon.clock.now().wall;
    let changed = change(daemon, by, |vault| vault.add(secret, now)).await?;
    Ok(told(changed, looked_for))
}

/// Adds to the answer whether an answer of the other side is cleaned of this secret.
fn told(mut changed: Value, looked_for: bool) -> Value {
    if let Some(fields) = changed.as_object_mut() {
        fields.insert("looked_for".to_owned(), looked_for.into());
    }
    changed
}

pub(super) async fn rotate(
    daemon: &Arc<Daemon>,
    by: &Operator,
    name: SecretName,
    value: &SecretText,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let value = value_of(value)?;
    let looked_for = channels::is_looked_for(&value);
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    acted(
        daemon,
        by,
        Act::SecretRotated {
            secret: name.clone(),
        },
    )
    .await?;
    let now = daemon.clock.now().wall;
    let changed = change(daemon, by, |vault| vault.rotate(&name, value, now)).await?;
    Ok(told(changed, looked_for))
}

pub(super) async fn remove(
    daemon: &Arc<Daemon>,
    by: &Operator,
    name: SecretName,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    acted(
        daemon,
        by,
        Act::SecretRemoved {
            secret: name.clone(),
        },
    )
    .await?;
    change(daemon, by, |vault| vault.remove(&name)).await
}

/// Changes the vault and puts the new file's generation and digest on record, so that an older file put in
/// its place is recognised.
pub(super) async fn change(
    daemon: &Arc<Daemon>,
    by: &Operator,
    apply: impl FnOnce(&mut vault::Vault) -> Result<(), vault::VaultError>,
) -> Result<Value, Explain> {
    let changed = daemon
        .store
        .with(|vault| apply(vault).map(|()| (vault.generation(), vault.sha256())));
    let (generation, sha256) = changed
        .ok_or_else(|| closed(daemon))?
        .map_err(|error| error.explain())?;
    acted(daemon, by, Act::VaultWritten { generation, sha256 }).await?;
    Ok(json!({"generation": generation}))
}

pub(super) fn list(daemon: &Arc<Daemon>) -> Result<Value, Explain> {
    let listed = daemon
        .store
        .with(|vault| serde_json::to_value(vault.list()));
    let secrets = listed.ok_or_else(|| closed(daemon))?.map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the list of secrets cannot be written",
        )
        .because(error)
    })?;
    Ok(json!({"schema": "lych.secrets/v1", "secrets": secrets}))
}
