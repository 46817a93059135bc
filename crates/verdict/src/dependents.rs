//! Who is connected to what a unit listens on.

use std::collections::{BTreeSet, HashMap};

use inventory::{Target, TcpState};

use crate::{units::Unit, world::World};

/// Who is connected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Users {
    /// Living processes outside of the unit.
    pub(crate) pids: BTreeSet<u32>,
    /// Ends of connections that are open and whose process cannot be seen: another user's, another machine's.
    pub(crate) unseen: BTreeSet<String>,
}

impl Users {
    pub(crate) fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.unseen.is_empty()
    }

    /// Says who they are.
    pub(crate) fn words(&self) -> String {
        let pids = self.pids.iter().map(|pid| format!("pid {pid}"));
        let unseen = self.unseen.iter().cloned();
        pids.chain(unseen).collect::<Vec<_>>().join(", ")
    }
}

/// Returns who is connected to a socket that a unit offers.
pub(crate) fn dependents(world: &World<'_>, unit: &Unit<'_>) -> Users {
    let sockets: BTreeSet<u64> = unit
        .all()
        .filter_map(|pid| world.process(pid))
        .flat_map(|process| process.open())
        .filter_map(|open| match open.target {
            Target::Socket { inode } => Some(inode),
            Target::Pipe { .. }
            | Target::Null
            | Target::Terminal { .. }
            | Target::File { .. }
            | Target::Kernel { .. } => None,
        })
        .collect();
    let mut users = Users::default();
    unix_users(world, &sockets, &mut users);
    tcp_users(world, &sockets, &mut users);
    users.pids.retain(|pid| !unit.has(*pid));
    users
}

/// An accepted connection has the name of the listener it came from.
fn unix_users(world: &World<'_>, own: &BTreeSet<u64>, users: &mut Users) {
    let snapshot = world.snapshot();
    let ours = |inode: &u64| snapshot.socket(*inode);
    let offered: BTreeSet<_> = own
        .iter()
        .filter_map(ours)
        .filter(|socket| socket.listening)
        .filter_map(|socket| socket.name.clone())
        .collect();
    let accepted = own.iter().filter_map(ours).filter(|socket| {
        !socket.listening
            && socket
                .name
                .as_ref()
                .is_some_and(|name| offered.contains(name))
    });
    for socket in accepted {
        let peer = socket.peer.filter(|peer| *peer != 0);
        let holders = peer.and_then(|peer| snapshot.socket(peer));
        let pids: Vec<u32> = holders
            .iter()
            .flat_map(|peer| peer.holders.iter().map(|holder| holder.pid))
            .collect();
        if let (Some(peer), true) = (peer, pids.is_empty()) {
            users.unseen.insert(format!("the holder of socket {peer}"));
        }
        users.pids.extend(pids);
    }
}

fn tcp_users(world: &World<'_>, own: &BTreeSet<u64>, users: &mut Users) {
    let of = |state| {
        own.iter()
            .flat_map(|inode| world.tcp(*inode))
            .filter(move |socket| socket.state == state)
    };
    let ports: BTreeSet<(u64, u16)> = of(TcpState::Listen)
        .map(|socket| (socket.network_namespace, socket.local.port()))
        .collect();
    let accepted: Vec<_> = of(TcpState::Established)
        .filter(|socket| ports.contains(&(socket.network_namespace, socket.local.port())))
        .collect();
    if accepted.is_empty() {
        return;
    }
    let holders = holders(world);
    for socket in accepted {
        let other_end = world
            .snapshot()
            .tcp
            .iter()
            .find(|other| socket.local == other.remote && socket.remote == other.local);
        let pids = other_end.and_then(|other| holders.get(&other.inode));
        match (pids, other_end.map(|other| other.inode)) {
            (Some(pids), _) => users.pids.extend(pids),
            // The kernel still holds it, but no process does: it was closed on that side.
            (None, Some(0)) => {}
            (None, _) => {
                users.unseen.insert(socket.remote.to_string());
            }
        }
    }
}

fn holders(world: &World<'_>) -> HashMap<u64, Vec<u32>> {
    let mut found: HashMap<u64, Vec<u32>> = HashMap::new();
    for process in &world.snapshot().processes {
        for open in process.open() {
            if let Target::Socket { inode } = open.target {
                found.entry(inode).or_default().push(process.pid());
            }
        }
    }
    found
}
