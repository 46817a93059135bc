//! Whose a process is, and which login it comes from, where the kernel keeps that.

/// Returns the effective user of a process (proc_pid_status(5)); none if it is gone.
///
/// Not the owner of its folder: one that is not dumpable shows that as root's.
#[must_use]
pub fn effective_uid(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the audit login uid of a process, if it has one (proc_pid_loginuid(5)).
#[must_use]
pub fn login_uid(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/loginuid")).ok()?;
    // All ones stands for "none".
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}
