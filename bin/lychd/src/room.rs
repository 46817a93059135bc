//! How many may be connected at once: whoever connects without end takes his own share and nobody else's.
//!
//! Agents have a share and operators another, so that the one who revokes is let in however many agents there
//! are. Both are cut to the descriptors that the system gives. Of the agents' places one client has a quarter at
//! most, and what was started together with it three. Until a connection has said its hello it has no place: it waits at the
//! [`Door`].
//!
//! A program that wants to shut others out can start itself as many times as its user may, each time in a session of its
//! own. This stops a client that is out of order, not such a program.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Exit, Explain, Fault, ProcessId};
use sys::chain::Chain;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::door::Door;

/// Room for both kinds of connection.
#[derive(Debug)]
pub(crate) struct Room {
    /// Those who have not said a word.
    pub(crate) door: Door,
    agents: Semaphore,
    most_agents: usize,
    guests: Mutex<Vec<Guest>>,
    operators: Mutex<Vec<Asking>>,
    calls: usize,
}

/// A place that is given back on drop.
pub(crate) type Place<'a> = SemaphorePermit<'a>;

/// Who is behind a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    /// Who holds its wire or, where that is not known, who started it.
    client: Option<ProcessId>,
    /// The top of what was started together with it.
    top: Option<ProcessId>,
}

impl Guest {
    /// Returns who is behind this chain.
    pub(crate) fn behind(chain: &Chain) -> Self {
        let links = chain.links();
        let client = chain.holder().ok().or_else(|| links.get(1));
        Self {
            client: client.map(|link| link.process.id.clone()),
            top: links.last().map(|link| link.process.id.clone()),
        }
    }
}

/// Whose an operator's connection is, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asking {
    /// The user.
    pub(crate) uid: u32,
    /// The process that connected.
    pub(crate) pid: u32,
}

/// An operator's place, given back on drop.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    room: &'a Room,
    asking: Asking,
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        let mut operators = lock(&self.room.operators);
        if let Some(index) = operators.iter().position(|one| *one == self.asking) {
            operators.swap_remove(index);
        }
    }
}

/// A part of somebody's share, given back on drop.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    room: &'a Room,
    guest: Guest,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut guests = lock(&self.room.guests);
        if let Some(index) = guests.iter().position(|guest| *guest == self.guest) {
            guests.swap_remove(index);
        }
    }
}

/// Agents' connections at once: more than anybody's clients start, and few enough to be watched.
const MOST_AGENTS: u64 = 256;

/// Where there are few descriptors: as many as start at once when a person begins to work.
const FEW_AGENTS: u64 = 16;

/// A share is no smaller, where there are few places: a client that starts several servers starts so many.
const LEAST_SHARE: usize = 8;

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
        let agents = usize::try_from(agents).unwrap_or(0);
        Self {
            door: Door::of(agents),
            agents: Semaphore::new(agents),
            most_agents: agents,
            guests: Mutex::new(Vec::new()),
            operators: Mutex::new(Vec::new()),
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
        self.agents.try_acquire().map_err(|_| full())
    }

    /// Takes a part of the shares of whoever is behind a connection that has a place.
    ///
    /// # Errors
    /// Its client, or what was started together with it, has as many places as it may.
    pub(crate) fn share(&self, guest: Guest) -> Result<Part<'_>, Explain> {
        let all = self.most_agents;
        let mut guests = lock(&self.guests);
        let held = guests
            .iter()
            .filter(|other| same(&other.client, &guest.client));
        let (held, most) = (held.count(), (all / 4).max(LEAST_SHARE));
        if held >= most {
            return Err(too_many("this client", held, most, all));
        }
        let held = guests.iter().filter(|other| same(&other.top, &guest.top));
        let (held, most) = (held.count(), all - all / 4);
        if held >= most {
            return Err(too_many(
                "what was started with this client",
                held,
                most,
                all,
            ));
        }
        guests.push(guest.clone());
        drop(guests);
        Ok(Part { room: self, guest })
    }

    /// Takes a place for an operator's connection: a program has a quarter of them at most, and a user three, so that
    /// root is let in whatever the daemon's user runs.
    ///
    /// # Errors
    /// There is none for him.
    pub(crate) fn operator(&self, asking: Asking) -> Result<Desk<'_>, Explain> {
        let mut operators = lock(&self.operators);
        let his = operators.iter().filter(|one| one.uid == asking.uid);
        let its = operators.iter().filter(|one| **one == asking);
        let (most, quarter) = (MOST_OPERATORS, MOST_OPERATORS / 4);
        if its.count() >= quarter || his.count() >= most - quarter || operators.len() >= most {
            return Err(full());
        }
        operators.push(asking);
        drop(operators);
        Ok(Desk { room: self, asking })
    }
}

fn lock<T>(taken: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells whether both are known to be the same.
fn same(one: &Option<ProcessId>, other: &Option<ProcessId>) -> bool {
    one.is_some() && one == other
}

fn too_many(who: &str, held: usize, most: usize, all: usize) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        format!("{who} has {held} connections already"),
    )
    .because(format!(
        "it may have {most} of all {all} places, so that others find one"
    ))
    .next("end the servers that it does not use, or start it again")
}

fn full() -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        "too many are connected at once",
    )
    .because("whoever connects without end takes his own share and nobody else's")
    .next("end some of them, or wait a moment")
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
        assert!(room.operator(Asking { uid: 1, pid: 1 }).is_ok());
        drop(taken);
        assert!(room.agent().is_ok());
    }

    fn process(pid: u32) -> Option<ProcessId> {
        Some(ProcessId {
            boot_id: String::new(),
            pid,
            start_ticks: 1,
            pidfd_inode: None,
        })
    }

    fn taken<'a>(room: &'a Room, holders: impl Iterator<Item = u32>, top: u32) -> Vec<Part<'a>> {
        let guests = holders.map(|pid| Guest {
            client: process(pid),
            top: process(top),
        });
        guests.map_while(|guest| room.share(guest).ok()).collect()
    }

    #[test]
    fn one_client_has_a_quarter_its_tree_three_and_others_find_a_place() {
        let room = Room::of(1 << 20);

        let one = taken(&room, std::iter::repeat(7), 1);
        let rest = taken(&room, 100.., 1);
        let other = taken(&room, std::iter::repeat(8), 2);

        assert_eq!((one.len(), rest.len(), other.len()), (64, 128, 64));
        drop(one);
        assert_eq!(taken(&room, 100.., 1).len(), 64);
    }

    #[test]
    fn one_program_has_a_quarter_of_the_operators_places_its_user_three_and_root_finds_one() {
        let room = Room::of(0);
        let seats = |uid, pids: std::ops::Range<u32>| -> Vec<Desk<'_>> {
            let all = pids.flat_map(|pid| [Asking { uid, pid }; 64]);
            all.filter_map(|asking| room.operator(asking).ok())
                .collect()
        };

        let one = seats(1000, 1..2);
        let rest = seats(1000, 2..9);
        let root = seats(0, 10..11);

        assert_eq!((one.len(), rest.len(), root.len()), (16, 32, 16));
        drop(one);
        assert_eq!(seats(1000, 2..4).len(), 0, "each has its quarter");
        assert_eq!(seats(1000, 9..10).len(), 16);
    }

    #[test]
    fn few_places_are_shared_by_two_clients_at_least() {
        let room = Room::of(0);

        assert_eq!(taken(&room, std::iter::repeat(7), 1).len(), 8);
        let one = taken(&room, std::iter::repeat(7), 1);
        assert_eq!(taken(&room, std::iter::repeat(8), 1).len(), 4);
        assert_eq!(taken(&room, std::iter::repeat(8), 2).len(), 8);
        drop(one);
    }

    #[test]
    fn whoever_is_not_known_is_not_taken_for_another_who_is_not() {
        let room = Room::of(1 << 20);
        let unseen = |top| Guest { client: None, top };

        let one: Vec<_> = std::iter::from_fn(|| room.share(unseen(process(1))).ok()).collect();

        assert_eq!(one.len(), 192);
        assert!(room.share(unseen(process(2))).is_ok());
    }
}
