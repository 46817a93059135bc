//! The policy: a draft that a person writes, and what of it was sealed and holds.

use std::{collections::HashSet, io, sync::Arc};

use authz::OpenCall;
use channels::Policy;
use model::{Act, Exit, Explain, Fault, Operator};
use serde_json::{Value, json};

use super::{acted, sealed::seal, sealed_now};
use crate::{daemon::Daemon, trust};

/// Longest draft, in bytes: a person writes it.
const LARGEST_DRAFT: u64 = 1 << 20;

/// Shows what the applied policy allows.
pub(super) fn list(daemon: &Arc<Daemon>) -> Result<Value, Explain> {
    let policy = sealed_now(daemon)?.policy;
    let canonical: Value = serde_json::from_slice(&policy.canonical()).unwrap_or(Value::Null);
    Ok(json!({"schema": "lych.channels/v1", "policy": canonical, "described": policy.describe()}))
}

fn draft(daemon: &Arc<Daemon>) -> Result<Policy, Explain> {
    let path = daemon.home.config_file();
    // Whoever can write it may have made it a pipe, or longer than the memory.
    let read = sys::small_file::read(&path, LARGEST_DRAFT);
    let text = read.and_then(|file| String::from_utf8(file.content).map_err(io::Error::other));
    let text = text.map_err(|error| {
        Explain::new(
            Exit::Usage,
            Fault::Operator,
            format!("{} cannot be read", path.display()),
        )
        .because(error)
        .next("write the draft there; docs show an example")
    })?;
    Policy::parse_draft(&text).map_err(|error| {
        let explain = error.explain();
        let why = explain.why.map_or_else(
            || explain.what.clone(),
            |why| format!("{}: {why}", explain.what),
        );
        Explain {
            what: format!(
                "{} is no policy; the applied one still holds",
                path.display()
            ),
            why: Some(why),
            ..error.explain()
        }
    })
}

/// Tells whether the draft says something else than the applied policy.
pub(crate) fn draft_differs(daemon: &Arc<Daemon>) -> model::Known<bool> {
    // One that cannot be looked at is not absent: reading it says why.
    if let Ok(false) = daemon.home.config_file().try_exists() {
        return false.into();
    }
    match (draft(daemon), sealed_now(daemon)) {
        (Ok(draft), Ok(sealed)) => (draft != sealed.policy).into(),
        (Err(error), _) | (_, Err(error)) => model::Known::unknown(error.what),
    }
}

/// Makes the draft effective.
pub(super) async fn apply(
    daemon: &Arc<Daemon>,
    by: &Operator,
    dry_run: bool,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let (mut sealed, new) = (sealed_now(daemon)?, draft(daemon)?);
    let changes = new.diff(Some(&sealed.policy));
    if dry_run {
        return Ok(json!({"changes": changes, "applied": false}));
    }
    let digest = new.digest();
    acted(daemon, by, Act::Applied { policy: digest }).await?;
    sealed.policy = new.clone();
    seal(daemon, by, &sealed).await?;
    let named: HashSet<_> = new
        .channels()
        .iter()
        .map(|channel| channel.name().clone())
        .collect();
    let secrets: HashSet<_> = new
        .channels()
        .iter()
        .filter_map(|channel| channel.secret().cloned())
        .collect();
    daemon.gate.reopen(&named, &secrets);
    daemon.open_gateway(new);
    daemon.keeper.look_again();
    trust::admit_all(daemon).await;
    Ok(json!({"changes": changes, "applied": true, "policy": digest}))
}

/// Opens the gate with what the vault holds: the policy, the id secret, the writes left open before.
pub(super) async fn open_sealed(daemon: &Arc<Daemon>) -> Result<(), Explain> {
    let policy = sealed_now(daemon)?.policy;
    daemon.open_gateway(policy);
    let left_open: Vec<OpenCall> = super::journals::open_writes(daemon).await?;
    daemon.gate.unlocked(left_open);
    trust::admit_all(daemon).await;
    Ok(())
}
