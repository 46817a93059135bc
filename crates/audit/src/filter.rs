//! Which calls of the log are asked for.

use model::{CallId, CallState, SessionId, Wall};

/// Which calls are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallFilter {
    /// Of this run only.
    pub session: Option<SessionId>,
    /// This call only.
    pub call: Option<CallId>,
    /// Attempted at or after this time.
    pub since: Option<Wall>,
    /// In one of these states; empty for any.
    pub states: Vec<CallState>,
    /// At most so many, the newest; none for all. Then the log is read from its end, as far as needed.
    pub last: Option<usize>,
}

impl CallFilter {
    /// Returns the filter for calls whose repeat could do the same thing twice.
    #[must_use]
    pub fn open() -> Self {
        Self {
            states: vec![
                CallState::Cleared,
                CallState::Outliving,
                CallState::Waiting,
                CallState::Unresolved,
            ],
            ..Self::default()
        }
    }

    /// Tells whether it passes nothing but calls without a known end.
    pub(crate) fn asks_for_unsettled(&self) -> bool {
        let open = |state: &CallState| state.is_open() || *state == CallState::Attempted;
        !self.states.is_empty() && self.states.iter().all(open)
    }
}
