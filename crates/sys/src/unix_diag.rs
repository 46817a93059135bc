//! Asks the kernel for all unix sockets and their peers, which every user may (sock_diag(7)).
//!
//! The one place that tells the other end of a socketpair, and that it is gone, without touching either.

use std::io;

#[cfg(target_os = "linux")]
mod kernel;

/// One unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its inode, as `/proc/PID/fd` shows it.
    pub inode: u64,
    /// The other end's inode: none if it was never connected, `Some(0)` if the other end is closed.
    pub peer: Option<u64>,
    /// Nothing more can be read: the other end closed or shut down its writing.
    pub no_more_input: bool,
    /// Nothing more can be written: the other end closed or shut down its reading.
    pub no_more_output: bool,
    /// Whether it waits for connections.
    pub listening: bool,
    /// The path or abstract name (with a leading `@`) it is bound to.
    pub name: Option<Vec<u8>>,
    /// Bytes received and not yet read.
    pub unread_bytes: u64,
}

/// Lists all unix sockets of the caller's network namespace.
///
/// # Errors
/// The kernel cannot be asked (seccomp, no `unix_diag`) or answered nonsense: the list is then unknown.
#[cfg(target_os = "linux")]
pub fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    kernel::unix_sockets()
}

/// Lists all unix sockets.
///
/// # Errors
/// Always: this system has no such list for everybody, so the other ends are unknown.
#[cfg(not(target_os = "linux"))]
pub fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::{fd::AsFd, unix::net::UnixStream},
    };

    use super::*;

    fn inode(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    fn find(inode: u64) -> UnixSocket {
        let all = unix_sockets().unwrap();
        all.into_iter().find(|one| one.inode == inode).unwrap()
    }

    #[test]
    fn each_end_of_a_socketpair_names_the_other() {
        let (one, other) = UnixStream::pair().unwrap();

        assert_eq!(find(inode(&one)).peer, Some(inode(&other)));
        assert_eq!(find(inode(&other)).peer, Some(inode(&one)));
        assert!(!find(inode(&one)).no_more_input);
    }

    #[test]
    fn a_closed_peer_is_seen_without_reading_and_the_unread_bytes_stay() {
        let (one, mut other) = UnixStream::pair().unwrap();
        other.write_all(b"request").unwrap();
        drop(other);

        let seen = find(inode(&one));

        assert_eq!(seen.peer, Some(0));
        assert!(seen.no_more_input && seen.no_more_output);
        assert_eq!(seen.unread_bytes, 7);
    }

    #[test]
    fn a_peer_that_only_ended_its_writing_still_lives() {
        let (one, other) = UnixStream::pair().unwrap();
        other.shutdown(std::net::Shutdown::Write).unwrap();

        let seen = find(inode(&one));

        assert_eq!(seen.peer, Some(inode(&other)));
        assert!(seen.no_more_input && !seen.no_more_output);
    }
}
