//! The log as its users meet it: written, verified, tampered with, recovered, shared by threads and killed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is how it fails, in its helpers too"
)]

mod calls;
mod dense;
mod journals;
mod killed;
mod lives;
mod log;
mod prune;
mod recovery;
mod roots;
mod tampering;
mod threads;
mod unreadable;
mod unsettled;
mod world;
