//! Who is connected to what a unit listens on.

use std::collections::{BTreeSet, HashMap};

use inventory::{Target, TcpState};

use crate::{units::Unit, world::World};

/// Returns the living processes outside of a unit that are connected to a socket it offers.
pub(crate) fn dependents(world: &World<'_>, unit: &Unit<'_>) -> BTreeSet<u32> {
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
    let mut users = unix_users(world, &sockets);
    users.extend(tcp_users(world, &sockets));
    users.retain(|pid| !unit.has(*pid));
    users
}

/// An accepted connection has the name of the listener it came from.
fn unix_users(world: &World<'_>, own: &BTreeSet<u64>) -> BTreeSet<u32> {
    let snapshot = world.snapshot();
    let ours = |inode: &u64| snapshot.socket(*inode);
    let offered: BTreeSet<_> = own
        .iter()
        .filter_map(ours)
        .filter(|socket| socket.listening)
        .filter_map(|socket| socket.name.clone())
        .collect();
    own.iter()
        .filter_map(ours)
        .filter(|socket| {
            socket
                .name
                .as_ref()
                .is_some_and(|name| offered.contains(name))
        })
        .filter_map(|socket| snapshot.socket(socket.peer?))
        .flat_map(|peer| peer.holders.iter().map(|holder| holder.pid))
        .collect()
}

fn tcp_users(world: &World<'_>, own: &BTreeSet<u64>) -> BTreeSet<u32> {
    let tcp = &world.snapshot().tcp;
    let ours = |state| {
        tcp.iter()
            .filter(move |socket| socket.state == state && own.contains(&socket.inode))
    };
    let ports: BTreeSet<(u64, u16)> = ours(TcpState::Listen)
        .map(|socket| (socket.network_namespace, socket.local.port()))
        .collect();
    if ports.is_empty() {
        return BTreeSet::new();
    }
    let accepted: Vec<_> = ours(TcpState::Established)
        .filter(|socket| ports.contains(&(socket.network_namespace, socket.local.port())))
        .collect();
    let other_ends: BTreeSet<u64> = tcp
        .iter()
        .filter(|other| {
            accepted
                .iter()
                .any(|ours| ours.local == other.remote && ours.remote == other.local)
        })
        .map(|other| other.inode)
        .collect();
    let holders = holders(world);
    other_ends
        .iter()
        .filter_map(|inode| holders.get(inode))
        .flatten()
        .copied()
        .collect()
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
