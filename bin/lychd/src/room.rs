//! How many may be connected at once: whoever connects without end takes his own share and nobody else's.
//!
//! Agents have a share and operators another, so that the one who revokes is let in however many agents there
//! are. Both are cut to the descriptors that the system gives.

use model::{Exit, Explain, Fault};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Room for both kinds of connection.
#[derive(Debug)]
pub(crate) struct Room {
    agents: Semaphore,
    operators: Semaphore,
    calls: usize,
}

/// A place that is given back on drop.
pub(crate) type Place<'a> = SemaphorePermit<'a>;

/// Agents' connections at once: more than anybody's clients start, and few enough to be watched.
const MOST_AGENTS: u64 = 256;

/// Where there are few descriptors: as many as start at once when a person begins to work.
const FEW_AGENTS: u64 = 16;

/// Operators' connections at once: one person, and what he has running.
const MOST_OPERATORS: usize = 64;

/// The socket, and each process of the longest chain twice.
const EACH: u64 = 65;

/// Operators, the log, the vault and ourselves.
const OTHERS: u64 = 192;

/// Where there are few descriptors: some calls are made all the same.
const FEW_CALLS: u64 = 16;

impl Room {
    /// Returns the room that so many descriptors give.
    pub(crate) fn of(descriptors: u64) -> Self {
        // One half for the processes behind connections, the other for what they call.
        let half = descriptors.saturating_sub(OTHERS) / 2;
        let agents = (half / EACH).clamp(FEW_AGENTS, MOST_AGENTS);
        Self {
            agents: Semaphore::new(usize::try_from(agents).unwrap_or(0)),
            operators: Semaphore::new(MOST_OPERATORS),
            calls: usize::try_from(half.max(FEW_CALLS)).unwrap_or(usize::MAX),
        }
    }

    /// Returns how many calls may be under way at once; the gate knows a bound of its own.
    pub(crate) const fn calls(&self) -> usize {
        self.calls
    }

    /// Takes a place for an agent's connection.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn agent(&self) -> Result<Place<'_>, Explain> {
        place(&self.agents)
    }

    /// Takes a place for an operator's connection.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn operator(&self) -> Result<Place<'_>, Explain> {
        place(&self.operators)
    }
}

fn place(share: &Semaphore) -> Result<Place<'_>, Explain> {
    share.try_acquire().map_err(|_| {
        Explain::new(
            Exit::Refused,
            Fault::Caller,
            "too many are connected at once",
        )
        .because("whoever connects without end takes his own share and nobody else's")
        .next("end some of them, or wait a moment")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(descriptors: u64) -> u64 {
        u64::try_from(Room::of(descriptors).agents.available_permits()).unwrap()
    }

    #[test]
    fn few_descriptors_give_little_room_and_many_no_more_than_is_of_use() {
        assert_eq!(agents(0), FEW_AGENTS);
        assert_eq!(agents(1024), FEW_AGENTS);
        assert_eq!(agents(OTHERS + 40 * EACH), 20);
        assert_eq!(agents(1 << 20), MOST_AGENTS);
        assert_eq!(Room::of(0).calls(), 16);
        assert_eq!(Room::of(OTHERS + 200).calls(), 100);
    }

    #[test]
    fn agents_without_end_leave_operators_their_own_and_a_place_comes_back() {
        let room = Room::of(0);
        let taken: Vec<_> = std::iter::from_fn(|| room.agent().ok()).collect();

        assert_eq!(u64::try_from(taken.len()).unwrap(), FEW_AGENTS);
        assert!(room.agent().is_err());
        assert!(room.operator().is_ok());
        drop(taken);
        assert!(room.agent().is_ok());
    }
}
