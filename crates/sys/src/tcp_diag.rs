//! How active the TCP connections of the caller's network namespace are, from counters that every user may
//! read (sock_diag(7), `tcp_info` of the kernel's `include/uapi/linux/tcp.h`): no packet is looked at.

use std::io;

/// What one TCP connection has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpActivity {
    /// The socket's inode, as `/proc/PID/fd` shows it.
    pub inode: u64,
    /// Milliseconds since this end last sent data.
    pub sent_ms_ago: u32,
    /// Milliseconds since this end last received data.
    pub received_ms_ago: u32,
    /// Bytes sent so far; none where the kernel does not count them (before Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Bytes received so far.
    pub bytes_received: Option<u64>,
}

/// Lists what the established TCP connections of this network namespace have done.
///
/// # Errors
/// The kernel cannot be asked: of no connection anything is known then.
#[cfg(target_os = "linux")]
pub fn tcp_activity() -> io::Result<Vec<TcpActivity>> {
    kernel::tcp_activity()
}

/// Lists what the established TCP connections have done.
///
/// # Errors
/// Always: this system has no such counters for everybody.
#[cfg(not(target_os = "linux"))]
pub fn tcp_activity() -> io::Result<Vec<TcpActivity>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;

    use netlink_packet_sock_diag::{
        SockDiagMessage,
        constants::{AF_INET, AF_INET6, IPPROTO_TCP},
        inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas::Nla},
    };

    use super::TcpActivity;
    use crate::sock_diag::dump;

    pub(super) fn tcp_activity() -> io::Result<Vec<TcpActivity>> {
        let mut found = Vec::new();
        for (family, socket_id) in [
            (AF_INET, SocketId::new_v4()),
            (AF_INET6, SocketId::new_v6()),
        ] {
            let request = InetRequest {
                family,
                protocol: IPPROTO_TCP,
                extensions: ExtensionFlags::INFO,
                states: StateFlags::ESTABLISHED,
                socket_id,
            };
            dump(SockDiagMessage::InetRequest(request), |answer| {
                if let SockDiagMessage::InetResponse(answer) = answer {
                    found.extend(activity(&answer));
                }
            })?;
        }
        Ok(found)
    }

    fn activity(answer: &InetResponse) -> Option<TcpActivity> {
        let info = answer.nlas.iter().find_map(|attribute| {
            if let Nla::TcpInfo(bytes) = attribute {
                Some(bytes.as_slice())
            } else {
                None
            }
        })?;
        Some(TcpActivity {
            inode: u64::from(answer.header.inode),
            sent_ms_ago: word(info, LAST_DATA_SENT)?,
            received_ms_ago: word(info, LAST_DATA_RECEIVED)?,
            bytes_sent: long(info, BYTES_SENT),
            bytes_received: long(info, BYTES_RECEIVED),
        })
    }

    fn word(info: &[u8], at: usize) -> Option<u32> {
        let bytes = info.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn long(info: &[u8], at: usize) -> Option<u64> {
        let bytes = info.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Where the fields lie in `struct tcp_info`, which only ever grows at its end.
    const LAST_DATA_SENT: usize = 44;
    const LAST_DATA_RECEIVED: usize = 52;
    const BYTES_RECEIVED: usize = 128;
    const BYTES_SENT: usize = 200;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
    };

    use super::*;

    #[test]
    fn what_was_sent_and_received_is_counted_without_being_looked_at() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        ours.write_all(b"12345").unwrap();
        theirs.read_exact(&mut [0; 5]).unwrap();

        let all = tcp_activity().unwrap();

        let find = |socket: &TcpStream| {
            let inode = rustix::fs::fstat(socket.as_fd()).unwrap().st_ino;
            all.iter().find(|one| one.inode == inode).copied().unwrap()
        };
        assert_eq!(find(&ours).bytes_sent, Some(5));
        assert_eq!(find(&theirs).bytes_received, Some(5));
        assert_eq!(find(&theirs).bytes_sent, Some(0));
        assert!(find(&ours).sent_ms_ago < 20_000);
    }
}
