//! Files that are either the old one or the new one after a crash, never half of each.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{fs::Mode, io::Errno};

use crate::regular;

/// Whether this process lets its group read what it shares.
static GROUP_READS: AtomicBool = AtomicBool::new(false);

/// Lets the group of this process read what is written as [`Reader::Group`] from now on: a daemon that is a
/// user of its own shares its log, which is ciphertext, with those who review it. To be said once, at the start.
pub fn let_group_read() {
    GROUP_READS.store(true, Ordering::Relaxed);
    rustix::process::umask(Mode::from_raw_mode(0o027));
}

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Its owner.
    Owner,
    /// The owner's group too, where [`let_group_read`] said so.
    Group,
}

impl Reader {
    fn group_reads(self) -> bool {
        self == Self::Group && GROUP_READS.load(Ordering::Relaxed)
    }

    /// Returns the mode of a file that it may read.
    #[must_use]
    pub fn file_mode(self) -> u32 {
        if self.group_reads() { 0o640 } else { 0o600 }
    }

    fn folder_mode(self) -> u32 {
        if self.group_reads() { 0o750 } else { 0o700 }
    }
}

/// Replaces the file at `path` with `bytes`, mode 0600: write beside it, fsync, rename, fsync the folder.
///
/// # Errors
/// The file system refused; the old file is still there, and a leftover `.tmp` beside it may be too.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_for(Reader::Owner, path, bytes)
}

/// The same for these readers.
///
/// # Errors
/// As [`replace`].
pub fn replace_for(reader: Reader, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, tmp) = beside(reader, path, bytes)?;
    // Before the rename: otherwise a crash can leave the new name on an empty file.
    file.sync_all()?;
    std::fs::rename(&tmp, path)?;
    sync_folder_of(path)
}

/// Replaces the file at `path` with `bytes` for these readers, without waiting for the disk: whoever reads meets
/// the old bytes or the new ones, also after this process was killed, and nothing is promised over a power cut.
///
/// # Errors
/// As [`replace`].
pub fn exchange(reader: Reader, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (_, tmp) = beside(reader, path, bytes)?;
    std::fs::rename(&tmp, path)
}

fn beside(reader: Reader, path: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let tmp = path.with_added_extension("tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut file = regular::open(&tmp, options.mode(reader.file_mode())).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidInput {
            // Whoever reads this looks at `path`, and would find nothing wrong there.
            let text = format!("{}: {error}", tmp.display());
            return io::Error::new(error.kind(), text);
        }
        error
    })?;
    file.write_all(bytes)?;
    Ok((file, tmp))
}

/// Creates the file at `path` with `bytes`, mode 0600, and makes it and its name durable.
///
/// # Errors
/// `AlreadyExists` if the name is taken, which is then left alone; anything else is the file system's.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_for(Reader::Owner, path, bytes)
}

/// The same for these readers.
///
/// # Errors
/// As [`create`].
pub fn create_for(reader: Reader, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(reader.file_mode())
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

/// Tells whether `path` names this very file.
///
/// Asks for nothing but which file it is. On Linux whoever has read a file's times is shown finer ones by its next
/// write, and those are one more block that a sync waits for.
///
/// # Errors
/// There is nothing at `path`, or the file system refused.
pub fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    match is_named_by_number(file, path) {
        Err(Errno::NOSYS) => {}
        told => return Ok(told?),
    }
    let (ours, named) = (file.metadata()?, std::fs::symlink_metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

#[cfg(target_os = "linux")]
fn is_named_by_number(file: &File, path: &Path) -> rustix::io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

    let ours = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    let named = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO)?;
    let which = |one: rustix::fs::Statx| (one.stx_dev_major, one.stx_dev_minor, one.stx_ino);
    Ok(which(ours) == which(named))
}

/// Makes the names in the folder of `path` durable.
///
/// # Errors
/// The folder cannot be opened or synced; a new name in it may be gone after a crash.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    OpenOptions::new()
        .read(true)
        // A named pipe there would be waited for.
        .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
        .open(folder)?
        .sync_all()
}

/// Makes sure that `folder` exists, is a real folder of ours and has mode 0700.
///
/// # Errors
/// `PermissionDenied` if it is a link, belongs to another user or is open to others: somebody else could
/// then put a file or socket of his own there.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    folder_for(Reader::Owner, folder)
}

/// The same for these readers, who may look in and never write.
///
/// # Errors
/// As [`private_folder`].
pub fn folder_for(reader: Reader, folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(reader.folder_mode())
        .create(folder);
    // Looked at in any case: that something else has its name says more than that the name is taken.
    let meta = match (std::fs::symlink_metadata(folder), made) {
        (Ok(meta), _) => meta,
        (Err(error), Ok(())) | (Err(_), Err(error)) => {
            let text = format!("{}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), text));
        }
    };
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
    if meta.mode() & 0o777 & !reader.folder_mode() != 0 {
        return refuse(&format!(
            "is open to other users (chmod {:o} it)",
            reader.folder_mode()
        ));
    }
    Ok(())
}
