//! What a person decides: whether a new run may act, and whether an open write may be repeated once.
//!
//! Both are put on record by whoever calls, before they take effect here: widening that cannot be recorded
//! does not happen. A revoked run is not opened again, since "nothing was cleared behind its revocation" must
//! stay true for ever; its client starts a new one.

use model::{CallId, ChannelName, Denial, SessionId, SessionState};

use crate::{Gate, sync::lock};

/// An open write of which a repetition was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatAsked {
    /// The open write.
    pub of: CallId,
    /// The run that asked for its repetition last.
    pub by: SessionId,
}

impl Gate {
    /// Says whether a new run waits for a person. Runs that are there when it is said that none waits are
    /// admitted, and stay so.
    ///
    /// A new gate lets every run wait: a rule that nobody has read yet admits nobody.
    pub fn runs_wait(&self, wait: bool) {
        let mut state = lock(&self.state);
        state.runs_wait = wait;
        if !wait {
            state.runs.values_mut().for_each(|run| run.admitted = true);
        }
    }

    /// Admits a run that waits. Returns the state in which it was found; none if there is no such run.
    pub fn allow(&self, session: SessionId) -> Option<SessionState> {
        let mut state = lock(&self.state);
        let waits = state.runs_wait;
        let run = state.runs.get_mut(&session)?;
        let found = run.state(waits);
        if found == SessionState::Pending {
            run.admitted = true;
        }
        Some(found)
    }

    /// Returns the state of a run that is in memory.
    #[must_use]
    pub fn state_of(&self, session: SessionId) -> Option<SessionState> {
        let state = lock(&self.state);
        let run = state.runs.get(&session)?;
        Some(run.state(state.runs_wait))
    }

    /// Tells why no call of this run may use a channel now, if so.
    #[must_use]
    pub fn shut_for(&self, session: SessionId, channel: &ChannelName) -> Option<Denial> {
        lock(&self.state).shut_for(session, channel)
    }

    /// Lets one repetition of an open write pass; false if no such write is open.
    #[must_use = "a call that is not open cannot be repeated"]
    pub fn allow_repeat(&self, of: CallId) -> bool {
        lock(&self.state).open_writes.pass_once(of)
    }

    /// Lists the open writes of which a repetition was refused, and is not let through yet.
    #[must_use]
    pub fn repeats_asked(&self) -> Vec<RepeatAsked> {
        let asked = lock(&self.state).open_writes.asked();
        asked
            .into_iter()
            .map(|(of, by)| RepeatAsked { of, by })
            .collect()
    }
}
