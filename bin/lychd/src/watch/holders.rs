//! Clients that live on behind connections that are over: each is watched once, however often it came and went.
//!
//! A revoked run is remembered until its holder is dead, and the end of a client is told of every run it had.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use model::{Clock, LostBasis, ProcessId, SessionId};
use sys::chain::Link;

use super::{ended_well, exited, record_lost};
use crate::daemon::Daemon;

/// The runs of each, and whether every connection of a run was closed in order.
type Runs = HashMap<SessionId, bool>;

/// Who is watched, and what for.
#[derive(Debug, Default)]
pub(crate) struct Holders(Mutex<HashMap<ProcessId, Runs>>);

impl Holders {
    /// Notes a run of a holder; true if nobody watches the holder yet.
    fn add(&self, holder: &ProcessId, session: SessionId, in_order: bool) -> bool {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !holders.contains_key(holder);
        let runs = holders.entry(holder.clone()).or_default();
        *runs.entry(session).or_insert(true) &= in_order;
        is_new
    }

    /// Returns the runs of a holder, which is watched no more.
    fn take(&self, holder: &ProcessId) -> Runs {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        holders.remove(holder).unwrap_or_default()
    }
}

/// Watches a holder whose connection is over, unless that is done already; what was open for it is then closed.
pub(super) fn watch_on(daemon: &Arc<Daemon>, session: SessionId, in_order: bool, link: Link) {
    if daemon.holders.add(&link.process.id, session, in_order) {
        tokio::spawn(until_its_end(Arc::clone(daemon), link));
    }
}

async fn until_its_end(daemon: Arc<Daemon>, link: Link) {
    let is_dead = exited(&link.handle).await;
    let runs = daemon.holders.take(&link.process.id);
    if !is_dead {
        return;
    }
    let well = ended_well(&link.handle).await;
    for (session, in_order) in runs {
        if !in_order || !well {
            daemon.gateway.client_lost(session);
            let how = (LostBasis::HolderExited, daemon.clock.now().wall);
            record_lost(&daemon, session, link.process.clone(), how).await;
        }
    }
    daemon.gate.holder_is_dead(&link.process.id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_watched_once_and_a_run_was_in_order_if_all_its_connections_were() {
        let holders = Holders::default();
        let holder = ProcessId {
            boot_id: "boot".to_owned(),
            pid: 10,
            start_ticks: 10,
            pidfd_inode: None,
        };
        let (one, two) = (
            SessionId::from_bytes([1; 10]),
            SessionId::from_bytes([2; 10]),
        );

        assert!(holders.add(&holder, one, true));
        assert!(!holders.add(&holder, two, true));
        assert!(!holders.add(&holder, one, false));
        assert!(!holders.add(&holder, one, true));

        assert_eq!(
            holders.take(&holder),
            Runs::from([(one, false), (two, true)])
        );
        assert!(
            holders.add(&holder, one, true),
            "a later watch is one again"
        );
    }
}
