//! What the policy says beside its channels: how long a run may last, what a lock does to it, how much of the log is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::window;

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

/// How much of the log is kept without a word from an operator. Whole segments are given up, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRules {
    /// What is older is given up.
    pub(crate) keep_days: u64,
    /// What makes the log longer is given up.
    pub(crate) keep_bytes: u64,
}

impl LogRules {
    /// A shorter time would end within the day whose incident somebody still looks at.
    pub(crate) const FEWEST_DAYS: u64 = 1;
    /// One segment: the one that is written to cannot be given up.
    pub(crate) const FEWEST_BYTES: u64 = 16 * 1024 * 1024;

    /// Returns for how many days records are kept.
    #[must_use]
    pub const fn days(&self) -> u64 {
        self.keep_days
    }

    /// Returns how long the log may be.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.keep_bytes
    }

    /// Says in words what they keep.
    pub(crate) fn describe(&self) -> String {
        format!(
            "of the log {} days and at most {} bytes are kept; whole segments are given up, the oldest first",
            self.keep_days, self.keep_bytes
        )
    }
}

impl Default for LogRules {
    fn default() -> Self {
        Self {
            keep_days: 90,
            keep_bytes: 1 << 30,
        }
    }
}
