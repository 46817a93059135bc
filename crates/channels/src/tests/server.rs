//! A server that takes one connection, in a thread that is joined.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread::JoinHandle,
    time::Duration,
};

/// A server for one connection; what the handler returns is what [`Server::end`] returns.
pub(super) struct Server<T> {
    pub(super) address: SocketAddr,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Server<T> {
    pub(super) fn start(handler: impl FnOnce(TcpStream) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            handler(stream)
        });
        Self { address, thread }
    }

    pub(super) fn end(self) -> T {
        self.thread.join().unwrap()
    }
}

/// A server that answers one request with these bytes and returns the request.
pub(super) fn answering(answer: impl Into<Vec<u8>>) -> Server<String> {
    let answer = answer.into();
    Server::start(move |mut stream| {
        let request = read_request(&mut stream);
        // The other side may have heard enough already.
        let _ = stream.write_all(&answer);
        request
    })
}

/// Reads head and body of one request.
pub(super) fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut chunk).unwrap() {
            0 => return text,
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Waits until the other side has closed, and returns what it still sent.
pub(super) fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end as well; that nothing came for so long is none.
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "it was not closed");
    }
    bytes
}
