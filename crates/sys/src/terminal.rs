//! Asking a person for something that must not be seen.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
};

use model::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Longest line taken from a terminal: what its line editor holds (termios(3), `MAX_CANON` is less).
const LINE_CAP: usize = 4096;

/// Gives the terminal its echo back, also if reading fails.
struct Echo<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Drop for Echo<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Asks on the controlling terminal, without echo, for one line.
///
/// # Errors
/// There is no terminal, or it went away.
pub fn ask_hidden(prompt: &str) -> io::Result<Secret> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    terminal.write_all(prompt.as_bytes())?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let echo = Echo {
        terminal: &terminal,
        before,
    };
    // Room for the whole line at once, so that growing leaves no copies behind.
    let mut line = Vec::with_capacity(LINE_CAP);
    let read = BufReader::new(&terminal).read_until(b'\n', &mut line);
    drop(echo);
    let line = Secret::new(line);
    read?;
    (&terminal).write_all(b"\n")?;
    let text = line.expose();
    Ok(Secret::new(
        text.strip_suffix(b"\n").unwrap_or(text).to_vec(),
    ))
}

/// Opens a descriptor that whoever started us left open for us.
///
/// # Errors
/// It is not open, or cannot be read.
pub fn inherited(fd: i32) -> io::Result<File> {
    // Opens the same pipe or file anew (proc_pid_fd(5), fd(4) on macOS): no unsafe adoption of a number.
    File::open(format!("/dev/fd/{fd}"))
}
