//! The requests of one connection that are not answered yet, and what became of each answer.
//!
//! A flight begins when its request is let in and ends when its answer is in the socket, was dropped because
//! the agent cancelled it, or can never be written. The gateway hears of each call exactly once which it was.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway::{Acts, Asker};
use model::{CallId, Denial};
use rmcp::model::RequestId;
use tokio::sync::watch;

use crate::MOST_IN_FLIGHT;

/// The table of one connection.
#[derive(Debug)]
pub(crate) struct Flights<A> {
    acts: Arc<A>,
    who: Asker,
    table: Mutex<Table>,
    open: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Table {
    flights: HashMap<RequestId, Flight>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Flight {
    /// The gateway's call, once it has ended.
    ended: Option<CallId>,
    cancelled: bool,
    /// Whether its answer has its place in the queue.
    queued: bool,
}

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotLetIn {
    /// A request with this id is not answered yet, so its answer could not be told from this one's.
    Duplicate,
    /// Too many are not answered yet.
    Busy,
}

impl<A: Acts> Flights<A> {
    pub(crate) fn new(acts: Arc<A>, who: Asker) -> Self {
        Self {
            acts,
            who,
            table: Mutex::default(),
            open: watch::Sender::new(0),
        }
    }

    /// Has a call put on record that was not let in.
    pub(crate) fn turned_away(&self, why: Denial) {
        self.acts.turned_away(self.who, why);
    }

    /// Lets a request in.
    pub(crate) fn begin(&self, id: &RequestId) -> Result<(), NotLetIn> {
        let mut table = self.lock();
        if table.flights.contains_key(id) {
            return Err(NotLetIn::Duplicate);
        }
        if table.flights.len() >= MOST_IN_FLIGHT {
            return Err(NotLetIn::Busy);
        }
        table.flights.insert(id.clone(), Flight::default());
        self.count(&table);
        Ok(())
    }

    /// Notes that the agent does not want this answer; the call itself goes on.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(flight) = self.lock().flights.get_mut(id) {
            flight.cancelled = true;
        }
    }

    /// Notes that the gateway's call behind this request has ended, so that its answer is on the way.
    pub(crate) fn call_ended(&self, id: &RequestId, call: CallId) {
        let undeliverable = {
            let mut table = self.lock();
            match table.flights.get_mut(id) {
                Some(flight) => {
                    flight.ended = Some(call);
                    false
                }
                None => table.closed,
            }
        };
        if undeliverable {
            self.acts.delivered(self.who, call, false);
        }
    }

    /// Tells whether the answer to this request is still wanted; if it is not, its flight ends here.
    pub(crate) fn wants_answer(&self, id: &RequestId) -> bool {
        let cancelled = self.lock().flights.get(id).map(|flight| flight.cancelled);
        if cancelled == Some(true) {
            self.answered(id, false);
        }
        cancelled == Some(false)
    }

    /// Notes that the answer has its place in the queue.
    pub(crate) fn answer_queued(&self, id: &RequestId) {
        let mut table = self.lock();
        if let Some(flight) = table.flights.get_mut(id) {
            flight.queued = true;
        }
        self.count(&table);
    }

    /// Ends a flight: its answer was written to the socket, or never will be.
    pub(crate) fn answered(&self, id: &RequestId, reached: bool) {
        let ended = {
            let mut table = self.lock();
            let flight = table.flights.remove(id);
            self.count(&table);
            flight.and_then(|flight| flight.ended)
        };
        if let Some(call) = ended {
            self.acts.delivered(self.who, call, reached);
        }
    }

    /// Waits until no request is unanswered.
    pub(crate) async fn all_answered(&self) {
        // The sender lives in `self`, so this cannot fail.
        drop(self.open.subscribe().wait_for(|open| *open == 0).await);
    }

    /// Waits until the answer to this request has its place in the queue, written or not.
    pub(crate) async fn until_queued(&self, id: &RequestId) {
        let mut changes = self.open.subscribe();
        // Not `wait_for`: it holds the channel's lock while it looks, and whoever changes the table tells the
        // channel with the table's lock held. The two would wait for each other, and the daemon with them.
        while !self.is_queued(id) && changes.changed().await.is_ok() {}
    }

    fn is_queued(&self, id: &RequestId) -> bool {
        self.lock()
            .flights
            .get(id)
            .is_none_or(|flight| flight.queued)
    }

    /// Ends all flights, since nothing can be written any more. Returns how many calls still run.
    pub(crate) fn close(&self) -> usize {
        let (undelivered, running) = {
            let mut table = self.lock();
            table.closed = true;
            let flights = std::mem::take(&mut table.flights);
            self.count(&table);
            let all = flights.len();
            let ended: Vec<CallId> = flights.into_values().filter_map(|f| f.ended).collect();
            let running = all.saturating_sub(ended.len());
            (ended, running)
        };
        for call in undelivered {
            self.acts.delivered(self.who, call, false);
        }
        running
    }

    /// Wakes whoever waits for a change of the table.
    fn count(&self, table: &Table) {
        self.open.send_replace(table.flights.len());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is one assignment, so a panic elsewhere leaves it whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use gateway::{ChannelShown, Ending, HttpRequest};
    use model::{ConnectionId, SessionId};

    use super::*;

    /// Enough for the two to meet; one that hangs hangs within the first hundreds.
    const TURNS: i64 = 50_000;

    struct Nothing;

    impl Acts for Nothing {
        fn channels(&self, _: Asker) -> Vec<ChannelShown> {
            Vec::new()
        }

        async fn http(&self, _: Asker, _: HttpRequest) -> Ending {
            std::future::pending().await
        }

        fn turned_away(&self, _: Asker, _: Denial) {}

        fn delivered(&self, _: Asker, _: CallId, _: bool) {}
    }

    #[test]
    fn a_wait_for_one_answer_and_the_end_of_another_do_not_wait_for_each_other() {
        let who = Asker {
            session: SessionId::from_bytes([1; 10]),
            connection: ConnectionId::from_bytes([2; 10]),
        };
        let flights = Arc::new(Flights::new(Arc::new(Nothing), who));
        let (done, both) = mpsc::channel();

        let ends = {
            let (flights, done) = (Arc::clone(&flights), done.clone());
            move || {
                for turn in 0..TURNS {
                    let id = RequestId::Number(turn);
                    flights.begin(&id).unwrap();
                    flights.answered(&id, true);
                }
                done.send(())
            }
        };
        let waits = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            for _ in 0..TURNS {
                runtime.block_on(flights.until_queued(&RequestId::Number(-1)));
            }
            done.send(())
        };
        // Not joined before they have answered: two threads that hang would hang the test.
        let threads = [thread::spawn(ends), thread::spawn(waits)];
        for _ in &threads {
            both.recv_timeout(Duration::from_secs(30)).unwrap();
        }

        for thread in threads {
            thread.join().unwrap().unwrap();
        }
    }
}
