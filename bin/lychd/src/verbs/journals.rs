//! The two journals, as views of the one log: runs, and the calls they made.

use std::sync::Arc;

use audit::{CallFilter, CallView};
use authz::OpenCall;
use model::{CallId, CallState, Exit, Explain, Fault, Operator, SessionId, SessionState, Wall};
use serde_json::{Value, json};
use wire::SessionView;

use super::unrecorded;
use crate::{daemon::Daemon, runs::to_value};

/// Which calls are asked for.
pub(super) struct Wanted {
    pub(super) session: Option<SessionId>,
    pub(super) since: Option<Wall>,
    pub(super) open_only: bool,
    /// At most so many, the newest.
    pub(super) last: Option<usize>,
}

/// Reads the log on a thread that may wait for the disk.
async fn read<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    what: impl FnOnce(&Daemon) -> Result<T, audit::AuditError> + Send + 'static,
) -> Result<T, Explain> {
    let daemon = Arc::clone(daemon);
    match tokio::task::spawn_blocking(move || what(&daemon)).await {
        Ok(result) => result.map_err(|error| error.explain()),
        Err(error) => {
            Err(Explain::new(Exit::Failed, Fault::Ours, "the log's reader ended").because(error))
        }
    }
}

async fn find(daemon: &Arc<Daemon>, filter: CallFilter) -> Result<Vec<CallView>, Explain> {
    read(daemon, move |daemon| {
        daemon.audit.calls(&filter, Some(daemon.store.as_ref()))
    })
    .await
}

/// Lists the runs. Whether one waits for a person stands in no record, for it depends on the policy in
/// force: the gate knows.
pub(super) async fn views(daemon: &Arc<Daemon>) -> Result<Vec<SessionView>, Explain> {
    let mut views = read(daemon, |daemon| {
        daemon.audit.sessions(Some(daemon.store.as_ref()))
    })
    .await?;
    for run in daemon.gate.runs() {
        let view = views.iter_mut().find(|view| view.id == run.id);
        if run.state == SessionState::Pending
            && let Some(view) = view
        {
            view.state = SessionState::Pending;
        }
    }
    Ok(views)
}

pub(super) async fn sessions(daemon: &Arc<Daemon>) -> Result<Value, Explain> {
    let views = views(daemon).await?;
    Ok(json!({"schema": "lych.sessions/v1", "sessions": to_value(&views)?}))
}

/// Finds one run.
pub(super) async fn one_run(daemon: &Arc<Daemon>, id: SessionId) -> Result<SessionView, Explain> {
    let mut views = views(daemon).await?.into_iter();
    views.find(|view| view.id == id).ok_or_else(|| {
        Explain::new(Exit::Usage, Fault::Caller, format!("there is no run {id}"))
            .next("lych sessions list")
    })
}

pub(super) async fn session(daemon: &Arc<Daemon>, id: SessionId) -> Result<Value, Explain> {
    let view = one_run(daemon, id).await?;
    Ok(json!({"schema": "lych.session/v1", "session": to_value(&view)?}))
}

pub(super) async fn calls(daemon: &Arc<Daemon>, wanted: Wanted) -> Result<Value, Explain> {
    let mut filter = if wanted.open_only {
        CallFilter::open()
    } else {
        CallFilter::default()
    };
    filter.session = wanted.session;
    filter.since = wanted.since;
    // One more than wanted shows whether there are more.
    filter.last = wanted.last.map(|last| last.saturating_add(1));
    let mut views = find(daemon, filter).await?;
    let earlier = wanted.last.is_some_and(|last| views.len() > last);
    if earlier {
        views.remove(0);
    }
    if wanted.open_only {
        views.retain(may_have_changed_something);
    }
    Ok(json!({
        "schema": "lych.calls/v1",
        "calls": to_value(&views)?,
        "earlier_left_out": earlier,
    }))
}

/// A read whose answer was lost changed nothing, so there is nothing to reconcile. One of which it is not
/// known whether it was a read stays on the list.
fn may_have_changed_something(view: &CallView) -> bool {
    view.is_write.value() != Some(&false)
}

/// Finds the last call that a run made.
pub(super) async fn last_call(
    daemon: &Arc<Daemon>,
    session: SessionId,
) -> Result<Option<CallView>, Explain> {
    let filter = CallFilter {
        session: Some(session),
        ..CallFilter::default()
    };
    Ok(find(daemon, filter).await?.into_iter().next_back())
}

pub(super) async fn call(daemon: &Arc<Daemon>, call: CallId) -> Result<Value, Explain> {
    let view = one(daemon, call).await?;
    Ok(json!({"schema": "lych.call/v1", "call": to_value(&view)?}))
}

/// Finds one call.
pub(super) async fn one(daemon: &Arc<Daemon>, call: CallId) -> Result<CallView, Explain> {
    let filter = CallFilter {
        call: Some(call),
        // Read from the log's end: what is asked for is rarely old.
        last: Some(1),
        ..CallFilter::default()
    };
    find(daemon, filter)
        .await?
        .into_iter()
        .next()
        .ok_or_else(|| {
            Explain::new(
                Exit::Usage,
                Fault::Caller,
                format!("there is no call {call}"),
            )
            .next("lych activity list")
        })
}

pub(super) async fn resolve(
    daemon: &Arc<Daemon>,
    by: &Operator,
    call: CallId,
    found: (bool, String),
) -> Result<Value, Explain> {
    let view = one(daemon, call).await?;
    match view.state {
        CallState::Unresolved | CallState::Outliving | CallState::Waiting => {}
        CallState::Cleared => {
            return Err(Explain::new(
                Exit::Refused,
                Fault::Caller,
                format!("call {call} is still under way"),
            )
            .next("wait for its answer, or revoke its run first"));
        }
        CallState::Attempted
        | CallState::Denied
        | CallState::Withdrawn
        | CallState::Answered
        | CallState::Reconciled => {
            return Err(Explain::new(
                Exit::Refused,
                Fault::Caller,
                format!("call {call} is {}", view.state),
            )
            .because("its outcome is known, so there is nothing to resolve")
            .next("lych reconcile list"));
        }
    }
    let ticket = daemon
        .gate
        .reconcile(view.session_id, call, view.seq, found, by.clone());
    let receipt = ticket.await.map_err(|error| unrecorded(&error))?;
    Ok(json!({"seq": receipt.seq}))
}

/// Counts the calls whose outcome is not known.
pub(crate) async fn unresolved(daemon: &Arc<Daemon>) -> Result<usize, Explain> {
    let views = find(daemon, CallFilter::open()).await?;
    let open =
        |view: &&CallView| view.state != CallState::Cleared && may_have_changed_something(view);
    Ok(views.iter().filter(open).count())
}

/// Finds the writes that are still open, so that the same write is not made again unawares.
pub(super) async fn open_writes(daemon: &Arc<Daemon>) -> Result<Vec<OpenCall>, Explain> {
    let views = find(daemon, CallFilter::open()).await?;
    Ok(views
        .iter()
        .filter(|view| may_have_changed_something(view))
        .filter_map(open_write)
        .collect())
}

fn open_write(view: &CallView) -> Option<OpenCall> {
    let target = view.target.value()?;
    Some(OpenCall {
        call: view.id,
        channel: target.channel.clone(),
        operation: target.operation.clone(),
        arguments: *view.arguments.value()?,
    })
}
