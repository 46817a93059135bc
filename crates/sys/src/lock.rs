//! One holder at a time, and the lock goes with the process that held it.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

use crate::regular;

/// A held lock; dropping it, or dying, gives it back.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock at `path` without waiting.
///
/// # Errors
/// `WouldBlock` if somebody holds it; `InvalidInput` if something else than a file stands there; anything else is the file system's.
pub fn try_lock(path: &Path) -> io::Result<Lock> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = regular::open(path, options.mode(0o600))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Lock { _file: file })
}
