//! The life of one call, top to bottom: attempt, connect, clear, send, settle.

use std::sync::Arc;

use authz::{Ask, Attempted, Cleared, Permit};
use channels::{ConnectError, Connection, HttpAsk, Kept, NotSent, OnClientLost, Plan, Sent};
use model::{
    CallId, ChannelName, Denial, Digest, Foreign, OutcomeBody, Target, Unsettled, Withdrawal,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Answered, Asker, Ending, HttpRequest,
    gateway::{GRACE, Inner, Open},
    key::request_key,
};

/// Makes one HTTP action and tells how it ended.
pub(crate) async fn http(
    inner: &Arc<Inner>,
    who: Asker,
    call: CallId,
    request: HttpRequest,
) -> Ending {
    let (attempted, plan, kept) = match attempt(inner, who, call, request) {
        Ok(begun) => begun,
        Err(refused) => return Inner::refused(*refused).await,
    };
    let permit = match attempted.durable().await {
        Ok(permit) => permit,
        Err((call, _)) => return Inner::refused(inner.gate.unrecorded(call)).await,
    };
    let lost = inner.losses.of(who.session);
    let connecting = kept.connect(who.session, &permit, &plan, &inner.limits);
    let mut connection = match unless_lost(connecting, &lost).await {
        Ok(connection) => connection,
        Err(why) => return withdrawn(inner, permit, why).await,
    };
    // Taken before clearing: once cleared, the next thing that happens is the sending.
    let credential = match inner.secrets.credential(&plan) {
        Ok(credential) => credential,
        Err(why) => {
            let why = format!("the secret can no longer be used: {}", why.code());
            return withdrawn(inner, permit, why).await;
        }
    };
    let cleared = match inner.gate.clear(permit) {
        Ok(cleared) => cleared,
        Err(refused) => return Inner::refused(refused).await,
    };
    let sent = tokio::select! {
        biased;
        sent = connection.send(&cleared, credential) => sent,
        () = given_up(&plan, &lost) => Sent::Broke { why: Unsettled::ClientLost, status: None },
    };
    if matches!(sent, Sent::Answered(_)) {
        kept.keep(who.session, connection, &cleared).await;
    } else {
        // At once: what has not left yet is not to leave any more.
        drop(connection);
    }
    settled(inner, cleared, sent).await
}

/// Puts the call on record, with a plan if the policy has one for it.
fn attempt(
    inner: &Arc<Inner>,
    who: Asker,
    call: CallId,
    request: HttpRequest,
) -> Result<(Attempted, Plan, Kept), Box<authz::Refused>> {
    let rough = unplanned(who, call, &request);
    let refuse = |ask: &Ask, why| Box::new(inner.gate.turn_away(ask, why));
    let open = inner
        .opened()
        .ok_or_else(|| refuse(&rough, Denial::Locked))?;
    let plan = open
        .policy
        .plan(HttpAsk {
            channel: request.channel,
            method: request.method,
            path: below_base(request.path),
            query: request.query,
            headers: request.headers,
            body: request.body,
        })
        .map_err(|why| refuse(&rough, why))?;
    let ask = planned(&open, who, call, &plan);
    // Looked at here as well, so that a call that cannot be made does not dial.
    inner
        .secrets
        .credential(&plan)
        .map_err(|why| refuse(&ask, why))?;
    let attempted = inner.gate.attempt(ask).map_err(Box::new)?;
    Ok((attempted, plan, open.kept.clone()))
}

/// Paths are relative to the channel's base, so `builds` and `/builds` are the same.
fn below_base(path: String) -> String {
    if path.starts_with('/') {
        path
    } else {
        format!("/{path}")
    }
}

fn planned(open: &Open, who: Asker, call: CallId, plan: &Plan) -> Ask {
    // Only an id that is sent is recorded: one the remote side never saw cannot be asked for there.
    let takes_key = plan.is_write() && plan.idempotency_header().is_some();
    let key = takes_key
        .then(|| request_key(&open.id_secret, who.session, call))
        .flatten();
    Ask {
        call,
        session: who.session,
        connection: who.connection,
        target: plan.target().clone(),
        destination: Foreign::new(plan.destination().to_string()),
        secret: plan.secret().cloned(),
        arguments: plan.arguments(),
        key,
        is_write: plan.is_write(),
    }
}

/// What can be recorded of a call for which there is no plan.
pub(crate) fn unplanned(who: Asker, call: CallId, request: &HttpRequest) -> Ask {
    Ask {
        call,
        session: who.session,
        connection: who.connection,
        target: Target {
            channel: request
                .channel
                .parse()
                .unwrap_or_else(|_| ChannelName::unnamed()),
            operation: None,
            method: clipped(&request.method),
            path: clipped(&request.path),
        },
        destination: Foreign::new(""),
        secret: None,
        arguments: Digest::from_bytes([0; 32]),
        key: None,
        is_write: false,
    }
}

/// Keeps the beginning of a text that no policy has looked at, so that a refusal costs the log little.
fn clipped(text: &str) -> Foreign {
    /// Longer than any path an API has, in characters.
    const KEPT: usize = 512;
    Foreign::new(text.chars().take(KEPT).collect::<String>())
}

async fn unless_lost<'plan>(
    connecting: impl Future<Output = Result<Connection<'plan>, ConnectError>>,
    lost: &CancellationToken,
) -> Result<Connection<'plan>, String> {
    tokio::select! {
        biased;
        connected = connecting => connected.map_err(|error| error.to_string()),
        // Nothing has left, so nothing is owed to a client that is gone.
        () = lost.cancelled() => Err("its client was lost before the connection was up".to_owned()),
    }
}

/// Returns when a call in flight is no longer waited for because its client is gone.
async fn given_up(plan: &Plan, lost: &CancellationToken) {
    lost.cancelled().await;
    match plan.on_client_lost() {
        OnClientLost::Finish => tokio::time::sleep(GRACE).await,
        OnClientLost::Cancel => {}
    }
}

async fn withdrawn(inner: &Inner, permit: Permit, why: String) -> Ending {
    let call = permit.call();
    let receipt = inner.gate.withdraw(permit).await.ok();
    Ending::Withdrawn {
        call,
        proof: Withdrawal::NeverCleared,
        why,
        receipt,
    }
}

/// Puts the outcome on record; only then is it told.
async fn settled(inner: &Inner, cleared: Cleared, sent: Sent) -> Ending {
    let call = cleared.call();
    match sent {
        Sent::Answered(answer) => {
            let outcome = OutcomeBody::Answered {
                status: answer.status,
                delivered: None,
                remote_id: answer.remote_id.clone(),
            };
            inner.answered.add(&cleared, &outcome);
            let receipt = inner.gate.settle(cleared, outcome).await.ok();
            Ending::Answered(Answered {
                call,
                status: answer.status,
                headers: answer
                    .headers
                    .into_iter()
                    .map(|(name, value)| (name, value.raw().to_owned()))
                    .collect(),
                body: answer.body,
                cut: answer.cut,
                remote_id: answer.remote_id,
                receipt,
            })
        }
        Sent::HandedBack(why) => handed_back(inner, cleared, why).await,
        Sent::Broke { why, .. } => {
            let receipt = inner
                .gate
                .settle(cleared, OutcomeBody::Unresolved { why })
                .await
                .ok();
            Ending::Unresolved { call, why, receipt }
        }
    }
}

async fn handed_back(inner: &Inner, cleared: Cleared, why: NotSent) -> Ending {
    let call = cleared.call();
    let proof = Withdrawal::HandedBackUnwritten;
    let receipt = inner
        .gate
        .settle(cleared, OutcomeBody::Withdrawn { proof })
        .await
        .ok();
    Ending::Withdrawn {
        call,
        proof,
        why: why.to_string(),
        receipt,
    }
}
