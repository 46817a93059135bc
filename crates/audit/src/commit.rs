//! The committer: one thread that takes what is queued, writes it, and tells who waits.
//!
//! No linger: while one group is on its way to the disk the next gathers by itself.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use ledger::signed_message;
use model::{Clock, Kind, NotDurable, Ticket};

use crate::{
    audit::HeadPoint,
    queue::{Content, Draft, Group, Queue},
    writer::{Done, HEAD_AGE, Writer, lock},
};

/// What the threads share. Locked in this order: writer, queue, head.
pub(crate) struct Shared {
    pub(crate) queue: Mutex<Queue>,
    pub(crate) wake: Condvar,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) head: Mutex<Option<HeadPoint>>,
}

impl Shared {
    pub(crate) fn new(queue: Queue, writer: Writer) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            writer: Mutex::new(writer),
            head: Mutex::new(None),
        })
    }

    /// Commits all that is queued at this moment, on the calling thread.
    pub(crate) fn drain(&self, writer: &mut Writer) {
        loop {
            let group = lock(&self.queue).take_group();
            match group {
                Some(group) => self.commit(writer, group),
                None => return,
            }
        }
    }

    /// Commits one group and tells everybody who waits for it.
    fn commit(&self, writer: &mut Writer, group: Group) {
        let bytes = group.bytes;
        match writer.commit(group) {
            Ok(done) => {
                let (room, no_room) = writer.room();
                lock(&self.queue).written(bytes, room, no_room);
                self.publish(writer);
                tell(done);
            }
            Err((why, mut stubs)) => {
                stubs.extend(lock(&self.queue).refuse_all(&why));
                for stub in stubs {
                    stub.settle(Err(NotDurable { why: why.clone() }));
                }
            }
        }
    }

    /// Shows the new head before anybody is told that he stands behind it.
    fn publish(&self, writer: &Writer) {
        *lock(&self.head) = writer.committed.map(|committed| HeadPoint {
            seq: committed.seq,
            id: committed.id,
            at: committed.at,
        });
    }

    /// Queues a record and wakes the committer.
    pub(crate) fn push(&self, draft: Draft, clock: &dyn Clock) -> Ticket {
        let mut queue = lock(&self.queue);
        // Under the lock: the times are then in the order of the numbers.
        let stamp = clock.now();
        let ticket = queue.push(draft, stamp);
        drop(queue);
        self.wake.notify_one();
        ticket
    }

    /// Queues a daemon run's last record; nothing is taken behind it.
    pub(crate) fn push_last(&self, draft: Draft, clock: &dyn Clock) -> Ticket {
        let mut queue = lock(&self.queue);
        let ticket = queue.push(draft, clock.now());
        queue.close();
        ticket
    }

    /// Writes a record whose signature covers its own place in the chain. All that is queued is written first, and
    /// the number is drawn in the moment when nothing is: so nobody comes between.
    pub(crate) fn push_signed(
        &self,
        writer: &mut Writer,
        (kind, unsigned): (Kind, &[u8]),
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
        clock: &dyn Clock,
    ) -> Ticket {
        // The signatures' place is kept free, so that the queue knows how long the record will be.
        let signatures = if kind == Kind::RootEndorsed { 128 } else { 64 };
        let blank = [unsigned, &vec![0; signatures]].concat();
        let draft = Draft::clear(kind, blank);
        let (ticket, group) = loop {
            self.drain(writer);
            let mut queue = lock(&self.queue);
            if queue.is_empty() {
                let ticket = queue.push(draft, clock.now());
                break (ticket, queue.take_group());
            }
        };
        let Some(mut group) = group else {
            return ticket;
        };
        if let (Ok(()), Some(queued)) = (writer.make_room_for(&group), group.records.first_mut()) {
            let header = queued.header(ledger::Sealing::Clear, writer.head);
            let message = signed_message(writer.log_id, &header, unsigned).unwrap_or_default();
            queued.draft.content = Content::Clear(sign(&message));
        }
        self.commit(writer, group);
        ticket
    }

    /// Runs until told to stop, and then until nothing is queued any more.
    pub(crate) fn run(&self) {
        while let Some(work) = self.wait() {
            let mut writer = lock(&self.writer);
            match work {
                Work::Records => {
                    let group = lock(&self.queue).take_group();
                    if let Some(group) = group {
                        self.commit(&mut writer, group);
                    }
                }
                Work::Pin => {}
            }
            if writer.pin_is_behind() && writer.pinned.written.elapsed() >= HEAD_AGE {
                writer.pin();
            }
        }
    }

    fn wait(&self) -> Option<Work> {
        let behind = {
            let writer = lock(&self.writer);
            let age = writer.pinned.written.elapsed();
            writer.pin_is_behind().then(|| HEAD_AGE.saturating_sub(age))
        };
        let mut queue = lock(&self.queue);
        loop {
            if !queue.is_empty() {
                return Some(Work::Records);
            }
            if queue.stopping {
                return None;
            }
            // Only with a stale HEAD is there anything to do without a new record.
            let Some(rest) = behind else {
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if rest == Duration::ZERO {
                return Some(Work::Pin);
            }
            let waited = self.wake.wait_timeout(queue, rest);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            if timeout.timed_out() && queue.is_empty() && !queue.stopping {
                return Some(Work::Pin);
            }
        }
    }
}

enum Work {
    Records,
    Pin,
}

fn tell(done: Done) {
    for (stub, receipt) in done.receipts {
        stub.settle(Ok(receipt));
    }
}
