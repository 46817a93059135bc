//! Answers on their way to an agent, until it is known whether they reached it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use authz::{Cleared, Settled};
use model::{CallId, OutcomeBody};

/// At most as many as are under way, for each of them is told to have arrived or not.
#[derive(Debug, Default)]
pub(crate) struct Undelivered(Mutex<HashMap<CallId, Settled>>);

impl Undelivered {
    /// Remembers what was answered.
    pub(crate) fn add(&self, cleared: &Cleared, outcome: &OutcomeBody) {
        self.lock()
            .insert(cleared.call(), cleared.settled_by(outcome));
    }

    /// Gives back what was answered to a call, once.
    pub(crate) fn take(&self, call: CallId) -> Option<Settled> {
        self.lock().remove(&call)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, Settled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
