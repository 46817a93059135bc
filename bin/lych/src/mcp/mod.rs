//! `lych mcp`: the stdio server for an agent, which is nothing but a way to the daemon.
//!
//! It says hello, reads one reply, then copies bytes. It decides nothing, stores nothing, and never connects a second
//! time: a connection that is made again without a word would repeat what the first one left open. Standard output
//! carries the protocol alone, so everything else goes to standard error, which may be broken already and then
//! takes nothing.

mod autostart;
mod relay;

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

use model::{Exit, Explain, Fault, Foreign, Home, ProcessId};
use sys::{
    clock::boot_millis,
    port::{Port, Watch, wait},
    process::Handle,
};
use wire::{Hello, LineBuffer, Reply, Role};

use crate::ui;

pub(crate) use autostart::{
    StartedBy, arguments, daemon_beside_us, ensure_daemon, keeper, run as start_detached,
};

/// Runs the shim until the client or the daemon ends it.
pub(crate) fn run(home: &Home) -> Exit {
    match relayed(home) {
        Ok(exit) => exit,
        Err(explain) => {
            ui::explain(&explain);
            explain.exit
        }
    }
}

fn relayed(home: &Home) -> Result<Exit, Explain> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut socket = autostart::connect(home, &home.agent_socket(), StartedBy::Agent)?;
    let mut hello = hello(inode(stdin.as_fd()), inode(stdout.as_fd()));
    if home.realm().is_separate() {
        hello.holder = holder(hello.stdin_inode);
    }
    let ahead = welcome(&mut socket, &hello)?;
    let over = relay::run(stdin.as_fd(), stdout.as_fd(), &socket, &ahead);
    match over {
        Ok(relay::Over::InputEnded | relay::Over::ClientGone) => Ok(Exit::Done),
        Ok(relay::Over::DaemonClosed) => Err(Explain::new(
            Exit::Unreachable,
            Fault::Operator,
            "the daemon closed the connection",
        )
        .because("it was stopped, or it has ended this run's connection")
        .next("see `lych status`; what was under way is in `lych activity list`")),
        Err(error) => Err(Explain::new(
            Exit::Failed,
            Fault::Operator,
            "standard input and output cannot be relayed",
        )
        .because(error)),
    }
}

fn hello(stdin_inode: Option<u64>, stdout_inode: Option<u64>) -> Hello {
    let argv0 = std::env::args_os().next().unwrap_or_default();
    Hello {
        min: wire::PROTOCOL_MIN,
        max: wire::PROTOCOL_MAX,
        version: wire::VERSION.to_owned(),
        role: Role::Mcp,
        stdin_inode,
        stdout_inode,
        parent: std::os::unix::process::parent_id(),
        argv0: Foreign::from_bytes(argv0.as_encoded_bytes()),
        holder: None,
    }
}

/// Looks who holds our wire, for a daemon that is another user and may not. If that cannot be told it is not
/// said, and the run gets no writes.
fn holder(stdin_inode: Option<u64>) -> Option<ProcessId> {
    let own = Handle::open(std::process::id()).ok()?;
    let chain = sys::chain::above(own, stdin_inode).ok()?;
    chain.holder().ok().map(|link| link.process.id.clone())
}

fn inode(fd: BorrowedFd<'_>) -> Option<u64> {
    Port::new(fd).ok().map(|port| port.inode())
}

/// Says hello and waits for the welcome. Returns what the daemon said behind it.
fn welcome(socket: &mut UnixStream, hello: &Hello) -> Result<Vec<u8>, Explain> {
    let line = wire::encode(hello).map_err(|error| {
        Explain::new(Exit::Failed, Fault::Ours, "the hello cannot be written").because(error)
    })?;
    // Far shorter than a socket's buffer, so this does not wait.
    socket
        .write_all(&line)
        .map_err(|error| not_welcomed(&error))?;
    let deadline = boot_millis().saturating_add(WELCOMED_WITHIN);
    let mut buffer = LineBuffer::new(REPLY_CAP);
    let reply = loop {
        match buffer.next_line() {
            Ok(Some(reply)) => break reply,
            Ok(None) => read_more(socket, &mut buffer, deadline)?,
            Err(error) => return Err(not_welcomed(&io::Error::other(error))),
        }
    };
    match wire::decode(&reply) {
        Ok(Reply::Welcome(_)) => Ok(buffer.into_rest()),
        Ok(Reply::Refused(refusal)) => Err(refusal.explain),
        Err(error) => Err(not_welcomed(&io::Error::other(error))),
    }
}

fn read_more(socket: &UnixStream, buffer: &mut LineBuffer, deadline: u64) -> Result<(), Explain> {
    let port = Port::new(socket.as_fd()).map_err(|error| not_welcomed(&error))?;
    let watch = Watch {
        input: true,
        room: false,
    };
    wait([Some((port, watch))], Some(deadline)).map_err(|error| not_welcomed(&error))?;
    let mut chunk = [0; 4096];
    match port.take(&mut chunk) {
        Ok(0) => Err(not_welcomed(&io::ErrorKind::UnexpectedEof.into())),
        Ok(length) => {
            buffer.push(chunk.get(..length).unwrap_or_default());
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(not_welcomed(&error)),
    }
}

fn not_welcomed(error: &io::Error) -> Explain {
    let exit = if error.kind() == io::ErrorKind::TimedOut {
        Exit::TimedOut
    } else {
        Exit::Unreachable
    };
    Explain::new(
        exit,
        Fault::Operator,
        "the daemon did not welcome this connection",
    )
    .because(error)
    .next("see `lych status`, or the daemon's log")
}

/// How long a welcome may take, in milliseconds. It comes after the run is on record: one write to disk.
const WELCOMED_WITHIN: u64 = 10_000;

/// Longest reply, in bytes: a few ids, or an explanation for a person.
const REPLY_CAP: usize = 64 << 10;
