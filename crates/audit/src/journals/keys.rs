//! Which data keys the log names, and whose key seals a record.

use std::collections::HashMap;

use ledger::{EpochOpened, Header, KeyClear, Sealing};
use model::{EpochId, Kind, Seq, SessionId};

/// Whose data key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// That of a run.
    Run(SessionId),
    /// That of a daemon run.
    Epoch(EpochId),
}

/// The data keys that records have named so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    /// Where each daemon run begins, the oldest first.
    pub(super) epochs: Vec<(Seq, EpochId)>,
    named: HashMap<Owner, KeyClear>,
}

impl Keys {
    /// Notes the data key that a record names, if it names one.
    pub(crate) fn note(&mut self, header: &Header, body: &[u8]) {
        if header.kind == Kind::EpochOpened
            && let Some(opened) = EpochOpened::decode(body)
        {
            self.epochs.push((header.seq, opened.epoch));
            self.named.insert(Owner::Epoch(opened.epoch), opened.key);
        }
        if header.kind == Kind::SessionOpened
            && let (Some(session), Some((key, _))) = (header.session, KeyClear::split(body))
        {
            self.named.insert(Owner::Run(session), key);
        }
    }

    /// Takes over what records before these named.
    pub(super) fn put_before(&mut self, mut earlier: Self) {
        earlier.epochs.append(&mut self.epochs);
        self.epochs = earlier.epochs;
        for (owner, key) in earlier.named {
            self.named.entry(owner).or_insert(key);
        }
    }

    /// Forgets the keys of runs that nobody will ask for.
    pub(crate) fn keep_runs(&mut self, wanted: impl Fn(SessionId) -> bool) {
        self.named.retain(|owner, _| match owner {
            Owner::Run(session) => wanted(*session),
            Owner::Epoch(_) => true,
        });
    }

    /// Returns what the log says about a key.
    pub(super) fn get(&self, owner: Owner) -> Option<&KeyClear> {
        self.named.get(&owner)
    }

    /// Returns whose key seals a record; none for a clear one.
    pub(super) fn owner(&self, header: &Header) -> Option<Owner> {
        match header.sealing {
            Sealing::Clear => None,
            Sealing::Run => header.session.map(Owner::Run),
            Sealing::Epoch => {
                let behind = self.epochs.partition_point(|(seq, _)| *seq <= header.seq);
                let (_, epoch) = self.epochs.get(behind.checked_sub(1)?)?;
                Some(Owner::Epoch(*epoch))
            }
        }
    }
}
