//! The same for what is called over HTTP: the server without anything between, and gateways that listen.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{Held, World};

use crate::{client::Times, echo, kilobytes};

/// A session over one connection that is kept.
struct Session {
    stream: BufReader<TcpStream>,
    id: Option<String>,
}

impl Session {
    /// Shakes hands; none if nobody answers as a server does.
    fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .ok()?;
        let mut session = Self {
            stream: BufReader::new(stream),
            id: None,
        };
        session.post(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}}),
        )?;
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Some(session)
    }

    fn call(&mut self, id: usize) -> Option<()> {
        let arguments = json!({"text": "0123456789abcdefghijklmnopqrstuvwxyz"});
        let said = self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": arguments}}))?;
        said.contains("0123456789abcdefghijklmnopqrstuvwxyz")
            .then_some(())
    }

    /// Sends a message and returns the body that comes back.
    fn post(&mut self, message: &Value) -> Option<String> {
        let body = message.to_string();
        let session = self
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!("mcp-session-id: {id}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\n{session}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut length = None;
        loop {
            let line = self.line()?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().ok(),
                    "mcp-session-id" => self.id = Some(value.trim().to_owned()),
                    _ => {}
                }
            }
        }
        match length {
            Some(length) => {
                let mut bytes = vec![0; length];
                self.stream.read_exact(&mut bytes).ok()?;
                String::from_utf8(bytes).ok()
            }
            None => self.chunks(),
        }
    }

    fn chunks(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            let size = usize::from_str_radix(self.line()?.trim(), 16).ok()?;
            let mut bytes = vec![0; size + 2];
            self.stream.read_exact(&mut bytes).ok()?;
            if size == 0 {
                return Some(text);
            }
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).ok()?;
        (read > 0).then_some(line)
    }
}

/// Measures the server without anything between, over a connection that is kept.
pub fn direct() -> String {
    let begun = Instant::now();
    let address = echo::over_http();
    row(
        "the same server over HTTP, nothing between",
        address,
        begun,
        || 0,
    )
    .unwrap_or_else(|| "| the same server over HTTP | it gave no answer | | | | |\n".to_owned())
}

/// Measures npm `mcp-proxy`, which listens and starts the server.
pub fn proxy(folder: &Path) -> Option<String> {
    let script = folder.join("node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs");
    if !script.exists() {
        return None;
    }
    let world = World::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let mut command = world.command("node");
    command.arg(script);
    command.args([
        "--host",
        "127.0.0.1",
        "--server",
        "stream",
        "--port",
        &port.to_string(),
        "--",
    ]);
    command.arg(env::current_exe().ok()?).arg("--serve-lines");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begun = Instant::now();
    let held = Held::start(&mut command);
    let memory = || {
        let all = world.processes();
        all.iter()
            .map(|process| kilobytes(u64::from(process.pid), "VmRSS"))
            .sum()
    };
    let row = row(
        "npm `mcp-proxy`, HTTP to lines",
        SocketAddr::from(([127, 0, 0, 1], port)),
        begun,
        memory,
    );
    drop(held);
    crate::peers::clear(&world);
    row
}

fn row(
    name: &str,
    address: SocketAddr,
    begun: Instant,
    memory: impl FnOnce() -> u64,
) -> Option<String> {
    let mut session = None;
    while session.is_none() && begun.elapsed() < Duration::from_secs(60) {
        session = Session::open(address);
        if session.is_none() {
            thread::sleep(Duration::from_millis(20));
        }
    }
    let mut session = session?;
    let started = begun.elapsed();
    session.call(1)?;
    let mut id = 1;
    let times = Times::of(150, || {
        id += 1;
        let begun = Instant::now();
        match session.call(id) {
            Some(()) => begun.elapsed(),
            None => Duration::MAX,
        }
    });
    let begun = Instant::now();
    let made: usize = thread::scope(|scope| {
        let all: Vec<_> = (0..32)
            .map(|_| {
                scope.spawn(move || {
                    let mut session = Session::open(address)?;
                    (1..=10).all(|id| session.call(id).is_some()).then_some(10)
                })
            })
            .collect();
        all.into_iter()
            .filter_map(|one| one.join().ok().flatten())
            .sum()
    });
    let rate = f64::from(u32::try_from(made).ok()?) / begun.elapsed().as_secs_f64();
    Some(format!(
        "| {name} | {} | {:.0} | {:.0} | {rate:.0} | {} |\n",
        started.as_millis(),
        times.at(50) * 1e3,
        times.at(99) * 1e3,
        memory() / 1024
    ))
}
