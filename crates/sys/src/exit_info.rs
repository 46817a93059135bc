//! How a process ended, read from its pidfd also by somebody who is not its parent.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "PIDFD_GET_INFO has no safe wrapper")
)]

use std::os::fd::BorrowedFd;

use model::Known;

/// How a process ended (wait(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It ended by itself, with this code.
    Exited {
        /// The code.
        code: i32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether the kernel wrote its memory to a core file.
        core_dumped: bool,
    },
}

impl ExitStatus {
    /// Returns what a wait status (wait(2)) of an ended process means.
    #[must_use]
    pub const fn from_wait_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signaled {
                signal: libc::WTERMSIG(status),
                core_dumped: libc::WCOREDUMP(status),
            }
        } else {
            Self::Exited {
                code: libc::WEXITSTATUS(status),
            }
        }
    }
}

/// Asks the kernel how the process of this pidfd ended.
#[cfg(target_os = "linux")]
pub(crate) fn read(pidfd: BorrowedFd<'_>) -> Known<ExitStatus> {
    use std::os::fd::AsRawFd;

    // SAFETY: `pidfd_info` holds integers only, for which all-zero bytes are a value.
    let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
    info.mask = u64::from(libc::PIDFD_INFO_EXIT);
    // SAFETY: the descriptor is open for the call (borrowed); the request's size is that of `pidfd_info`,
    // so the kernel writes at most that many bytes into the value, which lives through the call.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) };
    if result != 0 {
        let error = std::io::Error::last_os_error();
        return match error.raw_os_error() {
            // Alive without the EXIT bit succeeds; a reaped one on a kernel before 6.15 gives ESRCH.
            Some(libc::ESRCH) => Known::unknown("this kernel forgets how a process ended"),
            Some(libc::ENOTTY | libc::EINVAL) => Known::unknown("this kernel does not tell"),
            _ => Known::unknown(format!("the kernel refused: {error}")),
        };
    }
    if info.mask & u64::from(libc::PIDFD_INFO_EXIT) == 0 {
        return Known::unknown("it has not ended, or its parent has not collected it yet");
    }
    Known::Yes(ExitStatus::from_wait_status(info.exit_code))
}

/// Only a parent is told here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read(_: BorrowedFd<'_>) -> Known<ExitStatus> {
    Known::unknown("this system tells it to the parent only")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_tells_a_code_from_a_signal() {
        assert_eq!(
            ExitStatus::from_wait_status(0x0300),
            ExitStatus::Exited { code: 3 }
        );
        assert_eq!(
            ExitStatus::from_wait_status(15),
            ExitStatus::Signaled {
                signal: 15,
                core_dumped: false
            }
        );
    }
}
