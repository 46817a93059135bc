//! Which runs have lost their client, for calls that are under way and must come to a bounded end.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use model::SessionId;
use tokio_util::sync::CancellationToken;

/// One token per run with a call under way; cancelled when its client is lost.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<HashMap<SessionId, CancellationToken>>);

impl Losses {
    /// Returns what is cancelled when this run's client is lost.
    pub(crate) fn of(&self, session: SessionId) -> CancellationToken {
        self.lock().entry(session).or_default().clone()
    }

    /// Tells every call of the run that nobody waits for its answer any more.
    pub(crate) fn tell(&self, session: SessionId) {
        self.of(session).cancel();
    }

    /// Forgets a run that has ended.
    pub(crate) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
