//! A process is an identity, not a number: numbers are given out again.

use serde::{Deserialize, Serialize};

use crate::{Foreign, Wall};

/// The file an executable image was loaded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExeId {
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number (`st_ino`).
    pub ino: u64,
}

/// What tells one process from every other one, also from a later holder of its pid.
///
/// Pid and start tick alone are not enough: under forced reuse 97.5 % of the pairs repeat, because a tick
/// lasts 10 ms. The pidfd's inode (pidfs, Linux 6.9) never does within one boot. Where it is missing the
/// identity is weaker and says so by its absence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The kernel's random id of this boot.
    pub boot_id: String,
    /// The process number, unique only at one moment.
    pub pid: u32,
    /// Clock ticks from boot to the start of the process (proc_pid_stat(5), field 22).
    pub start_ticks: u64,
    /// Inode of the process's pidfd, unique within one boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pidfd_inode: Option<u64>,
}

impl ProcessId {
    /// Tells whether both name the same process as far as both know.
    ///
    /// The pidfd inode decides where both have it; otherwise boot, pid and start tick must agree.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let base = self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_ticks == other.start_ticks;
        match (self.pidfd_inode, other.pidfd_inode) {
            (Some(ours), Some(theirs)) => base && ours == theirs,
            _ => base,
        }
    }
}

/// A process as records and people name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Which process.
    pub id: ProcessId,
    /// Its command line with values that look like secrets redacted.
    pub command: Vec<Foreign>,
    /// Where its executable was found, if that could be read.
    pub exe: Option<Foreign>,
    /// The executable's file, if that could be read.
    pub exe_id: Option<ExeId>,
}

/// One link of the chain shim → … → client, seen at admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// The process.
    pub process: ProcessRef,
    /// What part it plays.
    pub role: LinkRole,
}

/// The part a process plays in the chain above a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRole {
    /// Our own end of the wire.
    Shim,
    /// Holds the other end of the shim's standard input: the client.
    Holder,
    /// Holds it as the shim says: the daemon is another user and cannot look. That it stands above the shim is
    /// seen all the same.
    HolderReported,
    /// Stands between or above, up to the first shell, session leader or service manager.
    Above,
}

impl LinkRole {
    /// Tells whether this is the client, be it seen or only reported.
    #[must_use]
    pub const fn is_holder(self) -> bool {
        matches!(self, Self::Holder | Self::HolderReported)
    }
}

/// How a person's presence was established for an act that widens authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// The request came from another user than the agent's.
    OtherUid,
    /// A PIN was given.
    Pin,
    /// A terminal was attached.
    Tty,
    /// Nothing was established.
    None,
}

/// When and by whom an operator act was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The user id of the process that connected (`SO_PEERCRED`, unix(7)).
    pub uid: u32,
    /// The audit login uid, if the kernel has one (proc_pid_loginuid(5)).
    pub login_uid: Option<u32>,
    /// How presence was established.
    pub presence: Presence,
}

/// A fact about a process that was seen at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen<T> {
    /// What was seen.
    pub value: T,
    /// When.
    pub at: Wall,
}
