//! Asking a person for something that must not be seen, or taking it from a descriptor that he left open.

#![expect(
    unsafe_code,
    reason = "a descriptor known by its number has no safe wrapper"
)]

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::fd::FromRawFd,
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

/// Returns a descriptor that whoever started us left open for us. It is doubled and not opened anew: a socket, or
/// a pipe that another user made, could not be.
///
/// # Errors
/// It is not open.
pub fn inherited(fd: i32) -> io::Result<File> {
    // SAFETY: a system call on plain values; a number that is not open is an error.
    let doubled = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    if doubled < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(doubled) })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::{fd::AsRawFd, unix::net::UnixStream},
    };

    use super::*;

    #[test]
    fn a_socket_that_was_left_open_is_read_and_what_is_not_open_is_an_error() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"1234").unwrap();
        drop(far);

        let mut said = String::new();
        let mut left = inherited(near.as_raw_fd()).unwrap();
        left.read_to_string(&mut said).unwrap();

        assert_eq!(said, "1234");
        assert_eq!(
            inherited(i32::MAX).unwrap_err().raw_os_error(),
            Some(libc::EBADF)
        );
    }
}
