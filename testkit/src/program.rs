//! Running programs that a test holds: none outlives its handle, and none runs without a deadline.

use std::{
    env,
    ffi::OsStr,
    fmt,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::Value;

use crate::{
    Deadline,
    deadline::{wait_for, wait_until},
};

/// Returns the path of one of the workspace's programs (`lych`, `lychd`).
///
/// `CARGO_BIN_EXE_<name>` decides; without it the program stands in the target folder that this test was
/// built into. Cargo does not build other packages' programs for a test: `cargo build --workspace` does.
///
/// # Panics
/// The program was not built.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    if let Some(path) = env::var_os(format!("CARGO_BIN_EXE_{name}")) {
        return path.into();
    }
    let test = env::current_exe().expect("a test knows its own path");
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built: run `cargo build --workspace` first"))
}

/// How a program ended and what it said.
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the exit code; none if a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the signal that ended it, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Returns its standard output as JSON.
    ///
    /// # Panics
    /// It is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("standard output is not JSON ({error}): {self:?}"))
    }

    /// Returns itself if the program exited with `code`.
    ///
    /// # Panics
    /// It did not; the message shows all it said.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{self:?}");
        self
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            stdout,
            stderr,
        } = self;
        write!(f, "{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// A running program; dropping it kills and reaps it.
pub struct Held {
    name: String,
    child: Child,
}

impl Held {
    /// Starts `command`; its standard streams are what the command says.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { name, child }
    }

    /// Returns its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes its standard input, if the command piped it; dropping that is EOF.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Takes its standard output, if the command piped it.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes its standard error, if the command piped it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// It has not when the deadline passes.
    pub fn wait(&mut self, deadline: Deadline) -> ExitStatus {
        let what = format!("{} to end", self.name);
        wait_for(&what, deadline, || self.ended())
    }

    /// Kills it with SIGKILL, as a crash would, and reaps it.
    pub fn crash(&mut self) -> ExitStatus {
        // A child that has ended already is what is wanted.
        drop(self.child.kill());
        self.child.wait().expect("a killed child can be reaped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Runs `command` to its end with `input` on its standard input.
///
/// # Panics
/// It did not end in time (it is killed then), or somebody else still held its output when it had ended:
/// that somebody is a process which it left behind.
pub(crate) fn run(command: &mut Command, input: &[u8], deadline: Deadline) -> Finished {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut held = Held::start(command);
    let stdout = collect(held.take_stdout());
    let stderr = collect(held.child.stderr.take());
    feed(held.take_stdin(), input);
    let status = held.wait(deadline);
    Finished {
        status,
        stdout: received(&stdout, deadline),
        stderr: received(&stderr, deadline),
    }
}

/// Reads a stream to its end on a thread of its own, so that a full pipe blocks nobody.
fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (to, from) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let complete = stream.is_none_or(|mut stream| stream.read_to_end(&mut bytes).is_ok());
        if complete {
            // Nobody listens any more after a failed test.
            drop(to.send(bytes));
        }
    });
    from
}

fn received(from: &Receiver<Vec<u8>>, deadline: Deadline) -> String {
    let bytes = from
        .recv_timeout(deadline.left())
        .expect("the program has ended, and another process still holds its output");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    let input = input.to_owned();
    thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input may be right not to.
            drop(stdin.write_all(&input));
        }
    });
}

/// Waits until `path` exists.
pub(crate) fn wait_for_file(path: &std::path::Path, deadline: Deadline) {
    let what = format!("{} to appear", path.display());
    wait_until(&what, deadline, || path.exists());
}

/// Passes the few variables on that a program needs, and nothing of the person who runs the tests.
pub(crate) fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ["PATH", "LANG", "LC_ALL", "TMPDIR"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}
