//! Clocks for tests: one that stands still until it is moved, and one that runs.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime},
};

use model::{Clock, Stamp, Wall};

/// A clock that moves only when a test moves it.
#[derive(Debug)]
pub struct FixedClock {
    wall_ms: AtomicU64,
    boot_ms: AtomicU64,
}

impl FixedClock {
    /// Returns a clock that stands at 2026-03-01T03:00:00Z, one hour after boot.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            wall_ms: AtomicU64::new(1_772_334_000_000),
            boot_ms: AtomicU64::new(3_600_000),
        }
    }

    /// Moves both clocks on.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(by, Ordering::SeqCst);
        self.boot_ms.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the wall clock, as a person or NTP does; the boot clock does not follow.
    pub fn set_wall(&self, to: Wall) {
        self.wall_ms.store(to.millis(), Ordering::SeqCst);
    }
}

impl Default for FixedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Stamp {
        Stamp {
            wall: Wall::from_millis(self.wall_ms.load(Ordering::SeqCst)),
            boot_ms: self.boot_ms.load(Ordering::SeqCst),
        }
    }
}

/// The wall clock, with time since the clock was made in place of time since boot.
#[derive(Debug)]
pub struct RunningClock {
    started: Instant,
}

impl RunningClock {
    /// Returns a running clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for RunningClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RunningClock {
    fn now(&self) -> Stamp {
        Stamp {
            wall: Wall::from(SystemTime::now()),
            boot_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}
