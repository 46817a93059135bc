//! Where a secret may go: one scheme, host and port, and the beginning of a path.
//!
//! Read once, here, and never again: what was checked is what is dialled. A text that two readers of URLs
//! could understand in two ways is refused. Other kinds (an SSH host with its key) will begin with their own
//! scheme: the text is the stored form, so a reader of today refuses them as [`DestinationError::Scheme`].

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// An HTTP destination: `https://api.example.com[:port][/prefix]`, or `http://127.0.0.1[:port][/prefix]`.
///
/// Its text is canonical: scheme and host in small letters, no default port, no slash at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Destination {
    tls: bool,
    host: Host,
    port: u16,
    /// Empty, or `/` and segments without a slash at the end.
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Host {
    Name(String),
    Ip(IpAddr),
}

/// Why a text is no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// It does not start with a scheme that we know.
    #[error("a destination starts with https:// (or with http:// for a loopback address)")]
    Scheme,
    /// A user name or password stands before the host.
    #[error("a destination has no user name or password before its host")]
    UserInfo,
    /// A query or fragment stands behind the path.
    #[error("a destination has no '?' and no '#'")]
    QueryOrFragment,
    /// A backslash, space or control character: some readers take it for a separator.
    #[error("a destination has no backslash, space or control character")]
    Ambiguous,
    /// There is no host.
    #[error("the destination has no host")]
    NoHost,
    /// The host ends in a dot.
    #[error("the host ends in a dot; write it without")]
    TrailingDot,
    /// The host is not ASCII.
    #[error("the host is not ASCII; write an international name in its xn-- form")]
    NotAscii,
    /// The host is neither a DNS name nor an address.
    #[error("the host is neither a DNS name (a-z, 0-9, '-', '.') nor an IP address")]
    Host,
    /// An IPv4 address in another form than four decimal numbers.
    #[error("an IPv4 address is written as four decimal numbers without leading zeros")]
    Ipv4Form,
    /// An IPv6 address that carries an IPv4 address.
    #[error("an IPv6 address that carries an IPv4 address is refused; write the IPv4 address")]
    Ipv4InIpv6,
    /// An address that nothing of ours is to reach.
    #[error(
        "{0} is a link-local, metadata, multicast or unspecified address, which is never called"
    )]
    NeverCalled(IpAddr),
    /// The port is no number from 1 to 65535.
    #[error("the port is a number from 1 to 65535")]
    Port,
    /// `http` to something that is not a loopback address: the secret would cross the network in clear.
    #[error("http:// is allowed for loopback addresses only (127.0.0.1, [::1]); use https://")]
    ClearText,
    /// The path prefix has `.`, `..`, an empty segment, or a character that is not plain.
    #[error(
        "the path prefix has only a-z, A-Z, 0-9, '-', '.', '_', '~', no empty segment, no '.' and no '..'"
    )]
    Prefix,
    /// It is longer than any real one.
    #[error("a destination has at most 1024 letters")]
    TooLong,
}

impl Destination {
    /// Tells whether the connection is TLS; the only other case is a loopback address.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls
    }

    /// Returns the host: a DNS name or an address, without brackets.
    #[must_use]
    pub fn host(&self) -> String {
        match &self.host {
            Host::Name(name) => name.clone(),
            Host::Ip(ip) => ip.to_string(),
        }
    }

    /// Returns the host's address if the host was written as one.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Ip(ip) => Some(*ip),
            Host::Name(_) => None,
        }
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path prefix: empty, or with a slash in front and none behind.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns host and port as the `Host` header has them.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = match &self.host {
            Host::Name(name) => name.clone(),
            Host::Ip(IpAddr::V4(ip)) => ip.to_string(),
            Host::Ip(IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        if self.port == default_port(self.tls) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Tells whether `other` lies inside this destination: same scheme, host and port, and its prefix
    /// continues this one at the border of a segment.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let same_origin =
            self.tls == other.tls && self.host == other.host && self.port == other.port;
        let rest = other.prefix.strip_prefix(self.prefix.as_str());
        same_origin && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Tells whether this address, to which the host resolved, may be dialled.
    ///
    /// A name must not lead to this machine, or whoever answers for the name would choose which of our own
    /// services gets the secret; a loopback address has to be written as such.
    #[must_use]
    pub fn admits(&self, address: IpAddr) -> bool {
        match &self.host {
            Host::Ip(ip) => *ip == address,
            Host::Name(_) => {
                // On a network without IPv4 the resolver puts IPv4 addresses into this prefix (RFC 6147).
                let address = nat64(address).unwrap_or(address);
                !address.is_loopback() && !carries_ipv4(address) && !never_called(address)
            }
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        if text.len() > LONGEST {
            return Err(DestinationError::TooLong);
        }
        if text
            .chars()
            .any(|c| c == '\\' || c == ' ' || c.is_control())
        {
            return Err(DestinationError::Ambiguous);
        }
        let (scheme, rest) = text.split_once("://").ok_or(DestinationError::Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(DestinationError::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(DestinationError::QueryOrFragment);
        }
        let (authority, path) = rest
            .find('/')
            .map_or((rest, ""), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return Err(DestinationError::UserInfo);
        }
        let (host, port) = host_and_port(authority)?;
        let host = read_host(host)?;
        if !tls && !matches!(host, Host::Ip(ip) if ip.is_loopback()) {
            return Err(DestinationError::ClearText);
        }
        Ok(Self {
            tls,
            host,
            port: port.map_or(Ok(default_port(tls)), read_port)?,
            prefix: read_prefix(path)?,
        })
    }
}

impl TryFrom<String> for Destination {
    type Error = DestinationError;

    fn try_from(text: String) -> Result<Self, DestinationError> {
        text.parse()
    }
}

impl From<Destination> for String {
    fn from(destination: Destination) -> Self {
        destination.to_string()
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), DestinationError> {
    if authority.starts_with('[') {
        let end = authority.find(']').ok_or(DestinationError::Host)? + 1;
        let (host, rest) = authority.split_at(end);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(DestinationError::Host),
        };
    }
    Ok(match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    })
}

fn read_port(text: &str) -> Result<u16, DestinationError> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(port) if plain => Ok(port),
        Ok(_) | Err(_) => Err(DestinationError::Port),
    }
}

fn read_host(text: &str) -> Result<Host, DestinationError> {
    if text.is_empty() {
        return Err(DestinationError::NoHost);
    }
    if !text.is_ascii() {
        return Err(DestinationError::NotAscii);
    }
    if text.ends_with('.') {
        return Err(DestinationError::TrailingDot);
    }
    let ip = if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let ip: Ipv6Addr = inside.parse().map_err(|_| DestinationError::Host)?;
        IpAddr::V6(ip)
    } else if ends_in_a_number(text) {
        // What is no plain IPv4 address here is one for readers that know octal and hexadecimal parts.
        let ip: Ipv4Addr = text.parse().map_err(|_| DestinationError::Ipv4Form)?;
        IpAddr::V4(ip)
    } else {
        return read_name(text).map(Host::Name);
    };
    if carries_ipv4(ip) {
        return Err(DestinationError::Ipv4InIpv6);
    }
    if never_called(ip) {
        return Err(DestinationError::NeverCalled(ip));
    }
    Ok(Host::Ip(ip))
}

/// The test by which the WHATWG URL standard ("ends in a number checker") takes a host for an IPv4 address.
fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let hex = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

fn read_name(text: &str) -> Result<String, DestinationError> {
    let label_ok = |label: &str| {
        let plain = label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let ends = !label.starts_with('-') && !label.ends_with('-');
        plain && ends && (1..=63).contains(&label.len())
    };
    if text.len() <= 253 && text.split('.').all(label_ok) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(DestinationError::Host)
    }
}

fn read_prefix(path: &str) -> Result<String, DestinationError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(segments) = path.strip_prefix('/') else {
        return Ok(String::new());
    };
    // No percent-encoding: it would give one prefix many spellings.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let segment_ok =
        |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(plain);
    if segments.split('/').all(segment_ok) {
        Ok(path.to_owned())
    } else {
        Err(DestinationError::Prefix)
    }
}

/// IPv6 forms that lead to an IPv4 address: compatible and mapped (RFC 4291), NAT64 (RFC 6052, RFC 8215),
/// 6to4 (RFC 3056) and Teredo (RFC 4380). A check of the outer address would say nothing about the inner one.
fn carries_ipv4(ip: IpAddr) -> bool {
    let IpAddr::V6(ip) = ip else { return false };
    let first_four = |net: [u16; 4]| ip.segments().starts_with(&net);
    let compatible =
        ip.segments().starts_with(&[0; 6]) && !ip.is_loopback() && !ip.is_unspecified();
    compatible
        || ip.to_ipv4_mapped().is_some()
        || first_four([0, 0, 0, 0]) && ip.segments().get(4) == Some(&0xffff)
        || first_four([0x64, 0xff9b, 0, 0])
        || ip.segments().starts_with(&[0x64, 0xff9b, 1])
        || ip.segments().starts_with(&[0x2002])
        || ip.segments().starts_with(&[0x2001, 0])
}

/// The IPv4 address inside the well-known prefix `64:ff9b::/96` (RFC 6052).
fn nat64(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else { return None };
    match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let low = u32::try_from(ip.to_bits() & u128::from(u32::MAX)).ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(low)))
        }
        _ => None,
    }
}

fn never_called(ip: IpAddr) -> bool {
    if METADATA.contains(&ip) {
        return true;
    }
    match ip {
        IpAddr::V4(ip) => {
            let this_network = ip.octets().starts_with(&[0]);
            ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || this_network
        }
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_multicast() || ip.is_unspecified(),
    }
}

/// Metadata services outside the link-local range: Amazon (IPv6), Alibaba, Oracle.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// A DNS name has at most 253 letters; the rest is room for a path.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests;
