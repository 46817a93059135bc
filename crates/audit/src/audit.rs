//! The log, open for writing: takes records, endorsements and the end.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use ledger::{KeyErased, file_digest, key_file_of};
use model::{
    Clock, Digest, Entry, EpochId, Journal, Kind, LogId, Receipt, Seq, SessionId, Ticket, Wall,
};
use sys::{durable, lock::Lock, regular};

use crate::{
    AuditError, Health, KeyUnwrap, Options, Recovered, Stats,
    commit::{Seen, Shared},
    create,
    keyring::KeyRing,
    queue::{Content, Draft},
    recover, seal,
    unsettled::Unsettled,
    writer::lock,
};

/// The last acknowledged commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadPoint {
    /// Its number.
    pub seq: Seq,
    /// Its id.
    pub id: Digest,
    /// Its time.
    pub at: Wall,
}

/// The log, open for writing.
///
/// Dropped without [`Audit::close`] it writes what is queued and leaves its daemon run open, as a crash would.
pub struct Audit {
    pub(crate) dir: PathBuf,
    log_id: LogId,
    epoch: EpochId,
    /// This daemon run's first record.
    pub(crate) begun: Seq,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) keys: Arc<Mutex<KeyRing>>,
    pub(crate) unsettled: Arc<Mutex<Unsettled>>,
    pub(crate) shared: Arc<Shared>,
    /// The committer, and who keeps `HEAD`.
    threads: Mutex<Vec<JoinHandle<()>>>,
    _lock: Lock,
}

impl Audit {
    /// Opens the log, or makes one, recovers from a crash, and begins a daemon run.
    ///
    /// # Errors
    /// Another daemon holds it, its acknowledged bytes are not what was written, or the file system refuses.
    pub fn open(mut options: Options) -> Result<(Self, Recovered), AuditError> {
        options.sizes = options.sizes.bounded();
        let opened = recover::open(&options)?;
        let shared = opened.shared;
        let audit = Self {
            dir: options.dir,
            log_id: opened.log_id,
            epoch: opened.recovered.epoch,
            begun: opened.begun,
            clock: options.clock,
            keys: opened.keys,
            unsettled: opened.unsettled,
            shared,
            threads: Mutex::default(),
            _lock: opened.lock,
        };
        audit.start_threads()?;
        Ok((audit, opened.recovered))
    }

    /// What is started is ended with the log, whether the rest can be started or not.
    fn start_threads(&self) -> Result<(), AuditError> {
        let pin = Arc::clone(&lock(&self.shared.writer).pin);
        let (commits, pins) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        self.start("audit-committer", move || commits.run())?;
        self.start("audit-pin", move || pins.keeper.run(&pin, &pins.seen))
    }

    fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), AuditError> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(run);
        let started = started.map_err(AuditError::io("start a thread for", &self.dir))?;
        lock(&self.threads).push(started);
        Ok(())
    }

    /// Returns the log's id.
    #[must_use]
    pub const fn log_id(&self) -> LogId {
        self.log_id
    }

    /// Returns the present daemon run's id.
    #[must_use]
    pub const fn epoch(&self) -> EpochId {
        self.epoch
    }

    /// Returns the log's folder, for whoever verifies it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the last acknowledged commit.
    #[must_use]
    pub fn head(&self) -> Option<HeadPoint> {
        self.seen().head
    }

    /// Returns the public key of the root that this log recognises now.
    #[must_use]
    pub fn root(&self) -> [u8; 32] {
        self.seen().root
    }

    /// Tells whether a failed write has ended all writing.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.seen().poisoned.is_some()
    }

    /// Tells how the log is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        let seen = self.seen();
        let mut health = Health {
            poisoned: seen.poisoned,
            head_behind: seen.head_behind,
            ..Health::default()
        };
        lock(&self.shared.queue).health(&mut health);
        health
    }

    /// Tells whether somebody holds the key to this log's data keys; tried on that of the present daemon run.
    #[must_use]
    pub fn is_opened_by(&self, unwrap: &dyn KeyUnwrap) -> bool {
        let file = regular::read(&key_file_of(&self.dir, self.epoch), create::LONGEST_SMALL);
        file.is_ok_and(|file| unwrap.unwrap(&file).is_some())
    }

    /// Looks whether the log's files are still where they were; if not, nothing is taken any more. To be called now and
    /// then, so that an idle log says so too; it never waits.
    pub fn watch(&self) {
        // Whoever holds the writer looks himself.
        if let Ok(mut writer) = self.shared.writer.try_lock() {
            writer.watch();
            self.shared.show(&writer);
        }
    }

    /// Tells what has been written since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.seen().stats
    }

    fn seen(&self) -> Seen {
        lock(&self.shared.seen).clone()
    }

    /// Tells whether a run has a data key of its own, still there.
    #[must_use]
    pub fn has_key(&self, session: SessionId) -> bool {
        // One that cannot be looked for is found to be missing when it is read.
        key_file_of(&self.dir, session).try_exists().unwrap_or(true)
    }

    /// Destroys the data key of a run: its sealed bodies can never be opened again, and the log says so.
    ///
    /// On record first, then gone: a crash between leaves a file that the next start removes. Swapped, the missing
    /// file would look like damage.
    ///
    /// # Errors
    /// The run has no key file, the erasure could not be recorded, or the file could not be removed.
    pub fn erase(&self, session: SessionId) -> Result<Receipt, AuditError> {
        let path = key_file_of(&self.dir, session);
        let file = regular::read(&path, create::LONGEST_SMALL).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                AuditError::NoKey(session)
            } else {
                AuditError::io("read", &path)(error)
            }
        })?;
        let erased = KeyErased {
            sha256: file_digest(&file),
        };
        let draft = Draft {
            session: Some(session),
            ..Draft::clear(Kind::KeyErased, erased.encode())
        };
        let receipt = self.shared.push(draft, &*self.clock).wait()?;
        lock(&self.keys).forget(session);
        std::fs::remove_file(&path)
            .and_then(|()| durable::sync_folder_of(&path))
            .map_err(AuditError::io("remove", &path))?;
        Ok(receipt)
    }

    /// Ends this daemon run in order: nothing more is taken, what is queued is written, `HEAD` confirms the end.
    ///
    /// # Errors
    /// The end could not be made durable; the next start then treats the run as crashed.
    pub fn close(&self) -> Result<Receipt, AuditError> {
        let draft = Draft::clear(Kind::EpochClosed, Vec::new());
        let ticket = {
            let mut writer = lock(&self.shared.writer);
            let ticket = self.shared.push_last(draft, &*self.clock);
            self.shared.drain(&mut writer);
            self.shared.pin(&writer);
            ticket
        };
        self.stop();
        Ok(ticket.wait()?)
    }

    fn stop(&self) {
        lock(&self.shared.queue).stopping = true;
        self.shared.wake.notify_all();
        let seen = lock(&self.shared.seen);
        self.shared.keeper.stop();
        drop(seen);
        for thread in lock(&self.threads).drain(..) {
            // A panic of the committer has already failed every ticket, and without the other HEAD is old.
            let _ = thread.join();
        }
    }
}

impl Journal for Audit {
    fn push(&self, entry: Entry) -> Ticket {
        if entry.kind.body_is_clear() {
            return Ticket::refused(format!("{} is the log's own to write", entry.kind.word()));
        }
        let Some(plain) = seal::plaintext(&entry.body) else {
            return Ticket::refused("the record cannot be written as JSON");
        };
        let draft = Draft {
            kind: entry.kind,
            session: entry.session,
            call: entry.call,
            refers_to: entry.refers_to,
            content: Content::Sealed(plain),
        };
        self.shared.push(draft, &*self.clock)
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        lock(&self.shared.queue).close();
        self.stop();
    }
}
