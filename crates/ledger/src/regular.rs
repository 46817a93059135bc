//! Opens the files of a log: regular ones only, and no more of them than a reader has room for.
//!
//! What stands at the name is looked at before it is opened, since opening a named pipe waits for whoever is at its other
//! end, and again when it is open. Links are followed: whatever they lead to is judged by its bytes. Between the two looks
//! a pipe can still be put there: not to wait for it takes the kernel's own flags, which this room does not know. A writer,
//! which must not stand still, opens through `sys`.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    path::Path,
};

use model::NotAFile;

/// Opens a regular file.
///
/// # Errors
/// `InvalidInput` if something else stands there; anything else is the file system's.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    judge(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    judge(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file up to `limit` bytes. One that is longer is cut, and then is not what was written.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let len = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn judge(meta: &Metadata) -> io::Result<()> {
    NotAFile::of(meta.file_type()).map_or(Ok(()), |what| Err(what.into()))
}

/// Longer than `LOG`, `HEAD` or a key file can be.
pub(crate) const LONGEST_SMALL: u64 = 1 << 20;
