//! Starts a program that shares nothing with whoever started it: no descriptor, session, terminal or folder.
//!
//! A daemon that an agent's client started by accident of who came first must outlive that client and must not
//! keep its pipes open: it would be the very leftover that this product hunts. What it cannot leave is the
//! client's control group: where a service manager ends a whole group, the daemon belongs to it too.

#![expect(unsafe_code, reason = "fork and what must happen between fork and exec")]

use std::{
    ffi::{CString, OsString},
    fs::{File, OpenOptions},
    io::{self, Read},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStringExt, fs::OpenOptionsExt},
    },
    path::PathBuf,
    ptr,
};

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
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&self.log)?;
        let image = Image::new(self)?;
        let (mut failure, report) = io::pipe()?;
        let inside = Inside {
            null: null.as_raw_fd(),
            log: log.as_raw_fd(),
            report: report.as_raw_fd(),
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
    image: &'a Image,
}

impl Inside<'_> {
    /// The process between: makes the program an orphan at once, so that its parent is init and not we.
    fn between(&self) -> ! {
        // SAFETY: as for the first fork; `become_program` keeps to the same rules.
        match unsafe { libc::fork() } {
            -1 => self.fail(),
            0 => self.become_program(),
            // SAFETY: ends this process without running any handler of the one it was copied from.
            _ => unsafe { libc::_exit(0) },
        }
    }

    fn become_program(&self) -> ! {
        // SAFETY: system calls on valid descriptors and values only. The standard library opened 0, 1 and 2
        // at its start if they were closed, so none of ours has these numbers and dup2 overwrites none of ours.
        let ready = unsafe {
            libc::setsid() >= 0
                && libc::dup2(self.null, 0) == 0
                && libc::dup2(self.null, 1) == 1
                && libc::dup2(self.log, 2) == 2
                && self.move_report()
                && close_from(REPORT + 1)
                && libc::chdir(c"/".as_ptr()) == 0
        };
        if !ready {
            self.fail();
        }
        // SAFETY: no handler of ours runs any more; the default disposition is valid for every signal, and those
        // that cannot be changed are refused with an error.
        unsafe {
            for signal in 1..=LAST_SIGNAL {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::umask(0o077);
        }
        // SAFETY: both lists end with a null pointer and point to texts that `image` owns.
        unsafe {
            libc::execve(
                self.image.program.as_ptr(),
                self.image.arguments.as_ptr(),
                self.image.environment.as_ptr(),
            );
        }
        self.fail()
    }

    /// Moves the report to a known number, with close-on-exec, so that all above it can be closed.
    fn move_report(&self) -> bool {
        // SAFETY: system calls on an open descriptor.
        unsafe {
            (self.report == REPORT || libc::dup2(self.report, REPORT) == REPORT)
                && libc::fcntl(REPORT, libc::F_SETFD, libc::FD_CLOEXEC) == 0
        }
    }

    /// Tells the starter the error of the last system call, and ends.
    fn fail(&self) -> ! {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let bytes = errno.to_ne_bytes();
        // SAFETY: four bytes that live through the call. Before the report was moved its old number is the
        // right one, afterwards only the new one is open; the write to the other fails and does nothing,
        // unless both are the same, where one write is enough.
        unsafe {
            let written = libc::write(REPORT_OR(self.report), bytes.as_ptr().cast(), bytes.len());
            libc::_exit(if written < 0 { 126 } else { 127 })
        }
    }
}
