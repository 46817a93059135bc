//! Who is at the door: peer, version, program and chain, before a connection becomes part of a run.

use std::{
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::PathBuf,
    time::Duration,
};

use model::{ExeId, Exit, Explain, Fault, Realm};
use sys::{chain::Chain, process::Handle};
use tokio::{io::AsyncReadExt, net::UnixStream, time::timeout};
use wire::{Hello, LineBuffer};

/// How long a peer may take for its hello line. It is one write of a program of ours.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// Longest hello line, in bytes: a dozen short fields.
const HELLO_CAP: usize = 16 << 10;

/// A peer that may come in.
pub(crate) struct Guest {
    pub(crate) hello_protocol: u16,
    pub(crate) uid: u32,
    pub(crate) chain: Chain,
    /// Bytes that came behind the hello line.
    pub(crate) rest: Vec<u8>,
}

/// A peer whose user is served here.
pub(crate) struct Peer {
    uid: u32,
    shim: Handle,
}

/// A peer that said its hello.
pub(crate) struct Heard {
    peer: Peer,
    hello: Hello,
    hello_protocol: u16,
    rest: Vec<u8>,
}

/// Sees whose the other end of `stream` is.
///
/// # Errors
/// It is none of a user who is served here.
pub(crate) fn peer(realm: Realm, stream: &UnixStream) -> Result<Peer, Explain> {
    let credentials = sys::peer::credentials(stream.as_fd()).map_err(|error| unseen(&error))?;
    if credentials.uid != realm.agent(sys::process::own_uid()) {
        return Err(Explain::new(
            Exit::Refused,
            Fault::Caller,
            "this daemon serves another user",
        )
        .because(format!("you are uid {}", credentials.uid))
        .next("start your own with `lych up`"));
    }
    let shim = sys::peer::process(stream.as_fd()).map_err(|error| unseen(&error))?;
    Ok(Peer {
        uid: credentials.uid,
        shim,
    })
}

/// Waits for what a peer says first.
///
/// # Errors
/// What the peer is told if that is no hello of ours.
pub(crate) async fn hear(peer: Peer, stream: &mut UnixStream) -> Result<Heard, Explain> {
    let (hello, rest) = hello(stream).await?;
    let ours = (wire::PROTOCOL_MIN, wire::PROTOCOL_MAX);
    let Some(hello_protocol) = wire::choose_protocol(ours, (hello.min, hello.max)) else {
        return Err(other_version(&hello.version));
    };
    Ok(Heard {
        peer,
        hello,
        hello_protocol,
        rest,
    })
}

/// Looks at who is behind a peer.
///
/// # Errors
/// What the peer is told when it may not come in.
pub(crate) async fn look(realm: Realm, heard: Heard) -> Result<Guest, Explain> {
    let Peer { uid, shim } = heard.peer;
    if !realm.is_separate() {
        known_program(&shim)?;
    }
    let hello = heard.hello;
    let chain = tokio::task::spawn_blocking(move || chain(realm, shim, &hello))
        .await
        .map_err(|error| unseen(&io::Error::other(error)))?
        .map_err(|error| unseen(&error))?;
    Ok(Guest {
        hello_protocol: heard.hello_protocol,
        uid,
        chain,
        rest: heard.rest,
    })
}

/// What one is told that said nothing while others came.
pub(crate) fn silent() -> Explain {
    not_a_shim("it said nothing, and others want to come in")
}

/// Who stands above the shim is seen; who holds its wire is seen too, unless it is another user's.
fn chain(realm: Realm, shim: Handle, hello: &Hello) -> io::Result<Chain> {
    match realm {
        Realm::SameUser => sys::chain::above(shim, hello.stdin_inode),
        Realm::SeparateUser(_) => sys::chain::reported(shim, hello.holder.as_ref()),
    }
}

async fn hello(stream: &mut UnixStream) -> Result<(Hello, Vec<u8>), Explain> {
    let mut buffer = LineBuffer::new(HELLO_CAP);
    let read = async {
        let mut chunk = [0; 4096];
        loop {
            if let Some(line) = buffer.next_line().map_err(io::Error::other)? {
                return Ok(line);
            }
            let count = stream.read(&mut chunk).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer.push(chunk.get(..count).unwrap_or_default());
        }
    };
    let line = timeout(HELLO_WITHIN, read)
        .await
        .map_err(|_| not_a_shim("it said nothing"))?;
    let line = line.map_err(|error: io::Error| not_a_shim(&error.to_string()))?;
    let hello = wire::decode(&line).map_err(|error| not_a_shim(&error.to_string()))?;
    Ok((hello, buffer.into_rest()))
}

/// Only the `lych` beside our own binary may bring an agent in. Which program another user's process runs is not
/// ours to see, so a daemon that is a user of its own does not ask.
fn known_program(shim: &Handle) -> Result<(), Explain> {
    let expected = beside_us().map_err(|error| unseen(&error))?;
    let process = shim.describe().map_err(|error| unseen(&error))?;
    match process.exe_id {
        Some(seen) if seen == expected => Ok(()),
        Some(_) => Err(Explain::new(
            Exit::Refused,
            Fault::Operator,
            "this `lych` is not the one beside the daemon",
        )
        .because("it was upgraded, or it is another program")
        .next("restart both: `lych down`, then start the agent's client again")),
        None => Err(unseen(&io::Error::other("its executable cannot be read"))),
    }
}

fn beside_us() -> io::Result<ExeId> {
    let own = std::env::current_exe()?;
    let lych: PathBuf = own.with_file_name("lych");
    let meta = std::fs::metadata(lych)?;
    Ok(ExeId {
        dev: meta.dev(),
        ino: meta.ino(),
    })
}

fn unseen(error: &io::Error) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Operator,
        "it cannot be told who connects",
    )
    .because(error)
    .next("if the client has ended in the meantime this is nothing; otherwise look at lychd.log")
}

fn not_a_shim(why: &str) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        "this socket is for `lych mcp`",
    )
    .because(why)
    .next("configure the agent's client to start `lych mcp`")
}

fn other_version(theirs: &str) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Operator,
        "`lych` and the daemon speak different versions",
    )
    .because(format!("daemon {}, lych {theirs}", wire::VERSION))
    .next("restart the daemon: `lych down`, then `lych up`")
}
