//! All that one look saw: the form in which it is kept as evidence.

use model::Wall;
use serde::{Deserialize, Serialize};

use crate::{
    Access, Holder, NamedPipe, Pipe, Process, Socket, TcpSocket, UdpSocket, Unreadable, named,
    portable,
};

/// The version of the form that this code writes.
pub const SCHEMA: &str = "lych.snapshot/v1";

/// All that one look saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of this form.
    pub schema: String,
    /// When the look began.
    pub observed_at: Wall,
    /// When it ended; in between processes may have come and gone.
    pub finished_at: Wall,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// Effective user id of whoever looked: what it may read depends on it.
    pub observer_uid: u32,
    /// Whether every process and every descriptor was seen.
    pub complete: bool,
    /// What was not, and why.
    pub unreadable: Vec<Unreadable>,
    /// All processes, by pid.
    pub processes: Vec<Process>,
    /// All anonymous pipes that somebody was seen to hold, by inode.
    pub pipes: Vec<Pipe>,
    /// All unix sockets of this network namespace, by inode.
    pub sockets: Vec<Socket>,
    /// The TCP sockets of the network namespaces of the processes that were looked at closer.
    pub tcp: Vec<TcpSocket>,
    /// The UDP sockets of the same.
    #[serde(default)]
    pub udp: Vec<UdpSocket>,
}

impl Snapshot {
    /// Returns the process that had this number.
    #[must_use]
    pub fn process(&self, pid: u32) -> Option<&Process> {
        let at = self
            .processes
            .binary_search_by_key(&pid, Process::pid)
            .ok()?;
        self.processes.get(at)
    }

    pub(crate) fn process_mut(&mut self, pid: u32) -> Option<&mut Process> {
        let at = self
            .processes
            .binary_search_by_key(&pid, Process::pid)
            .ok()?;
        self.processes.get_mut(at)
    }

    /// Returns the pipe with this inode.
    #[must_use]
    pub fn pipe(&self, inode: u64) -> Option<&Pipe> {
        let at = self
            .pipes
            .binary_search_by_key(&inode, |pipe| pipe.inode)
            .ok()?;
        self.pipes.get(at)
    }

    pub(crate) fn pipe_mut(&mut self, inode: u64) -> Option<&mut Pipe> {
        let at = self
            .pipes
            .binary_search_by_key(&inode, |pipe| pipe.inode)
            .ok()?;
        self.pipes.get_mut(at)
    }

    /// Returns the unix socket with this inode.
    #[must_use]
    pub fn socket(&self, inode: u64) -> Option<&Socket> {
        let at = self
            .sockets
            .binary_search_by_key(&inode, |socket| socket.inode)
            .ok()?;
        self.sockets.get(at)
    }

    /// Returns who was seen to hold an end of a named pipe.
    pub fn named_pipe(&self, pipe: NamedPipe) -> impl Iterator<Item = Holder> {
        let ends = self.processes.iter().flat_map(|process| {
            let open = process.open();
            open.map(move |open| (process.pid(), open))
        });
        let ours = ends.filter(move |(_, open)| open.named_pipe == Some(pipe));
        ours.map(|(pid, open)| Holder {
            pid,
            fd: open.fd,
            access: open.access.unwrap_or(Access::Neither),
        })
    }

    /// Tells whether a holder that is in no list does not exist: all processes and all descriptors were seen.
    #[must_use]
    pub fn all_holders_seen(&self) -> bool {
        let all_shown = self.unreadable.iter().all(|gap| gap.pid.is_some());
        all_shown
            && self
                .unreadable
                .iter()
                .all(|gap| gap.what != "process" && gap.what != named::WHAT)
            && self
                .processes
                .iter()
                .all(|process| process.descriptors.value().is_some())
    }

    /// Tells whether each process has the number of its session; ps(1) tells only which ones lead one.
    #[must_use]
    pub fn tells_sessions(&self) -> bool {
        self.boot_id != portable::NO_BOOT
    }

    /// Returns the children of a process.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = &Process> {
        self.processes
            .iter()
            .filter(move |process| process.ppid == pid)
    }

    /// Returns the parents of a process, the nearest first.
    ///
    /// Ends where a parent is younger than its child: it is then not the parent but a later holder of the
    /// number, read at another moment.
    #[must_use]
    pub fn ancestors(&self, pid: u32) -> Vec<&Process> {
        let mut chain: Vec<&Process> = Vec::new();
        let mut at = self.process(pid);
        while let Some(child) = at {
            at = self
                .process(child.ppid)
                .filter(|parent| parent.id.start_ticks <= child.id.start_ticks)
                .filter(|parent| {
                    parent.pid() != pid && chain.iter().all(|seen| seen.pid() != parent.pid())
                });
            chain.extend(at);
        }
        chain
    }
}
