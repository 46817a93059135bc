//! What a thread waits for, from the system call it is in (proc_pid_syscall(5)).
//!
//! The argument of a wait says whether the thread will wake by itself: a runtime with a timer gives the time
//! until its next one, one without gives none. Timers that are descriptors are not seen here.

use std::io;

use serde::{Deserialize, Serialize};

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// Nothing: it runs, or wants to.
    Nothing,
    /// Input or output or a signal only.
    Others,
    /// Input or output, but for so long at most: then it wakes by itself.
    OthersOrTime {
        /// What it asked for when it began to wait.
        at_most_ms: u64,
    },
    /// Input or output or another thread, or a time that its call keeps in memory: then it wakes by itself.
    OthersOrUntil,
    /// A time only.
    Time,
    /// Something that its call does not tell.
    Unclear,
}

/// A thread that will wake by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// Its number.
    pub thread: u32,
    /// What it waits for.
    pub wait: Wait,
}

impl Wait {
    /// Tells whether it ends without anybody else's doing.
    #[must_use]
    pub const fn ends_by_itself(self) -> bool {
        match self {
            Self::OthersOrTime { .. } | Self::OthersOrUntil | Self::Time => true,
            Self::Nothing | Self::Others | Self::Unclear => false,
        }
    }
}

/// Picks the threads that will wake by themselves.
pub(crate) fn wakers(calls: Vec<(u32, Vec<u8>)>) -> Vec<ThreadWait> {
    let waits = calls.into_iter().filter_map(|(thread, call)| {
        let wait = parse(&call).ok()?;
        Some(ThreadWait { thread, wait })
    });
    waits.filter(|one| one.wait.ends_by_itself()).collect()
}

/// Parses the content of `syscall`.
pub(crate) fn parse(content: &[u8]) -> io::Result<Wait> {
    let text = String::from_utf8_lossy(content);
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut fields = text.split_ascii_whitespace();
    let first = fields.next().ok_or_else(bad)?;
    if first == "running" {
        return Ok(Wait::Nothing);
    }
    let number: i64 = first.parse().map_err(|_| bad())?;
    let arguments: Vec<u64> = fields
        .filter_map(|hex| u64::from_str_radix(hex.trim_start_matches("0x"), 16).ok())
        .collect();
    Ok(wait(number, &arguments))
}

fn wait(number: i64, arguments: &[u64]) -> Wait {
    let millis = |at: usize| arguments.get(at).map_or(Wait::Unclear, |raw| timeout(*raw));
    // A timeout behind a pointer is only known to be there or not.
    let pointer = |at: usize| match arguments.get(at) {
        Some(0) => Wait::Others,
        Some(_) => Wait::OthersOrUntil,
        None => Wait::Unclear,
    };
    let futex_waits = || {
        let operation = arguments.get(1).map(|raw| raw & FUTEX_COMMAND);
        operation.is_some_and(|operation| FUTEX_WAITS.contains(&operation))
    };
    if EPOLL.contains(&number) {
        millis(3)
    } else if POLL.contains(&number) {
        millis(2)
    } else if PPOLL.contains(&number) {
        pointer(2)
    } else if SELECT.contains(&number) {
        pointer(4)
    } else if EPOLL2.contains(&number) || FUTEX.contains(&number) && futex_waits() {
        pointer(3)
    } else if SLEEP.contains(&number) {
        Wait::Time
    } else if OTHERS.contains(&number) {
        Wait::Others
    } else {
        Wait::Unclear
    }
}

/// A timeout in milliseconds is a C `int`; a negative one means none.
fn timeout(raw: u64) -> Wait {
    let low = u32::try_from(raw & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    match u64::try_from(low.cast_signed()) {
        Ok(at_most_ms) => Wait::OthersOrTime { at_most_ms },
        Err(_) => Wait::Others,
    }
}

/// Returns the time that the main thread ran or waited to run (the kernel's `scheduler/sched-stats.rst`).
pub(crate) fn runnable_ms(content: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(content).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let ran: u64 = fields.next()?.parse().ok()?;
    let waited: u64 = fields.next()?.parse().ok()?;
    Some(ran.saturating_add(waited) / 1_000_000)
}

/// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET` (futex(2)), below the bits that are options.
const FUTEX_WAITS: [u64; 2] = [0, 9];
const FUTEX_COMMAND: u64 = 0x7f;

/// The numbers of the kernel's `syscall_64.tbl`, and of `asm-generic/unistd.h` for the 64-bit ARM.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const EPOLL: &[i64] = &[232, 281];
    pub(super) const EPOLL2: &[i64] = &[441];
    pub(super) const FUTEX: &[i64] = &[202];
    pub(super) const POLL: &[i64] = &[7];
    pub(super) const PPOLL: &[i64] = &[271];
    pub(super) const SELECT: &[i64] = &[23, 270];
    pub(super) const SLEEP: &[i64] = &[35, 230];
    /// read, pause, recvfrom, recvmsg, wait4, accept, accept4, waitid.
    pub(super) const OTHERS: &[i64] = &[0, 34, 45, 47, 61, 43, 288, 247];
}

#[cfg(not(target_arch = "x86_64"))]
mod numbers {
    pub(super) const EPOLL: &[i64] = &[22];
    pub(super) const EPOLL2: &[i64] = &[441];
    pub(super) const FUTEX: &[i64] = &[98];
    pub(super) const POLL: &[i64] = &[];
    pub(super) const PPOLL: &[i64] = &[73];
    pub(super) const SELECT: &[i64] = &[72];
    pub(super) const SLEEP: &[i64] = &[101, 115];
    /// read, recvfrom, recvmsg, wait4, accept, accept4, waitid.
    pub(super) const OTHERS: &[i64] = &[63, 207, 212, 260, 202, 242, 95];
}

use numbers::{EPOLL, EPOLL2, FUTEX, OTHERS, POLL, PPOLL, SELECT, SLEEP};

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_wait_says_whether_its_process_will_wake_by_itself() {
        let wait = |text: &str| parse(text.as_bytes()).unwrap();

        let timer = "232 0x5 0x7f00 0x400 0x1382 0x0 0x0 0x7ffd 0x7f01\n";
        assert_eq!(wait(timer), Wait::OthersOrTime { at_most_ms: 4994 });
        let none = "281 0x5 0x7f00 0x400 0xffffffff 0x0 0x0 0x7ffd 0x7f01\n";
        assert_eq!(wait(none), Wait::Others);
        assert_eq!(wait("230 0x0 0x0 0x7f 0x0 0x0 0x0 0x1 0x2"), Wait::Time);
        assert_eq!(wait("0 0x0 0x7f 0x1000 0x0 0x0 0x0 0x1 0x2"), Wait::Others);
        assert_eq!(wait("running\n"), Wait::Nothing);
        assert_eq!(
            wait("202 0x0 0x7f 0x1000 0x0 0x0 0x0 0x1 0x2"),
            Wait::Unclear
        );
        assert!(parse(b"").is_err());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_thread_that_sleeps_with_a_timeout_in_memory_wakes_by_itself_and_one_without_does_not() {
        let futex = |operation: &str, timeout: &str| {
            format!("202 0x7f00 {operation} 0x0 {timeout} 0x0 0x0 0x7ffd 0x7f01\n").into_bytes()
        };
        let select = b"23 0x0 0x0 0x0 0x0 0x7ffd 0x0 0x7ffd 0x7f01\n".to_vec();
        let calls = vec![
            (11, futex("0x189", "0x7f02")),
            (12, futex("0x80", "0x0")),
            (13, futex("0x81", "0x7f02")),
            (14, select),
            (15, b"230 0x0 0x0 0x7f 0x0 0x0 0x0 0x1 0x2".to_vec()),
            (16, b"running\n".to_vec()),
        ];

        let wakers: Vec<u32> = wakers(calls).iter().map(|one| one.thread).collect();

        assert_eq!(wakers, [11, 14, 15]);
    }

    #[test]
    fn time_spent_waiting_for_a_processor_counts_as_wanting_one() {
        assert_eq!(runnable_ms(b"1500000000 500000000 77\n"), Some(2000));
        assert_eq!(runnable_ms(b"nonsense"), None);
    }
}
