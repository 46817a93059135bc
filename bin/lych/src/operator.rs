//! The operator's end of the daemon's socket.

use std::{
    io::{self, IsTerminal, Read, Write},
    os::unix::{fs::MetadataExt, net::UnixStream},
    time::Duration,
};

use model::{ExeId, Exit, Explain, Fault, Home, Presence};
use serde::de::DeserializeOwned;
use wire::{
    LineBuffer,
    operator::{Answer, OperatorHello, Request},
};

use crate::mcp;

/// Longest answer taken from the daemon, in bytes: a list of every call of a long log is large, and the
/// peer is our own daemon, checked by its user id.
const ANSWER_CAP: usize = 256 << 20;

/// How long an answer may take. Unlocking derives a key from a passphrase, which is slow on purpose.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the daemon.
pub(crate) struct Operator {
    stream: UnixStream,
    buffer: LineBuffer,
}

impl Operator {
    /// Connects to the daemon of this home.
    ///
    /// # Errors
    /// Nobody listens, or whoever does is not the user's own daemon.
    pub(crate) fn connect(home: &Home) -> Result<Self, Explain> {
        let socket = home.operator_socket();
        let own = sys::process::own_uid();
        if !is_operator(home, own) {
            return Err(not_an_operator(home));
        }
        let stream = sys::socket::connect(&socket, mcp::keeper(home, &socket))
            .map_err(|error| unreachable(home, &error))?;
        let peer = sys::peer::credentials(&stream).map_err(|error| unreachable(home, &error))?;
        let root_for_ours = peer.uid == 0 && !home.realm().is_separate();
        if peer.uid != home.realm().daemon(own) && !root_for_ours {
            return Err(Explain::new(
                Exit::Refused,
                Fault::Operator,
                "the daemon's socket belongs to another user",
            )
            .because(format!("uid {} listens on {}", peer.uid, socket.display()))
            .next("find out who put it there before you type a passphrase"));
        }
        let timeouts = stream
            .set_read_timeout(Some(PATIENCE))
            .and(stream.set_write_timeout(Some(PATIENCE)));
        timeouts.map_err(|error| unreachable(home, &error))?;
        let mut operator = Self {
            stream,
            buffer: LineBuffer::new(ANSWER_CAP),
        };
        operator.hello()?;
        Ok(operator)
    }

    /// Returns the daemon's process, to see it end.
    ///
    /// # Errors
    /// It has ended, or the system cannot tell who listens.
    pub(crate) fn daemon(&self) -> Result<sys::process::Handle, Explain> {
        sys::peer::process(&self.stream).map_err(gone)
    }

    fn hello(&mut self) -> Result<(), Explain> {
        let presence = if io::stdin().is_terminal() {
            Presence::Tty
        } else {
            Presence::None
        };
        let hello = OperatorHello {
            min: wire::PROTOCOL_MIN,
            max: wire::PROTOCOL_MAX,
            version: wire::VERSION.to_owned(),
            presence,
        };
        self.send(&hello)?;
        self.answer().map(drop)
    }

    /// Asks for one thing and returns the value the daemon answers with.
    ///
    /// # Errors
    /// The daemon's own explanation, or that it went away: then nobody knows whether it was done.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<serde_json::Value, Explain> {
        if request.carries_secret() {
            self.known_program()?;
        }
        self.send(request)?;
        self.answer()
    }

    /// Asks for one thing whose answer has a known form.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), or the answer has another form.
    pub(crate) fn ask_for<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Explain> {
        let value = self.ask(request)?;
        serde_json::from_value(value).map_err(|error| {
            Explain::new(
                Exit::Failed,
                Fault::Ours,
                "the daemon's answer has an unexpected form",
            )
            .because(error)
        })
    }

    /// A secret is told to the `lychd` beside this program only, as far as can be seen: a daemon that is not
    /// dumpable shows its executable to root alone. A lock or a stop is told to whoever listens.
    fn known_program(&self) -> Result<(), Explain> {
        let seen = self.daemon()?.describe().ok().and_then(|seen| seen.exe_id);
        let beside = std::env::current_exe()
            .map(|own| own.with_file_name("lychd"))
            .and_then(std::fs::metadata);
        match (seen, beside) {
            (Some(seen), Ok(beside)) if seen != exe_id(&beside) => Err(Explain::new(
                Exit::Refused,
                Fault::Operator,
                "what listens is not the daemon beside this program; it was told nothing",
            )
            .because("it was upgraded, or it is another program")
            .next("`lych down` and `lych up`; if that changes nothing, find out who put the socket there")),
            (Some(_) | None, Ok(_) | Err(_)) => Ok(()),
        }
    }

    fn send<T: serde::Serialize>(&mut self, value: &T) -> Result<(), Explain> {
        let line = wire::encode(value).map_err(|error| {
            Explain::new(Exit::Failed, Fault::Ours, "the request cannot be written").because(error)
        })?;
        // Wiped on drop: a secret may be in it.
        let line = model::Secret::new(line);
        self.stream.write_all(line.expose()).map_err(gone)
    }

    fn answer(&mut self) -> Result<serde_json::Value, Explain> {
        let mut chunk = [0; 16384];
        let line = loop {
            if let Some(line) = self
                .buffer
                .next_line()
                .map_err(|error| gone(io::Error::other(error)))?
            {
                break line;
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.buffer.push(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(error)),
            }
        };
        match wire::decode(&line) {
            Ok(Answer::Done(value)) => Ok(value),
            Ok(Answer::Failed(explain)) => Err(explain),
            Err(error) => Err(gone(io::Error::other(error))),
        }
    }
}

fn exe_id(meta: &std::fs::Metadata) -> ExeId {
    ExeId {
        dev: meta.dev(),
        ino: meta.ino(),
    }
}

/// Tells whether this user may ask the daemon of this home for anything.
pub(crate) fn is_operator(home: &Home, uid: u32) -> bool {
    uid == home.realm().daemon(uid) || uid == 0
}

fn not_an_operator(home: &Home) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        "this is asked of the daemon by root alone",
    )
    .because("the daemon is a user of its own, so that no program of the agents' user can ask it for anything")
    .next(format!("the same with sudo: sudo lych{} …", home.option()))
}

fn unreachable(home: &Home, error: &io::Error) -> Explain {
    Explain::new(
        Exit::Unreachable,
        Fault::Operator,
        "the daemon cannot be reached",
    )
    .because(format!("{}: {error}", home.operator_socket().display()))
    .next(format!("start it with `lych up{}`", home.option()))
}

fn gone(error: io::Error) -> Explain {
    let timed_out = matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    );
    let exit = if timed_out {
        Exit::TimedOut
    } else {
        Exit::Unreachable
    };
    Explain::new(
        exit,
        Fault::Operator,
        "the daemon did not answer; whether it did what was asked is not known",
    )
    .because(error)
    .next("look with `lych status` before you repeat it")
}
