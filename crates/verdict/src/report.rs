//! What is told: the form `lych.ps/v1`, which other programs read.
//!
//! `null` is known to be none; what is not known is `{"unknown": why}`.

use clients::Client;
use inventory::{Holder, Process, Unreadable};
use model::{Foreign, Known, ProcessId, SessionId, Wall};
use serde::{Deserialize, Serialize};

use crate::{
    Also, AuthorityLevel, Confidence, EndKind, EndState, EvidenceSource, EvidenceStrength, Fits,
    Proof, Suggest, Verdict,
};

/// The version of the form that this code writes.
pub const SCHEMA: &str = "lych.ps/v1";

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form.
    pub schema: String,
    /// When the look began.
    pub observed_at: Wall,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// Whether everything could be read.
    pub complete: bool,
    /// What could not, and why.
    pub unreadable: Vec<Unreadable>,
    /// The numbers of the first line.
    pub sums: Sums,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

/// The numbers of the first line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// How many processes were seen.
    pub processes: usize,
    /// Servers in use.
    pub live: usize,
    /// Servers and runs that are left over.
    pub orphaned: usize,
    /// Servers that may be left over.
    pub suspected: usize,
    /// Servers of which it could not be told.
    pub unknown: usize,
    /// Resident memory of what is left over.
    pub orphaned_rss_bytes: u64,
    /// Processes of which something could not be read.
    pub not_readable: usize,
}

/// One unit of processes and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A name for it that holds as long as its root lives.
    pub id: String,
    /// What it is.
    pub verdict: Verdict,
    /// How sure that is.
    pub confidence: Confidence,
    /// What else is true of it.
    pub also: Vec<Also>,
    /// The process at its top.
    pub root: ProcessView,
    /// The other processes of the unit.
    pub members: Vec<ProcessView>,
    /// Which configured server it is.
    pub server: Option<ServerView>,
    /// Which run it belongs to.
    pub session: Option<SessionId>,
    /// Who uses it, or did.
    pub owner: Option<Owner>,
    /// Its two ends of the wire.
    pub transport: Transport,
    /// What it could still do.
    pub authority: Authority,
    /// What all this rests on.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub suggest: Suggest,
}

/// A process as a report shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Its number.
    pub pid: u32,
    /// What tells it from a later holder of its number; to be given back as it is.
    pub start: String,
    /// Whose it is.
    pub user: Foreign,
    /// Its command line, redacted.
    pub command: Known<Vec<Foreign>>,
    /// Its program.
    pub exe: Known<Foreign>,
    /// Its working folder.
    pub cwd: Known<Foreign>,
    /// Its parent as it is now.
    pub ppid: u32,
    /// Its process group.
    pub pgid: u32,
    /// Its session.
    pub sid: u32,
    /// State letter and flags.
    pub stat: String,
    /// How long it runs.
    pub elapsed_ms: u64,
    /// Its resident memory.
    pub rss_bytes: u64,
    /// Processor time it used.
    pub cpu_ms: u64,
    /// When it was read.
    pub observed_at: Wall,
}

/// Which configured server a unit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// Its name in the configuration.
    pub name: Foreign,
    /// Whose configuration.
    pub client: Client,
    /// How well the processes fit it.
    #[serde(rename = "match")]
    pub fits: Fits,
}

/// Who uses a unit, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// Its command line, redacted.
    pub command: Known<Vec<Foreign>>,
    /// Whether it still lives.
    pub alive: bool,
    /// Since when it is stuck.
    pub stuck_since: Option<Known<Wall>>,
}

/// The two ends of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transport {
    /// What it reads from.
    pub stdin: TransportEnd,
    /// What it writes to.
    pub stdout: TransportEnd,
}

/// One end of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportEnd {
    /// What it is.
    pub kind: EndKind,
    /// What became of its other end.
    pub state: EndState,
    /// How that is known.
    pub proof: Option<Proof>,
    /// Bytes delivered and not read.
    pub unread_bytes: Option<Known<u64>>,
    /// Who holds the other end.
    pub holders: Vec<Holder>,
}

/// What a unit could still do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// The strongest kind that was seen.
    pub level: AuthorityLevel,
    /// Why, in words.
    pub because: Vec<String>,
    /// Queues and streams it takes from.
    pub consumes: Vec<Foreign>,
    /// Names of variables that are likely to hold secrets.
    pub env_names: Vec<Foreign>,
    /// Open files that are likely to hold secrets.
    pub files: Vec<Foreign>,
    /// Named unix sockets it is connected to or offers.
    pub sockets: Vec<Foreign>,
    /// TCP connections and listeners.
    pub tcp: Vec<Foreign>,
}

/// One fact that a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The fact.
    pub what: String,
    /// Where it was seen.
    pub source: EvidenceSource,
    /// How much it weighs.
    pub strength: EvidenceStrength,
    /// When it was seen.
    pub at: Wall,
}

impl From<&Process> for ProcessView {
    fn from(process: &Process) -> Self {
        Self {
            pid: process.pid(),
            start: start_text(&process.id),
            user: process.user.clone(),
            command: process.command.clone(),
            exe: process.exe.clone(),
            cwd: process.cwd.clone(),
            ppid: process.ppid,
            pgid: process.pgid,
            sid: process.sid,
            stat: process.stat.clone(),
            elapsed_ms: process.elapsed_ms,
            rss_bytes: process.rss_bytes,
            cpu_ms: process.cpu_ms,
            observed_at: process.observed_at,
        }
    }
}

impl ProcessView {
    /// Returns which process it is, on the boot that the report names.
    #[must_use]
    pub fn identity(&self, boot_id: &str) -> Option<ProcessId> {
        let (ticks, inode) = self.start.split_once('.').unwrap_or((&self.start, ""));
        Some(ProcessId {
            boot_id: boot_id.to_owned(),
            pid: self.pid,
            start_ticks: ticks.parse().ok()?,
            pidfd_inode: inode.parse().ok(),
        })
    }
}

fn start_text(id: &ProcessId) -> String {
    match id.pidfd_inode {
        Some(inode) => format!("{}.{inode}", id.start_ticks),
        None => id.start_ticks.to_string(),
    }
}

/// Names a finding by its root; holds as long as that process lives.
pub(crate) fn finding_id(id: &ProcessId) -> String {
    format!("f-{}-{}", id.pid, id.start_ticks)
}
