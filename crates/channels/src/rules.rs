//! What the policy says about runs as such: how long one may last, and what a lock does to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::window;

/// Bounds on every run. Left out, a run lasts until its client ends or an operator revokes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRules {
    /// How long a run may last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<Ttl>,
    /// What locking the vault does to the runs that are there.
    #[serde(default)]
    pub(crate) on_lock: OnLock,
}

/// How long a run may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ttl(#[serde(with = "window")] pub(crate) Duration);

/// What locking the vault does to the runs that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLock {
    /// Their calls are refused until it is unlocked.
    #[default]
    Keep,
    /// They are revoked, and stay so.
    End,
}

impl RunRules {
    /// Returns how long a run may last, if that is bounded.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl.map(|ttl| ttl.0)
    }

    /// Returns what locking the vault does to the runs that are there.
    #[must_use]
    pub const fn on_lock(&self) -> OnLock {
        self.on_lock
    }

    /// Says in words what they bound.
    pub(crate) fn describe(&self) -> Vec<String> {
        let ttl = self
            .ttl()
            .map(|ttl| format!("a run ends after {}", humantime::format_duration(ttl)));
        let lock = (self.on_lock == OnLock::End)
            .then(|| "locking the vault ends every run for good".to_owned());
        ttl.into_iter().chain(lock).collect()
    }
}
