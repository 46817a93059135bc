//! The gate: who may act, and the one lock that puts every beginning and every closing into one order.
//!
//! Every outward beginning passes [`Gate::clear`], every closing passes [`Gate::close`]. Both hold one
//! mutex, do no I/O and await nothing under it, and push their record while they hold it. So the order of
//! the log is the order of the gate, and "nothing of this run was cleared behind its revocation" can be
//! checked by anyone who can read record headers.
//!
//! # Life of a call
//! [`Gate::attempt`] → [`Attempted::durable`] → [`Permit`] → (connect) → [`Gate::clear`] → [`Cleared`] →
//! (send) → [`Gate::settle`]. Only this room can make a [`Permit`] or a [`Cleared`], and a channel sends
//! nothing without a [`Cleared`].
//!
//! # When the log cannot be written
//! Nothing new is cleared. Closings still act in memory, and say that they are not on record.

mod admission;
mod ask;
mod gate;
mod intake;
mod run;
mod sync;
#[cfg(test)]
mod tests;
mod writes;

pub use admission::RepeatAsked;
pub use ask::{Ask, Attempted, Cleared, Permit, Refused, Settled};
pub use gate::{Closed, Gate, OpenCall};
pub use run::{Admission, Newcomer, RunView};
