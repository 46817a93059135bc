//! Gives up the oldest segments of the log by itself, on record, when they are old or the log is long.
//!
//! Only while the vault is open: the records that say what incidents refer to are sealed, and what cannot be read is
//! kept. And only while the clock goes on evenly: one that was put forward would make everything old at once.

use std::sync::{Arc, Mutex, PoisonError};

use audit::{AuditError, Retention};
use channels::LogRules;
use model::{Act, Clock, Operator, Presence, Stamp, Wall};
use wire::VaultState;

use crate::{daemon::Daemon, verbs};

pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How often it is looked whether there is something to give up: a segment lasts for hours.
const EVERY_MS: u64 = 60 * 60 * 1000;
/// More than clocks are adjusted by while a machine runs.
const JUMP_MS: u64 = 60 * 60 * 1000;

/// When it is looked.
#[derive(Debug)]
pub(crate) struct Keeper {
    began: Stamp,
    looked: Mutex<Option<u64>>,
}

impl Keeper {
    /// Begins with the daemon.
    pub(crate) const fn new(began: Stamp) -> Self {
        Self {
            began,
            looked: Mutex::new(None),
        }
    }

    /// Has it looked at next time: what is kept has changed.
    pub(crate) fn look_again(&self) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells whether it is time to look, and takes note that somebody does.
    fn is_due(&self, now: Stamp) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = looked.is_none_or(|at| now.boot_ms.saturating_sub(at) >= EVERY_MS);
        if due {
            *looked = Some(now.boot_ms);
        }
        due
    }

    /// Tells whether the wall clock went on as the clock since boot did.
    fn is_steady(&self, now: Stamp) -> bool {
        let boot = now.boot_ms.saturating_sub(self.began.boot_ms);
        let expected = self.began.wall.millis().saturating_add(boot);
        now.wall.millis().abs_diff(expected) < JUMP_MS
    }
}

/// Returns what is kept without a word from an operator.
pub(crate) fn usual(rules: LogRules, now: Wall) -> Retention {
    let age = rules.days().saturating_mul(DAY_MS);
    Retention {
        since: Wall::from_millis(now.millis().saturating_sub(age)),
        bytes: rules.bytes(),
        from: None,
    }
}

/// To be called now and then; the work is done on a thread that may wait for the disk.
pub(crate) fn look(daemon: &Arc<Daemon>) {
    let now = daemon.clock.now();
    if daemon.store.state() != VaultState::Unlocked || !daemon.keeper.is_due(now) {
        return;
    }
    if !daemon.keeper.is_steady(now) {
        let what = "the clock jumped since the daemon started; nothing of the log is given up";
        daemon.notes.say(what);
        return;
    }
    let daemon = Arc::clone(daemon);
    tokio::spawn(async move {
        let usual = usual(daemon.log_rules(), now.wall);
        if let Err(why) = give_up(&daemon, usual).await {
            daemon
                .notes
                .say(&format!("nothing of the log was given up: {why}"));
        }
    });
}

async fn give_up(daemon: &Arc<Daemon>, usual: Retention) -> Result<(), String> {
    let Some(retention) = on_a_thread(daemon, move |daemon| wanted(daemon, usual)).await? else {
        return Ok(());
    };
    let by = Operator {
        uid: sys::process::own_uid(),
        login_uid: None,
        presence: Presence::None,
    };
    let act = Act::LogPruned {
        since: retention.since,
    };
    verbs::acted(daemon, &by, act)
        .await
        .map_err(|error| error.what)?;
    let given = on_a_thread(daemon, move |daemon| daemon.audit.prune(&retention)).await?;
    if let Some(given) = given {
        daemon.notes.say(&format!(
            "the log begins with record {} now; {} segments were given up",
            given.first_kept, given.segments
        ));
    }
    Ok(())
}

/// Returns what is to be kept, if that is less than there is.
fn wanted(daemon: &Daemon, usual: Retention) -> Result<Option<Retention>, AuditError> {
    if !daemon.audit.could_prune(&usual)? {
        return Ok(None);
    }
    let from = daemon.audit.kept_from(Some(daemon.store.as_ref()))?;
    let retention = Retention { from, ..usual };
    if daemon.audit.could_prune(&retention)? {
        return Ok(Some(retention));
    }
    if let Some(from) = from {
        daemon.notes.say(&format!(
            "nothing of the log is given up: an incident refers to record {from}"
        ));
    }
    Ok(None)
}

async fn on_a_thread<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    what: impl FnOnce(&Daemon) -> Result<T, AuditError> + Send + 'static,
) -> Result<T, String> {
    let daemon = Arc::clone(daemon);
    match tokio::task::spawn_blocking(move || what(&daemon)).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall_ms: u64, boot_ms: u64) -> Stamp {
        Stamp {
            wall: Wall::from_millis(wall_ms),
            boot_ms,
        }
    }

    #[test]
    fn it_is_looked_at_once_and_then_every_hour() {
        let keeper = Keeper::new(at(0, 0));

        assert!(keeper.is_due(at(0, 5_000)));
        assert!(!keeper.is_due(at(0, EVERY_MS)));
        assert!(keeper.is_due(at(0, EVERY_MS + 5_000)));
        keeper.look_again();
        assert!(keeper.is_due(at(0, EVERY_MS + 6_000)));
    }

    #[test]
    fn a_clock_that_jumped_either_way_is_not_believed_and_a_suspended_one_is() {
        let keeper = Keeper::new(at(100 * DAY_MS, 1_000));

        assert!(keeper.is_steady(at(100 * DAY_MS + 60_000, 61_000)));
        assert!(
            keeper.is_steady(at(107 * DAY_MS, 1_000 + 7 * DAY_MS)),
            "it slept for a week"
        );
        assert!(!keeper.is_steady(at(500 * DAY_MS, 61_000)));
        assert!(!keeper.is_steady(at(DAY_MS, 61_000)));
    }

    #[test]
    fn ninety_days_and_a_gibibyte_are_kept() {
        let usual = usual(LogRules::default(), Wall::from_millis(100 * DAY_MS));

        assert_eq!(usual.since, Wall::from_millis(10 * DAY_MS));
        assert_eq!((usual.bytes, usual.from), (1 << 30, None));
    }
}
