//! The kernel made safe: looking at processes, peers, locks, durable writes, sockets, clocks.
//!
//! The only room with `unsafe` and, beside one file of `supervise`, with `cfg(target_os)`. It looks and
//! holds; nothing here, and nothing below it, can send a signal.

mod exit_info;
#[cfg(target_os = "linux")]
mod sock_diag;
mod stat;

pub mod chain;
pub mod children;
pub mod clock;
pub mod disk;
pub mod durable;
pub mod harden;
pub mod lock;
pub mod login;
pub mod peer;
pub mod port;
pub mod process;
pub mod procfs;
pub mod realm;
pub mod regular;
pub mod small_file;
pub mod socket;
pub mod spawn;
pub mod tcp_diag;
pub mod terminal;
pub mod unix_diag;
pub mod wiping;
