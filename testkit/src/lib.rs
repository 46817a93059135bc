//! What tests share: a world with its own home, clock and ids, programs that cannot be left behind, and an
//! outside system that counts what reaches it.
//!
//! Nothing here waits for a fixed time: every wait is for an event and has a [`Deadline`]. Nothing here is
//! asynchronous, so that a test of plain code stays plain.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "in a test kit a panic is how a test fails, and says at what"
)]

mod clock;
mod deadline;
mod http;
mod leftover;
mod program;
mod proof;
mod target;
mod user;
mod world;

pub use clock::{FixedClock, RunningClock};
pub use deadline::{Deadline, look_until, wait_for, wait_until};
pub use http::{Reply, Request};
pub use leftover::Leftover;
pub use program::{Finished, Held, program};
pub use proof::Proof;
pub use target::{Mode, Target, wait_for_listener};
pub use user::User;
pub use world::{Operator, Two, World};
