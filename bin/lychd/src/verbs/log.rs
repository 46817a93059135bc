//! Acts on the log itself: a run's key destroyed, a daemon run adopted, the oldest segments given up.

use std::sync::Arc;

use audit::{AuditError, RootSigner};
use model::{Act, Clock, EpochId, Explain, Operator, Seq, SessionId, Wall};
use serde_json::{Value, json};
use vault::Vault;
use wire::VaultState;

use super::{acted, closed};
use crate::{
    daemon::Daemon,
    retention::{DAY_MS, usual},
};

/// Opens sealed bodies. With the vault shut none are: whoever exports then gets the clear headers he can read himself.
pub(super) async fn bodies(daemon: &Arc<Daemon>, from: Seq, most: usize) -> Result<Value, Explain> {
    if daemon.store.state() == VaultState::Locked {
        return Err(closed(daemon));
    }
    let keys = Arc::clone(&daemon.store);
    let bodies = blocking(daemon, move |daemon| {
        daemon.audit.bodies(from, most, Some(keys.as_ref()))
    })
    .await?;
    let bodies: Vec<Value> = bodies
        .into_iter()
        .map(|(seq, body)| json!({"seq": seq, "body": body}))
        .collect();
    Ok(json!({"schema": "lych.bodies/v1", "bodies": bodies}))
}

/// Destroys the data key of a run; the chain stays whole, its bodies never open again.
pub(super) async fn erase(
    daemon: &Arc<Daemon>,
    by: &Operator,
    session: SessionId,
) -> Result<Value, Explain> {
    if !daemon.audit.has_key(session) {
        return Err(AuditError::NoKey(session).explain());
    }
    acted(daemon, by, Act::RunErased { session }).await?;
    let receipt = blocking(daemon, move |daemon| daemon.audit.erase(session)).await?;
    Ok(json!({"seq": receipt.seq, "log_id": receipt.log_id}))
}

/// Has the vault's root vouch for an earlier daemon run; the operator answers for it.
pub(super) async fn adopt(
    daemon: &Arc<Daemon>,
    by: &Operator,
    epoch: EpochId,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    if blocking(daemon, move |daemon| daemon.audit.is_endorsed(epoch)).await? {
        return Ok(json!({"already": true, "log_id": daemon.audit.log_id()}));
    }
    acted(daemon, by, Act::EpochAdopted { epoch }).await?;
    let adopted = daemon
        .store
        .with(|vault| daemon.audit.adopt_epoch(epoch, &Root(vault)));
    let receipt = adopted
        .ok_or_else(|| closed(daemon))?
        .map_err(|error| error.explain())?;
    Ok(json!({"seq": receipt.seq, "log_id": receipt.log_id}))
}

/// Gives up the oldest segments, but none from `from` on.
pub(super) async fn prune(
    daemon: &Arc<Daemon>,
    by: &Operator,
    (days, bytes): (Option<u64>, Option<u64>),
    from: Option<Seq>,
) -> Result<Value, Explain> {
    let now = daemon.clock.now().wall;
    let mut retention = usual(daemon.log_rules(), now);
    if let Some(days) = days {
        retention.since =
            Wall::from_millis(now.millis().saturating_sub(days.saturating_mul(DAY_MS)));
    }
    retention.bytes = bytes.unwrap_or(retention.bytes);
    // Both know of incidents: the operator of those that are not anchored, the log of those whose folder is gone.
    let keys = Arc::clone(&daemon.store);
    let on_record = blocking(daemon, move |daemon| {
        daemon.audit.kept_from(Some(keys.as_ref()))
    })
    .await?;
    retention.from = [from, on_record].into_iter().flatten().min();
    let since = retention.since;
    acted(daemon, by, Act::LogPruned { since }).await?;
    let given = blocking(daemon, move |daemon| daemon.audit.prune(&retention)).await?;
    Ok(json!({
        "schema": "lych.pruned/v1",
        "segments": given.map_or(0, |given| given.segments),
        "first_kept": given.map(|given| given.first_kept),
        "seq": given.map(|given| given.receipt.seq),
    }))
}

/// Waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    what: impl FnOnce(&Daemon) -> Result<T, AuditError> + Send + 'static,
) -> Result<T, Explain> {
    let daemon = Arc::clone(daemon);
    let done = tokio::task::spawn_blocking(move || what(&daemon)).await;
    match done {
        Ok(result) => result.map_err(|error| error.explain()),
        Err(error) => Err(Explain::new(
            model::Exit::Failed,
            model::Fault::Ours,
            "the work on the log was cut short",
        )
        .because(error)),
    }
}

struct Root<'a>(&'a Vault);

impl RootSigner for Root<'_> {
    fn public(&self) -> [u8; 32] {
        self.0.root_public()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.root_sign(message)
    }
}
