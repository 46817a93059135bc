//! The data keys of the present daemon run, in memory, wiped when it ends.

use std::collections::HashMap;

use model::{EpochId, SessionId};
use zeroize::Zeroizing;

pub(crate) type DataKey = Zeroizing<[u8; 32]>;

/// The data keys that this daemon made.
pub(crate) struct KeyRing {
    pub(crate) epoch: EpochId,
    pub(crate) epoch_key: DataKey,
    runs: HashMap<SessionId, DataKey>,
}

impl KeyRing {
    pub(crate) fn new(epoch: EpochId, epoch_key: DataKey) -> Self {
        Self {
            epoch,
            epoch_key,
            runs: HashMap::new(),
        }
    }

    pub(crate) fn run(&self, session: SessionId) -> Option<&DataKey> {
        self.runs.get(&session)
    }

    pub(crate) fn add(&mut self, session: SessionId, key: DataKey) {
        self.runs.insert(session, key);
    }

    /// Wipes a run's key; what is sealed for the run from here on is sealed under the daemon run's key.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.runs.remove(&session);
    }
}

/// Draws a new data key.
pub(crate) fn draw() -> std::io::Result<DataKey> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(key.as_mut_slice()).map_err(std::io::Error::other)?;
    Ok(key)
}
