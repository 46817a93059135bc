//! Lists folders of `/proc` whose entries are numbers, and what descriptors are open on.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, fstat, readlinkat_raw, statat},
    path::DecInt,
};

use super::{Access, LONGEST_LINK, RawDescriptor, calls::counted};

pub(super) fn descriptor(
    folder: &OwnedFd,
    fd: u32,
    buffer: &mut [u8; LONGEST_LINK],
) -> rustix::io::Result<RawDescriptor> {
    let name = DecInt::new(fd);
    let length = counted(readlinkat_raw(folder, name, &mut *buffer))?;
    let target = buffer.get(..length).unwrap_or_default().to_vec();
    let access = if target.starts_with(b"pipe:") {
        Some(access(folder, fd)?)
    } else {
        None
    };
    Ok(RawDescriptor { fd, target, access })
}

/// How many descriptors a folder of them has: its size since Linux 6.2, and 0 before.
pub(super) fn count(folder: &OwnedFd) -> rustix::io::Result<usize> {
    Ok(usize::try_from(counted(fstat(folder))?.st_size).unwrap_or(0))
}

fn access(folder: &OwnedFd, fd: u32) -> rustix::io::Result<Access> {
    let mode = counted(statat(folder, DecInt::new(fd), AtFlags::SYMLINK_NOFOLLOW))?.st_mode;
    Ok(match (mode & 0o400 != 0, mode & 0o200 != 0) {
        (true, true) => Access::ReadWrite,
        (true, false) => Access::Read,
        (false, true) => Access::Write,
        (false, false) => Access::Neither,
    })
}

/// There is no `/proc` here, so its folder cannot even be opened.
#[cfg(not(target_os = "linux"))]
pub(super) fn numbered_entries(_: &OwnedFd, _: Option<usize>) -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lists the entries of a folder whose names are numbers.
///
/// A folder that is not known to have so many is asked once more when it gave few: a signal that is pending cuts
/// a listing short (getdents(2)), and a descriptor that is missing would make an end of file of a living pipe.
#[cfg(target_os = "linux")]
pub(super) fn numbered_entries(folder: &OwnedFd, expected: Option<usize>) -> io::Result<Vec<u32>> {
    use std::{mem::MaybeUninit, os::fd::AsFd, sync::atomic::Ordering};

    use rustix::fs::RawDir;

    use super::calls::{CALLS, lift};

    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
    let mut listing = RawDir::new(folder.as_fd(), &mut buffer);
    let mut numbers = Vec::with_capacity(32);
    loop {
        if listing.is_buffer_empty() {
            if expected.is_some_and(|expected| numbers.len() >= expected) {
                return Ok(numbers);
            }
            // What is next needs a call.
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
        let Some(entry) = listing.next() else {
            return Ok(numbers);
        };
        let name = entry
            .map_err(lift)?
            .file_name()
            .to_str()
            .ok()
            .map(str::parse);
        if let Some(Ok(number)) = name {
            numbers.push(number);
        }
    }
}
