//! Launch records: hints beside the log, so that a warden without a daemon can tell whose a process is.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::{
    ChildSeen, ConnectionId, LaunchRecord, LinkSeen, ProcessId, ProcessRef, SessionId, Wall,
};

use sys::durable::{self, Reader};

use crate::notes::Notes;

/// How long the record of a closed connection is kept: long enough to attribute what it left behind.
const KEEP: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// Longest record, in bytes: a chain, and what was seen below it.
const LARGEST_RECORD: u64 = 1 << 20;

/// The records of this daemon run, and where they lie.
#[derive(Debug)]
pub(crate) struct Launches {
    folder: PathBuf,
    records: Mutex<HashMap<ConnectionId, LaunchRecord>>,
}

impl Launches {
    /// Returns the records' keeper; files older than a month are removed.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let age = entry.metadata().and_then(|meta| meta.modified()).ok();
            if age
                .and_then(|at| at.elapsed().ok())
                .is_some_and(|age| age > KEEP)
            {
                // A file that stays is a hint more, nothing else.
                drop(std::fs::remove_file(entry.path()));
            }
        }
        Self {
            folder,
            records: Mutex::new(HashMap::new()),
        }
    }

    /// Finds the holders of runs that were revoked before this daemon started, and still live.
    pub(crate) fn revoked_holders(&self, revoked: &[SessionId]) -> Vec<(SessionId, ProcessId)> {
        let entries = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let records = entries.filter_map(|entry| {
            let file = sys::small_file::read(&entry.path(), LARGEST_RECORD).ok()?;
            serde_json::from_slice::<LaunchRecord>(&file.content).ok()
        });
        records
            .filter(|record| revoked.contains(&record.session))
            .filter_map(|record| {
                let holder = record
                    .chain
                    .into_iter()
                    .find(|link| link.role.is_holder())?;
                let lives = sys::process::Handle::reopen(&holder.process.id).is_ok();
                lives.then_some((record.session, holder.process.id))
            })
            .collect()
    }

    /// Adds a connection.
    pub(crate) fn add(&self, record: LaunchRecord, notes: &Notes) {
        self.write(&record, notes);
        self.lock().insert(record.connection, record);
    }

    /// Notes that a process of the chain was found dead.
    pub(crate) fn lost(
        &self,
        connection: ConnectionId,
        process: ProcessRef,
        at: Wall,
        notes: &Notes,
    ) {
        self.change(notes, |record| {
            let hit = record.connection == connection;
            if hit {
                record.lost.push(LinkSeen {
                    process: process.clone(),
                    at,
                });
            }
            hit
        });
    }

    /// Notes what hangs below the client of a connection.
    pub(crate) fn census(&self, connection: ConnectionId, children: Vec<ChildSeen>, notes: &Notes) {
        self.change(notes, |record| {
            let hit = record.connection == connection;
            if hit {
                record.children.clone_from(&children);
            }
            hit
        });
    }

    /// Returns the chain of a run that has a connection: that of the first.
    pub(crate) fn chain_of(&self, session: SessionId) -> Option<Vec<model::ChainLink>> {
        let records = self.lock();
        records
            .values()
            .filter(|record| record.session == session)
            .min_by_key(|record| record.connected_at)
            .map(|record| record.chain.clone())
    }

    /// Notes that the transport of a connection closed.
    pub(crate) fn closed(&self, connection: ConnectionId, at: Wall, notes: &Notes) {
        self.change(notes, |record| {
            let hit = record.connection == connection;
            if hit {
                record.transport_closed_at = Some(at);
            }
            hit
        });
        self.lock().remove(&connection);
    }

    /// Notes that a run's authority was taken away.
    pub(crate) fn revoked(&self, session: SessionId, at: Wall, notes: &Notes) {
        self.change(notes, |record| {
            let hit = record.session == session && record.revoked_at.is_none();
            if hit {
                record.revoked_at = Some(at);
            }
            hit
        });
    }

    fn change(&self, notes: &Notes, apply: impl Fn(&mut LaunchRecord) -> bool) {
        for record in self.lock().values_mut() {
            if apply(record) {
                self.write(record, notes);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, LaunchRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hint that cannot be written is a hint less, and no reason to refuse a client.
    fn write(&self, record: &LaunchRecord, notes: &Notes) {
        let path = self.folder.join(format!("{}.json", record.connection));
        let written = serde_json::to_vec_pretty(record)
            .map_err(std::io::Error::from)
            // After a power cut none of its processes is left, so it need not outlive one.
            .and_then(|bytes| durable::exchange(Reader::Group, &path, &bytes));
        if let Err(error) = written {
            notes.say(&format!("a launch record could not be written: {error}"));
        }
    }
}
