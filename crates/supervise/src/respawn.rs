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

/// Who was there before the first signal: nobody of them came in anybody's place.
///
/// Kept as the start of the youngest, and whoever began with it in the same clock tick.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    youngest: u64,
    with_it: Vec<ProcessId>,
}

impl Before {
    /// Remembers the processes of a look.
    #[must_use]
    pub fn of<'a>(seen: impl IntoIterator<Item = &'a ProcessId> + Clone) -> Self {
        let starts = seen.clone().into_iter().map(|id| id.start_ticks);
        let youngest = starts.max().unwrap_or_default();
        let with_it = seen.into_iter().filter(|id| id.start_ticks == youngest);
        Self {
            youngest,
            with_it: with_it.cloned().collect(),
        }
    }

    /// Tells whether a process was there. One that has the start of an older one must have been.
    #[must_use]
    pub fn had(&self, id: &ProcessId) -> bool {
        id.start_ticks < self.youngest || self.with_it.iter().any(|one| one.same(id))
    }
}

/// Returns the processes that have the command and the parent of an ended one and were not there before it was ended.
///
/// The parent must be the very same process: a number that was given out again is another parent.
#[must_use]
pub fn respawned(ended: &[EndRecord], before: &Before, now: &[Sighting]) -> Vec<Respawn> {
    let gone = ended.iter().filter(|record| record.is_gone());
    let new = |seen: &&Sighting| !before.had(&seen.process.id);
    gone.flat_map(|record| {
        let all = now.iter().filter(new);
        all.filter_map(|seen| replaces(record, seen))
    })
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
