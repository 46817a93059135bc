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

use self::address::{carries_ipv4, nat64, never_called};

mod address;

/// An HTTP destination: `https://api.example.com[:port][/prefix]`, or `http://127.0.0.1[:port][/prefix]`.
///
/// A name leads to public addresses only, unless it is written `https+private://ci.example.lan`: then it may
/// also lead into a private network. An address that is written as such is dialled whatever it is, unless it is
/// one that is [never called](DestinationError::NeverCalled).
///
/// Its text is canonical: scheme and host in small letters, no default port, no slash at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Destination {
    tls: bool,
    /// Whether a name may lead to an address of a private network.
    private: bool,
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
    /// An address cannot be marked as private: it is what it is.
    #[error("https+private:// is for names; an address is written with https://")]
    PrivateAddress,
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

    /// Tells whether a name may lead to an address of a private network.
    #[must_use]
    pub const fn may_be_private(&self) -> bool {
        self.private
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

    /// Tells whether `other` lies inside this destination: same scheme, host and port, its prefix continues
    /// this one at the border of a segment, and it leads into a private network only if this one may.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let same_origin =
            self.tls == other.tls && self.host == other.host && self.port == other.port;
        let rest = other.prefix.strip_prefix(self.prefix.as_str());
        let no_wider = self.private || !other.private;
        same_origin && no_wider && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Tells whether this address, to which the host resolved, may be dialled.
    ///
    /// A name must not lead to this machine, or whoever answers for the name would choose which of our own
    /// services gets the secret; a loopback address has to be written as such. For the same reason a name leads
    /// into a private network only where it is sealed so.
    #[must_use]
    pub fn admits(&self, address: IpAddr) -> bool {
        match &self.host {
            Host::Ip(ip) => *ip == address,
            Host::Name(_) => {
                // On a network without IPv4 the resolver puts IPv4 addresses into this prefix (RFC 6147).
                let address = nat64(address).unwrap_or(address);
                let outside = self.private || !address::private(address);
                outside
                    && !address.is_loopback()
                    && !carries_ipv4(address)
                    && !never_called(address)
            }
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.tls, self.private) {
            (_, true) => "https+private",
            (true, false) => "https",
            (false, false) => "http",
        };
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
        let (tls, private) = match scheme.to_ascii_lowercase().as_str() {
            "https" => (true, false),
            "https+private" => (true, true),
            "http" => (false, false),
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
        if private && matches!(host, Host::Ip(_)) {
            return Err(DestinationError::PrivateAddress);
        }
        Ok(Self {
            tls,
            private,
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

/// A DNS name has at most 253 letters; the rest is room for a path.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests;
