//! Finds the processes that somebody started in the place of ended ones.

use model::{ProcessId, ProcessRef};
use serde::{Deserialize, Serialize};

use crate::record::EndRecord;

/// A process of a later look, with its parent.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// The process.
    pub process: ProcessRef,
    /// Its parent, if it could be told.
    pub parent: Option<ProcessId>,
}

/// That a process came back under another number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Respawn {
    /// The one that was ended.
    pub ended: ProcessId,
    /// The one that stands in its place.
    pub now: ProcessRef,
    /// Who started both: whom to stop.
    pub by: ProcessId,
}

/// Returns the processes that have the command and the parent of an ended one and were started later.
///
/// The parent must be the very same process: a number that was given out again is another parent.
#[must_use]
pub fn respawned(ended: &[EndRecord], now: &[Sighting]) -> Vec<Respawn> {
    let gone = ended.iter().filter(|record| record.is_gone());
    gone.flat_map(|record| now.iter().filter_map(|seen| replaces(record, seen)))
        .collect()
}

fn replaces(record: &EndRecord, seen: &Sighting) -> Option<Respawn> {
    let (before, after) = (record.parent.as_ref()?, seen.parent.as_ref()?);
    let old = &record.process;
    let new = &seen.process;
    let later = new.id.start_ticks >= old.id.start_ticks && !new.id.same(&old.id);
    let same_command = !old.command.is_empty() && old.command == new.command;
    let same_program = match (old.exe_id, new.exe_id) {
        (Some(old), Some(new)) => old == new,
        _ => true,
    };
    (before.same(after) && later && same_command && same_program).then(|| Respawn {
        ended: old.id.clone(),
        now: new.clone(),
        by: after.clone(),
    })
}
