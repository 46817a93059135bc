//! One line of `/proc/PID/stat`, parsed (proc_pid_stat(5)).

use std::{fmt, io};

/// The state letter of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(u8);

impl State {
    /// Returns the letter, as ps(1) shows it.
    #[must_use]
    pub fn letter(self) -> char {
        char::from(self.0)
    }

    /// Tells whether the process has ended: a zombie, or one being taken away.
    #[must_use]
    pub const fn is_dead(self) -> bool {
        matches!(self.0, b'Z' | b'X' | b'x')
    }

    /// Tells whether the process was stopped by a signal or a debugger.
    #[must_use]
    pub const fn is_stopped(self) -> bool {
        matches!(self.0, b'T' | b't')
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// The fields of one process that every user may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcStat {
    /// The process number.
    pub pid: u32,
    /// The first 15 bytes of the name, which the process can change itself.
    pub comm: Vec<u8>,
    /// What the process is doing.
    pub state: State,
    /// The parent as it is now; it changes when a parent dies.
    pub ppid: u32,
    /// The process group.
    pub pgid: u32,
    /// The session.
    pub sid: u32,
    /// Device number of the controlling terminal, 0 if there is none.
    pub tty: i32,
    /// The process group in the foreground of that terminal, -1 if there is none.
    pub tty_group: i64,
    /// Kernel flags (`PF_*`); `PF_KTHREAD` marks a kernel thread.
    pub flags: u32,
    /// User time in clock ticks.
    pub user_ticks: u64,
    /// System time in clock ticks.
    pub system_ticks: u64,
    /// How many threads it has.
    pub threads: u32,
    /// Clock ticks from boot to its start.
    pub start_ticks: u64,
    /// Resident memory in pages.
    pub rss_pages: u64,
}

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

impl ProcStat {
    /// Parses the content of a `stat` file.
    ///
    /// # Errors
    /// `InvalidData` if this is not such a line; nothing of it can be trusted then.
    pub fn parse(line: &[u8]) -> io::Result<Self> {
        parse(line).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "not a line of /proc/PID/stat as proc_pid_stat(5) describes it",
            )
        })
    }

    /// Returns when it started, in milliseconds since boot.
    #[must_use]
    pub fn started_ms(&self) -> u64 {
        ticks_to_ms(self.start_ticks)
    }

    /// Returns the processor time it used, in milliseconds.
    #[must_use]
    pub fn cpu_ms(&self) -> u64 {
        ticks_to_ms(self.user_ticks.saturating_add(self.system_ticks))
    }

    /// Returns its resident memory in bytes.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        self.rss_pages.saturating_mul(page)
    }

    /// Tells whether it is a thread of the kernel and runs no program.
    #[must_use]
    pub const fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

fn ticks_to_ms(ticks: u64) -> u64 {
    ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1)
}

fn parse(line: &[u8]) -> Option<ProcStat> {
    // The name may itself hold spaces and brackets, so it ends at the last bracket.
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim();
    let comm = line.get(open + 1..close)?.to_vec();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Numbered as in the manual page, where the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let state = field(3)?.as_bytes();
    Some(ProcStat {
        pid: pid.parse().ok()?,
        comm,
        state: State(*state.first()?),
        ppid: field(4)?.parse().ok()?,
        pgid: unsigned(field(5)?)?,
        sid: unsigned(field(6)?)?,
        tty: field(7)?.parse().ok()?,
        tty_group: field(8)?.parse().ok()?,
        flags: field(9)?.parse().ok()?,
        user_ticks: field(14)?.parse().ok()?,
        system_ticks: field(15)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        start_ticks: field(22)?.parse().ok()?,
        rss_pages: field(24)?.parse::<i64>().ok()?.max(0).unsigned_abs(),
    })
}

/// Group and session of a dead process read -1; 0 says the same without a sign.
fn unsigned(text: &str) -> Option<u32> {
    let number: i64 = text.parse().ok()?;
    u32::try_from(number.max(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4242 (a) b ) S 1 4242 4240 34816 -1 4194560 100 0 0 0 7 9 0 0 20 0 3 0 \
                        123456 10000000 512 18446744073709551615 1 1 0 0 0";

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = ProcStat::parse(LINE.as_bytes()).unwrap();

        assert_eq!(stat.comm, b"a) b ");
        assert_eq!((stat.pid, stat.ppid, stat.pgid), (4242, 1, 4242));
        assert_eq!(stat.sid, 4240);
        assert_eq!((stat.user_ticks, stat.system_ticks), (7, 9));
        assert_eq!((stat.threads, stat.start_ticks), (3, 123_456));
        assert_eq!(stat.rss_pages, 512);
    }

    #[test]
    fn a_cut_line_is_an_error_and_no_zeroes() {
        let cut = LINE.get(..40).unwrap();

        assert!(ProcStat::parse(cut.as_bytes()).is_err());
    }

    #[test]
    fn a_zombie_is_dead_and_a_stopped_process_is_not() {
        assert!(State(b'Z').is_dead());
        assert!(!State(b'T').is_dead());
        assert!(State(b'T').is_stopped());
    }
}
