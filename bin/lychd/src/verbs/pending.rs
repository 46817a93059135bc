//! What waits for a person: runs, and repetitions of open writes.

use std::sync::Arc;

use model::{Act, CallId, Clock, Exit, Explain, Fault, Operator, SessionId, SessionState};
use serde_json::{Value, json};

use super::{acted, journals, sealed::seal, sealed_now};
use crate::{daemon::Daemon, sealed::Trusted, trust};

/// Lists what waits, and the shapes that no longer do.
pub(super) async fn list(daemon: &Arc<Daemon>) -> Result<Value, Explain> {
    let waiting: Vec<SessionId> = daemon
        .gate
        .runs()
        .iter()
        .filter(|run| run.state == SessionState::Pending)
        .map(|run| run.id)
        .collect();
    let mut runs = journals::views(daemon).await?;
    runs.retain(|view| waiting.contains(&view.id));
    let repeats: Vec<Value> = daemon
        .gate
        .repeats_asked()
        .iter()
        .map(|asked| json!({"of": asked.of, "asked_by": asked.by}))
        .collect();
    let remembered = match sealed_now(daemon) {
        Ok(sealed) => sealed
            .trusted
            .iter()
            .map(|known| {
                json!({"id": known.id(), "shape": known.shape, "what": known.what, "since": known.since})
            })
            .collect(),
        Err(closed) => json!({"unknown": closed.what}),
    };
    Ok(json!({
        "schema": "lych.pending/v1",
        "runs": crate::runs::to_value(&runs)?,
        "repeats": repeats,
        "remembered": remembered,
    }))
}

/// Admits a run.
pub(super) async fn allow(
    daemon: &Arc<Daemon>,
    by: &Operator,
    session: SessionId,
    remember: bool,
) -> Result<Value, Explain> {
    match daemon.gate.state_of(session) {
        Some(SessionState::Pending) => {}
        Some(state) if remember && state == SessionState::Live => {}
        Some(state) => return Err(not_waiting(session, state)),
        None => {
            // Not in memory: it is over, or it never was; the log knows which.
            let view = journals::one_run(daemon, session).await?;
            return Err(not_waiting(session, view.state));
        }
    }
    let shape = if remember {
        Some(remembered(daemon, by, session).await?)
    } else {
        None
    };
    let act = Act::RunAllowed {
        session,
        by_shape: None,
    };
    acted(daemon, by, act).await?;
    // It may have been revoked since: then this changes nothing, and is said.
    match daemon.gate.allow(session) {
        Some(SessionState::Pending | SessionState::Live) => {
            Ok(json!({"session": session, "remembered": shape}))
        }
        Some(state) => Err(not_waiting(session, state)),
        None => Err(not_waiting(session, SessionState::Ended)),
    }
}

/// Seals the shape of a run, so that its like is admitted from now on. Returns its id.
async fn remembered(
    daemon: &Arc<Daemon>,
    by: &Operator,
    session: SessionId,
) -> Result<String, Explain> {
    let chain = daemon
        .launches
        .chain_of(session)
        .ok_or_else(|| no_shape(session, "it has no connection"))?;
    let shape = trust::shape_of(daemon, chain)
        .await
        .map_err(|why| no_shape(session, &why))?;
    let trusted = Trusted {
        shape: shape.digest,
        what: shape.what,
        since: daemon.clock.now().wall,
    };
    let id = trusted.id();
    let _turn = daemon.vault_turn.lock().await;
    let mut sealed = sealed_now(daemon)?;
    if !sealed.trusts(shape.digest) {
        let act = Act::ShapeRemembered {
            shape: shape.digest,
        };
        acted(daemon, by, act).await?;
        sealed.trusted.push(trusted);
        seal(daemon, by, &sealed).await?;
    }
    Ok(id)
}

/// Lets runs of a remembered shape wait again. Runs that were admitted stay so.
pub(super) async fn forget(
    daemon: &Arc<Daemon>,
    by: &Operator,
    id: &str,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let mut sealed = sealed_now(daemon)?;
    let Some(known) = sealed.trusted.iter().find(|known| known.id() == id) else {
        return Err(Explain::new(
            Exit::Usage,
            Fault::Caller,
            format!("no shape {id:?} is remembered"),
        )
        .next("lych pending"));
    };
    let shape = known.shape;
    acted(daemon, by, Act::ShapeForgotten { shape }).await?;
    sealed.trusted.retain(|known| known.shape != shape);
    seal(daemon, by, &sealed).await?;
    Ok(json!({"shape": shape}))
}

/// Lets one repetition of an open write pass.
pub(super) async fn allow_repeat(
    daemon: &Arc<Daemon>,
    by: &Operator,
    call: CallId,
) -> Result<Value, Explain> {
    let view = journals::one(daemon, call).await?;
    if !view.state.is_open() {
        return Err(not_open(call, &view.state.to_string()));
    }
    acted(daemon, by, Act::RepeatAllowed { call }).await?;
    if daemon.gate.allow_repeat(call) {
        Ok(json!({"call": call}))
    } else {
        Err(not_open(call, "no longer open, or not a write"))
    }
}

fn not_waiting(session: SessionId, state: SessionState) -> Explain {
    let error = Explain::new(
        Exit::Refused,
        Fault::Caller,
        format!("run {session} is {state}, so there is nothing to allow"),
    );
    match state {
        SessionState::Revoked => error
            .because("what was revoked stays so, or the log could not prove it")
            .next("start the agent's client again, and allow its new run"),
        SessionState::Pending
        | SessionState::Live
        | SessionState::Stuck
        | SessionState::Abandoned
        | SessionState::Lost
        | SessionState::Ended => error
            .because("only a run that waits can be admitted")
            .next("lych pending"),
    }
}

fn no_shape(session: SessionId, why: &str) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        format!("run {session} has no shape that could be remembered"),
    )
    .because(why)
    .next("allow it without --remember")
}

fn not_open(call: CallId, state: &str) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        format!("call {call} is {state}, so nothing keeps it from being made again"),
    )
    .because("only the repetition of an open write waits for a person")
    .next("lych reconcile list")
}
