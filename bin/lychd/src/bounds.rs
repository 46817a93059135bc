//! Ends runs whose time is over, as the policy says.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use model::{Clock, Foreign, Scope, SessionId, SessionState};

use crate::daemon::Daemon;

/// Since when each run in memory is there, on the clock that also counts while the machine sleeps.
#[derive(Debug, Default)]
pub(crate) struct Ages(Mutex<HashMap<SessionId, u64>>);

impl Ages {
    /// Returns the runs that are older than `most_ms`, and forgets those that are gone.
    fn older_than(&self, most_ms: u64, runs: &[SessionId], now_ms: u64) -> Vec<SessionId> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|run, _| runs.contains(run));
        for run in runs {
            since.entry(*run).or_insert(now_ms);
        }
        let old =
            |(run, at): (&SessionId, &u64)| (now_ms.saturating_sub(*at) >= most_ms).then_some(*run);
        since.iter().filter_map(old).collect()
    }
}

/// To be called about once a second: a run is seen at most that much later than it began.
pub(crate) fn end_old_runs(daemon: &Arc<Daemon>) {
    let living = |state| match state {
        SessionState::Pending
        | SessionState::Live
        | SessionState::Stuck
        | SessionState::Abandoned
        | SessionState::Lost => true,
        SessionState::Revoked | SessionState::Ended => false,
    };
    let runs: Vec<SessionId> = daemon
        .gate
        .runs()
        .iter()
        .filter(|run| living(run.state))
        .map(|run| run.id)
        .collect();
    let now = daemon.clock.now();
    let most = daemon.rules().ttl().map_or(u64::MAX, |ttl| {
        ttl.as_millis().try_into().unwrap_or(u64::MAX)
    });
    for session in daemon.ages.older_than(most, &runs, now.boot_ms) {
        end(daemon, session, "its time was over (runs.ttl)");
    }
}

/// Takes a run's authority away in the name of the policy. Nobody waits for the record; it goes to disk
/// with the next one, and the closing holds at once.
pub(crate) fn end(daemon: &Arc<Daemon>, session: SessionId, why: &str) {
    drop(
        daemon
            .gateway
            .close(Scope::Run { session }, Foreign::from(why), None),
    );
    let at = daemon.clock.now().wall;
    daemon.launches.revoked(session, at, &daemon.notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_old_when_its_time_is_over_and_forgotten_when_it_is_gone() {
        let ages = Ages::default();
        let (one, two) = (
            SessionId::from_bytes([1; 10]),
            SessionId::from_bytes([2; 10]),
        );

        assert_eq!(ages.older_than(100, &[one], 1000), []);
        assert_eq!(ages.older_than(100, &[one, two], 1099), []);
        assert_eq!(ages.older_than(100, &[one, two], 1100), [one]);
        assert_eq!(ages.older_than(100, &[two], 1150), []);
        assert_eq!(ages.older_than(100, &[one, two], 1199), [two]);
    }
}
