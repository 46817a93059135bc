//! Joins the two ends of pipes and unix sockets: who holds which end is always a list.
//!
//! Sharing an inode is not being connected: only a holder that can *write* is the other end of a reader, and
//! two processes with the same socket end are on one side.

use std::collections::HashMap;

use model::{Foreign, Known};
use serde::{Deserialize, Serialize};
use sys::unix_diag::UnixSocket;

use crate::{Access, Process, Target};

/// A descriptor of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Whose.
    pub pid: u32,
    /// Its number.
    pub fd: u32,
    /// How it was opened.
    pub access: Access,
}

/// An anonymous pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    /// What both its ends share.
    pub inode: u64,
    /// Who was seen to hold one of its ends.
    pub holders: Vec<Holder>,
    /// Whether nobody at all can write any more, by asking the pipe itself.
    pub hung_up: Known<bool>,
    /// Bytes written and not yet read.
    pub unread_bytes: Known<u64>,
}

/// A unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// Its inode.
    pub inode: u64,
    /// The other end: `null` if there never was one, 0 if it is closed.
    pub peer: Option<u64>,
    /// Nothing more can be read from it once what is there is read.
    pub no_more_input: bool,
    /// Nothing more can be written to it.
    pub no_more_output: bool,
    /// Whether it waits for connections.
    pub listening: bool,
    /// The path or abstract name it is bound to.
    pub name: Option<Foreign>,
    /// Bytes received and not yet read.
    pub unread_bytes: u64,
    /// Who was seen to hold it.
    pub holders: Vec<Holder>,
}

impl Pipe {
    /// Returns who can write into it.
    pub fn writers(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(|holder| holder.access.writes())
    }

    /// Returns who can read from it.
    pub fn readers(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(|holder| holder.access.reads())
    }
}

/// Collects the holders of every pipe, in one pass over all descriptors.
pub(crate) fn pipes(processes: &[Process]) -> Vec<Pipe> {
    let mut ends: Vec<(u64, Holder)> = descriptors(processes)
        .filter_map(|(process, descriptor)| match descriptor.target {
            Target::Pipe { inode } => {
                let access = descriptor.access.unwrap_or(Access::Neither);
                Some((inode, holder(process, descriptor.fd, access)))
            }
            Target::Socket { .. }
            | Target::Null
            | Target::Terminal { .. }
            | Target::File { .. }
            | Target::Kernel { .. } => None,
        })
        .collect();
    // A stable sort keeps the holders in the order in which they were seen.
    ends.sort_by_key(|(inode, _)| *inode);
    let same = |one: &(u64, Holder), other: &(u64, Holder)| one.0 == other.0;
    let pipe = |ends: &[(u64, Holder)]| {
        let (inode, _) = ends.first()?;
        Some(Pipe {
            inode: *inode,
            holders: ends.iter().map(|(_, holder)| holder.clone()).collect(),
            hung_up: Known::unknown("not asked"),
            unread_bytes: Known::unknown("not asked"),
        })
    };
    ends.chunk_by(same).filter_map(pipe).collect()
}

const fn holder(process: &Process, fd: u32, access: Access) -> Holder {
    Holder {
        pid: process.pid(),
        fd,
        access,
    }
}

/// Joins the kernel's list of unix sockets with the descriptors that hold them.
pub(crate) fn sockets(processes: &[Process], listed: Vec<UnixSocket>) -> Vec<Socket> {
    let mut held: HashMap<u64, Vec<Holder>> = HashMap::new();
    for (process, descriptor) in descriptors(processes) {
        if let Target::Socket { inode } = descriptor.target {
            let holder = holder(process, descriptor.fd, Access::ReadWrite);
            held.entry(inode).or_default().push(holder);
        }
    }
    let mut sockets: Vec<Socket> = listed
        .into_iter()
        .map(|socket| Socket {
            inode: socket.inode,
            peer: socket.peer,
            no_more_input: socket.no_more_input,
            no_more_output: socket.no_more_output,
            listening: socket.listening,
            name: socket.name.map(|name| Foreign::from_bytes(&name)),
            unread_bytes: socket.unread_bytes,
            holders: held.remove(&socket.inode).unwrap_or_default(),
        })
        .collect();
    sockets.sort_unstable_by_key(|socket| socket.inode);
    sockets
}

fn descriptors(processes: &[Process]) -> impl Iterator<Item = (&Process, &crate::Descriptor)> {
    processes
        .iter()
        .flat_map(|process| process.open().map(move |descriptor| (process, descriptor)))
}
