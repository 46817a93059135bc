//! Taking authority away.

use std::sync::Arc;

use authz::Ask;
use model::{
    CallId, ChannelName, Clock, ConnectionId, Digest, Exit, Explain, Fault, Foreign, Operator,
    Scope, SessionId, Target,
};
use serde_json::{Value, json};
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
        .gateway
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

/// Asks in the run's name, as nobody but us ever does, and tells how the gate answered.
///
/// It is the weaker proof: that the gate refuses the run is seen, not that the survivor was the one who asked.
pub(super) async fn probe(daemon: &Arc<Daemon>, session: SessionId) -> Result<Value, Explain> {
    super::journals::session(daemon, session).await?;
    let last = super::journals::last_call(daemon, session).await?;
    let part = last.as_ref();
    let ask = Ask {
        call: CallId::random().map_err(no_id)?,
        session,
        connection: match part.and_then(|call| call.connection.value()) {
            Some(own) => *own,
            None => ConnectionId::random().map_err(no_id)?,
        },
        target: Target {
            channel: part
                .and_then(|call| Some(call.target.value()?.channel.clone()))
                .unwrap_or_else(ChannelName::unnamed),
            operation: None,
            method: Foreign::new("PROBE"),
            path: Foreign::new(""),
        },
        destination: Foreign::new(""),
        secret: None,
        arguments: Digest::from_bytes([0; 32]),
        key: None,
        is_write: false,
    };
    let (refused, ticket) = match daemon.gate.probe(&ask) {
        Ok(ticket) => (None, Some(ticket)),
        Err(refused) => (Some(refused.why.code()), refused.ticket),
    };
    let receipt = match ticket {
        Some(ticket) => Some(ticket.await.map_err(|error| super::unrecorded(&error))?),
        None => None,
    };
    Ok(json!({"refused": refused, "seq": receipt.map(|receipt| receipt.seq)}))
}

fn no_id(error: impl ToString) -> Explain {
    Explain::new(Exit::Failed, Fault::Operator, "no id could be made").because(error.to_string())
}

/// Refuses a scope that names nothing, so that a mistyped id is not taken for a closed run.
async fn known(daemon: &Arc<Daemon>, scope: &Scope) -> Result<(), Explain> {
    match scope {
        // The gate knows every run that could still ask for something. Reading the log takes the longer the more
        // there is of it, and where it cannot be read a run that is here would be called none.
        Scope::Run { session } if daemon.gate.state_of(*session).is_some() => Ok(()),
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
