//! The verdict on a server whose input is a named pipe, as far as there is one.
//!
//! Whoever holds its other end uses the server, as with any pipe. But that nobody does shows little: whoever may
//! open it can do so again at any time, and for a daemon that waits for the next one this is how it should be. So
//! an end is only told of if the parent is gone as well, and is never proven.

use inventory::Target;

use crate::{
    Confidence, EndState, EvidenceSource as Source, EvidenceStrength as Weight, Verdict,
    case::Case,
    unit_verdict::{CANNOT_TELL, Decision},
    wire::strangers,
};

impl Case<'_, '_> {
    /// Decides by who else has opened the named pipe that it reads from.
    pub(crate) fn by_name(&mut self) -> Decision {
        let end = &self.stdin.seen;
        let held = !strangers(end, |pid| self.unit.has(pid)).is_empty();
        // It may hold the other end itself, and then that somebody does tells nothing.
        let seen = held || self.world.snapshot().all_holders_seen();
        let (verdict, confidence) = match end.state {
            EndState::Open | EndState::HeldOpen if seen => self.held(),
            EndState::Eof => self.at_its_end(),
            EndState::Open | EndState::HeldOpen | EndState::Unknown => {
                self.note(
                    Source::Descriptors,
                    Weight::Strong,
                    "its input is a named pipe, and not all processes were seen that may write to it",
                );
                return CANNOT_TELL;
            }
        };
        if !verdict.is_orphan() {
            return (verdict, confidence);
        }
        let has_name = matches!(self.stdin.target, Some(Target::File { deleted: false, .. }));
        let what = if has_name {
            "its input is a named pipe, which whoever may write to it can open again at any time"
        } else {
            "its input is a named pipe whose name is gone; it may have another"
        };
        self.note(Source::Descriptors, Weight::Medium, what);
        // Who lives may be the next to open it.
        if verdict == Verdict::Detached {
            return CANNOT_TELL;
        }
        let client_is_dead = self.owner.as_ref().is_some_and(|owner| !owner.alive);
        let most = if client_is_dead || !has_name {
            Confidence::Inferred
        } else {
            Confidence::Suspected
        };
        (verdict, confidence.min(most))
    }
}
