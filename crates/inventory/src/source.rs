//! Where the bytes come from: the live `/proc`, or a recorded one.

use std::{io, sync::Arc};

use model::{Clock, ExeId, ProcessId, Stamp};
use sys::{
    clock::SystemClock,
    process::{Handle, ProcStat},
    procfs::{DescriptorInfo, File, Link, NamedPipe, PipeProbe, ProcDir, ProcFs, RawDescriptor},
    tcp_diag::TcpActivity,
    unix_diag::UnixSocket,
};

/// Brings what is read of the whole machine; a copy brings the same, for a thread that may never come back.
pub trait Source: Clone + Send + Sync + 'static {
    /// What brings the bytes of one process.
    type Process: Look;

    /// Returns the present moment.
    fn now(&self) -> Stamp;

    /// Returns the kernel's id of this boot.
    ///
    /// # Errors
    /// It cannot be read: no identity can be made.
    fn boot_id(&self) -> io::Result<String>;

    /// Returns why some processes may be hidden from this look.
    ///
    /// # Errors
    /// That cannot be told.
    fn blind_spot(&self) -> io::Result<Option<String>>;

    /// Returns who looks.
    fn observer_uid(&self) -> u32;

    /// Lists the processes.
    ///
    /// # Errors
    /// They cannot be listed: nothing is known.
    fn pids(&self) -> io::Result<Vec<u32>>;

    /// Opens one process for looking.
    ///
    /// # Errors
    /// `NotFound` if it has ended.
    fn process(&self, pid: u32) -> io::Result<Self::Process>;

    /// Returns the identity of the living process that has this number now.
    ///
    /// # Errors
    /// `NotFound` if there is none or it has ended.
    fn identity(&self, pid: u32) -> io::Result<ProcessId>;

    /// Lists the unix sockets.
    ///
    /// # Errors
    /// They cannot be listed: of no socket it is known whether its other end lives.
    fn unix_sockets(&self) -> io::Result<Vec<UnixSocket>>;

    /// Lists what the TCP connections of the observer's network namespace have done.
    ///
    /// # Errors
    /// They cannot be listed; nothing follows from that.
    fn tcp_activity(&self) -> io::Result<Vec<TcpActivity>> {
        Ok(Vec::new())
    }

    /// Returns the content of passwd(5).
    ///
    /// # Errors
    /// It cannot be read; users then keep their numbers.
    fn passwd(&self) -> io::Result<String>;
}

/// Brings what is read of one process; after its end every call fails with `NotFound`.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail alike: gone, or not ours to read"
)]
pub trait Look {
    /// Returns its effective user id.
    fn owner(&self) -> io::Result<u32>;

    /// Returns its fields.
    fn stat(&self) -> io::Result<ProcStat>;

    /// Returns the content of one of its files.
    fn read(&self, file: File) -> io::Result<Vec<u8>>;

    /// Returns the text of one of its links.
    fn link(&self, link: Link) -> io::Result<Vec<u8>>;

    /// Returns the file its program was loaded from.
    fn exe_id(&self) -> io::Result<ExeId>;

    /// Lists its descriptors.
    fn descriptors(&self) -> io::Result<Vec<RawDescriptor>>;

    /// Returns what the kernel tells of its descriptor `fd`.
    fn descriptor_info(&self, fd: u32) -> io::Result<DescriptorInfo>;

    /// Returns which named pipe its descriptor `fd` is open on, if on one.
    fn named_pipe(&self, fd: u32) -> io::Result<Option<NamedPipe>> {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns when any of its threads last ran, on the scheduler's own clock.
    fn last_ran(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the system calls that its threads but the main one are in, of at most so many of them.
    fn threads_system_calls(&self, most: usize) -> io::Result<Vec<(u32, Vec<u8>)>> {
        let _ = most;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Asks the pipe behind its descriptor `fd` whether anybody can still write into it.
    fn probe_pipe(&self, fd: u32, inode: u64) -> io::Result<PipeProbe>;
}

/// The machine as it is now.
#[derive(Debug, Clone)]
pub struct Live {
    proc: Arc<ProcFs>,
}

impl Live {
    /// Opens the machine for looking.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn open() -> io::Result<Self> {
        let proc = Arc::new(ProcFs::open()?);
        Ok(Self { proc })
    }
}

impl Source for Live {
    type Process = ProcDir;

    fn now(&self) -> Stamp {
        SystemClock.now()
    }

    fn boot_id(&self) -> io::Result<String> {
        sys::clock::boot_id()
    }

    fn blind_spot(&self) -> io::Result<Option<String>> {
        Ok(self.proc.blind_spot()?.map(str::to_owned))
    }

    fn observer_uid(&self) -> u32 {
        sys::process::own_uid()
    }

    fn pids(&self) -> io::Result<Vec<u32>> {
        self.proc.pids()
    }

    fn process(&self, pid: u32) -> io::Result<ProcDir> {
        self.proc.process(pid)
    }

    fn identity(&self, pid: u32) -> io::Result<ProcessId> {
        Handle::open(pid).map(|handle| handle.id().clone())
    }

    fn unix_sockets(&self) -> io::Result<Vec<UnixSocket>> {
        sys::unix_diag::unix_sockets()
    }

    fn tcp_activity(&self) -> io::Result<Vec<TcpActivity>> {
        sys::tcp_diag::tcp_activity()
    }

    fn passwd(&self) -> io::Result<String> {
        std::fs::read_to_string("/etc/passwd")
    }
}

impl Look for ProcDir {
    fn owner(&self) -> io::Result<u32> {
        Self::owner(self)
    }

    fn stat(&self) -> io::Result<ProcStat> {
        Self::stat(self)
    }

    fn read(&self, file: File) -> io::Result<Vec<u8>> {
        Self::read(self, file)
    }

    fn link(&self, link: Link) -> io::Result<Vec<u8>> {
        Self::link(self, link)
    }

    fn exe_id(&self) -> io::Result<ExeId> {
        Self::exe_id(self)
    }

    fn descriptors(&self) -> io::Result<Vec<RawDescriptor>> {
        Self::descriptors(self)
    }

    fn descriptor_info(&self, fd: u32) -> io::Result<DescriptorInfo> {
        Self::descriptor_info(self, fd)
    }

    fn named_pipe(&self, fd: u32) -> io::Result<Option<NamedPipe>> {
        Self::named_pipe(self, fd)
    }

    fn last_ran(&self) -> io::Result<u64> {
        Self::last_ran(self)
    }

    fn threads_system_calls(&self, most: usize) -> io::Result<Vec<(u32, Vec<u8>)>> {
        Self::threads_system_calls(self, most)
    }

    fn probe_pipe(&self, fd: u32, inode: u64) -> io::Result<PipeProbe> {
        Self::probe_pipe(self, fd, inode)
    }
}
