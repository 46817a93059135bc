//! Tells the named pipes among the descriptors of a process.

use std::io;

use super::ProcDir;

/// A named pipe, whatever names it has (fifo(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedPipe {
    /// The file system it is in.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl ProcDir {
    /// Returns which named pipe a descriptor is open on, if on one.
    ///
    /// What the kernel has of the file is enough, so a server that does not answer is not waited for
    /// (`AT_STATX_DONT_SYNC`, statx(2)). It is not opened: that would wake whoever waits for its other end.
    ///
    /// # Errors
    /// The descriptor is closed by now, the process is another user's, or this kernel does not tell.
    #[cfg(target_os = "linux")]
    pub fn named_pipe(&self, fd: u32) -> io::Result<Option<NamedPipe>> {
        use rustix::fs::{AtFlags, FileType, StatxFlags, makedev, statx};

        use super::calls::{counted, lift};

        let seen = counted(statx(
            &self.dir,
            format!("fd/{fd}"),
            AtFlags::STATX_DONT_SYNC,
            StatxFlags::TYPE | StatxFlags::INO,
        ))
        .map_err(lift)?;
        let is_one = FileType::from_raw_mode(seen.stx_mode.into()) == FileType::Fifo;
        Ok(is_one.then(|| NamedPipe {
            device: makedev(seen.stx_dev_major, seen.stx_dev_minor),
            inode: seen.stx_ino,
        }))
    }

    /// There is no `/proc` here.
    #[cfg(not(target_os = "linux"))]
    #[expect(
        clippy::missing_errors_doc,
        clippy::unused_self,
        reason = "the same function as where there is one"
    )]
    pub fn named_pipe(&self, _: u32) -> io::Result<Option<NamedPipe>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
