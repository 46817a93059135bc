//! The first line on the agent's socket and its one reply.

use model::{ConnectionId, Explain, Foreign, ProcessId, SessionId};
use serde::{Deserialize, Serialize};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The stdio server for an agent.
    Mcp,
}

/// What the shim says first.
///
/// Inodes are claims that help to find the holder; the daemon looks for itself and believes only what it
/// sees. Where it is another user it sees no descriptor, and what it is told of the holder stays marked as told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Lowest version of the wire it speaks.
    pub min: u16,
    /// Highest version of the wire it speaks.
    pub max: u16,
    /// Version of the product.
    pub version: String,
    /// What it is for.
    pub role: Role,
    /// Inode of its standard input, if it has one.
    pub stdin_inode: Option<u64>,
    /// Inode of its standard output, if it has one.
    pub stdout_inode: Option<u64>,
    /// Its parent's pid.
    pub parent: u32,
    /// How it was called.
    pub argv0: Foreign,
    /// Which process holds the other end of its standard input; said where the daemon is another user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<ProcessId>,
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The connection is part of a run; bytes of the agent's protocol follow.
    Welcome(Welcome),
    /// It is not; the socket closes.
    Refused(Refusal),
}

/// The connection is part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version both speak from here on.
    pub protocol: u16,
    /// The daemon's version.
    pub version: String,
    /// The run.
    pub session: SessionId,
    /// The connection.
    pub connection: ConnectionId,
}

/// The connection is not part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The daemon's version.
    pub version: String,
    /// What a person reads.
    pub explain: Explain,
}

/// Returns the highest version that both ranges hold.
#[must_use]
pub fn choose_protocol(ours: (u16, u16), theirs: (u16, u16)) -> Option<u16> {
    let highest = ours.1.min(theirs.1);
    (highest >= ours.0 && highest >= theirs.0).then_some(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_meet_at_the_highest_common_version_or_not_at_all() {
        assert_eq!(choose_protocol((1, 3), (2, 5)), Some(3));
        assert_eq!(choose_protocol((1, 1), (2, 5)), None);
        assert_eq!(choose_protocol((3, 5), (1, 2)), None);
    }
}
