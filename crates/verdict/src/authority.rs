//! What a unit could still do, by names only, and in words that promise nothing.
//!
//! A connection that is seen is no proof of ability, and one that is not seen no proof of inability.

use std::collections::BTreeSet;

use inventory::{Activity, Process, Socket, Target, TcpState};
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
    let sockets = sockets(world, processes, gate);
    let (tcp, connected) = tcp(world, processes);
    let (udp, sends) = udp(world, processes);
    let consumes = consumes(world, processes);
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
            format!("it was started with {}", some(&env_names)),
        );
    }
    if !files.is_empty() {
        raise(Level::Held, format!("it has {} open", some(&files)));
    }
    let (agents, services): (Vec<Foreign>, Vec<Foreign>) = sockets
        .iter()
        .cloned()
        .partition(|socket| is_agent(socket.raw()));
    if !agents.is_empty() {
        let what = "an agent that signs or logs in for it";
        raise(
            Level::Held,
            format!("it is connected to {what} ({})", some(&agents)),
        );
    }
    if connected {
        raise(
            Level::Reachable,
            format!("it has TCP connections ({})", some(&tcp)),
        );
    }
    if sends {
        raise(
            Level::Reachable,
            format!("it has UDP connections ({})", some(&udp)),
        );
    }
    if !consumes.is_empty() {
        raise(
            Level::Reachable,
            format!("what it takes nobody else gets ({})", some(&consumes)),
        );
    }
    if !services.is_empty() {
        raise(
            Level::Reachable,
            format!("it is connected to {}", some(&services)),
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
        because.push(
            "no secret, socket or connection was seen, which does not show that there is none"
                .to_owned(),
        );
    }
    Authority {
        level,
        because,
        consumes,
        env_names,
        files,
        sockets,
        tcp: tcp.into_iter().chain(udp).collect(),
    }
}

/// The first few names; the report has all of them.
fn some(names: &[Foreign]) -> String {
    let shown: Vec<String> = names.iter().take(3).map(ToString::to_string).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
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

/// The names of the unix sockets at the other ends, and of those offered. Our own gate is told of apart.
fn sockets(world: &World<'_>, processes: &[&Process], gate: Gate) -> Vec<Foreign> {
    let snapshot = world.snapshot();
    let mut found = BTreeSet::new();
    for open in processes.iter().flat_map(|process| process.open()) {
        if let Target::Socket { inode } = open.target
            && let Some(socket) = snapshot.socket(inode)
        {
            let peer = socket.peer.and_then(|peer| snapshot.socket(peer));
            if gate != Gate::None && peer.is_some_and(|peer| is_gate(world, peer)) {
                continue;
            }
            found.extend(peer.and_then(|peer| peer.name.clone()));
            found.extend(socket.name.clone());
        }
    }
    found.into_iter().collect()
}

/// Tells whether our daemon holds this socket; another user's view shows only its name.
fn is_gate(world: &World<'_>, socket: &Socket) -> bool {
    let named = socket
        .name
        .as_ref()
        .is_some_and(|name| name.raw().ends_with("/agent.sock"));
    let mut holders = socket
        .holders
        .iter()
        .filter_map(|holder| world.process(holder.pid));
    named && (socket.holders.is_empty() || holders.any(|holder| holder.comm.raw() == "lychd"))
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

/// UDP as text, and whether any of it leads somewhere.
fn udp(world: &World<'_>, processes: &[&Process]) -> (Vec<Foreign>, bool) {
    let mut found = BTreeSet::new();
    let mut sends = false;
    for open in processes.iter().flat_map(|process| process.open()) {
        let Target::Socket { inode } = open.target else {
            continue;
        };
        for socket in world.udp(inode) {
            let text = match socket.remote {
                Some(remote) => format!("udp {} -> {remote}", socket.local),
                None => format!("udp on {}", socket.local),
            };
            sends |= socket.remote.is_some();
            found.insert(Foreign::new(text));
        }
    }
    (found.into_iter().collect(), sends)
}

/// Connections that take something from elsewhere: to what is known to be a queue, or with a question that
/// waits for its answer, as a long poll does.
fn consumes(world: &World<'_>, processes: &[&Process]) -> Vec<Foreign> {
    let mut found = BTreeSet::new();
    for open in processes.iter().flat_map(|process| process.open()) {
        let Target::Socket { inode } = open.target else {
            continue;
        };
        let connected = world
            .tcp(inode)
            .filter(|socket| socket.state == TcpState::Established);
        for socket in connected {
            let queue = QUEUES
                .iter()
                .find(|(port, _)| *port == socket.remote.port());
            if let Some((_, name)) = queue {
                found.insert(Foreign::new(format!("{name} at {}", socket.remote)));
            } else if let Some(waits) = socket.activity.and_then(waits_for_an_answer) {
                found.insert(Foreign::new(format!(
                    "an answer of {}, asked for {} s ago",
                    socket.remote,
                    waits / 1000
                )));
            }
        }
    }
    found.into_iter().collect()
}

/// Asked after the last that was heard, long enough ago that a plain call would be over.
fn waits_for_an_answer(activity: Activity) -> Option<u32> {
    let asked = activity.bytes_sent.is_some_and(|bytes| bytes > 0);
    let unanswered = activity.sent_ms_ago < activity.received_ms_ago
        || activity.bytes_received.is_some_and(|bytes| bytes == 0);
    (asked && unanswered && activity.sent_ms_ago >= LONG_POLL_MS).then_some(activity.sent_ms_ago)
}

const LONG_POLL_MS: u32 = 1000;

/// Ports that the registry of service names gives to queues (IANA), or that everybody knows them by.
const QUEUES: [(u16, &str); 8] = [
    (1883, "MQTT"),
    (8883, "MQTT"),
    (4222, "NATS"),
    (5671, "AMQP"),
    (5672, "AMQP"),
    (6379, "Redis"),
    (9092, "Kafka"),
    (61613, "STOMP"),
];

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
