//! Files that are either the old one or the new one after a crash, never half of each.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

/// Replaces the file at `path` with `bytes`, mode 0600: write beside it, fsync, rename, fsync the folder.
///
/// # Errors
/// The file system refused; the old file is still there, and a leftover `.tmp` beside it may be too.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, tmp) = beside(path, bytes)?;
    // Before the rename: otherwise a crash can leave the new name on an empty file.
    file.sync_all()?;
    std::fs::rename(&tmp, path)?;
    sync_folder_of(path)
}

/// Replaces the file at `path` with `bytes`, mode 0600, without waiting for the disk: a reader meets the old
/// bytes or the new ones, also after this process was killed, and nothing is promised over a power cut.
///
/// # Errors
/// As [`replace`].
pub fn exchange(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (_, tmp) = beside(path, bytes)?;
    std::fs::rename(&tmp, path)
}

fn beside(path: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let tmp = path.with_added_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&tmp)?;
    file.write_all(bytes)?;
    Ok((file, tmp))
}

/// Creates the file at `path` with `bytes`, mode 0600, and makes it and its name durable.
///
/// # Errors
/// `AlreadyExists` if the name is taken, which is then left alone; anything else is the file system's.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder_of(path)
}

/// Reserves `len` bytes for `file`, so that a full disk shows now and not at a later write.
///
/// Where the file system cannot reserve, the file only gets its length: a full disk then shows at the write.
///
/// # Errors
/// The disk is full, or the file system refused.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) if file.metadata()?.len() < len => file.set_len(len),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes the names in the folder of `path` durable.
///
/// # Errors
/// The folder cannot be opened or synced; a new name in it may be gone after a crash.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    File::open(folder)?.sync_all()
}

/// Makes sure that `folder` exists, is a real folder of ours and has mode 0700.
///
/// # Errors
/// `PermissionDenied` if it is a link, belongs to another user or is open to others: somebody else could
/// then put a file or socket of his own there.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let meta = std::fs::symlink_metadata(folder)?;
    let refuse = |why: &str| {
        let text = format!("{} {why}", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    if !meta.is_dir() {
        return refuse("is not a folder, or is a symbolic link");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return refuse("belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        return refuse("is open to other users (chmod 700 it)");
    }
    Ok(())
}
