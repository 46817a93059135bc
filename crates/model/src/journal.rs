//! The way into the log: push in order, wait for the disk when it matters.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use serde::{Deserialize, Serialize};

use crate::{Digest, Entry, LogId, Seq};

/// Takes records in the order in which it is called.
///
/// `push` does no I/O and does not wait, so that it may be called under the gate's lock: the log's order is
/// then the gate's order. What must be on disk before the next step waits for the ticket.
pub trait Journal: Send + Sync {
    /// Queues one record and gives it its sequence number.
    fn push(&self, entry: Entry) -> Ticket;
}

/// Where a durable record stands: what a caller can hand on as proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which log.
    pub log_id: LogId,
    /// Its place there.
    pub seq: Seq,
    /// The record's id: the chain's hash up to and with it.
    pub id: Digest,
}

/// The record is not on disk and will not be: nothing may act on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record could not be made durable: {why}")]
pub struct NotDurable {
    /// What failed, for an operator.
    pub why: String,
}

#[derive(Debug, Default)]
struct State {
    result: Option<Result<Receipt, NotDurable>>,
    waker: Option<Waker>,
    /// Whether a thread sleeps until then; waking nobody is a system call too.
    is_slept_on: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    settled: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is one assignment: a panic elsewhere cannot leave it half written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim on one record's durability. Dropping it does not take the record back.
#[derive(Debug)]
#[must_use = "a record is on disk only when its ticket says so"]
pub struct Ticket {
    seq: Option<Seq>,
    shared: Arc<Shared>,
}

/// The writer's end of a ticket. Dropped unused, it says "not durable".
#[derive(Debug)]
pub struct Stub(Option<Arc<Shared>>);

impl Ticket {
    /// Returns a ticket for the record with this number, and the end that settles it.
    pub fn new(seq: Seq) -> (Self, Stub) {
        let shared = Arc::new(Shared::default());
        (
            Self {
                seq: Some(seq),
                shared: Arc::clone(&shared),
            },
            Stub(Some(shared)),
        )
    }

    /// Returns a ticket for a record that the log did not take.
    pub fn refused(why: impl Into<String>) -> Self {
        let shared = Arc::new(Shared::default());
        shared.lock().result = Some(Err(NotDurable { why: why.into() }));
        Self { seq: None, shared }
    }

    /// Returns the record's number; none if the log did not take it.
    #[must_use]
    pub const fn seq(&self) -> Option<Seq> {
        self.seq
    }

    /// Blocks the thread until the record is on disk.
    ///
    /// # Errors
    /// It never will be; treat what it describes as not having been recorded.
    pub fn wait(self) -> Result<Receipt, NotDurable> {
        let mut state = self.shared.lock();
        loop {
            if let Some(result) = state.result.clone() {
                return result;
            }
            state.is_slept_on = true;
            state = self
                .shared
                .settled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Future for Ticket {
    type Output = Result<Receipt, NotDurable>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock();
        if let Some(result) = state.result.clone() {
            return Poll::Ready(result);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stub {
    /// Tells whoever waits how it went.
    pub fn settle(mut self, result: Result<Receipt, NotDurable>) {
        self.finish(result);
    }

    fn finish(&mut self, result: Result<Receipt, NotDurable>) {
        let Some(shared) = self.0.take() else { return };
        let mut state = shared.lock();
        state.result = Some(result);
        let (waker, is_slept_on) = (state.waker.take(), state.is_slept_on);
        drop(state);
        if is_slept_on {
            shared.settled.notify_all();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.finish(Err(NotDurable {
            why: "the log's writer ended".to_owned(),
        }));
    }
}
