//! Descriptors that bytes are moved through without ever waiting in the move itself.
//!
//! A relay of standard input and output must not set `O_NONBLOCK` on them: the flag belongs to the open file,
//! which the client's terminal or another process may share. So each call asks not to wait, by itself: with
//! `MSG_DONTWAIT` on sockets, with `RWF_NOWAIT` on pipes (Linux 6.4). Where neither is to be had a write takes
//! no more than a pipe that poll(2) calls writable is sure to have room for, and a read takes what poll(2) saw,
//! which waits only if another process took it in between.

use std::{io, os::fd::BorrowedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    io::Errno,
    net::{RecvFlags, SendFlags},
    pipe::PIPE_BUF,
};

use crate::clock::boot_millis;

/// One descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Port<'fd> {
    fd: BorrowedFd<'fd>,
    kind: Kind,
    inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Socket,
    Pipe,
    /// Files and devices, which do not make us wait for another process.
    Other,
}

/// What a port is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    /// Bytes to take, or the end of them.
    pub input: bool,
    /// Room for bytes.
    pub room: bool,
}

/// What is the case with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// There are bytes to take, or the end of them.
    pub input: bool,
    /// There is room for bytes.
    pub room: bool,
    /// Nobody is at the other end any more. Told whatever was watched for.
    pub hung_up: bool,
}

impl<'fd> Port<'fd> {
    /// Looks at what kind of file this is.
    ///
    /// # Errors
    /// The descriptor is not open.
    pub fn new(fd: BorrowedFd<'fd>) -> io::Result<Self> {
        let seen = fstat(fd)?;
        Ok(Self {
            fd,
            kind: match FileType::from_raw_mode(seen.st_mode) {
                FileType::Socket => Kind::Socket,
                FileType::Fifo => Kind::Pipe,
                FileType::RegularFile
                | FileType::Directory
                | FileType::Symlink
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => Kind::Other,
            },
            inode: seen.st_ino,
        })
    }

    /// Returns the file's inode, which for pipes and sockets tells it from every other one.
    #[must_use]
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Takes bytes that are there. 0 is the end of them.
    ///
    /// # Errors
    /// `WouldBlock` if there are none now; anything else means that no more will come.
    pub fn take(&self, into: &mut [u8]) -> io::Result<usize> {
        let taken = match self.kind {
            Kind::Socket => rustix::net::recv(self.fd, into, RecvFlags::DONTWAIT)?.0,
            Kind::Pipe => match no_wait::read(self.fd, into) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::io::read(self.fd, into)?,
                other => other?,
            },
            Kind::Other => rustix::io::read(self.fd, into)?,
        };
        Ok(taken)
    }

    /// Gives as many of these bytes as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now; anything else means that nobody takes any more.
    pub fn give(&self, bytes: &[u8]) -> io::Result<usize> {
        let sure = bytes.get(..PIPE_BUF).unwrap_or(bytes);
        let given = match self.kind {
            Kind::Socket => rustix::net::send(self.fd, bytes, DO_NOT_WAIT)?,
            Kind::Pipe => match no_wait::write(self.fd, bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::io::write(self.fd, sure)?,
                other => other?,
            },
            Kind::Other => rustix::io::write(self.fd, sure)?,
        };
        Ok(given)
    }
}

/// A broken socket is an error here and no signal.
#[cfg(target_os = "linux")]
const DO_NOT_WAIT: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// There is no flag for it here; programs built by Rust ignore SIGPIPE from their start.
#[cfg(not(target_os = "linux"))]
const DO_NOT_WAIT: SendFlags = SendFlags::DONTWAIT;

#[cfg(target_os = "linux")]
mod no_wait {
    use std::io::{IoSlice, IoSliceMut};

    use super::BorrowedFd;
    use rustix::io::{ReadWriteFlags, Result, preadv2, pwritev2};

    /// The file's own position, as read(2) and write(2) use it.
    const HERE: u64 = u64::MAX;

    pub(super) fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize> {
        preadv2(
            fd,
            &mut [IoSliceMut::new(into)],
            HERE,
            ReadWriteFlags::NOWAIT,
        )
    }

    pub(super) fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        pwritev2(fd, &[IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT)
    }
}

#[cfg(not(target_os = "linux"))]
mod no_wait {
    use super::{BorrowedFd, Errno};
    use rustix::io::Result;

    pub(super) fn read(_: BorrowedFd<'_>, _: &mut [u8]) -> Result<usize> {
        Err(Errno::OPNOTSUPP)
    }

    pub(super) fn write(_: BorrowedFd<'_>, _: &[u8]) -> Result<usize> {
        Err(Errno::OPNOTSUPP)
    }
}

/// Waits until something is the case with one of the ports, and tells what. A port that is watched for nothing is
/// still watched for its other end's going away; an absent one is not watched at all.
///
/// # Errors
/// `TimedOut` if nothing was the case by `deadline`, which is on the boot clock; anything else is the kernel's.
pub fn wait<const N: usize>(
    ports: [Option<(Port<'_>, Watch)>; N],
    deadline: Option<u64>,
) -> io::Result<[Ready; N]> {
    let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(N);
    for (port, watch) in ports.iter().flatten() {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, watch.input);
        flags.set(PollFlags::OUT, watch.room);
        polled.push(PollFd::from_borrowed_fd(port.fd, flags));
    }
    loop {
        let timeout = deadline.map(time_left).transpose()?;
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) if deadline.is_some_and(|at| boot_millis() >= at) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    let mut seen = polled.iter().map(PollFd::revents);
    Ok(ports.map(|port| match port {
        Some((_, watch)) => Ready::of(watch, seen.next().unwrap_or(PollFlags::empty())),
        None => Ready::default(),
    }))
}

impl Ready {
    fn of(watch: Watch, seen: PollFlags) -> Self {
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        Self {
            // The end of the bytes is told as a hang-up where there are none left.
            input: watch.input && seen.intersects(PollFlags::IN | gone),
            room: watch.room && seen.intersects(PollFlags::OUT | gone),
            hung_up: seen.intersects(gone),
        }
    }
}

/// poll(2) counts time without suspend, so a wait on the boot clock is cut into pieces.
fn time_left(deadline: u64) -> io::Result<Timespec> {
    let left = Duration::from_millis(deadline.saturating_sub(boot_millis()));
    Timespec::try_from(left.min(LONGEST_POLL)).map_err(io::Error::other)
}

const LONGEST_POLL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
