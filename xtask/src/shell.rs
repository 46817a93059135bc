//! Running other programs, and talking to the person in front of the screen.

use std::{
    env,
    ffi::OsStr,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Why a command of ours did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The command line is wrong.
    Usage(String),
    /// A program could not be started or failed.
    Program(String),
    /// At least one step of several failed; the table says which.
    Steps(usize),
}

impl Trouble {
    /// Returns the exit code: 2 for a wrong command line, 1 otherwise.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Program(_) | Self::Steps(_) => 1,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Program(text) => f.write_str(text),
            Self::Steps(1) => f.write_str("one step failed"),
            Self::Steps(count) => write!(f, "{count} steps failed"),
        }
    }
}

/// Writes a line to standard output; whoever has closed it does not want to know.
pub(crate) fn say(text: &str) {
    drop(writeln!(io::stdout(), "{text}"));
}

/// Writes a line to standard error.
pub(crate) fn complain(text: &str) {
    drop(writeln!(io::stderr(), "xtask: {text}"));
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Returns the folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns a command that runs in the repository's root.
pub(crate) fn program(name: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(root());
    command
}

/// Returns a cargo command: the cargo that runs us, so that the toolchain is the pinned one.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let name = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    program(name, args)
}

/// Runs `command` before the person's eyes.
pub(crate) fn run(mut command: Command) -> Result<(), Trouble> {
    let line = line_of(&command);
    say(&format!("$ {line}"));
    let status = command
        .status()
        .map_err(|error| Trouble::Program(format!("cannot start {line}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Trouble::Program(format!("{line}: {status}")))
    }
}

/// Runs `command` and returns its standard output; nothing if it cannot be started or fails.
pub(crate) fn ask(mut command: Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn line_of(command: &Command) -> String {
    let name = Path::new(command.get_program());
    let name = name.file_name().unwrap_or(name.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
