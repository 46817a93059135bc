//! Where connections wait until they have said who they are: whoever says nothing makes room for whoever comes.
//!
//! A hello is one write of a program of ours, so it is there at once. When the door is full, the one that has been silent
//! longest is shown out: silence costs the silent.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Those who have not said a word.
#[derive(Debug)]
pub(crate) struct Door {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// The one that came first is the first.
    silent: BTreeMap<u64, CancellationToken>,
}

/// A connection at the door; it is there until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    door: &'a Door,
    number: u64,
    out: CancellationToken,
}

impl Door {
    /// Returns a door at which so many may wait.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            most,
            waiting: Mutex::default(),
        }
    }

    /// Lets one more wait. If there are too many, the one that has waited longest is shown out.
    pub(crate) fn enter(&self) -> Waiter<'_> {
        let out = CancellationToken::new();
        let mut waiting = self.lock();
        if waiting.silent.len() >= self.most
            && let Some((_, longest)) = waiting.silent.pop_first()
        {
            longest.cancel();
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.silent.insert(number, out.clone());
        drop(waiting);
        Waiter {
            door: self,
            number,
            out,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter<'_> {
    /// Waits for a word; none if this one is shown out before.
    pub(crate) async fn until<T>(self, said: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            // Whoever has spoken is heard.
            biased;
            said = said => Some(said),
            () = self.out.cancelled() => None,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.door.lock().silent.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn the_one_that_was_silent_longest_makes_room_and_whoever_has_spoken_is_heard() {
        let door = Door::of(2);
        let (first, second) = (door.enter(), door.enter());
        let third = door.enter();

        assert_eq!(first.until(pending::<()>()).await, None);
        assert!(!second.out.is_cancelled() && !third.out.is_cancelled());
        drop(second);
        let fourth = door.enter();
        assert!(!third.out.is_cancelled());
        let fifth = door.enter();
        assert_eq!(third.until(ready("hello")).await, Some("hello"));
        drop((fourth, fifth));
        assert_eq!(door.lock().silent.len(), 0);
    }
}
