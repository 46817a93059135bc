//! Who is at the other end of a Unix socket, as the kernel tells it and not as the peer does.

#![expect(
    unsafe_code,
    reason = "the peer's pidfd on Linux and the peer's ids on macOS have no safe wrapper"
)]

use std::{io, os::fd::AsFd};

/// The process that connected, and its rights at that moment (unix(7)).
///
/// The kernel noted it at connect(2) or listen(2): a socket that was handed on since still names the one who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// Its number, seen from our pid namespace; 0 if it has none there.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
}

/// Tells who connected to this socket, or who listens at it.
///
/// # Errors
/// It is no connected Unix socket.
#[cfg(target_os = "linux")]
pub fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
    let seen = linux::credentials(socket.as_fd())?;
    Ok(Credentials {
        pid: u32::try_from(seen.pid).unwrap_or(0),
        uid: seen.uid,
        gid: seen.gid,
    })
}

/// Holds the process that connected to this socket.
///
/// Before Linux 6.5 the number has to do, which is the right one as long as the peer lives.
///
/// # Errors
/// `NotFound` if it has ended or is outside our pid namespace; anything else is the kernel's refusal.
#[cfg(target_os = "linux")]
pub fn process(socket: impl AsFd) -> io::Result<crate::process::Handle> {
    use crate::process::Handle;

    let pid = credentials(&socket)?.pid;
    let Some(noted) = linux::pidfd(socket.as_fd())? else {
        return Handle::open(pid);
    };
    // The order matters: who is alive after the number was opened had that number when it was opened.
    let handle = Handle::open(pid)?;
    if linux::has_exited(&noted)? {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(handle)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io,
        mem::size_of,
        os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    };

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// Asked of libc, since a peer outside our pid namespace has the number 0, which rustix cannot express.
    pub(super) fn credentials(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
        let mut seen = libc::ucred {
            pid: 0,
            uid: u32::MAX,
            gid: u32::MAX,
        };
        let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
        // SAFETY: the descriptor is borrowed for the call; `seen` has `size` bytes, holds integers only, and
        // both live through the call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut seen).cast(),
                &raw mut size,
            )
        };
        if result == 0 {
            Ok(seen)
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Returns the pidfd that the kernel kept since the peer connected; none before Linux 6.5.
    pub(super) fn pidfd(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
        let mut fd: libc::c_int = -1;
        let mut size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
        // SAFETY: the descriptor is borrowed for the call; `fd` has `size` bytes and both live through it.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERPIDFD,
                (&raw mut fd).cast(),
                &raw mut size,
            )
        };
        if result == 0 && fd >= 0 {
            // SAFETY: the kernel just made this descriptor for us (with close-on-exec), and nobody else has it.
            return Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Ok(None),
            // A peer that was reaped before anybody asked for its pidfd.
            Some(libc::ESRCH | libc::ENODATA | libc::EINVAL) => {
                Err(io::Error::new(io::ErrorKind::NotFound, error))
            }
            _ => Err(error),
        }
    }

    pub(super) fn has_exited(pidfd: &OwnedFd) -> io::Result<bool> {
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
    }
}

/// Tells who connected to this socket, or who listens at it.
///
/// # Errors
/// It is no connected Unix socket.
#[cfg(not(target_os = "linux"))]
pub fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
    use std::os::fd::AsRawFd;

    let socket = socket.as_fd();
    let (mut uid, mut gid) = (u32::MAX, u32::MAX);
    // SAFETY: the descriptor is borrowed for the call, and both values live through it.
    let result = unsafe { libc::getpeereid(socket.as_raw_fd(), &raw mut uid, &raw mut gid) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut pid: libc::pid_t = 0;
    let mut size = libc::socklen_t::try_from(size_of::<libc::pid_t>()).unwrap_or(0);
    // SAFETY: the descriptor is borrowed for the call; `pid` has `size` bytes and both live through it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_LOCAL,
            libc::LOCAL_PEERPID,
            (&raw mut pid).cast(),
            &raw mut size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = u32::try_from(pid).unwrap_or(0);
    Ok(Credentials { pid, uid, gid })
}

/// Holds the process that connected.
///
/// # Errors
/// Nothing holds a process here.
#[cfg(not(target_os = "linux"))]
pub fn process(socket: impl AsFd) -> io::Result<crate::process::Handle> {
    crate::process::Handle::open(credentials(socket)?.pid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_told_who_made_it() {
        let (one, other) = UnixStream::pair().unwrap();

        for end in [&one, &other] {
            let seen = credentials(end).unwrap();
            assert_eq!(seen.pid, std::process::id());
            assert_eq!(seen.uid, rustix::process::geteuid().as_raw());
            assert_eq!(seen.gid, rustix::process::getegid().as_raw());
        }
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();

        assert!(credentials(&file).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_that_connected_is_held_and_one_that_ended_is_not_found() {
        use std::{os::unix::net::UnixListener, process::Command};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let program = "import socket,sys\n\
                       s=socket.socket(socket.AF_UNIX)\n\
                       s.connect(sys.argv[1])\n\
                       s.recv(1)\n";
        let mut child = Command::new("python3")
            .arg("-c")
            .arg(program)
            .arg(&path)
            .spawn()
            .unwrap();
        let (peer, _) = listener.accept().unwrap();

        let handle = process(&peer).unwrap();
        assert_eq!(handle.id().pid, child.id());

        // One byte lets it go on, and out.
        io::Write::write_all(&mut &peer, b"x").unwrap();
        child.wait().unwrap();
        assert_eq!(process(&peer).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(credentials(&peer).unwrap().pid, child.id());
    }
}
