//! The TCP sockets of one network namespace, from `/proc/PID/net/tcp` (proc_pid_net(5)).
//!
//! Read through a process of that namespace, since a netlink socket of ours would only see our own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// One TCP socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSocket {
    /// Its inode; 0 once no process holds it.
    pub inode: u64,
    /// The network namespace it lives in.
    pub network_namespace: u64,
    /// What it is doing.
    pub state: TcpState,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What it has done, of established connections of the observer's own network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

/// What a connection has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Milliseconds since this end last sent data.
    pub sent_ms_ago: u32,
    /// Milliseconds since this end last received data.
    pub received_ms_ago: u32,
    /// Bytes sent so far, if the kernel counts them.
    pub bytes_sent: Option<u64>,
    /// Bytes received so far.
    pub bytes_received: Option<u64>,
}

/// One UDP socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSocket {
    /// Its inode.
    pub inode: u64,
    /// The network namespace it lives in.
    pub network_namespace: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end, if it has chosen one.
    pub remote: Option<SocketAddr>,
}

/// Parses the content of `net/udp` or `net/udp6`, which has the form of `net/tcp`.
pub(crate) fn parse_udp(content: &[u8], network_namespace: u64) -> Vec<UdpSocket> {
    let sockets = parse(content, network_namespace).into_iter();
    sockets
        .map(|socket| UdpSocket {
            inode: socket.inode,
            network_namespace,
            local: socket.local,
            remote: (socket.remote.port() != 0).then_some(socket.remote),
        })
        .collect()
}

/// The state of a TCP connection (RFC 9293, section 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of the RFC")]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
}

/// Parses the content of `net/tcp` or `net/tcp6`; lines that are none are skipped.
pub(crate) fn parse(content: &[u8], network_namespace: u64) -> Vec<TcpSocket> {
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().skip(1);
    lines
        .filter_map(|line| socket(line, network_namespace))
        .collect()
}

fn socket(line: &str, network_namespace: u64) -> Option<TcpSocket> {
    let mut fields = line.split_ascii_whitespace();
    let local = address(fields.nth(1)?)?;
    let remote = address(fields.next()?)?;
    let state = state(u8::from_str_radix(fields.next()?, 16).ok()?)?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(TcpSocket {
        inode,
        network_namespace,
        state,
        local,
        remote,
        activity: None,
    })
}

/// Parses `0100007F:1F90`: the address as words in the machine's byte order, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let host = if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        IpAddr::V4(Ipv4Addr::from(four))
    } else {
        let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
        Ipv6Addr::from(sixteen).to_canonical()
    };
    Some(SocketAddr::new(host, port))
}

/// The numbers of the kernel's `include/net/tcp_states.h`.
const fn state(number: u8) -> Option<TcpState> {
    Some(match number {
        1 => TcpState::Established,
        2 => TcpState::SynSent,
        3 | 12 => TcpState::SynReceived,
        4 => TcpState::FinWait1,
        5 => TcpState::FinWait2,
        6 => TcpState::TimeWait,
        7 => TcpState::Close,
        8 => TcpState::CloseWait,
        9 => TcpState::LastAck,
        10 => TcpState::Listen,
        11 => TcpState::Closing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP4: &[u8] = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0\n\
        \x20  1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 12346 1 0000000000000000 20 4 30 10 -1\n";

    #[test]
    fn listeners_and_connections_are_told_apart_with_their_ends() {
        let seen = parse(TCP4, 7);

        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].state, TcpState::Listen);
        assert_eq!(seen[0].local, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(seen[1].state, TcpState::Established);
        assert_eq!(seen[1].remote, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(seen[1].inode, 12346);
    }

    #[test]
    fn a_udp_socket_has_another_end_only_if_it_chose_one() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            1: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 77 2 0 0\n\
            2: 0100007F:C350 0100007F:0035 01 00000000:00000000 00:00000000 00000000 0 0 78 2 0 0\n";

        let seen = parse_udp(text.as_bytes(), 7);

        assert_eq!((seen[0].inode, seen[0].remote), (77, None));
        assert_eq!(seen[1].remote, Some("127.0.0.1:53".parse().unwrap()));
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_socket_is_the_same_address() {
        let mapped = address("0000000000000000FFFF00000100007F:0050").unwrap();

        assert_eq!(mapped, "127.0.0.1:80".parse().unwrap());
    }
}
