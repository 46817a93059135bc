//! The far end of a shim's standard input: the write end of its pipe, or the peer of its socket.

use super::{Incomplete, Link, descriptors};
use crate::{
    procfs::{Access, ProcFs, RawDescriptor},
    unix_diag::unix_sockets,
};

/// What a descriptor must look like to be the other end of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FarEnd {
    /// The write end of a pipe: the same inode, opened for writing.
    Pipe { text: Vec<u8> },
    /// The other socket of a pair.
    Socket { text: Vec<u8> },
}

impl FarEnd {
    /// Tells whether this descriptor is it.
    pub(super) fn is(&self, descriptor: &RawDescriptor) -> bool {
        match self {
            Self::Socket { text } => descriptor.target == *text,
            Self::Pipe { text } => {
                let writes = matches!(descriptor.access, Some(Access::Write | Access::ReadWrite));
                writes && descriptor.target == *text
            }
        }
    }
}

/// Finds out what the other end of the shim's standard input looks like.
pub(super) fn far_end(
    procfs: &ProcFs,
    links: &[Link],
    claimed: Option<u64>,
) -> Result<FarEnd, Incomplete> {
    let shim = links.first().ok_or(Incomplete::Nobody)?;
    let all = descriptors(procfs, &shim.handle).map_err(|error| Incomplete::Unreadable {
        why: format!("the shim's descriptors: {error}"),
    })?;
    let stdin = all
        .into_iter()
        .find(|descriptor| descriptor.fd == 0)
        .ok_or_else(|| Incomplete::NoWire {
            what: "closed".to_owned(),
        })?;
    let seen = String::from_utf8_lossy(&stdin.target).into_owned();
    let pipe = inode(&seen, "pipe:[");
    let socket = inode(&seen, "socket:[");
    if let (Some(claimed), Some(own)) = (claimed, pipe.or(socket))
        && claimed != own
    {
        return Err(Incomplete::OtherWire { claimed, seen });
    }
    match (pipe, socket) {
        (Some(_), _) => Ok(FarEnd::Pipe { text: stdin.target }),
        (None, Some(own)) => peer(own),
        (None, None) => Err(Incomplete::NoWire { what: kind(&seen) }),
    }
}

fn peer(own: u64) -> Result<FarEnd, Incomplete> {
    let sockets = unix_sockets().map_err(|error| Incomplete::Unreadable {
        why: format!("the list of Unix sockets: {error}"),
    })?;
    let no_wire = |what: &str| Incomplete::NoWire {
        what: what.to_owned(),
    };
    let socket = sockets.into_iter().find(|socket| socket.inode == own);
    match socket.map(|socket| socket.peer) {
        Some(Some(0)) => Err(no_wire("a socket whose other end is closed")),
        Some(Some(peer)) => Ok(FarEnd::Socket {
            text: format!("socket:[{peer}]").into_bytes(),
        }),
        Some(None) => Err(no_wire("a socket that is not connected")),
        None => Err(no_wire("a socket of another kind or network namespace")),
    }
}

fn inode(link: &str, prefix: &str) -> Option<u64> {
    link.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

/// Names what stdin is without its path, which is nobody's business here.
fn kind(link: &str) -> String {
    let kind = match link {
        "/dev/null" => "/dev/null",
        terminal if terminal.starts_with("/dev/pts/") || terminal.starts_with("/dev/tty") => {
            "a terminal"
        }
        _ => "a file or device",
    };
    kind.to_owned()
}
