//! Calls to the kernel: counted, so that a test can say what a look costs, and their errors of one kind.

use std::{
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::io::Errno;

/// Gives a process that ended under the reader one kind of error, whichever call met it.
pub(super) fn lift(errno: Errno) -> io::Error {
    if errno == Errno::SRCH {
        io::Error::new(io::ErrorKind::NotFound, "the process has ended")
    } else {
        errno.into()
    }
}

/// How many calls to the kernel this room has made so far: what a look costs, whatever else the machine does.
#[must_use]
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

pub(super) static CALLS: AtomicU64 = AtomicU64::new(0);

pub(super) fn counted<T>(result: rustix::io::Result<T>) -> rustix::io::Result<T> {
    CALLS.fetch_add(1, Ordering::Relaxed);
    result
}

/// What is opened is closed again.
pub(super) fn opened(result: rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    if result.is_ok() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    counted(result)
}
