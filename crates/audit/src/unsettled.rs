//! The calls without a known end, and the keys that open them: kept in memory with the log's growing end.
//!
//! Who asks for them (`reconcile list`, `status`, every unlocking) then reads their records and nothing else, however
//! long the log is. It is filled by the pass that judges the log at its opening, by every commit, and follows the
//! records that a certificate takes over.

use std::{
    collections::{HashMap, HashSet},
    io,
    ops::ControlFlow,
    path::Path,
};

use ledger::{CARRIED, Calls, FRAME_PREFIX, HEADER_LEN, Header, Place, walk};
use model::Seq;

use crate::{Audit, journals::Keys, writer::lock};

/// What is known of calls without a known end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unsettled {
    pub(crate) calls: Calls,
    pub(crate) keys: Keys,
}

impl Unsettled {
    /// Takes the next record into account.
    pub(crate) fn apply(&mut self, header: &Header, body: &[u8], place: Place) {
        self.calls.apply_unsettled(header, place);
        self.keys.note(header, body);
    }

    /// The same from a whole frame.
    pub(crate) fn apply_frame(&mut self, frame: &[u8], place: Place) {
        let header = frame.get(FRAME_PREFIX..).map(Header::decode);
        if let Some(Ok(header)) = header {
            let body = frame.get(FRAME_PREFIX + HEADER_LEN..).unwrap_or_default();
            self.apply(&header, body, place);
        }
    }

    /// Forgets the keys of runs that have no call here: of runs of an earlier daemon no further ones come.
    pub(crate) fn forget_runs(&mut self) {
        let calls = self.calls.in_order();
        let runs: HashSet<_> = calls.iter().filter_map(|(_, call)| call.session).collect();
        self.keys.keep_runs(|session| runs.contains(&session));
    }

    /// Follows records into the certificate that took the place of their segments.
    pub(crate) fn follow(&mut self, dir: &Path) -> io::Result<()> {
        let mut carried: HashMap<Seq, Place> = HashMap::new();
        walk(dir, CARRIED, Seq::MAX, |record| {
            carried.insert(record.header.seq, record.place);
            ControlFlow::Continue(())
        })?;
        self.calls.relocate(|seq| carried.get(&seq).copied());
        Ok(())
    }
}

impl Audit {
    /// Returns the calls without a known end, and the keys that open them.
    pub(crate) fn unsettled(&self) -> (Calls, Keys) {
        let Unsettled { calls, keys } = lock(&self.unsettled).clone();
        (calls, keys)
    }
}
