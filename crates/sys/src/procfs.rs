//! Reads `/proc` as bytes: one folder descriptor per process, no path built twice, no link followed.
//!
//! All that is read through one [`ProcDir`] belongs to one process: after its end every read through the
//! folder fails with `ESRCH`, also when its number has a new holder (proc(5)). Nothing here asks a file system
//! *through* a link of `fd/`, so a file on a dead network mount cannot hang the reader.

mod calls;
mod info;
mod listing;
mod named;

use std::{io, os::fd::OwnedFd};

use model::ExeId;
use rustix::{
    fs::{AtFlags, Mode, OFlags, fstat, open, openat, readlinkat_raw, statat},
    io::Errno,
    path::DecInt,
    pipe::PIPE_BUF,
};

use crate::stat::ProcStat;
pub use calls::calls;
use calls::{counted, lift, opened};
use info::{access_of, started_running, system_call, timer};
use listing::{count, descriptor, numbered_entries};
pub use named::NamedPipe;

/// The mounted `/proc`.
#[derive(Debug)]
pub struct ProcFs {
    root: OwnedFd,
}

/// One process's folder.
#[derive(Debug)]
pub struct ProcDir {
    dir: OwnedFd,
}

/// One open descriptor as `/proc/PID/fd` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDescriptor {
    /// Its number.
    pub fd: u32,
    /// The text of the link: a path, `pipe:[N]`, `socket:[N]`, `anon_inode:…`.
    pub target: Vec<u8>,
    /// How a pipe was opened. Of all else it decides nothing, and asking costs a call each; what the kernel
    /// tells of one descriptor has it too.
    pub access: Option<Access>,
}

/// How a descriptor was opened, from the permission bits of the link itself (proc_pid_fd(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// For reading.
    Read,
    /// For writing.
    Write,
    /// For both.
    ReadWrite,
    /// For neither (`O_PATH`).
    Neither,
}

/// What the kernel tells of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorInfo {
    /// How it was opened.
    pub access: Access,
    /// Whether it is closed when its process starts another program.
    pub close_on_exec: bool,
    /// Whether its process holds a lock on the file through it.
    pub locked: bool,
    /// When it goes off, if it is a timer that was set (timerfd_create(2)).
    pub wakes_in_ms: Option<u64>,
}

/// What reopening the read end of an anonymous pipe showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeProbe {
    /// No process at all holds a write end: who reads on gets end of file.
    pub hung_up: bool,
    /// Bytes written and not yet read.
    pub unread_bytes: u64,
}

/// The files of a process that are read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// The arguments.
    CommandLine,
    /// The environment it started with.
    Environment,
    /// The control group.
    ControlGroup,
    /// The signals it ignores and blocks, among much else.
    Status,
    /// How long its main thread ran and waited for a processor, in nanoseconds.
    SchedulerStatistics,
    /// The system call that its main thread is in.
    SystemCall,
    /// TCP over IPv4 sockets of its network namespace.
    Tcp4,
    /// TCP over IPv6 sockets of its network namespace.
    Tcp6,
    /// UDP over IPv4 sockets of its network namespace.
    Udp4,
    /// UDP over IPv6 sockets of its network namespace.
    Udp6,
}

/// The links of a process that are read and not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// The program.
    Executable,
    /// The working folder.
    WorkingFolder,
    /// The network namespace.
    NetworkNamespace,
    /// The process-number namespace.
    PidNamespace,
    /// The mount namespace.
    MountNamespace,
    /// The user namespace.
    UserNamespace,
}

impl File {
    const fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "cmdline",
            Self::Environment => "environ",
            Self::ControlGroup => "cgroup",
            Self::Status => "status",
            Self::SchedulerStatistics => "schedstat",
            Self::SystemCall => "syscall",
            Self::Tcp4 => "net/tcp",
            Self::Tcp6 => "net/tcp6",
            Self::Udp4 => "net/udp",
            Self::Udp6 => "net/udp6",
        }
    }
}

impl Link {
    const fn name(self) -> &'static str {
        match self {
            Self::Executable => "exe",
            Self::WorkingFolder => "cwd",
            Self::NetworkNamespace => "ns/net",
            Self::PidNamespace => "ns/pid",
            Self::MountNamespace => "ns/mnt",
            Self::UserNamespace => "ns/user",
        }
    }
}

impl ProcFs {
    /// Opens `/proc`.
    ///
    /// # Errors
    /// It is not mounted or not readable: no process can be seen.
    pub fn open() -> io::Result<Self> {
        let root = open("/proc", FOLDER, Mode::empty()).map_err(lift)?;
        Ok(Self { root })
    }

    /// Lists the numbers of all processes that this mount shows.
    ///
    /// # Errors
    /// The folder cannot be listed: how many processes there are is then unknown, not zero.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        let listing = opened(openat(&self.root, ".", FOLDER, Mode::empty())).map_err(lift)?;
        let mut pids = numbered_entries(&listing, None)?;
        pids.sort_unstable();
        Ok(pids)
    }

    /// Opens the folder of one process.
    ///
    /// # Errors
    /// `NotFound` if there is no such process.
    pub fn process(&self, pid: u32) -> io::Result<ProcDir> {
        let dir =
            opened(openat(&self.root, DecInt::new(pid), FOLDER, Mode::empty())).map_err(lift)?;
        Ok(ProcDir { dir })
    }

    /// Reads why this mount may show less than all processes, if it may.
    ///
    /// # Errors
    /// The mount's options or the namespace cannot be read.
    pub fn blind_spot(&self) -> io::Result<Option<&'static str>> {
        let own = std::fs::read_link("/proc/self/ns/pid")?;
        if own.as_os_str().as_encoded_bytes() != INIT_PID_NAMESPACE {
            return Ok(Some("processes outside of this container cannot be seen"));
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let hides = mounts.lines().any(|line| {
            line.contains(" /proc ")
                && [
                    "hidepid=1",
                    "hidepid=2",
                    "hidepid=invis",
                    "hidepid=noaccess",
                    "hidepid=ptrace",
                ]
                .iter()
                .any(|option| line.contains(option))
        });
        if hides && !rustix::process::geteuid().is_root() {
            return Ok(Some(
                "/proc is mounted with hidepid, other users' processes are not shown",
            ));
        }
        Ok(None)
    }
}

impl ProcDir {
    /// Returns the effective user id of the process.
    ///
    /// # Errors
    /// The process is gone.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(counted(fstat(&self.dir)).map_err(lift)?.st_uid)
    }

    /// Reads the process's fields.
    ///
    /// # Errors
    /// The process is gone, or the kernel wrote something that is no such line.
    pub fn stat(&self) -> io::Result<ProcStat> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = opened(openat(&self.dir, "stat", flags, Mode::empty())).map_err(lift)?;
        // One read gives the whole line: the longest possible one is far shorter than this.
        let mut buffer = [0_u8; 2048];
        let length = counted(rustix::io::read(&file, &mut buffer)).map_err(lift)?;
        ProcStat::parse(buffer.get(..length).unwrap_or_default())
    }

    /// Reads one of its files.
    ///
    /// # Errors
    /// The process is gone, or it is another user's and the file is private.
    pub fn read(&self, file: File) -> io::Result<Vec<u8>> {
        let is_one_read = file == File::CommandLine;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = opened(openat(&self.dir, file.name(), flags, Mode::empty())).map_err(lift)?;
        let mut content = Vec::with_capacity(PIPE_BUF);
        loop {
            content.reserve(PIPE_BUF);
            let room = content.capacity() - content.len();
            match counted(rustix::io::read(
                &file,
                rustix::buffer::spare_capacity(&mut content),
            )) {
                Ok(0) => return Ok(content),
                // Short command lines come whole at once; of files that are made page by page a short read
                // may be followed by more.
                Ok(length) if length < room && is_one_read => return Ok(content),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(lift(errno)),
            }
        }
    }

    /// Reads the text of one of its links.
    ///
    /// # Errors
    /// The process is gone, or it is another user's.
    pub fn link(&self, link: Link) -> io::Result<Vec<u8>> {
        let mut buffer = [0_u8; LONGEST_LINK];
        let length = counted(readlinkat_raw(&self.dir, link.name(), &mut buffer)).map_err(lift)?;
        Ok(buffer.get(..length).unwrap_or_default().to_vec())
    }

    /// Returns when any of its threads last ran, on the scheduler's own clock, in milliseconds.
    ///
    /// A process that is stopped ran last when it stopped, and one that waits when it began to wait. The clock
    /// leaves out what a virtual machine did not get, so it is only to be compared with another reading of it.
    ///
    /// # Errors
    /// The process is gone, or this kernel does not tell (`CONFIG_SCHED_DEBUG`).
    pub fn last_ran(&self) -> io::Result<u64> {
        let tasks = opened(openat(&self.dir, "task", FOLDER, Mode::empty())).map_err(lift)?;
        let mut last = None;
        for thread in numbered_entries(&tasks, None)? {
            match started_running(&tasks, thread) {
                Ok(at) => last = last.max(Some(at)),
                // A thread may end, and its process goes on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        last.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the content of `syscall` of its threads but the main one: of at most so many of them, by their numbers.
    ///
    /// # Errors
    /// The process is gone, or it is another user's.
    pub fn threads_system_calls(&self, most: usize) -> io::Result<Vec<(u32, Vec<u8>)>> {
        let main = self.stat()?.pid;
        let tasks = opened(openat(&self.dir, "task", FOLDER, Mode::empty())).map_err(lift)?;
        let threads = numbered_entries(&tasks, None)?;
        let mut calls = Vec::new();
        for thread in threads
            .into_iter()
            .filter(|thread| *thread != main)
            .take(most)
        {
            match system_call(&tasks, thread) {
                Ok(call) => calls.push((thread, call)),
                // A thread may end, and its process goes on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(calls)
    }

    /// Returns the file its program was loaded from.
    ///
    /// The one place that follows a link: a running program's file is mapped, so it answers.
    ///
    /// # Errors
    /// The process is gone, or it is another user's.
    pub fn exe_id(&self) -> io::Result<ExeId> {
        let meta = statat(&self.dir, "exe", AtFlags::empty()).map_err(lift)?;
        Ok(ExeId {
            dev: device(meta.st_dev),
            ino: meta.st_ino,
        })
    }

    /// Lists its descriptors. One that is closed meanwhile is left out.
    ///
    /// Listing the folder is what costs most here (the kernel makes an entry of each number), so where the
    /// kernel says how many there are they are asked for by number, up to the first number that is free.
    ///
    /// # Errors
    /// The process is gone, or it is another user's: which descriptors it has is then unknown.
    pub fn descriptors(&self) -> io::Result<Vec<RawDescriptor>> {
        let folder = opened(openat(&self.dir, "fd", FOLDER, Mode::empty())).map_err(lift)?;
        let mut buffer = [0_u8; LONGEST_LINK];
        let open = count(&folder).map_err(lift)?;
        let mut found = Vec::with_capacity(open);
        let mut next = 0;
        while found.len() < open {
            match descriptor(&folder, next, &mut buffer) {
                Ok(descriptor) => found.push(descriptor),
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(lift(errno)),
            }
            next += 1;
        }
        // As many as before and afterwards: one that was opened in between has not taken another's place.
        if open > 0 && found.len() == open && count(&folder).map_err(lift)? == open {
            return Ok(found);
        }
        for fd in numbered_entries(&folder, Some(open).filter(|open| *open > 0))? {
            if fd < next {
                continue;
            }
            match descriptor(&folder, fd, &mut buffer) {
                Ok(descriptor) => found.push(descriptor),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(lift(errno)),
            }
        }
        found.sort_unstable_by_key(|descriptor| descriptor.fd);
        Ok(found)
    }

    /// Reads what the kernel tells of one descriptor (proc_pid_fdinfo(5)).
    ///
    /// # Errors
    /// The descriptor is closed by now, or the process is another user's.
    pub fn descriptor_info(&self, fd: u32) -> io::Result<DescriptorInfo> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let name = format!("fdinfo/{fd}");
        let file = opened(openat(&self.dir, name, flags, Mode::empty())).map_err(lift)?;
        // The lines that matter come first; a descriptor with more locks than fit has one all the same.
        let mut buffer = [0_u8; 1024];
        let length = counted(rustix::io::read(&file, &mut buffer)).map_err(lift)?;
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let bits = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
        let bits = bits.ok_or(io::ErrorKind::InvalidData)?;
        Ok(DescriptorInfo {
            access: access_of(bits),
            close_on_exec: bits & OFlags::CLOEXEC.bits() != 0,
            locked: text.lines().any(|line| line.starts_with("lock:")),
            wakes_in_ms: text.lines().find_map(timer),
        })
    }

    /// Reopens the read end of an anonymous pipe for an instant and asks whether anybody can still write.
    ///
    /// Reads no byte. A named pipe must not be asked: reopening one hides its end (fifo(7)).
    ///
    /// # Errors
    /// `NotFound` if the descriptor is another file by now; `PermissionDenied` if the pipe is another user's.
    pub fn probe_pipe(&self, fd: u32, inode: u64) -> io::Result<PipeProbe> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let end =
            opened(openat(&self.dir, format!("fd/{fd}"), flags, Mode::empty())).map_err(lift)?;
        if counted(fstat(&end))?.st_ino != inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut fds = [rustix::event::PollFd::new(
            &end,
            rustix::event::PollFlags::IN,
        )];
        let no_wait = rustix::time::Timespec::default();
        counted(rustix::event::poll(&mut fds, Some(&no_wait)))?;
        let [polled] = fds;
        Ok(PipeProbe {
            hung_up: polled.revents().contains(rustix::event::PollFlags::HUP),
            unread_bytes: counted(rustix::io::ioctl_fionread(&end))?,
        })
    }
}

#[cfg(target_os = "linux")]
const fn device(number: u64) -> u64 {
    number
}

#[cfg(not(target_os = "linux"))]
fn device(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);

/// `PATH_MAX`; the kernel gives no longer text of a link (readlink(2)).
const LONGEST_LINK: usize = 4096;

/// `PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`, as the link shows it.
const INIT_PID_NAMESPACE: &[u8] = b"pid:[4026531836]";

#[cfg(test)]
mod tests;
