//! The two journals as views of one log: who ran, and what was called.
//!
//! One pass over the clear headers says which records matter; only those are opened. No database, no second copy.

use std::{cell::RefCell, collections::HashMap, path::Path};

use ledger::{
    Calls, Mark, ReadError, Record, Scan, Sessions, Signatures, Step, Stored, file_digest,
    key_commitment, key_file_of, read_at,
};
use model::{Act, Body, Digest, Kind, Known};
use zeroize::Zeroizing;

use crate::{
    Audit, AuditError, CallFilter, CallView, KeyUnwrap, SessionView, create, keyring::DataKey,
    seal, writer::lock,
};

mod bodies;
mod calls;
mod keys;
mod latest;
mod sessions;

pub(crate) use keys::Keys;
use keys::Owner;

/// What one pass over the headers says.
#[derive(Default)]
struct Index {
    sessions: Sessions,
    calls: Calls,
    keys: Keys,
    acts: Vec<Mark>,
}

impl Index {
    fn read(audit: &Audit) -> Result<Self, AuditError> {
        is_there(audit)?;
        let mut index = Self::default();
        let mut scan = Scan::new(&audit.dir, audit.log_id(), Signatures::Unchecked);
        loop {
            match scan.step().map_err(ReadError::from)? {
                Step::Batch(batch) => batch.records().for_each(|record| index.apply(&record)),
                Step::End(_) => return Ok(index),
            }
        }
    }

    fn apply(&mut self, record: &Record<'_>) {
        let header = &record.header;
        self.sessions.apply(header, record.place);
        self.calls.apply(header, record.place);
        if header.kind == Kind::Acted {
            self.acts.push(Mark {
                seq: header.seq,
                at: header.stamp.wall,
                place: record.place,
            });
        }
        self.keys.note(header, record.body);
    }
}

/// A log that was taken away has no segments, and would pass for one in which nothing happened.
fn is_there(audit: &Audit) -> Result<(), AuditError> {
    let log = audit.dir.join("LOG");
    let looked = std::fs::metadata(&log).map(drop);
    looked.map_err(AuditError::io("find", log))
}

/// Opens bodies with the keys in memory, and with those that an unlocked vault can open.
struct Opener<'a> {
    audit: &'a Audit,
    keys: &'a Keys,
    unwrap: Option<&'a dyn KeyUnwrap>,
    /// Unwrapping costs a key agreement: once per key and pass.
    found: RefCell<HashMap<Owner, Known<DataKey>>>,
}

impl<'a> Opener<'a> {
    fn new(audit: &'a Audit, keys: &'a Keys, unwrap: Option<&'a dyn KeyUnwrap>) -> Self {
        Self {
            audit,
            keys,
            unwrap,
            found: RefCell::default(),
        }
    }

    /// Opens the record at a mark.
    fn at(&self, mark: Mark) -> Known<Body> {
        match read_at(&self.audit.dir, mark.place) {
            Ok(stored) => self.body(&stored),
            Err(error) => Known::unknown(error.to_string()),
        }
    }

    /// Opens the record at a mark, if there is one.
    fn at_any(&self, mark: Option<Mark>) -> Known<Option<Body>> {
        mark.map_or(Known::Yes(None), |mark| self.at(mark).map(Some))
    }

    fn body(&self, stored: &Stored) -> Known<Body> {
        let Some(owner) = self.keys.owner(&stored.header) else {
            return Known::unknown("the record names no key");
        };
        let mut found = self.found.borrow_mut();
        match found.entry(owner).or_insert_with(|| self.key(owner)) {
            Known::Yes(key) => seal::open(key, &stored.header, &stored.body)
                .map_or_else(|| Known::unknown("the body does not open"), Known::Yes),
            Known::Unknown { unknown } => Known::unknown(unknown.clone()),
        }
    }

    fn key(&self, owner: Owner) -> Known<DataKey> {
        if let Some(key) = self.in_memory(owner) {
            return Known::Yes(key);
        }
        let Some(unwrap) = self.unwrap else {
            return Known::unknown("the vault is locked");
        };
        let path = match owner {
            Owner::Run(session) => key_file_of(&self.audit.dir, session),
            Owner::Epoch(epoch) => key_file_of(&self.audit.dir, epoch),
        };
        let Some(clear) = self.keys.get(owner) else {
            return Known::unknown("no record names its key");
        };
        let file = match read(&path) {
            Ok(file) => file,
            Err(why) => return Known::unknown(why),
        };
        if file_digest(&file) != clear.file {
            return Known::unknown("the key file is not the one on record");
        }
        match unwrap.unwrap(&file) {
            Some(key) if key_commitment(&key) == clear.commitment => Known::Yes(key),
            Some(_) => Known::unknown("the key file holds another key than the one on record"),
            None => Known::unknown("this vault cannot open the key file"),
        }
    }

    fn in_memory(&self, owner: Owner) -> Option<DataKey> {
        let keys = lock(&self.audit.keys);
        let key = match owner {
            Owner::Run(session) => keys.run(session)?,
            Owner::Epoch(epoch) if epoch == keys.epoch => &keys.epoch_key,
            Owner::Epoch(_) => return None,
        };
        Some(Zeroizing::new(**key))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    sys::regular::read(path, create::LONGEST_SMALL).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            "its key was erased".to_owned()
        } else {
            format!("its key file cannot be read: {error}")
        }
    })
}

impl Audit {
    /// Returns the runs, the oldest first. `unwrap` is given while the vault is unlocked.
    ///
    /// # Errors
    /// The log cannot be read back.
    pub fn sessions(&self, unwrap: Option<&dyn KeyUnwrap>) -> Result<Vec<SessionView>, AuditError> {
        let index = Index::read(self)?;
        let opener = Opener::new(self, &index.keys, unwrap);
        let runs = index.sessions.in_order();
        Ok(runs
            .into_iter()
            .map(|(id, run)| sessions::view(&opener, id, run))
            .collect())
    }

    /// Returns what an operator last had written to the vault file: its generation and digest; none if no
    /// such act can be read.
    ///
    /// # Errors
    /// The log cannot be read back.
    pub fn last_vault(
        &self,
        unwrap: Option<&dyn KeyUnwrap>,
    ) -> Result<Option<(u64, Digest)>, AuditError> {
        let index = Index::read(self)?;
        let opener = Opener::new(self, &index.keys, unwrap);
        let written = |mark: &Mark| match opener.at(*mark) {
            Known::Yes(Body::Acted {
                act: Act::VaultWritten { generation, sha256 },
                ..
            }) => Some((generation, sha256)),
            Known::Yes(_) | Known::Unknown { .. } => None,
        };
        Ok(index.acts.iter().rev().find_map(written))
    }

    /// Returns the calls that pass the filter, the oldest first. `unwrap` is given while the vault is unlocked.
    ///
    /// # Errors
    /// The log cannot be read back.
    pub fn calls(
        &self,
        filter: &CallFilter,
        unwrap: Option<&dyn KeyUnwrap>,
    ) -> Result<Vec<CallView>, AuditError> {
        if let Some(count) = filter.last {
            let (index, wanted) = latest::read(self, filter, count)?;
            let opener = Opener::new(self, &index.keys, unwrap);
            return Ok(latest::views(&opener, &index.calls, wanted));
        }
        if filter.asks_for_unsettled() {
            let (calls, keys) = self.unsettled();
            return Ok(calls::views(
                &Opener::new(self, &keys, unwrap),
                &calls,
                filter,
            ));
        }
        let index = Index::read(self)?;
        let opener = Opener::new(self, &index.keys, unwrap);
        Ok(calls::views(&opener, &index.calls, filter))
    }
}
