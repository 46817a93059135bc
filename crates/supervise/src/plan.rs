//! How long a process may take to end, and whether it may be forced.

use std::time::Duration;

/// What an ending may do, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How long SIGTERM has to work.
    pub grace: Duration,
    /// How often children that were not there before are looked for meanwhile.
    pub look_every: Duration,
    /// Whether what is left then is killed; never without a reason.
    pub force: Option<Force>,
}

impl Plan {
    /// Longer than the two seconds that the shutdown ladders of clients give, because what is ended here
    /// may have work to bring to a safe place and nobody waits in front of a screen of an agent.
    const GRACE: Duration = Duration::from_secs(10);

    /// Often enough to catch a child that is forked and left to the reaper, rarely enough not to be the
    /// busiest process of the machine.
    const LOOK_EVERY: Duration = Duration::from_millis(250);

    /// SIGKILL cannot be refused: what is left after this long waits in the kernel.
    pub(crate) const AFTER_KILL: Duration = Duration::from_secs(2);

    /// Returns a plan that terminates and forces nothing.
    #[must_use]
    pub const fn gentle() -> Self {
        Self {
            grace: Self::GRACE,
            look_every: Self::LOOK_EVERY,
            force: None,
        }
    }

    /// Adds that what is left after the grace is killed.
    #[must_use]
    pub fn forced(mut self, force: Force) -> Self {
        self.force = Some(force);
        self
    }
}

/// The decision to kill what does not terminate, with the reason that will be on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Force {
    reason: String,
}

/// Forced containment was asked for without a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a forced ending needs a reason, which goes on record")]
pub struct NoReason;

impl Force {
    /// Returns the decision.
    ///
    /// # Errors
    /// The reason is empty.
    pub fn because(reason: &str) -> Result<Self, NoReason> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(NoReason);
        }
        Ok(Self {
            reason: reason.to_owned(),
        })
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
