//! Whether a process still has the parent that started it.
//!
//! The kernel does not say that a parent is only an adopter, nor which process asked to be one, so it is
//! told from what does not fit: PPID 1 alone is a hint and no verdict.

use inventory::Process;

use crate::world::World;

/// The parent of a process, as far as it can be told.
#[derive(Debug, Clone)]
pub(crate) enum Parent<'a> {
    /// The one that started it is gone, as this says; another takes in what is left over.
    Adopter(String),
    /// A living process that may well have started it.
    Living(&'a Process),
    /// It cannot be seen.
    Unseen(&'static str),
}

/// Tells who the parent of a process is to it.
pub(crate) fn parent<'a>(world: &World<'a>, process: &Process) -> Parent<'a> {
    if process.ppid == 0 {
        return Parent::Unseen("its parent is outside of what can be seen from here");
    }
    let Some(parent) = world.parent(process) else {
        return Parent::Unseen("its parent changed while we looked");
    };
    let name = parent.comm.raw();
    if parent.pid() == 1 && all_shown(world) {
        let why = format!("its parent is gone: pid 1 ({name}) adopted it");
        return Parent::Adopter(why);
    }
    if is_adopter(parent) {
        let why = format!(
            "its parent is gone: {name} (pid {}) adopted it",
            parent.pid()
        );
        return Parent::Adopter(why);
    }
    // A child inherits its session. It can leave it, but only by becoming leader of an own one.
    let told = world.snapshot().tells_sessions();
    if told && process.sid != parent.sid && process.sid != process.pid() {
        let why = format!(
            "its parent is gone: it is of session {}, pid {} above it is not",
            process.sid,
            parent.pid()
        );
        return Parent::Adopter(why);
    }
    Parent::Living(parent)
}

/// Inside a container number 1 may be anybody, also the client.
fn all_shown(world: &World<'_>) -> bool {
    world
        .snapshot()
        .unreadable
        .iter()
        .all(|gap| gap.pid.is_some() || gap.what != HIDDEN)
}

/// Tells whether a process is known to take in what others leave, by its name.
pub(crate) fn is_adopter(process: &Process) -> bool {
    let name = process.comm.raw();
    ADOPTERS.contains(&name) || name.starts_with(WSL_RELAY)
}

/// As `inventory` calls it when not all processes are shown.
const HIDDEN: &str = "other processes";

/// Stands between Windows and a Linux session there, and takes in what that leaves.
const WSL_RELAY: &str = "Relay(";

/// Programs that only start and reap: inits of machines, users and containers, their shims, session managers.
const ADOPTERS: [&str; 11] = [
    "init",
    "SessionLeader",
    "systemd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "containerd-shim",
    "conmon",
    "s6-svscan",
    "launchd",
];
