//! A home with a daemon in it, and a shim that is told of it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use model::{ConnectionId, Explain, SessionId};
use testkit::{Held, World};
use wire::{Hello, Refusal, Reply, Welcome};

/// Longer than any wait that succeeds.
pub const SOON: Duration = Duration::from_secs(20);

/// The daemon's side of one home.
pub struct Daemon {
    listener: UnixListener,
}

impl Daemon {
    pub fn listen(world: &World) -> Self {
        let path = world.home().agent_socket();
        sys::durable::private_folder(path.parent().unwrap()).unwrap();
        Self {
            listener: sys::socket::bind_private(&path).unwrap(),
        }
    }

    /// Takes the next shim and its hello.
    pub fn accept(&self) -> (Peer, Hello) {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut peer = Peer {
            reader: BufReader::new(stream),
        };
        let line = peer.line();
        (peer, wire::decode(line.as_bytes()).unwrap())
    }

    /// Tells whether a shim has connected that was not accepted yet.
    pub fn somebody_waits(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        self.listener.accept().is_ok()
    }

    /// Takes the next shim and welcomes it.
    pub fn welcome(&self) -> (Peer, Hello) {
        let (mut peer, hello) = self.accept();
        peer.reply(&Reply::Welcome(Welcome {
            protocol: 1,
            version: wire::VERSION.to_owned(),
            session: SessionId::from_bytes([1; 10]),
            connection: ConnectionId::from_bytes([2; 10]),
        }));
        (peer, hello)
    }
}

/// A shim, as the daemon has it.
pub struct Peer {
    reader: BufReader<UnixStream>,
}

impl Peer {
    pub fn reply(&mut self, reply: &Reply) {
        self.write(&wire::encode(reply).unwrap());
    }

    pub fn refuse(&mut self, explain: Explain) {
        let version = wire::VERSION.to_owned();
        self.reply(&Reply::Refused(Refusal { version, explain }));
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }

    /// Reads until the shim has shut its writing.
    pub fn rest(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }
}

/// The command of a shim with all its streams piped.
pub fn shim(world: &World, program: &Path) -> Command {
    let mut command = world.command(program);
    command
        .arg("--home")
        .arg(world.folder())
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts the shim that was built.
pub fn start(world: &World) -> Held {
    Held::start(&mut shim(world, Path::new(env!("CARGO_BIN_EXE_lych"))))
}

/// Reads all of a stream.
pub fn all(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
