//! TCP and UDP sockets as lsof(8) tells them: a name with both ends, and a state in a field of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{TcpSocket, TcpState, UdpSocket};

/// One socket of the listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inet<'a> {
    pub(super) inode: u64,
    /// `IPv4` or `IPv6`.
    pub(super) kind: &'a str,
    /// `TCP` or `UDP`.
    pub(super) protocol: &'a str,
    /// `local->remote`, or `local` alone; asked for endpoints, lsof adds their processes after a space.
    pub(super) name: &'a str,
    /// Of TCP only.
    pub(super) state: &'a str,
}

impl Inet<'_> {
    /// Returns it as a TCP socket; none if it is another, or its state is none that is known.
    pub(super) fn tcp(&self) -> Option<TcpSocket> {
        let (local, remote) = self.ends()?;
        Some(TcpSocket {
            inode: self.inode,
            network_namespace: NOT_TOLD,
            state: state(self.state).filter(|_| self.protocol == "TCP")?,
            local,
            remote: remote.unwrap_or_else(|| self.nowhere()),
            activity: None,
        })
    }

    /// Returns it as a UDP socket; none if it is another.
    pub(super) fn udp(&self) -> Option<UdpSocket> {
        let (local, remote) = self.ends().filter(|_| self.protocol == "UDP")?;
        Some(UdpSocket {
            inode: self.inode,
            network_namespace: NOT_TOLD,
            local,
            remote,
        })
    }

    fn ends(&self) -> Option<(SocketAddr, Option<SocketAddr>)> {
        let name = self.name.split(' ').next()?;
        match name.split_once("->") {
            Some((local, remote)) => Some((self.address(local)?, Some(self.address(remote)?))),
            None => Some((self.address(name)?, None)),
        }
    }

    /// Parses `127.0.0.1:80`, `[::1]:80` and `*:80`; a port that is not chosen yet is `*`.
    fn address(&self, text: &str) -> Option<SocketAddr> {
        let (host, port) = text.rsplit_once(':')?;
        let port = if port == "*" { 0 } else { port.parse().ok()? };
        let host = match host.trim_start_matches('[').trim_end_matches(']') {
            "*" => self.nowhere().ip(),
            // A link-local address has its interface behind a percent sign.
            host => host.split('%').next()?.parse::<IpAddr>().ok()?,
        };
        Some(SocketAddr::new(host.to_canonical(), port))
    }

    fn nowhere(&self) -> SocketAddr {
        let any = if self.kind == "IPv6" {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        SocketAddr::new(any, 0)
    }
}

/// The names that Linux and BSD have for the states.
fn state(name: &str) -> Option<TcpState> {
    Some(match name {
        "ESTABLISHED" => TcpState::Established,
        "SYN_SENT" => TcpState::SynSent,
        "SYN_RECV" | "SYN_RCVD" | "SYN_RECEIVED" => TcpState::SynReceived,
        "FIN_WAIT1" | "FIN_WAIT_1" => TcpState::FinWait1,
        "FIN_WAIT2" | "FIN_WAIT_2" => TcpState::FinWait2,
        "TIME_WAIT" => TcpState::TimeWait,
        "CLOSE" | "CLOSED" => TcpState::Close,
        "CLOSE_WAIT" => TcpState::CloseWait,
        "LAST_ACK" => TcpState::LastAck,
        "LISTEN" => TcpState::Listen,
        "CLOSING" => TcpState::Closing,
        _ => return None,
    })
}

/// lsof does not tell namespaces apart, and lists those of its own only.
const NOT_TOLD: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn inet<'a>(kind: &'a str, protocol: &'a str, name: &'a str, state: &'a str) -> Inet<'a> {
        Inet {
            inode: 7,
            kind,
            protocol,
            name,
            state,
        }
    }

    #[test]
    fn both_ends_are_read_in_every_form_that_lsof_has() {
        let linux = "127.0.0.1:33626->127.0.0.1:46523 21434,python3,5u";
        let tcp = inet("IPv4", "TCP", linux, "ESTABLISHED").tcp().unwrap();
        assert_eq!(tcp.local, "127.0.0.1:33626".parse().unwrap());
        assert_eq!(tcp.remote, "127.0.0.1:46523".parse().unwrap());

        let mac = inet("IPv6", "TCP", "[::1]:37939", "LISTEN").tcp().unwrap();
        assert_eq!(
            (mac.state, mac.local),
            (TcpState::Listen, "[::1]:37939".parse().unwrap())
        );
        assert_eq!(mac.remote, "[::]:0".parse().unwrap());

        let udp = inet("IPv4", "UDP", "*:5353", "").udp().unwrap();
        assert_eq!(
            (udp.local, udp.remote),
            ("0.0.0.0:5353".parse().unwrap(), None)
        );
        let local = inet("IPv6", "UDP", "[fe80::1%en0]:5353", "").udp().unwrap();
        assert_eq!(local.local, "[fe80::1]:5353".parse().unwrap());
    }

    #[test]
    fn what_is_not_understood_is_no_socket() {
        for (protocol, name, state) in [
            ("TCP", "127.0.0.1:80", ""),
            ("TCP", "127.0.0.1:80", "BOUND"),
            ("UDP", "127.0.0.1:80", "LISTEN"),
            ("TCP", "nonsense", "LISTEN"),
        ] {
            assert_eq!(
                inet("IPv4", protocol, name, state).tcp(),
                None,
                "{name} {state}"
            );
        }
    }
}
