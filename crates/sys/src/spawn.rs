//! Starts a program that shares nothing with whoever started it: no descriptor, session, terminal or folder.
//!
//! A daemon that an agent's client started by accident of who came first must outlive that client and must not
//! keep its pipes open: it would be the very leftover that this product hunts. What it cannot leave is the
//! client's control group: where a service manager ends a whole group, the daemon belongs to it too.

#![expect(
    unsafe_code,
    reason = "fork and what must happen between fork and exec"
)]

use std::{
    ffi::{CString, OsString},
    fs::OpenOptions,
    io::{self, Read},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStringExt, fs::OpenOptionsExt},
    },
    path::PathBuf,
    ptr,
};

use crate::regular;

/// A program to start on its own.
#[derive(Debug, Clone)]
pub struct Detached {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without the name.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The file that its standard error is appended to, created with mode 0600.
    pub log: PathBuf,
    /// As whom it runs, with no further group; as we do if none is named. Only root can start it as another.
    pub as_user: Option<User>,
}

/// A user with his own group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// His group.
    pub gid: u32,
}

impl Detached {
    /// Starts it in a session of its own, in `/`, with `/dev/null` as input and output, every signal as the
    /// system has it by default, and nothing else open.
    ///
    /// It is nobody's child here: neither can it become a zombie of ours nor can it be waited for. Returns when
    /// the program runs.
    ///
    /// # Errors
    /// The log cannot be opened, or the program cannot be executed; then nothing was started.
    pub fn start(&self) -> io::Result<()> {
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        let mut appending = OpenOptions::new();
        appending.append(true).create(true).mode(0o600);
        let log = regular::open(&self.log, &mut appending).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.log.display()))
        })?;
        if let Some(user) = self.as_user {
            std::os::unix::fs::fchown(&log, Some(user.uid), Some(user.gid))?;
        }
        let image = Image::new(self)?;
        let (mut failure, report) = io::pipe()?;
        let inside = Inside {
            null: null.as_raw_fd(),
            log: log.as_raw_fd(),
            report: report.as_raw_fd(),
            as_user: self.as_user,
            image: &image,
        };

        // SAFETY: `Inside::between` is async-signal-safe (signal-safety(7)): it makes system calls on values
        // that exist already, neither allocates nor locks, and never returns.
        let between = unsafe { libc::fork() };
        match between {
            -1 => return Err(io::Error::last_os_error()),
            0 => inside.between(),
            _ => reap(between),
        }

        // Ours is the last write end but the one that exec closes: end of file says that the program runs.
        drop(report);
        let mut code = Vec::new();
        failure.read_to_end(&mut code)?;
        match code.try_into() {
            Ok(errno) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno))),
            Err(_) => Ok(()),
        }
    }
}

/// What exec takes, allocated before the fork.
struct Image {
    program: CString,
    /// Point into `_texts` and `program`, and end with a null pointer.
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

impl Image {
    fn new(start: &Detached) -> io::Result<Self> {
        let text = |text: OsString| CString::new(text.into_vec()).map_err(io::Error::from);
        let program = text(start.program.clone().into_os_string())?;
        let arguments: Vec<CString> = start
            .arguments
            .iter()
            .cloned()
            .map(text)
            .collect::<Result<_, _>>()?;
        let variables: Vec<CString> = start
            .environment
            .iter()
            .map(|(name, value)| {
                let mut line = name.clone();
                line.push("=");
                line.push(value);
                text(line)
            })
            .collect::<Result<_, _>>()?;
        // A CString's bytes stay where they are when it moves, so these pointers live as long as it does.
        let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
            let texts = texts.iter().map(|text| text.as_ptr());
            texts.chain([ptr::null()]).collect()
        };
        let mut all = vec![program.as_ptr()];
        all.extend(list(&arguments));
        Ok(Self {
            arguments: all,
            environment: list(&variables),
            program,
            _texts: arguments.into_iter().chain(variables).collect(),
        })
    }
}

/// What the two new processes need; nothing here may allocate, lock or panic.
struct Inside<'a> {
    null: RawFd,
    log: RawFd,
    report: RawFd,
    as_user: Option<User>,
    image: &'a Image,
}

impl Inside<'_> {
    /// The process between: makes the program an orphan at once, so that its parent is init and not we.
    fn between(&self) -> ! {
        // SAFETY: as for the first fork; `become_program` keeps to the same rules.
        match unsafe { libc::fork() } {
            -1 => fail(self.report),
            0 => self.become_program(),
            // SAFETY: ends this process without running any handler of the one it was copied from.
            _ => unsafe { libc::_exit(0) },
        }
    }

    fn become_program(&self) -> ! {
        // SAFETY: system calls on open descriptors. The standard library opened 0, 1 and 2 at its start if they
        // were closed, so none of ours has these numbers, and no dup2 closes one that is still needed.
        let apart = unsafe {
            libc::setsid() >= 0
                && libc::dup2(self.null, 0) == 0
                && libc::dup2(self.null, 1) == 1
                && libc::dup2(self.log, 2) == 2
                && (self.report == REPORT || libc::dup2(self.report, REPORT) == REPORT)
                && libc::fcntl(REPORT, libc::F_SETFD, libc::FD_CLOEXEC) == 0
        };
        if !apart {
            fail(self.report);
        }
        // SAFETY: system calls on plain values. Handlers are gone with the exec below; the default disposition
        // is valid for every signal, and those that cannot be changed are refused with an error.
        let bare = unsafe {
            for signal in 1..=LAST_SIGNAL {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::umask(0o077);
            close_from(REPORT + 1) && libc::chdir(c"/".as_ptr()) == 0
        };
        if bare && self.takes_user() {
            // SAFETY: both lists end with a null pointer and point to texts that `image` owns.
            unsafe {
                libc::execve(
                    self.image.program.as_ptr(),
                    self.image.arguments.as_ptr(),
                    self.image.environment.as_ptr(),
                );
            }
        }
        fail(REPORT)
    }

    /// Becomes the user: groups first, since afterwards they could not be given up any more (setgroups(2)).
    fn takes_user(&self) -> bool {
        let Some(User { uid, gid }) = self.as_user else {
            return true;
        };
        // SAFETY: system calls on plain values; an empty list of groups is read from no pointer.
        unsafe {
            libc::setgroups(0, ptr::null()) == 0 && libc::setgid(gid) == 0 && libc::setuid(uid) == 0
        }
    }
}

/// Tells the starter the error of the last system call, and ends.
fn fail(report: RawFd) -> ! {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let bytes = errno.to_ne_bytes();
    // SAFETY: four bytes that live through the call, which a pipe takes whole (pipe(7), PIPE_BUF); then the
    // end of this process without running any handler of the one it was copied from.
    unsafe {
        libc::write(report, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

/// Closes every descriptor from `first` on.
///
/// # Safety
/// Nothing in this process may use one of them afterwards.
#[cfg(target_os = "linux")]
unsafe fn close_from(first: RawFd) -> bool {
    // SAFETY: a system call on plain values (close_range(2), Linux 5.9). By number, since musl has no wrapper.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    // SAFETY: as the caller promises.
    result == 0 || unsafe { close_one_by_one(first) }
}

/// Closes every descriptor from `first` on.
///
/// # Safety
/// Nothing in this process may use one of them afterwards.
#[cfg(not(target_os = "linux"))]
unsafe fn close_from(first: RawFd) -> bool {
    // SAFETY: as the caller promises.
    unsafe { close_one_by_one(first) }
}

/// For systems without close_range: up to the limit, above which no descriptor can be open.
///
/// # Safety
/// Nothing in this process may use one of them afterwards.
unsafe fn close_one_by_one(first: RawFd) -> bool {
    // SAFETY: system calls on plain values; closing what is not open is refused with an error.
    unsafe {
        let limit = libc::sysconf(libc::_SC_OPEN_MAX);
        let Ok(limit) = RawFd::try_from(limit) else {
            return false;
        };
        for descriptor in first..limit {
            libc::close(descriptor);
        }
    }
    true
}

/// Takes away the process between, which ends by itself at once.
fn reap(between: libc::pid_t) {
    loop {
        // SAFETY: a child of ours and no status asked for. ECHILD, where SIGCHLD is ignored, means the same.
        let result = unsafe { libc::waitpid(between, ptr::null_mut(), 0) };
        let interrupted = io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if result != -1 || !interrupted {
            return;
        }
    }
}

/// The number of the descriptor that reports a failure: the first behind the standard ones.
const REPORT: RawFd = 3;

#[cfg(target_os = "linux")]
const LAST_SIGNAL: libc::c_int = 64;
#[cfg(not(target_os = "linux"))]
const LAST_SIGNAL: libc::c_int = 31;

#[cfg(all(test, target_os = "linux"))]
mod tests;
