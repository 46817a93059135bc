//! The fields of lsof(8), one a line, as both systems write them.
//!
//! On Linux both ends of a pipe have one inode and an access; on a Mac each end has a handle of its own, names the
//! other's, and has no access: which end reads is told from standard input, output and error among their holders.

use std::collections::{BTreeMap, BTreeSet};

use model::Foreign;
use sys::unix_diag::UnixSocket;

use super::{ByPid, inet::Inet};
use crate::{Access, Descriptor, NamedPipe, Target, TcpSocket, UdpSocket};

/// All that is open.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) by_pid: ByPid,
    pub(super) sockets: Vec<UnixSocket>,
    pub(super) tcp: Vec<TcpSocket>,
    pub(super) udp: Vec<UdpSocket>,
    /// The pipes of a Mac that are read from and have no other end any more.
    pub(super) severed: BTreeSet<u64>,
}

/// One file as it was listed.
#[derive(Debug, Default, Clone)]
struct Listed<'a> {
    fd: &'a str,
    kind: &'a str,
    access: &'a str,
    device: &'a str,
    /// The file system that it is in.
    within: &'a str,
    inode: Option<u64>,
    name: &'a str,
    protocol: &'a str,
    state: &'a str,
}

/// Parses the whole listing.
pub(super) fn parse(text: &str) -> Opened {
    let mut listed: BTreeMap<u32, Vec<Listed<'_>>> = BTreeMap::new();
    let mut pid = None;
    for line in text.lines() {
        let Some((field, value)) = line.split_at_checked(1) else {
            continue;
        };
        match field {
            "p" => {
                pid = value.parse::<u32>().ok();
                if let Some(pid) = pid {
                    listed.entry(pid).or_default();
                }
                continue;
            }
            "f" => {
                let files = pid.and_then(|pid| listed.get_mut(&pid));
                if let Some(files) = files {
                    files.push(Listed {
                        fd: value,
                        ..Listed::default()
                    });
                }
                continue;
            }
            _ => {}
        }
        let last = pid
            .and_then(|pid| listed.get_mut(&pid))
            .and_then(|files| files.last_mut());
        let Some(file) = last else {
            continue;
        };
        match field {
            "t" => file.kind = value,
            "a" => file.access = value.trim(),
            "d" => file.device = value,
            "D" => file.within = value,
            "i" => file.inode = value.parse().ok(),
            "n" => file.name = value,
            "P" => file.protocol = value,
            "T" => file.state = value.strip_prefix("ST=").unwrap_or(file.state),
            _ => {}
        }
    }
    join(&listed)
}

fn join(listed: &BTreeMap<u32, Vec<Listed<'_>>>) -> Opened {
    let reading = reading_ends(listed);
    let mut opened = Opened::default();
    let mut sockets = BTreeMap::new();
    // A socket that several hold is one socket.
    let mut inets = BTreeSet::new();
    for (pid, files) in listed {
        let denied = files.iter().find(|file| file.fd == "NOFD");
        let open = match denied {
            Some(file) => Err(file.name.to_owned()),
            None => Ok(descriptors(files, &reading)),
        };
        for file in files.iter().filter(|file| file.kind == "unix") {
            if let Some(socket) = socket(file) {
                sockets.insert(socket.inode, socket);
            }
        }
        for socket in files.iter().filter_map(inet) {
            if inets.insert(socket.inode) {
                opened.tcp.extend(socket.tcp());
                opened.udp.extend(socket.udp());
            }
        }
        opened.by_pid.insert(*pid, open);
    }
    opened.sockets = sockets.into_values().collect();
    opened.severed = severed(listed, &reading);
    opened
}

/// Asked for the other ends, lsof lists some files twice.
fn descriptors(files: &[Listed<'_>], reading: &BTreeSet<u64>) -> Vec<Descriptor> {
    let found: BTreeMap<u32, Descriptor> = files
        .iter()
        .filter_map(|file| descriptor(file, reading))
        .map(|open| (open.fd, open))
        .collect();
    found.into_values().collect()
}

fn is_pipe(file: &Listed<'_>) -> bool {
    file.kind == "PIPE" || file.kind == "FIFO" && !file.name.starts_with('/')
}

/// The handles of a Mac's pipe ends that are read from.
fn reading_ends(listed: &BTreeMap<u32, Vec<Listed<'_>>>) -> BTreeSet<u64> {
    let mut reading = BTreeSet::new();
    for file in listed.values().flatten().filter(|file| file.kind == "PIPE") {
        let ends = (handle(file.device), peer(file.name));
        match (number(file), ends) {
            (Some(0), (Some(own), _)) => reading.insert(own),
            (Some(1 | 2), (_, Some(other))) => reading.insert(other),
            (_, _) => false,
        };
    }
    reading
}

/// The end of a pipe names the other as long as there is one. It is only taken so where others are named: a kernel
/// that tells none has told nothing.
fn severed(listed: &BTreeMap<u32, Vec<Listed<'_>>>, reading: &BTreeSet<u64>) -> BTreeSet<u64> {
    let pipes = || listed.values().flatten().filter(|file| file.kind == "PIPE");
    if pipes().all(|pipe| peer(pipe.name).is_none()) {
        return BTreeSet::new();
    }
    let alone = pipes().filter(|pipe| peer(pipe.name).is_none());
    let ends = alone.filter_map(|pipe| handle(pipe.device));
    ends.filter(|end| reading.contains(end)).collect()
}

fn descriptor(file: &Listed<'_>, reading: &BTreeSet<u64>) -> Option<Descriptor> {
    let fd = number(file)?;
    let mut access = match file.access {
        "r" => Some(Access::Read),
        "w" => Some(Access::Write),
        "u" => Some(Access::ReadWrite),
        _ => None,
    };
    let target = if is_pipe(file) {
        if file.kind == "PIPE" {
            let is_read = handle(file.device).is_some_and(|own| reading.contains(&own));
            access = Some(if is_read { Access::Read } else { Access::Write });
        }
        Target::Pipe {
            inode: pipe_inode(file)?,
        }
    } else if let "unix" | "IPv4" | "IPv6" | "sock" = file.kind {
        access = None;
        Target::Socket {
            inode: own_inode(file)?,
        }
    } else if file.name == "/dev/null" {
        Target::Null
    } else if file.name.starts_with("/dev/tty") || file.name.starts_with("/dev/pts/") {
        Target::Terminal {
            path: Foreign::from(file.name),
        }
    } else if file.name.starts_with('/') {
        Target::File {
            path: Foreign::from(file.name),
            deleted: file.name.ends_with(" (deleted)"),
        }
    } else {
        Target::Kernel {
            name: Foreign::from(file.name),
        }
    };
    Some(Descriptor {
        fd,
        access,
        close_on_exec: None,
        locked: false,
        wakes_in_ms: None,
        named_pipe: named_pipe(file),
        target,
    })
}

/// A pipe with a path is a named one, and both its ends are one file.
fn named_pipe(file: &Listed<'_>) -> Option<NamedPipe> {
    let is_one = file.kind == "FIFO" && file.name.starts_with('/');
    Some(NamedPipe {
        device: handle(file.within)?,
        inode: file.inode.filter(|_| is_one)?,
    })
}

/// The number of a descriptor; the working folder, the program and its libraries have none.
fn number(file: &Listed<'_>) -> Option<u32> {
    file.fd.parse().ok()
}

/// Both ends of a Mac's pipe are told by the lower of their handles, as Linux tells them by one inode.
fn pipe_inode(file: &Listed<'_>) -> Option<u64> {
    file.inode.or_else(|| {
        let own = handle(file.device)?;
        Some(peer(file.name).map_or(own, |other| own.min(other)))
    })
}

fn own_inode(file: &Listed<'_>) -> Option<u64> {
    file.inode
        .or_else(|| handle(file.device))
        // Linux has the inode of a TCP or UDP socket in the place of its device.
        .or_else(|| file.device.parse().ok())
        .or_else(|| file.name.parse().ok())
}

fn inet<'a>(file: &Listed<'a>) -> Option<Inet<'a>> {
    let is_inet = matches!(file.kind, "IPv4" | "IPv6");
    Some(Inet {
        inode: own_inode(file).filter(|_| is_inet)?,
        kind: file.kind,
        protocol: file.protocol,
        name: file.name,
        state: file.state,
    })
}

fn socket(file: &Listed<'_>) -> Option<UnixSocket> {
    let inode = own_inode(file)?;
    let listening = file.state == "LISTEN" || file.name.contains("(LISTEN)");
    let path = file.name.split(" type=").next().unwrap_or_default();
    let named = path.starts_with('/') || path.starts_with('@');
    let connected =
        file.state == "CONNECTED" || file.name.contains("CONNECTED") || file.name.starts_with("->");
    let other = peer(file.name);
    let peer = match (other, connected && !listening) {
        (Some(other), _) => Some(other),
        (None, true) => Some(0),
        (None, false) => None,
    };
    let closed = peer == Some(0);
    Some(UnixSocket {
        inode,
        peer,
        no_more_input: closed,
        no_more_output: closed,
        listening,
        name: named.then(|| path.as_bytes().to_vec()),
        unread_bytes: 0,
    })
}

/// A Mac's kernel address: a name for one end, and nothing else.
fn handle(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The other end: `->0x…` on a Mac, `->INO=…` on Linux; none if there is none, as `->(none)` says.
fn peer(name: &str) -> Option<u64> {
    let (_, after) = name.split_once("->")?;
    let first = after.split([' ', ',']).next()?;
    match first.strip_prefix("INO=") {
        Some(inode) => inode.parse().ok(),
        None => handle(first),
    }
}
