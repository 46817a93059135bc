//! Taking authority away.

use std::sync::Arc;

use model::{Clock, Exit, Explain, Fault, Foreign, Operator, Scope};
use serde_json::Value;
use wire::operator::Revoked;

use crate::daemon::Daemon;

pub(super) async fn revoke(
    daemon: &Arc<Daemon>,
    by: &Operator,
    scope: Scope,
    reason: String,
) -> Result<Value, Explain> {
    known(daemon, &scope).await?;
    let closed = daemon
        .gate
        .close(scope.clone(), Foreign::new(reason), Some(by.clone()));
    let at = daemon.clock.now().wall;
    // The closing holds from here on, whatever becomes of its record.
    let seq = closed.ticket.await.ok().map(|receipt| receipt.seq);
    if let Scope::Run { session } = scope {
        daemon.launches.revoked(session, at, &daemon.notes);
    }
    let revoked = Revoked {
        seq,
        at,
        in_flight: closed.in_flight,
        by: by.clone(),
    };
    serde_json::to_value(revoked).map_err(|error| {
        Explain::new(Exit::Failed, Fault::Ours, "the answer cannot be written").because(error)
    })
}

/// Refuses a scope that names nothing, so that a mistyped id is not taken for a closed run.
async fn known(daemon: &Arc<Daemon>, scope: &Scope) -> Result<(), Explain> {
    match scope {
        Scope::Run { session } => super::journals::session(daemon, *session).await.map(drop),
        Scope::Channel { channel } if !daemon.has_channel(channel) => Err(Explain::new(
            Exit::Usage,
            Fault::Caller,
            format!("there is no channel {channel}"),
        )
        .because("the applied policy does not name it, or the vault is locked")
        .next("lych channels list")),
        Scope::Channel { .. } | Scope::Secret { .. } | Scope::All => Ok(()),
    }
}
