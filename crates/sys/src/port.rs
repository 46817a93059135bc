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
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
        os::{
            fd::{AsFd, OwnedFd},
            unix::net::UnixStream,
        },
    };

    use super::*;

    fn both_kinds() -> [(OwnedFd, OwnedFd); 2] {
        let (reader, writer) = io::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        [(reader.into(), writer.into()), (one.into(), other.into())]
    }

    fn would_block(result: io::Result<usize>) -> bool {
        result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[test]
    fn neither_an_empty_nor_a_full_one_makes_us_wait_and_no_flag_is_set() {
        for (reader, writer) in both_kinds() {
            let from = Port::new(reader.as_fd()).unwrap();
            let to = Port::new(writer.as_fd()).unwrap();
            let mut into = vec![0; 1 << 20];

            assert!(would_block(from.take(&mut into)), "{from:?}");
            let mut given = 0;
            let full = loop {
                match to.give(&vec![b'x'; 300_000]) {
                    Ok(length) => given += length,
                    other => break other,
                }
            };
            assert!(would_block(full), "{to:?}");
            let mut taken = 0;
            while let Ok(length) = from.take(&mut into) {
                taken += length;
            }
            assert_eq!(given, taken);
            let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
            assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        }
    }

    #[test]
    fn a_reader_that_goes_away_is_told_to_a_port_that_is_watched_for_nothing() {
        for (reader, writer) in both_kinds() {
            let to = Port::new(writer.as_fd()).unwrap();
            let watch = || [Some((to, Watch::default()))];
            let now = Some(boot_millis());
            let still_there = wait(watch(), now).unwrap_err();
            assert_eq!(still_there.kind(), io::ErrorKind::TimedOut);

            drop(reader);

            let [ready] = wait(watch(), None).unwrap();
            assert!(ready.hung_up && !ready.room, "{ready:?}");
            let broken = to.give(b"x").unwrap_err();
            assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[test]
    fn the_end_of_input_is_input_of_no_bytes() {
        for (reader, writer) in both_kinds() {
            let from = Port::new(reader.as_fd()).unwrap();
            drop(writer);

            let watch = Watch {
                input: true,
                room: false,
            };
            let [ready] = wait([Some((from, watch))], None).unwrap();

            assert!(ready.input, "{ready:?}");
            assert_eq!(from.take(&mut [0; 8]).unwrap(), 0);
        }
    }

    #[test]
    fn a_peer_that_only_ended_its_writing_has_not_hung_up() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let port = Port::new(near.as_fd()).unwrap();
        far.shutdown(Shutdown::Write).unwrap();

        let watch = Watch {
            input: true,
            room: true,
        };
        let [ready] = wait([Some((port, watch))], None).unwrap();

        assert!(ready.input && ready.room && !ready.hung_up, "{ready:?}");
        assert_eq!(port.give(b"hi").unwrap(), 2);
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hi");
    }

    #[test]
    fn an_absent_port_says_nothing() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let port = Port::new(reader.as_fd()).unwrap();
        let watch = Watch {
            input: true,
            room: false,
        };

        let [absent, present] = wait([None, Some((port, watch))], None).unwrap();

        assert_eq!(absent, Ready::default());
        assert!(present.input);
    }
}
