//! One holder at a time, and the lock goes with the process that held it.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

/// A held lock; dropping it, or dying, gives it back.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock at `path` without waiting.
///
/// # Errors
/// `WouldBlock` if somebody holds it; anything else is the file system's.
pub fn try_lock(path: &Path) -> io::Result<Lock> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Lock { _file: file })
}
