//! The committer: one thread that takes what is queued, writes it, and tells who waits.
//!
//! No linger for whoever waits: while one group is on its way to the disk the next gathers by itself. Only what
//! nobody waits for stays a moment, so that the outcome of a quick call does not queue up behind the sync of its
//! own clearance.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use model::{Clock, Kind, NotDurable, Stub, Ticket};

use crate::{
    Stats,
    audit::HeadPoint,
    pin::Keeper,
    queue::{Content, Draft, Group, Queue, is_patient},
    writer::{Done, Writer, lock},
};

/// What the threads share. Locked in this order: writer, queue, seen.
pub(crate) struct Shared {
    pub(crate) queue: Mutex<Queue>,
    pub(crate) wake: Condvar,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) keeper: Keeper,
}

/// What the writer shows of itself, so that nobody who asks has to wait for the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) head: Option<HeadPoint>,
    pub(crate) root: [u8; 32],
    pub(crate) poisoned: Option<String>,
    pub(crate) head_behind: Option<String>,
    pub(crate) stats: Stats,
}

impl Shared {
    pub(crate) fn new(queue: Queue, writer: Writer) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            writer: Mutex::new(writer),
            seen: Mutex::default(),
            keeper: Keeper::default(),
        })
    }

    /// Commits all that is queued at this moment, on the calling thread.
    pub(crate) fn drain(&self, writer: &mut Writer) {
        while let Some(group) = self.take_group() {
            self.commit(writer, group, None);
        }
    }

    fn take_group(&self) -> Option<Group> {
        lock(&self.queue).take_group()
    }

    /// Commits one group and tells everybody who waits for it.
    fn commit(&self, writer: &mut Writer, group: Group, sign: Option<Sign<'_>>) {
        let bytes = group.bytes;
        match writer.commit(group, sign) {
            Ok(done) => {
                lock(&self.queue).written(bytes, writer.room());
                // Before anybody is told that he stands behind the new head.
                self.show(writer);
                tell(done);
            }
            Err((why, stubs)) => {
                self.show(writer);
                fail(stubs, &why);
            }
        }
    }

    /// Writes `HEAD`.
    pub(crate) fn pin(&self, writer: &Writer) {
        writer.pin();
        self.show(writer);
    }

    /// Shows the writer's state; once it is poisoned nothing is taken any more.
    pub(crate) fn show(&self, writer: &Writer) {
        let mut seen = lock(&self.seen);
        *seen = writer.seen();
        self.keeper.tell();
        drop(seen);
        if let Some(why) = &writer.poisoned {
            fail(lock(&self.queue).refuse_all(why), why);
        }
    }

    /// Queues a record and wakes the committer.
    pub(crate) fn push(&self, draft: Draft, clock: &dyn Clock) -> Ticket {
        let mut queue = lock(&self.queue);
        // Under the lock: the times are then in the order of the numbers.
        let stamp = clock.now();
        let may_wait = queue.is_watched && is_patient(draft.kind);
        let ticket = queue.push(draft, stamp);
        drop(queue);
        if !may_wait {
            self.wake.notify_one();
        }
        ticket
    }

    /// Queues a daemon run's last record; nothing is taken behind it.
    pub(crate) fn push_last(&self, draft: Draft, clock: &dyn Clock) -> Ticket {
        let mut queue = lock(&self.queue);
        let ticket = queue.push(draft, clock.now());
        queue.close();
        ticket
    }

    /// Writes a record whose signature covers its own place in the chain. Whoever holds the writer is the committer:
    /// so the record is signed when its turn comes, behind all that was queued before it.
    pub(crate) fn push_signed(
        &self,
        writer: &mut Writer,
        (kind, unsigned): (Kind, &[u8]),
        sign: Sign<'_>,
        clock: &dyn Clock,
    ) -> Ticket {
        let draft = Draft {
            content: Content::Unsigned(unsigned.to_vec()),
            ..Draft::clear(kind, Vec::new())
        };
        let mut queue = lock(&self.queue);
        let ticket = queue.push(draft, clock.now());
        drop(queue);
        let wanted = ticket.seq();
        while let Some(group) = self.take_group() {
            let last = Some(group.commit_seq) > wanted;
            self.commit(writer, group, Some(&mut *sign));
            if last {
                break;
            }
        }
        ticket
    }

    /// Runs until told to stop, and then until nothing is queued any more.
    ///
    /// If it panics, whoever waits is told so, and nothing is taken any more: nobody would write it.
    pub(crate) fn run(&self) {
        let _told = Told(self);
        let mut awake_until = None;
        while self.wait(awake_until) {
            let mut writer = lock(&self.writer);
            awake_until = self.commit_next(&mut writer);
        }
    }

    /// Commits the next group. Behind an attempt its clearance follows: says until when to look out for that.
    fn commit_next(&self, writer: &mut Writer) -> Option<Instant> {
        let group = self.take_group()?;
        let begins = group.has(Kind::Attempt);
        self.commit(writer, group, None);
        begins.then(|| Instant::now() + LINGER)
    }

    /// Waits for something to write; false at the end. Awake for this long in any case, so that who brings what nobody
    /// waits for need not wake us.
    fn wait(&self, mut awake_until: Option<Instant>) -> bool {
        let mut queue = lock(&self.queue);
        loop {
            let now = Instant::now();
            if !queue.is_empty() {
                let until = *awake_until.get_or_insert(now + LINGER);
                if queue.stopping || !queue.is_patient() || until <= now {
                    return true;
                }
            } else if queue.stopping {
                return false;
            } else {
                awake_until = awake_until.filter(|until| *until > now);
            }
            queue.is_watched = awake_until.is_some();
            queue = match awake_until {
                Some(until) => {
                    let waited = self.wake.wait_timeout(queue, until - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.wake.wait(queue);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
            queue.is_watched = false;
        }
    }
}

/// Tells everybody that the committer is gone, if it panics.
struct Told<'a>(&'a Shared);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut writer = lock(&self.0.writer);
            writer
                .poisoned
                .get_or_insert_with(|| "the committer broke off".to_owned());
            self.0.show(&writer);
        }
    }
}

/// How long a record for which nobody waits may stay in memory: longer than a quick call takes, and shorter than
/// anybody notices who looks at a slow one.
const LINGER: Duration = Duration::from_millis(2);

/// Makes the signatures of a record whose place in the chain is known: from the message to the whole body.
pub(crate) type Sign<'a> = &'a mut dyn FnMut(&[u8]) -> Vec<u8>;

fn fail(stubs: Vec<Stub>, why: &str) {
    for stub in stubs {
        stub.settle(Err(NotDurable {
            why: why.to_owned(),
        }));
    }
}

fn tell(done: Done) {
    for (stub, receipt) in done.receipts {
        stub.settle(Ok(receipt));
    }
}
