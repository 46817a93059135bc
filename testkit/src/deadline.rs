//! Waiting for an event, never for a time.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The moment at which a test stops waiting and fails.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    given: Duration,
}

/// How long a wait lasts that names no time. A machine under full load is slow, and a test that passes does
/// not wait: there is no reason to be near the edge.
const USUAL: Duration = Duration::from_secs(20);

/// The pause between two looks: short, and growing to no more than a person would notice.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

impl Deadline {
    /// Returns a deadline this far from now.
    #[must_use]
    pub fn after(given: Duration) -> Self {
        Self {
            at: Instant::now() + given,
            given,
        }
    }

    /// Returns the deadline for waits that have no reason for another.
    #[must_use]
    pub fn usual() -> Self {
        Self::after(USUAL)
    }

    /// Returns the time that is left; zero if none is.
    #[must_use]
    pub fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Tells whether it is over.
    #[must_use]
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Returns the time that was given at the start.
    #[must_use]
    pub const fn given(self) -> Duration {
        self.given
    }
}

/// Looks again and again until `look` finds something, and returns it.
///
/// # Panics
/// The deadline passed; the message says what was waited for.
pub fn wait_for<T>(what: &str, deadline: Deadline, look: impl FnMut() -> Option<T>) -> T {
    look_until(deadline, look)
        .unwrap_or_else(|| panic!("waited {:?} in vain for {what}", deadline.given()))
}

/// Looks again and again until `look` finds something or the deadline has passed.
pub fn look_until<T>(deadline: Deadline, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut pause = FIRST_PAUSE;
    loop {
        // Asked before the look: the last look is then never older than the deadline.
        let last = deadline.passed();
        let found = look();
        if found.is_some() || last {
            return found;
        }
        thread::sleep(pause.min(deadline.left()));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks again and again until `is_so` says yes.
///
/// # Panics
/// The deadline passed; the message says what was waited for.
pub fn wait_until(what: &str, deadline: Deadline, mut is_so: impl FnMut() -> bool) {
    wait_for(what, deadline, || is_so().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_event() {
        let mut looks = 0;

        let found = wait_for("the third look", Deadline::usual(), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });

        assert_eq!(found, 3);
    }

    #[test]
    #[should_panic(expected = "in vain for a miracle")]
    fn a_wait_in_vain_says_for_what() {
        wait_until(
            "a miracle",
            Deadline::after(Duration::from_millis(5)),
            || false,
        );
    }
}
