//! The one writer of the log: sealing, chaining, committing, recovering, and the journals as views of it.
//!
//! Records are queued in the order of `push`, sealed and chained by one committer, and acknowledged when they are on
//! disk. The log goes on while the vault is locked: data keys are wrapped to a public log key. Nothing here knows
//! the vault or the age format; what it needs of both comes in as [`KeyWrap`], [`KeyUnwrap`] and [`RootSigner`].
//!
//! After a crash, bytes behind the last commit go to quarantine, on record; they were never acknowledged. A log whose
//! acknowledged bytes were changed or cut is not opened at all.

mod audit;
mod ballast;
mod commit;
mod create;
mod error;
#[cfg(test)]
mod faults;
mod filter;
mod health;
mod journals;
mod keyring;
mod keys;
mod open;
mod pin;
mod prune;
mod queue;
mod recover;
mod seal;
mod segments;
mod unsettled;
mod vouch;
mod writer;

pub use audit::{Audit, HeadPoint};
pub use error::AuditError;
pub use filter::CallFilter;
pub use health::{Health, Stats};
pub use keys::{KeyUnwrap, KeyWrap, RootSigner};
pub use open::{NewLog, OpenCall, OpenRun, Options, Recovered, Sizes};
pub use prune::{GivenUp, Retention};
pub use wire::{CallView, LostView, Reconciliation, SessionView};
