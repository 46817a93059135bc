//! The launch record: a hint, kept outside the log, of who holds which wire.

use serde::{Deserialize, Serialize};

use crate::{ChainLink, ConnectionId, Known, ProcessRef, SessionId, Wall};

/// What the daemon writes beside the log for every connection, so that a warden without a daemon can
/// attribute a process. A hint of medium strength: anybody with the user's rights could have written it,
/// so it is checked against the log's clear headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Version of this form.
    pub schema: String,
    /// Which connection.
    pub connection: ConnectionId,
    /// Which run.
    pub session: SessionId,
    /// Sequence number of the run's first record, to find it in the log.
    pub session_seq: u64,
    /// Shim → … → client.
    pub chain: Vec<ChainLink>,
    /// The links found dead, with the time.
    pub lost: Vec<LinkSeen>,
    /// When the connection was made.
    pub connected_at: Wall,
    /// When its transport closed.
    pub transport_closed_at: Option<Wall>,
    /// When the run's authority was taken away.
    pub revoked_at: Option<Wall>,
    /// What was seen below the client while it was connected: so servers that are not ours, and what they
    /// leave behind, can be attributed after it is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildSeen>,
}

/// A process below a client, as it was seen while the client was connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildSeen {
    /// The process, its command line redacted.
    pub process: ProcessRef,
    /// Its parent at that time; later it may be whoever adopted it.
    pub ppid: u32,
    /// Its process group.
    pub pgid: u32,
    /// SHA-256 of its whole command line, in hex: tells equal ones without keeping what may be secret.
    pub argv_sha256: String,
    /// Inodes of the pipes and sockets at its standard input and output; not known where the daemon is another
    /// user.
    pub pipes: Known<Vec<u64>>,
    /// When it was seen first.
    pub first_seen: Wall,
    /// When it was seen last.
    pub last_seen: Wall,
}

/// That a link was found dead at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSeen {
    /// The process.
    pub process: ProcessRef,
    /// When it was found dead.
    pub at: Wall,
}

impl LaunchRecord {
    /// The version of the form that this code writes.
    pub const SCHEMA: &'static str = "lych.launch/v1";
}
