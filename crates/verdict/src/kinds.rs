//! The words of a report: closed lists, so that whoever reads them can be complete.

use clients::Strength;
use serde::{Deserialize, Serialize};

/// What a unit of processes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// The run that gave it meaning is dead or revoked, though its wire may be open.
    LogicalOrphan,
    /// Its client is gone and its transport is at its end.
    OsOrphan,
    /// Its client is gone and somebody who is no client holds its transport open.
    OrphanHeldOpen,
    /// Its parent lives but has let go of its transport.
    Detached,
    /// A helper that outlived its server.
    LeftoverChild,
    /// Its client holds it but may have forgotten it, or is stuck.
    LogicalOrphanSuspect,
    /// Something that had to be known could not be read.
    Unknown,
    /// It has ended, and its parent has not taken notice.
    Zombie,
    /// A record names it, but its number belongs to another process now.
    Recycled,
    /// Others are connected to it.
    Shared,
    /// A service manager runs it.
    Managed,
    /// A living process holds the other end of its transport.
    Live,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Nothing can be said.
    Unknown,
    /// Something points to it.
    Suspected,
    /// All that was seen fits it, but a part was not seen.
    Inferred,
    /// Of an orphan: it was a stdio server, the other end of its transport is gone, no client lives in its chain.
    Proven,
}

/// What else is true of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Also {
    /// It uses a processor all the time.
    Spinning,
    /// It holds a port or a lock that others may need.
    Holds,
    /// Requests were delivered to it that it has not read.
    Busy,
    /// It ignores SIGTERM.
    TermImmune,
}

/// How well processes fit a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fits {
    /// The whole command line is as configured.
    Exact,
    /// Program and server argument fit.
    Strong,
    /// The program fits, the arguments do not.
    Weak,
    /// Several configured servers fit equally well.
    Ambiguous,
    /// Known from a record, not from a configuration.
    None,
}

/// What one end of a wire is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// An anonymous pipe.
    Pipe,
    /// One end of a nameless pair of unix sockets.
    Socketpair,
    /// Any other socket.
    Socket,
    /// A terminal.
    Tty,
    /// `/dev/null`.
    Null,
    /// A file, a device, or a named pipe: only of that its state is told.
    File,
    /// Closed, or not readable to whoever looked.
    None,
}

/// What became of the other end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// Somebody holds it.
    Open,
    /// Nobody does, and nothing will come any more.
    Eof,
    /// Somebody who is no client holds it.
    HeldOpen,
    /// Not known.
    Unknown,
}

/// How the state of a wire is known, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The kernel's list of unix sockets says so (sock_diag(7)).
    UnixDiag,
    /// The reopened pipe says so (`POLLHUP`, poll(2)).
    PipeHup,
    /// All descriptors of all processes were seen, and these are the holders.
    HolderScan,
}

/// The strongest kind of authority that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorityLevel {
    /// It could not be read.
    Unknown,
    /// Nothing was seen, which does not show that there is nothing.
    NoneSeen,
    /// Its run's authority was taken away, and it was seen to hold no other.
    Refused,
    /// It is connected to something that may act for it.
    Reachable,
    /// It holds a secret itself.
    Held,
}

/// Where a fact was seen; evidence is told in this order, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// The log's clear headers.
    Log,
    /// A launch record.
    LaunchRecord,
    /// What the daemon saw below a connected client.
    Census,
    /// A run through the gate of ours, whose chain names a process above it.
    Run,
    /// The kernel's list of unix sockets.
    UnixDiag,
    /// The pipe itself.
    Pipe,
    /// The descriptors of all processes.
    Descriptors,
    /// The process's own entries in `/proc`.
    Proc,
    /// The names of the variables it was started with.
    Environment,
    /// The control group.
    ControlGroup,
    /// The process group.
    ProcessGroup,
    /// A client's configuration.
    Configuration,
    /// What a client wrote into its own log.
    LaunchLog,
    /// What started when it did.
    StartTime,
}

/// How much a fact weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceStrength {
    /// A hint.
    Weak,
    /// Anybody of the same user could have made it so.
    Medium,
    /// The kernel says so.
    Strong,
}

/// What to do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suggest {
    /// Preserve, revoke, end, record.
    Contain,
    /// Look at it and decide.
    Report,
    /// Nothing.
    Leave,
    /// Replace the secrets it holds.
    Rotate,
}

impl Verdict {
    /// Tells whether something is left over that should not be.
    #[must_use]
    pub const fn is_orphan(self) -> bool {
        matches!(
            self,
            Self::LogicalOrphan
                | Self::OsOrphan
                | Self::OrphanHeldOpen
                | Self::Detached
                | Self::LeftoverChild
        )
    }

    /// Tells whether it must not be contained.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        matches!(self, Self::Live | Self::Managed | Self::Shared)
    }

    /// Returns the word that JSON uses.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::LogicalOrphan => "LOGICAL_ORPHAN",
            Self::OsOrphan => "OS_ORPHAN",
            Self::OrphanHeldOpen => "ORPHAN_HELD_OPEN",
            Self::Detached => "DETACHED",
            Self::LeftoverChild => "LEFTOVER_CHILD",
            Self::LogicalOrphanSuspect => "LOGICAL_ORPHAN_SUSPECT",
            Self::Unknown => "UNKNOWN",
            Self::Zombie => "ZOMBIE",
            Self::Recycled => "RECYCLED",
            Self::Shared => "SHARED",
            Self::Managed => "MANAGED",
            Self::Live => "LIVE",
        }
    }
}

impl Confidence {
    /// Returns the word that JSON uses.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Suspected => "suspected",
            Self::Inferred => "inferred",
            Self::Proven => "proven",
        }
    }
}

impl AuthorityLevel {
    /// Returns the word that JSON uses.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::NoneSeen => "none_seen",
            Self::Refused => "refused",
            Self::Reachable => "reachable",
            Self::Held => "held",
        }
    }
}

impl From<Strength> for Fits {
    fn from(strength: Strength) -> Self {
        match strength {
            Strength::Exact => Self::Exact,
            Strength::Strong => Self::Strong,
            Strength::Weak => Self::Weak,
        }
    }
}
