//! What the kernel tells of one descriptor and of one thread, parsed.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, statat},
    io::Errno,
    path::DecInt,
};

use super::{
    Access,
    calls::{counted, lift, opened},
};

/// Reads when a thread was last put on a processor (the kernel's `kernel/sched/debug.c`: `se.exec_start`).
pub(super) fn started_running(tasks: &OwnedFd, thread: u32) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = opened(openat(
        tasks,
        format!("{thread}/sched"),
        flags,
        Mode::empty(),
    ));
    let file = file.map_err(|errno| match errno {
        // The thread was listed: it is the file that there is none of.
        Errno::NOENT if is_there(tasks, thread) => io::ErrorKind::Unsupported.into(),
        errno => lift(errno),
    })?;
    let mut buffer = [0_u8; 1024];
    let length = counted(rustix::io::read(&file, &mut buffer)).map_err(lift)?;
    let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("se.exec_start")?.split_once(':'));
    let whole = value.and_then(|(_, value)| value.trim().split('.').next()?.parse().ok());
    whole.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads what system call a thread is in (proc_pid_syscall(5)).
pub(super) fn system_call(tasks: &OwnedFd, thread: u32) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let name = format!("{thread}/syscall");
    let file = opened(openat(tasks, name, flags, Mode::empty())).map_err(lift)?;
    // A number and eight others in hex.
    let mut buffer = [0_u8; 256];
    let length = counted(rustix::io::read(&file, &mut buffer)).map_err(lift)?;
    Ok(buffer.get(..length).unwrap_or_default().to_vec())
}

fn is_there(tasks: &OwnedFd, thread: u32) -> bool {
    counted(statat(tasks, DecInt::new(thread), AtFlags::empty())).is_ok()
}

/// Parses `it_value: (seconds, nanoseconds)`, what is left of a timer's time; a timer that is not set has none.
pub(super) fn timer(line: &str) -> Option<u64> {
    let value = line.strip_prefix("it_value: (")?.strip_suffix(')')?;
    let (seconds, nanos) = value.split_once(", ")?;
    let (seconds, nanos): (u64, u64) = (seconds.parse().ok()?, nanos.parse().ok()?);
    let is_set = seconds > 0 || nanos > 0;
    is_set.then(|| {
        seconds
            .saturating_mul(1000)
            .saturating_add(nanos.div_ceil(1_000_000))
    })
}

/// The two lowest bits of the flags (open(2)); `O_PATH` allows neither.
pub(super) fn access_of(flags: u32) -> Access {
    let flags = OFlags::from_bits_retain(flags);
    if is_path_only(flags) {
        Access::Neither
    } else if flags.contains(OFlags::RDWR) {
        Access::ReadWrite
    } else if flags.contains(OFlags::WRONLY) {
        Access::Write
    } else {
        Access::Read
    }
}

#[cfg(target_os = "linux")]
const fn is_path_only(flags: OFlags) -> bool {
    flags.contains(OFlags::PATH)
}

/// There is no such opening here.
#[cfg(not(target_os = "linux"))]
const fn is_path_only(_: OFlags) -> bool {
    false
}
