//! Which login a process comes from, where the kernel keeps that.

/// Returns the audit login uid of a process, if it has one (proc_pid_loginuid(5)).
#[must_use]
pub fn login_uid(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/loginuid")).ok()?;
    // All ones stands for "none".
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}
