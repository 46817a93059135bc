//! The drill's own remote side: an HTTP API on loopback that counts what reaches it and can keep silent.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use model::Wall;
use serde::Serialize;

/// How long a connection may be idle before the target lets it go.
const IDLE: Duration = Duration::from_secs(60);

/// One request that reached the target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Seen {
    pub(crate) at: Wall,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The request id it carried.
    pub(crate) key: Option<String>,
    /// Whether it carried the secret.
    pub(crate) authorized: bool,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    stop: AtomicBool,
}

/// A running target. `POST /v1/deploys` is accepted, counted and never answered.
pub(crate) struct Target {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    /// Starts the target on a free port of the loopback interface.
    pub(crate) fn start(secret: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let expected = format!("Bearer {secret}");
        let thread = std::thread::spawn(move || serve(&listener, &ours, &expected));
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Returns the address it listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns everything that reached it so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the accept below, which then sees the flag.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>, expected: &str) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let (shared, expected) = (Arc::clone(shared), expected.to_owned());
        // Ends with its connection or after `IDLE`; it owns nothing that outlives the process.
        std::thread::spawn(move || while let Ok(true) = answer_one(&stream, &shared, &expected) {});
    }
}

fn answer_one(stream: &TcpStream, shared: &Shared, expected: &str) -> io::Result<bool> {
    stream.set_read_timeout(Some(IDLE))?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(false);
    }
    let mut words = first.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (mut key, mut authorized, mut length) = (None, false, 0u64);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => key = Some(value.to_owned()),
            "authorization" => authorized = value == expected,
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    let seen = Seen {
        at: Wall::from(std::time::SystemTime::now()),
        method: method.to_owned(),
        path: path.to_owned(),
        key,
        authorized,
    };
    lock(&shared.seen).push(seen);
    if method == "POST" {
        // Accepted, and never answered: whoever waits is left in doubt until the connection is closed.
        let mut rest = [0; 1];
        while matches!(reader.read(&mut rest), Ok(count) if count > 0) {}
        return Ok(false);
    }
    let (status, body) = if authorized {
        ("200 OK", "{\"ok\":true}")
    } else {
        ("401 Unauthorized", "{\"ok\":false}")
    };
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(true)
}

/// A port on which no connection can be established: its queue is full and nobody takes from it.
///
/// This is how a request is kept from leaving without any hook in the daemon: the kernel drops the first
/// packet of every further connection (listen(2), "backlog").
pub(crate) struct Unreachable {
    listener: TcpListener,
    /// Fill the queue for as long as this lives.
    _queue: Vec<TcpStream>,
}

impl Unreachable {
    /// Opens the port and fills its queue.
    pub(crate) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let mut queue = Vec::new();
        loop {
            match TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
                Ok(stream) => queue.push(stream),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            listener,
            _queue: queue,
        })
    }

    /// Returns the address it listens on.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_can_be_established_to_an_unreachable_port() {
        let port = Unreachable::open().unwrap();

        let error =
            TcpStream::connect_timeout(&port.address().unwrap(), Duration::from_millis(300))
                .unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_target_counts_what_reaches_it_and_answers_only_with_the_secret() {
        let target = Target::start("s3cret").unwrap();
        let mut stream = TcpStream::connect(target.address()).unwrap();

        stream
            .write_all(b"GET /v1/health HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\r\n")
            .unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).unwrap();

        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        assert!(target.seen()[0].authorized);
    }
}
