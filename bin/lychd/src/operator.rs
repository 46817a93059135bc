//! The operator's socket: one hello, then one request and one answer at a time.

use std::{io, os::fd::AsFd, sync::Arc, time::Duration};

use model::{Exit, Explain, Fault, Operator, Presence, Secret};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};
use wire::{
    LineBuffer,
    operator::{Answer, OperatorHello},
};
use zeroize::Zeroizing;

use crate::{daemon::Daemon, room::Asking, verbs};

/// Longest request, in bytes. A secret of 1 MiB in base64 is the longest thing an operator sends.
const REQUEST_CAP: usize = 4 << 20;

/// How long a hello may take: it is the first thing that `lych` writes.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// Who asks over one connection.
pub(crate) struct Caller {
    /// As records name him.
    pub(crate) by: Operator,
    /// The PIN he gave, for acts that need one; looked at only then.
    pub(crate) pin: Option<Arc<Secret>>,
}

/// Serves one operator until it hangs up.
pub(crate) async fn serve(daemon: Arc<Daemon>, mut stream: UnixStream) {
    if let Err(error) = converse(&daemon, &mut stream).await {
        daemon
            .notes
            .say(&format!("an operator's connection broke: {error}"));
    }
}

async fn converse(daemon: &Arc<Daemon>, stream: &mut UnixStream) -> io::Result<()> {
    let mut lines = Lines {
        buffer: LineBuffer::new(REQUEST_CAP),
    };
    let peer = sys::peer::credentials(stream.as_fd())?;
    let asking = Asking {
        uid: peer.uid,
        pid: peer.pid,
    };
    let _place = match daemon.room.operator(asking) {
        Ok(place) => place,
        Err(explain) => return answer(stream, &Answer::Failed(explain)).await,
    };
    let first = timeout(HELLO_WITHIN, lines.next(stream)).await;
    let Some(first) = first.map_err(|_| io::ErrorKind::TimedOut)?? else {
        return Ok(());
    };
    let mut caller = match greet(stream, &first) {
        Ok(by) => Caller { by, pin: None },
        Err(explain) => return answer(stream, &Answer::Failed(explain)).await,
    };
    answer(stream, &Answer::Done(serde_json::Value::Null)).await?;
    while let Some(line) = lines.next(stream).await? {
        let reply = match wire::decode(&line) {
            Ok(request) => match verbs::run(daemon, &mut caller, request).await {
                Ok(value) => Answer::Done(value),
                Err(explain) => Answer::Failed(explain),
            },
            Err(error) => Answer::Failed(unknown_request(&error)),
        };
        answer(stream, &reply).await?;
    }
    Ok(())
}

fn greet(stream: &UnixStream, line: &[u8]) -> Result<Operator, Explain> {
    let peer = sys::peer::credentials(stream.as_fd()).map_err(|error| {
        Explain::new(
            Exit::Refused,
            Fault::Operator,
            "it cannot be told who connects",
        )
        .because(error)
    })?;
    let own = sys::process::own_uid();
    if peer.uid != own && peer.uid != 0 {
        return Err(Explain::new(
            Exit::Refused,
            Fault::Caller,
            "this daemon belongs to another user",
        )
        .because(format!("you are uid {}, it is uid {own}", peer.uid)));
    }
    let hello: OperatorHello = wire::decode(line).map_err(|error| unknown_request(&error))?;
    let ours = (wire::PROTOCOL_MIN, wire::PROTOCOL_MAX);
    if wire::choose_protocol(ours, (hello.min, hello.max)).is_none() {
        return Err(Explain::new(
            Exit::Refused,
            Fault::Operator,
            "`lych` and the daemon speak different versions",
        )
        .because(format!("daemon {}, lych {}", wire::VERSION, hello.version))
        .next("restart the daemon: `lych down`, then `lych up`"));
    }
    Ok(Operator {
        uid: peer.uid,
        login_uid: sys::login::login_uid(peer.pid),
        presence: believed(hello.presence, peer.uid, own),
    })
}

/// What the command says of a person's presence is a claim of a program of the same user: a terminal may
/// be claimed, more than that must be shown.
const fn believed(claimed: Presence, uid: u32, own: u32) -> Presence {
    if uid != own {
        return Presence::OtherUid;
    }
    match claimed {
        Presence::Tty => Presence::Tty,
        Presence::OtherUid | Presence::Pin | Presence::None => Presence::None,
    }
}

fn unknown_request(error: &wire::LineError) -> Explain {
    Explain::new(
        Exit::Usage,
        Fault::Caller,
        "the daemon does not understand this request",
    )
    .because(error)
    .next("restart the daemon if `lych` was upgraded: `lych down`, then `lych up`")
}

async fn answer(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    stream
        .write_all(&wire::encode(answer).map_err(io::Error::other)?)
        .await
}

struct Lines {
    buffer: LineBuffer,
}

impl Lines {
    /// Returns the next line; wiped on drop, since a secret may be in it.
    async fn next(&mut self, stream: &mut UnixStream) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut chunk = Zeroizing::new([0; 16384]);
        loop {
            if let Some(line) = self.buffer.next_line().map_err(io::Error::other)? {
                return Ok(Some(Zeroizing::new(line)));
            }
            let count = stream.read(chunk.as_mut()).await?;
            if count == 0 {
                return Ok(None);
            }
            self.buffer.push(chunk.get(..count).unwrap_or_default());
        }
    }
}
