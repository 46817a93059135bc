//! Connections that are kept a moment for the next read of the same run over the same channel.
//!
//! Dialling and TLS cost more than all else that is done for a call. What is kept is narrow, because a connection
//! that two requests share can mix them up:
//! - only by requests that change nothing and have no body, of one run and one channel, one behind the other, and by
//!   none for a head alone, since some servers send what belongs to it all the same;
//! - only after an answer that was read to its end, and only while nothing more came over it;
//! - for three seconds: servers give up idle connections after five and more, and a request that meets such an end
//!   would stay without an outcome;
//! - never past a revocation, the end of its run, or a lock: it has been opened with authority that is gone then.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use authz::{Cleared, Permit};
use model::{ChannelName, SessionId};
use tokio::time::Instant;

use crate::{
    ConnectError, Connection, Limits, Plan,
    connect::{Line, connect},
};

/// How long a connection is kept.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(3);

/// How many are kept at once; beyond that the oldest goes.
pub(crate) const MOST_KEPT: usize = 64;

/// The connections that are kept. Clones share them.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Idle>>);

#[derive(Default)]
struct Idle {
    /// The oldest first.
    lines: Vec<Waiting>,
    /// Whether somebody looks after them.
    is_tended: bool,
}

struct Waiting {
    run: SessionId,
    channel: ChannelName,
    since: Instant,
    line: Line,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Takes a connection that was kept, or opens one. Nothing of the request is sent.
    ///
    /// # Errors
    /// There is none; the call can be withdrawn.
    pub async fn connect<'a>(
        &self,
        run: SessionId,
        permit: &Permit,
        plan: &'a Plan,
        limits: &Limits,
    ) -> Result<Connection<'a>, ConnectError> {
        if permit.cancelled().is_cancelled() {
            return Err(ConnectError::Cancelled);
        }
        while let Some(mut line) = self.take(run, plan) {
            if line.is_idle().await {
                return Ok(Connection::over(line, permit, plan, limits));
            }
        }
        connect(permit, plan, limits).await
    }

    /// Keeps the connection of a call that was answered, if the next one may have it.
    pub async fn keep(&self, run: SessionId, connection: Connection<'_>, cleared: &Cleared) {
        let Connection { plan, mut line, .. } = connection;
        if !plan.may_share() || !line.is_idle().await {
            return;
        }
        let mut idle = lock(&self.0);
        // Looked at under the lock: whoever revokes cancels the calls first and closes what is kept then, so that it
        // is either seen here or finds the connection.
        if cleared.cancelled().is_cancelled() {
            return;
        }
        if idle.lines.len() >= MOST_KEPT {
            idle.lines.remove(0);
        }
        idle.lines.push(Waiting {
            run,
            channel: plan.target().channel.clone(),
            since: Instant::now(),
            line,
        });
        if !std::mem::replace(&mut idle.is_tended, true) {
            tokio::spawn(tend(Arc::downgrade(&self.0)));
        }
    }

    /// Closes those of one run.
    pub fn close_of(&self, run: SessionId) {
        lock(&self.0).lines.retain(|one| one.run != run);
    }

    /// Closes all.
    pub fn close(&self) {
        lock(&self.0).lines.clear();
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).lines.len()
    }

    fn take(&self, run: SessionId, plan: &Plan) -> Option<Line> {
        if !plan.may_share() {
            return None;
        }
        let channel = &plan.target().channel;
        let mut idle = lock(&self.0);
        let fits = |one: &Waiting| one.run == run && one.channel == *channel;
        let at = idle.lines.iter().rposition(fits)?;
        Some(idle.lines.remove(at).line)
    }
}

/// Closes what was kept long enough, until there is nothing to look after.
async fn tend(kept: Weak<Mutex<Idle>>) {
    loop {
        let next = {
            let Some(kept) = kept.upgrade() else { return };
            let mut idle = lock(&kept);
            idle.lines.retain(|one| one.since.elapsed() < KEPT_FOR);
            let Some(oldest) = idle.lines.first() else {
                idle.is_tended = false;
                return;
            };
            oldest.since + KEPT_FOR
        };
        tokio::time::sleep_until(next).await;
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
