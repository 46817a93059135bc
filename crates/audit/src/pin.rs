//! `HEAD`: the last commit as a signed pin, written beside the commits and in nobody's way.
//!
//! It takes three syncs, so it has a thread of its own: whoever records something meanwhile does not wait for it. A
//! revocation and the log's end do, because their pin is a part of the promise; so there is a turn.

use std::{
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ed25519_dalek::{Signer, SigningKey};
use ledger::Head;
use model::{EpochId, LogId, Seq};
use sys::durable::{self, Reader};

use crate::{audit::HeadPoint, commit::Seen, writer::lock};

/// How old `HEAD` may get while records come in.
const HEAD_AGE: Duration = Duration::from_secs(1);

/// The file, and how far it is.
pub(crate) struct Pin {
    path: PathBuf,
    log_id: LogId,
    epoch: EpochId,
    signing: SigningKey,
    /// Held while the file is written.
    turn: Mutex<()>,
    done: Mutex<Done>,
}

struct Done {
    seq: Seq,
    tried: Instant,
    problem: Option<String>,
}

impl Pin {
    pub(crate) fn new(path: PathBuf, log_id: LogId, epoch: EpochId, signing: SigningKey) -> Self {
        let done = Done {
            seq: 0,
            tried: Instant::now(),
            problem: None,
        };
        Self {
            path,
            log_id,
            epoch,
            signing,
            turn: Mutex::new(()),
            done: Mutex::new(done),
        }
    }

    /// Writes `HEAD`, unless it is as far already. If that fails the log goes on without: it is a pin, not a part.
    pub(crate) fn write(&self, committed: HeadPoint) {
        let _turn = lock(&self.turn);
        if lock(&self.done).seq >= committed.seq {
            return;
        }
        lock(&self.done).tried = Instant::now();
        let place = (committed.seq, committed.id, committed.at);
        let head = Head::signed(self.log_id, place, self.epoch, |message| {
            self.signing.sign(message).to_bytes()
        });
        let written = durable::replace_for(Reader::Group, &self.path, &head.encode());
        let mut done = lock(&self.done);
        match written {
            Ok(()) => {
                done.seq = committed.seq;
                done.problem = None;
            }
            Err(error) => done.problem = Some(error.to_string()),
        }
    }

    /// Keeps everybody from writing it, as a slow disk does.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> std::sync::MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Returns why it is behind, if it could not be written.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.done).problem.clone()
    }

    /// Returns when it is to be written, if it is behind this commit.
    fn due(&self, committed: Option<HeadPoint>) -> Option<Instant> {
        let done = lock(&self.done);
        (committed?.seq > done.seq).then(|| done.tried + HEAD_AGE)
    }
}

/// Keeps `HEAD` from getting old.
#[derive(Default)]
pub(crate) struct Keeper {
    news: Condvar,
    /// Whether it waits for a commit; else it looks by itself. Changed under the lock of what is seen, like the next.
    waits: AtomicBool,
    stopping: AtomicBool,
}

impl Keeper {
    /// Takes notice of a commit; called under the lock of what is seen.
    pub(crate) fn tell(&self) {
        if self.waits.load(Ordering::Relaxed) {
            self.news.notify_one();
        }
    }

    /// Ends it; called under the lock of what is seen.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.news.notify_one();
    }

    /// Runs until told to stop.
    pub(crate) fn run(&self, pin: &Arc<Pin>, shown: &Mutex<Seen>) {
        let mut seen = lock(shown);
        while !self.stopping.load(Ordering::Relaxed) {
            let due = pin.due(seen.head);
            seen = match (due, seen.head) {
                (Some(at), Some(head)) if at <= Instant::now() => {
                    drop(seen);
                    pin.write(head);
                    let mut seen = lock(shown);
                    seen.head_behind = pin.problem();
                    seen
                }
                (Some(at), _) => {
                    let rest = at.saturating_duration_since(Instant::now());
                    let waited = self.news.wait_timeout(seen, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                (None, _) => {
                    self.waits.store(true, Ordering::Relaxed);
                    let waited = self.news.wait(seen);
                    let seen = waited.unwrap_or_else(PoisonError::into_inner);
                    self.waits.store(false, Ordering::Relaxed);
                    seen
                }
            };
        }
    }
}
