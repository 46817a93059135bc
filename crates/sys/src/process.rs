//! Holds one process by a descriptor, so that its number can be given to nobody else unnoticed.
//!
//! A [`Handle`] can look and wait. It cannot signal: only `supervise` may, through [`AsFd`].

use std::{
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    sync::OnceLock,
    time::Duration,
};

use model::{ExeId, Foreign, Known, ProcessId, ProcessRef, redact};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{fstat, fstatfs},
    process::Pid,
};

use crate::clock::{boot_id, boot_millis};
pub use crate::{
    exit_info::ExitStatus,
    stat::{ProcStat, State},
};

/// A living process, held by its pidfd (pidfd_open(2)).
#[derive(Debug)]
pub struct Handle {
    pidfd: OwnedFd,
    id: ProcessId,
    stat: ProcStat,
}

impl Handle {
    /// Opens the process that has this number now.
    ///
    /// # Errors
    /// `NotFound` if there is none or it has ended, a zombie included; anything else is the kernel's
    /// refusal, and then nothing is known about the process.
    pub fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| gone(pid))?;
        let pidfd = open_pidfd(number).map_err(|errno| {
            if errno == rustix::io::Errno::SRCH {
                gone(pid)
            } else {
                errno.into()
            }
        })?;
        // The order matters: what is read between opening the pidfd and seeing it alive belongs to the
        // process it holds. Read first, and the number may have changed hands before the pidfd is open.
        let stat = read_stat(pid)?;
        if has_exited(pidfd.as_fd(), Duration::ZERO)? {
            return Err(gone(pid));
        }
        let id = ProcessId {
            boot_id: boot_id()?,
            pid,
            start_ticks: stat.start_ticks,
            pidfd_inode: inode(pidfd.as_fd())?,
        };
        Ok(Self { pidfd, id, stat })
    }

    /// Opens the process with this identity, and no later holder of its number.
    ///
    /// # Errors
    /// `NotFound` if it has ended, also if another process has its number now.
    pub fn reopen(id: &ProcessId) -> io::Result<Self> {
        let handle = Self::open(id.pid)?;
        if handle.id.same(id) {
            Ok(handle)
        } else {
            Err(gone(id.pid))
        }
    }

    /// Returns who it is.
    #[must_use]
    pub const fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Returns its fields as they were when it was opened.
    #[must_use]
    pub const fn stat(&self) -> &ProcStat {
        &self.stat
    }

    /// Reads its fields as they are now.
    ///
    /// # Errors
    /// `NotFound` if it has been reaped since: the number may then be another's, and nothing is returned.
    pub fn stat_now(&self) -> io::Result<ProcStat> {
        let stat = read_stat(self.id.pid)?;
        // A zombie keeps its number until it is reaped, so its line is still its own.
        if stat.start_ticks == self.id.start_ticks && (stat.state.is_dead() || self.is_alive()?) {
            Ok(stat)
        } else {
            Err(gone(self.id.pid))
        }
    }

    /// Describes it as records and people name it: command line redacted, executable where readable.
    ///
    /// # Errors
    /// `NotFound` if it ended meanwhile, so that nothing of a later holder of its number is returned.
    pub fn describe(&self) -> io::Result<ProcessRef> {
        let pid = self.id.pid;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let link = format!("/proc/{pid}/exe");
        let exe = fs::read_link(&link).ok();
        let exe_id = fs::metadata(&link).ok().map(|meta| ExeId {
            dev: meta.dev(),
            ino: meta.ino(),
        });
        if !self.is_alive()? {
            return Err(gone(pid));
        }
        Ok(ProcessRef {
            id: self.id.clone(),
            command: redact::arguments(split_command_line(&command)),
            exe: exe.map(|path| Foreign::from_bytes(path.as_os_str().as_bytes())),
            exe_id,
        })
    }

    /// Tells whether it still lives; a zombie does not.
    ///
    /// # Errors
    /// The kernel could not be asked: the process is then neither known to live nor known to be dead.
    pub fn is_alive(&self) -> io::Result<bool> {
        has_exited(self.pidfd.as_fd(), Duration::ZERO).map(|exited| !exited)
    }

    /// Waits until it has ended, at most this long, and tells whether it has.
    ///
    /// # Errors
    /// The kernel could not be asked.
    pub fn wait_exit(&self, at_most: Duration) -> io::Result<bool> {
        has_exited(self.pidfd.as_fd(), at_most)
    }

    /// Returns how it ended, if it has and the kernel tells (Linux 6.15, after its parent has reaped it).
    #[must_use]
    pub fn exit_status(&self) -> Known<ExitStatus> {
        crate::exit_info::read(self.pidfd.as_fd())
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Returns the effective user id of the calling process.
#[must_use]
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Splits the content of a `cmdline` file into its arguments (proc_pid_cmdline(5)).
///
/// A process that wrote a title over its arguments leaves one text padded with zero bytes.
pub fn split_command_line(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = content.iter().rposition(|byte| *byte != 0);
    let used = end.map_or(0, |last| last + 1);
    let content = content.get(..used).unwrap_or_default();
    content.split(|byte| *byte == 0).filter(move |_| used > 0)
}

#[cfg(target_os = "linux")]
fn open_pidfd(number: Pid) -> rustix::io::Result<OwnedFd> {
    rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty())
}

/// No descriptor holds a process here, so none can be held.
#[cfg(not(target_os = "linux"))]
fn open_pidfd(_: Pid) -> rustix::io::Result<OwnedFd> {
    Err(rustix::io::Errno::NOTSUP)
}

fn gone(pid: u32) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("process {pid} does not exist any more"),
    )
}

fn read_stat(pid: u32) -> io::Result<ProcStat> {
    let line = fs::read(format!("/proc/{pid}/stat")).map_err(|error| {
        // A process that is reaped between open and read gives ESRCH.
        if error.raw_os_error() == Some(libc::ESRCH) {
            gone(pid)
        } else {
            error
        }
    })?;
    ProcStat::parse(&line)
}

/// A pidfd becomes readable when its process has ended, before its parent has reaped it.
fn has_exited(pidfd: BorrowedFd<'_>, at_most: Duration) -> io::Result<bool> {
    let limit = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
    let deadline = boot_millis().saturating_add(limit);
    loop {
        let left = Duration::from_millis(deadline.saturating_sub(boot_millis()));
        let timeout = Timespec::try_from(left.min(LONGEST_POLL)).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) if boot_millis() >= deadline => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// poll(2) counts time without suspend; asking again this often keeps the deadline on the boot clock.
const LONGEST_POLL: Duration = Duration::from_secs(60);

/// `PID_FS_MAGIC` of the kernel's `include/uapi/linux/magic.h`.
const PIDFS: u64 = 0x5049_4446;

/// Returns the pidfd's inode where it names the process; before Linux 6.9 all pidfds share one inode.
fn inode(pidfd: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    static ON_PIDFS: OnceLock<bool> = OnceLock::new();
    let on_pidfs = *ON_PIDFS.get_or_init(|| {
        fstatfs(pidfd).is_ok_and(|fs| u64::try_from(fs.f_type).is_ok_and(|magic| magic == PIDFS))
    });
    if on_pidfs {
        Ok(Some(fstat(pidfd)?.st_ino))
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        process::{Child, Command, Stdio},
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn cat() -> Child {
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_living_process_is_known_by_its_start_and_is_alive() {
        let mut child = cat();
        let handle = Handle::open(child.id()).unwrap();

        assert!(handle.is_alive().unwrap());
        assert_eq!(handle.stat().ppid, std::process::id());
        assert_eq!(handle.stat_now().unwrap().pid, child.id());
        assert!(!handle.wait_exit(Duration::from_millis(1)).unwrap());
        assert!(handle.exit_status().value().is_none());

        drop(child.stdin.take());
        assert!(handle.wait_exit(SOON).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn a_description_has_the_program_and_no_secret() {
        let mut child = Command::new("sh")
            .args(["-c", "echo; read x", "name", "--token=abcdef"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Inside execve(2) a process has no arguments for a moment; once it speaks it has them.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let shown = Handle::open(child.id()).unwrap().describe().unwrap();

        let words: Vec<&str> = shown.command.iter().map(Foreign::raw).collect();
        assert_eq!(
            words,
            ["sh", "-c", "echo; read x", "name", "--token=[redacted:6]"]
        );
        assert!(shown.exe.is_some() && shown.exe_id.is_some());

        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_title_written_over_the_arguments_is_one_text() {
        let split = |content: &'static [u8]| split_command_line(content).collect::<Vec<_>>();

        assert_eq!(split(b"claude\0\0\0"), [b"claude"]);
        assert_eq!(split(b"a\0\0b\0"), [&b"a"[..], b"", b"b"]);
        assert!(split(b"").is_empty());
    }

    #[test]
    fn a_zombie_is_dead_and_cannot_be_opened() {
        let mut child = cat();
        let handle = Handle::open(child.id()).unwrap();
        drop(child.stdin.take());

        assert!(handle.wait_exit(SOON).unwrap());
        assert!(!handle.is_alive().unwrap());
        assert!(handle.stat_now().unwrap().state.is_dead());
        let again = Handle::open(child.id()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::NotFound);

        child.wait().unwrap();
    }

    #[test]
    fn how_a_reaped_process_ended_can_still_be_read() {
        let mut child = cat();
        let handle = Handle::open(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        match handle.exit_status() {
            Known::Yes(status) => assert_eq!(
                status,
                ExitStatus::Signaled {
                    signal: 9,
                    core_dumped: false
                }
            ),
            Known::Unknown { unknown } => assert!(unknown.contains("kernel"), "{unknown}"),
        }
    }

    #[test]
    fn a_handle_reopens_its_own_process_and_no_other() {
        let mut child = cat();
        let id = Handle::open(child.id()).unwrap().id().clone();
        let mut other = id.clone();
        other.start_ticks += 1;

        assert!(Handle::reopen(&id).is_ok());
        let refused = Handle::reopen(&other).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);

        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn two_processes_have_two_pidfd_inodes_where_the_kernel_has_pidfs() {
        let mut child = cat();
        let one = Handle::open(child.id()).unwrap();
        let own = Handle::open(std::process::id()).unwrap();

        if let (Some(a), Some(b)) = (one.id().pidfd_inode, own.id().pidfd_inode) {
            assert_ne!(a, b);
        }

        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// Makes the kernel give this number out next; only root may, and only some kernels can.
    fn next_number_is(pid: u32) -> io::Result<()> {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
    }

    #[test]
    fn a_number_that_was_given_out_again_is_never_taken_for_its_former_holder() {
        let (mut reused, mut tries) = (0, 0);
        while reused < 200 && tries < 4000 {
            tries += 1;
            let mut former = cat();
            let handle = Handle::open(former.id()).unwrap();
            former.kill().unwrap();
            former.wait().unwrap();
            if next_number_is(former.id()).is_err() {
                return;
            }
            let mut later = cat();
            if later.id() == former.id() {
                reused += 1;
                assert!(!handle.is_alive().unwrap());
                assert!(handle.stat_now().is_err() || handle.id().pidfd_inode.is_none());
                let again = Handle::open(later.id()).unwrap();
                // Without pidfs the tick may be the same; then nobody can tell them apart.
                if again.id().pidfd_inode.is_some() {
                    assert!(!handle.id().same(again.id()));
                    assert!(Handle::reopen(handle.id()).is_err());
                }
            }
            later.kill().unwrap();
            later.wait().unwrap();
        }
        assert_eq!(reused, 200, "the kernel did not give numbers out again");
    }

    #[test]
    fn number_zero_and_one_beyond_all_are_not_found() {
        for pid in [0, u32::MAX] {
            let error = Handle::open(pid).unwrap_err();

            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{pid}");
        }
    }
}
