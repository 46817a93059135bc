//! Runs that wait for a person, and those that need not because their shape was remembered.

use std::sync::Arc;

use model::{Act, ChainLink, Operator, Presence, SessionId, SessionState};

use crate::{
    daemon::Daemon,
    shape::{self, Shape},
    verbs,
};

/// Admits a run that waits, if its shape is remembered.
pub(crate) async fn admit(daemon: &Arc<Daemon>, session: SessionId, chain: Vec<ChainLink>) {
    if daemon.gate.state_of(session) != Some(SessionState::Pending) {
        return;
    }
    let trusts_any = verbs::sealed(daemon).is_ok_and(|sealed| !sealed.trusted.is_empty());
    if !trusts_any {
        say_that_it_waits(daemon, session);
        return;
    }
    let shape = match shape_of(daemon, chain).await {
        Ok(shape) => shape,
        Err(why) => {
            daemon
                .notes
                .say(&format!("the shape of a run cannot be told: {why}"));
            say_that_it_waits(daemon, session);
            return;
        }
    };
    // Asked again: the vault may have been shut while the programs were read.
    if !verbs::sealed(daemon).is_ok_and(|sealed| sealed.trusts(shape.digest)) {
        say_that_it_waits(daemon, session);
        return;
    }
    let act = Act::RunAllowed {
        session,
        by_shape: Some(shape.digest),
    };
    let by = Operator {
        uid: sys::process::own_uid(),
        login_uid: None,
        presence: Presence::None,
    };
    match verbs::acted(daemon, &by, act).await {
        Ok(()) => drop(daemon.gate.allow(session)),
        Err(error) => daemon
            .notes
            .say(&format!("a run was not admitted: {}", error.what)),
    }
}

/// Admits every run that waits and need not, after the vault was opened or the policy applied.
pub(crate) async fn admit_all(daemon: &Arc<Daemon>) {
    for run in daemon.gate.runs() {
        if run.state == SessionState::Pending
            && let Some(chain) = daemon.launches.chain_of(run.id)
        {
            admit(daemon, run.id, chain).await;
        }
    }
}

/// Looks at the programs behind a run, on a thread that may wait for the disk.
///
/// # Errors
/// Why they cannot be told, for a person.
pub(crate) async fn shape_of(daemon: &Arc<Daemon>, chain: Vec<ChainLink>) -> Result<Shape, String> {
    if daemon.home.realm().is_separate() {
        return Err("the daemon is another user and cannot look into the agents' programs; what a shim could \
             report of them admits nobody"
            .to_owned());
    }
    let daemon = Arc::clone(daemon);
    tokio::task::spawn_blocking(move || shape::of(&chain, &daemon.digests))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())
}

fn say_that_it_waits(daemon: &Arc<Daemon>, session: SessionId) {
    let shared = Arc::clone(daemon);
    daemon.notices.tasks.spawn(async move {
        let told = shared.notices.run_waits(session).await;
        shared.notes.say(&format!(
            "run {session} waits for a person: lych allow {session} ({told})"
        ));
    });
}
