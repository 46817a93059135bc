//! How the log is doing, for status.

use serde::Serialize;

/// How the log is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Health {
    /// Why nothing can be written any more; none if it can.
    pub poisoned: Option<String>,
    /// Why no attempts are taken at present; none if they are.
    pub attempts_refused: Option<String>,
    /// Why the newest `HEAD` could not be written; none if it could.
    pub head_behind: Option<String>,
    /// Records that wait for the disk.
    pub queued: usize,
}

/// What has been written since the log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Records, commits not among them.
    pub records: u64,
    /// Commits.
    pub commits: u64,
    /// Waits for the disk.
    pub syncs: u64,
}
