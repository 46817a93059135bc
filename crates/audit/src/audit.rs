//! The log, open for writing: takes records, endorsements and the end.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use ledger::{
    EndorsedHow, EpochEndorsed, EpochOpened, KeyErased, Records, RootEndorsed, file_digest,
    key_file_of,
};
use model::{
    Clock, Digest, Entry, EpochId, Journal, Kind, LogId, Receipt, Seq, SessionId, Ticket, Wall,
};
use sys::{durable, lock::Lock};

use crate::{
    AuditError, Health, Options, Recovered, RootSigner, Stats,
    commit::Shared,
    keyring::KeyRing,
    queue::{Content, Draft},
    recover, seal,
    writer::{Writer, lock},
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
    clock: Arc<dyn Clock>,
    pub(crate) keys: Arc<Mutex<KeyRing>>,
    pub(crate) shared: Arc<Shared>,
    committer: Mutex<Option<JoinHandle<()>>>,
    _lock: Lock,
}

impl Audit {
    /// Opens the log, or makes one, recovers from a crash, and begins a daemon run.
    ///
    /// # Errors
    /// Another daemon holds it, its acknowledged bytes are not what was written, or the file system refuses.
    pub fn open(options: Options) -> Result<(Self, Recovered), AuditError> {
        let opened = recover::open(&options)?;
        let shared = opened.shared;
        let thread = Arc::clone(&shared);
        let committer = std::thread::Builder::new()
            .name("audit-committer".to_owned())
            .spawn(move || thread.run())
            .map_err(AuditError::io("start the committer for", &options.dir))?;
        let audit = Self {
            dir: options.dir,
            log_id: opened.log_id,
            epoch: opened.recovered.epoch,
            clock: options.clock,
            keys: opened.keys,
            shared,
            committer: Mutex::new(Some(committer)),
            _lock: opened.lock,
        };
        Ok((audit, opened.recovered))
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
        *lock(&self.shared.head)
    }

    /// Returns the public key of the root that this log recognises now.
    #[must_use]
    pub fn root(&self) -> [u8; 32] {
        lock(&self.shared.writer).root
    }

    /// Tells whether a failed write has ended all writing.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        lock(&self.shared.writer).poisoned.is_some()
    }

    /// Tells how the log is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        let writer = lock(&self.shared.writer);
        let mut health = Health {
            poisoned: writer.poisoned.clone(),
            head_behind: writer.pinned.problem.clone(),
            ..Health::default()
        };
        lock(&self.shared.queue).health(&mut health);
        health
    }

    /// Tells what has been written since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let writer = lock(&self.shared.writer);
        Stats {
            records: writer.records,
            commits: writer.commits,
            syncs: writer.syncs,
        }
    }

    /// Lets the log's root vouch for this daemon run and all history it stands on, up to now.
    ///
    /// # Errors
    /// It is another root, or the record could not be made durable.
    pub fn endorse(&self, root: &dyn RootSigner) -> Result<Receipt, AuditError> {
        let mut writer = lock(&self.shared.writer);
        let (epoch, public) = (self.epoch, writer.signing.verifying_key().to_bytes());
        self.endorse_epoch(&mut writer, EndorsedHow::OwnRun, epoch, public, root)
    }

    /// Lets the log's root vouch for an earlier daemon run that was never endorsed; an operator answers for it.
    ///
    /// # Errors
    /// There is no such run, it is another root, or the record could not be made durable.
    pub fn adopt_epoch(
        &self,
        epoch: EpochId,
        root: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        let public = self.public_of(epoch)?;
        let mut writer = lock(&self.shared.writer);
        self.endorse_epoch(&mut writer, EndorsedHow::Adopted, epoch, public, root)
    }

    /// Lets a new root take over from the present one, and vouch for this daemon run.
    ///
    /// # Errors
    /// `old` is not the present root, or a record could not be made durable.
    pub fn adopt_root(
        &self,
        old: &dyn RootSigner,
        new: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        let mut writer = lock(&self.shared.writer);
        if writer.root != old.public() {
            return Err(AuditError::NotTheRoot);
        }
        let unsigned = [old.public(), new.public()].concat();
        self.signed(&mut writer, Kind::RootEndorsed, &unsigned, |message| {
            RootEndorsed {
                old: old.public(),
                new: new.public(),
                old_signature: old.sign(message),
                new_signature: new.sign(message),
            }
            .encode()
        })?;
        writer.root = new.public();
        let (epoch, public) = (self.epoch, writer.signing.verifying_key().to_bytes());
        self.endorse_epoch(&mut writer, EndorsedHow::OwnRun, epoch, public, new)
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
        let file = std::fs::read(&path).map_err(AuditError::io("read", &path))?;
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
            writer.pin();
            ticket
        };
        self.stop();
        Ok(ticket.wait()?)
    }

    fn public_of(&self, epoch: EpochId) -> Result<[u8; 32], AuditError> {
        for record in Records::of(&self.dir, self.log_id) {
            let (_, stored) = record?;
            let opened = EpochOpened::decode(&stored.body);
            if let (Kind::EpochOpened, Some(opened)) = (stored.header.kind, opened)
                && opened.epoch == epoch
            {
                return Ok(opened.public);
            }
        }
        Err(AuditError::NoSuchEpoch)
    }

    fn endorse_epoch(
        &self,
        writer: &mut Writer,
        how: EndorsedHow,
        epoch: EpochId,
        public: [u8; 32],
        root: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        if writer.root != root.public() {
            return Err(AuditError::NotTheRoot);
        }
        let mut endorsed = EpochEndorsed {
            how,
            epoch,
            public,
            root: root.public(),
            signature: [0; 64],
        };
        let body = endorsed.encode();
        let unsigned = body
            .get(..body.len().saturating_sub(64))
            .unwrap_or_default();
        self.signed(writer, Kind::EpochEndorsed, unsigned, |message| {
            endorsed.signature = root.sign(message);
            endorsed.encode()
        })
    }

    /// Appends a record whose signature covers its own place in the chain: so everything queued is written first, and
    /// nobody else may append meanwhile.
    fn signed(
        &self,
        writer: &mut Writer,
        kind: Kind,
        unsigned: &[u8],
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<Receipt, AuditError> {
        let ticket = self
            .shared
            .push_signed(writer, (kind, unsigned), sign, &*self.clock);
        Ok(ticket.wait()?)
    }

    fn stop(&self) {
        lock(&self.shared.queue).stopping = true;
        self.shared.wake.notify_all();
        let committer = lock(&self.committer).take();
        if let Some(committer) = committer {
            // A panic of the committer has already failed every ticket.
            let _ = committer.join();
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
