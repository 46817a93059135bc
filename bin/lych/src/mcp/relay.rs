//! The bent pipe: standard input to the daemon, the daemon to standard output, and nothing else.
//!
//! One thread, one poll loop, one fixed buffer for each direction. A direction reads only when its buffer is empty, so
//! each side's slowness reaches the other side, and nothing grows. What is watched for in every round, idle or
//! not, is a standard output that nobody reads any more.
//!
//! ```text
//! both open ──input ends──► answering ──daemon closes──► InputEnded
//!     ├──daemon closes; what it said is passed on──────► DaemonClosed
//!     └──nobody reads standard output, in any state────► ClientGone, at once
//! ```
//! Nothing is waited for but in poll(2): a full standard output keeps us from nothing. With the daemon's bytes still in
//! the buffer the daemon's end is not looked for, because it would change nothing: the bytes go first.

use std::{
    io,
    net::Shutdown,
    ops::Range,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

use sys::port::{Port, Watch, wait};

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The client ended its input, and got everything that the daemon had to say.
    InputEnded,
    /// The daemon closed the socket first.
    DaemonClosed,
    /// Nobody reads standard output any more.
    ClientGone,
}

/// Copies until one side is done. `ahead` is what the daemon has said already.
///
/// # Errors
/// The descriptors cannot be watched: nothing can be relayed.
pub(super) fn run(
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    socket: &UnixStream,
    ahead: &[u8],
) -> io::Result<Over> {
    let input = Port::new(stdin)?;
    let output = Port::new(stdout)?;
    let daemon = Port::new(socket.as_fd())?;
    let mut up = Direction::new(&[]);
    let mut down = Direction::new(ahead);

    loop {
        if up.is_done() && up.end == End::Seen {
            // Fails only if the daemon is gone, which the next read of the socket tells.
            drop(socket.shutdown(Shutdown::Write));
            up.end = End::PassedOn;
        }
        if down.is_done() {
            return Ok(match up.end {
                End::PassedOn => Over::InputEnded,
                End::Open | End::Seen | End::Broken => Over::DaemonClosed,
            });
        }
        let [from_client, to_client, at_daemon] = wait(
            [
                watch(up.wants_bytes(), false).map(|watch| (input, watch)),
                Some((
                    output,
                    Watch {
                        input: false,
                        room: !down.is_empty(),
                    },
                )),
                watch(down.wants_bytes(), !up.is_empty()).map(|watch| (daemon, watch)),
            ],
            None,
        )?;

        if to_client.hung_up {
            return Ok(Over::ClientGone);
        }
        if from_client.input {
            up.fill(&input);
        }
        if at_daemon.input {
            down.fill(&daemon);
        }
        // What has just come goes on without asking for room: there nearly always is, and a socket never keeps us.
        if at_daemon.room || (from_client.input && !up.is_empty()) {
            // What a daemon that takes no more still says is passed on, until its end is read.
            up.drain(&daemon);
        }
        if to_client.room {
            down.drain(&output);
            if down.end == End::Broken {
                return Ok(Over::ClientGone);
            }
        }
    }
}

/// A port that is watched for neither is not watched: its end, which stays told for ever, would keep us awake.
fn watch(input: bool, room: bool) -> Option<Watch> {
    (input || room).then_some(Watch { input, room })
}

/// One direction: a buffer between two ports.
struct Direction {
    buffer: Box<[u8]>,
    /// The bytes that were read and not yet written.
    waiting: Range<usize>,
    end: End,
}

/// What is known of the end of a direction's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// More may come.
    Open,
    /// No more will come.
    Seen,
    /// No more will come, and the other side knows.
    PassedOn,
    /// The other side takes no more.
    Broken,
}

impl Direction {
    fn new(ahead: &[u8]) -> Self {
        let mut buffer = ahead.to_vec();
        buffer.resize(BUFFER.max(ahead.len()), 0);
        Self {
            buffer: buffer.into_boxed_slice(),
            waiting: 0..ahead.len(),
            end: End::Open,
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn wants_bytes(&self) -> bool {
        self.is_empty() && self.end == End::Open
    }

    fn is_done(&self) -> bool {
        self.is_empty() && self.end != End::Open
    }

    fn fill(&mut self, from: &Port<'_>) {
        match from.take(&mut self.buffer) {
            Ok(0) => self.end = End::Seen,
            Ok(length) => self.waiting = 0..length,
            Err(error) if is_for_now(&error) => {}
            // A terminal that hung up, a socket that was reset: ends like any other.
            Err(_) => self.end = End::Seen,
        }
    }

    fn drain(&mut self, to: &Port<'_>) {
        let rest = self.buffer.get(self.waiting.clone()).unwrap_or_default();
        match to.give(rest) {
            Ok(length) => self.waiting.start += length,
            Err(error) if is_for_now(&error) => {}
            Err(_) => {
                self.waiting = 0..0;
                self.end = End::Broken;
            }
        }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// As much as a pipe holds on Linux (pipe(7)).
const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests;
