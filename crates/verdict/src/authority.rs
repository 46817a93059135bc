//! What a unit could still do, by names only, and in words that promise nothing.
//!
//! A connection that is seen is no proof of ability, and one that is not seen no proof of inability.

use std::collections::BTreeSet;

use inventory::{Process, Target, TcpState};
use model::{Foreign, redact};

use crate::{Authority, AuthorityLevel as Level, world::World};

/// Whether processes have a way out through the gate of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// They have no run of ours.
    None,
    /// Their run may act.
    Open,
    /// Their run's authority was taken away.
    Revoked,
}

/// Collects what these processes hold and reach.
pub(crate) fn authority(world: &World<'_>, processes: &[&Process], gate: Gate) -> Authority {
    let env_names = env_names(processes);
    let files = secret_files(processes);
    let sockets = sockets(world, processes);
    let (tcp, connected) = tcp(world, processes);
    let agents = sockets
        .iter()
        .filter(|socket| is_agent(socket.raw()))
        .count();
    let mut because = Vec::new();
    let mut level = Level::NoneSeen;
    let mut raise = |to: Level, why: String| {
        level = level.max(to);
        because.push(why);
    };
    match gate {
        Gate::None => {}
        Gate::Open => raise(
            Level::Reachable,
            "its run's authority was not taken away".to_owned(),
        ),
        Gate::Revoked => raise(
            Level::Refused,
            "its run's authority was taken away".to_owned(),
        ),
    }
    if !env_names.is_empty() {
        raise(
            Level::Held,
            "it was started with variables that are likely to hold secrets".to_owned(),
        );
    }
    if !files.is_empty() {
        raise(
            Level::Held,
            "it has files open that are likely to hold secrets".to_owned(),
        );
    }
    if agents > 0 {
        raise(
            Level::Held,
            "it is connected to an agent that signs or logs in for it".to_owned(),
        );
    }
    if connected {
        raise(Level::Reachable, "it has TCP connections".to_owned());
    }
    if sockets.len() > agents {
        raise(
            Level::Reachable,
            "it is connected to local services".to_owned(),
        );
    }
    let unread = processes
        .iter()
        .filter(|process| !is_readable(process))
        .count();
    if unread > 0 {
        if level == Level::NoneSeen {
            level = Level::Unknown;
        }
        because.push(format!(
            "of {unread} of its processes not everything could be read"
        ));
    } else if level == Level::NoneSeen {
        because.push("nothing was seen, which does not show that there is nothing".to_owned());
    }
    Authority {
        level,
        because,
        consumes: Vec::new(),
        env_names,
        files,
        sockets,
        tcp,
    }
}

fn is_readable(process: &Process) -> bool {
    let env = process
        .closer
        .as_ref()
        .and_then(|closer| closer.env_names.value());
    process.descriptors.value().is_some() && env.is_some()
}

fn env_names(processes: &[&Process]) -> Vec<Foreign> {
    let names: BTreeSet<Foreign> = processes
        .iter()
        .filter_map(|process| process.closer.as_ref())
        .filter_map(|closer| closer.env_names.value())
        .flatten()
        .filter(|name| is_secret_variable(name.raw()))
        .cloned()
        .collect();
    names.into_iter().collect()
}

fn is_secret_variable(name: &str) -> bool {
    VARIABLES.contains(&name) || redact::names_a_secret(name)
}

fn secret_files(processes: &[&Process]) -> Vec<Foreign> {
    let mut found = BTreeSet::new();
    for open in processes.iter().flat_map(|process| process.open()) {
        if let Target::File { path, .. } = &open.target
            && FILES.iter().any(|part| path.raw().contains(part))
        {
            found.insert(path.clone());
        }
    }
    found.into_iter().collect()
}

/// The names of the unix sockets at the other ends, and of those offered.
fn sockets(world: &World<'_>, processes: &[&Process]) -> Vec<Foreign> {
    let snapshot = world.snapshot();
    let mut found = BTreeSet::new();
    for open in processes.iter().flat_map(|process| process.open()) {
        if let Target::Socket { inode } = open.target
            && let Some(socket) = snapshot.socket(inode)
        {
            let peer = socket.peer.and_then(|peer| snapshot.socket(peer));
            found.extend(peer.and_then(|peer| peer.name.clone()));
            found.extend(socket.name.clone());
        }
    }
    found.into_iter().collect()
}

fn is_agent(socket: &str) -> bool {
    AGENTS.iter().any(|part| socket.contains(part))
}

/// TCP as text, and whether any of it leads somewhere.
fn tcp(world: &World<'_>, processes: &[&Process]) -> (Vec<Foreign>, bool) {
    let mut found = BTreeSet::new();
    let mut connected = false;
    for open in processes.iter().flat_map(|process| process.open()) {
        let Target::Socket { inode } = open.target else {
            continue;
        };
        for socket in world.tcp(inode) {
            if socket.state == TcpState::Listen {
                found.insert(Foreign::new(format!("listens on {}", socket.local)));
            } else {
                connected |= matches!(socket.state, TcpState::Established | TcpState::SynSent);
                found.insert(Foreign::new(format!(
                    "{} -> {}",
                    socket.local, socket.remote
                )));
            }
        }
    }
    (found.into_iter().collect(), connected)
}

/// Variables that name a way to act without holding a secret by their own name.
const VARIABLES: [&str; 8] = [
    "SSH_AUTH_SOCK",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_PROFILE",
    "KUBECONFIG",
    "DOCKER_HOST",
    "DATABASE_URL",
    "NETRC",
    "PGPASSFILE",
];

const FILES: [&str; 10] = [
    "/.ssh/",
    "/.aws/",
    "/.gnupg/",
    "/.netrc",
    "/.kube/",
    "/.config/gcloud/",
    "/.docker/config.json",
    "/.env",
    ".pem",
    ".key",
];

/// ssh-agent, gpg-agent, control masters, keyrings, the container engine.
const AGENTS: [&str; 6] = [
    "/agent.",
    "S.gpg-agent",
    "/.ssh/",
    "keyring",
    "docker.sock",
    "ssh-",
];
