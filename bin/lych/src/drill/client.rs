//! The drill's client: a harness that starts things and an agent worker that holds the wire.
//!
//! Two processes, as in real clients: killing the harness leaves the worker with another parent and an
//! open wire. Both find their job in the folder they are started in, so that a crashed one and its living
//! twin have the same command line.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often the worker makes its safe call.
const PACE: Duration = Duration::from_millis(300);

/// What a client of the drill is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The command to run, this one.
    pub(crate) lych: PathBuf,
    /// The home of the installation.
    pub(crate) home: PathBuf,
    /// The third-party server beside it.
    pub(crate) server: PathBuf,
    /// The channel of the safe call.
    pub(crate) reads: String,
    /// The channel and the moment of the write; none for a twin.
    pub(crate) write: Option<Write1>,
}

/// The one write of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Write1 {
    /// Its channel.
    pub(crate) channel: String,
    /// After how many answers.
    pub(crate) after: u64,
}

/// The processes of a client.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Pids {
    pub(crate) harness: u32,
    pub(crate) worker: u32,
    pub(crate) server: u32,
}

pub(crate) const JOB: &str = "job.json";
pub(crate) const PIDS: &str = "pids.json";
pub(crate) const STOP: &str = "stop";
pub(crate) const ANSWERS: &str = "answers.ndjson";

/// Runs the harness: starts the worker and the server, then waits to be told to stop.
pub(crate) fn harness() -> io::Result<()> {
    let job = read_job()?;
    let mut worker = Command::new(&job.lych)
        .args(["drill", "worker"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create("worker.log")?)
        .spawn()?;
    let mut server = Command::new(&job.server)
        .arg("--stdio")
        // What a real one has: its own secret in its environment.
        .env("NOTES_API_TOKEN", "not-a-real-token")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (wire, _answers) = greet(&mut server)?;
    let pids = Pids {
        harness: std::process::id(),
        worker: worker.id(),
        server: server.id(),
    };
    write_whole(Path::new(PIDS), &serde_json::to_vec(&pids)?)?;
    wait_for_stop();
    // What every client does first at its end, and what a deaf server ignores.
    drop(wire);
    worker.wait()?;
    server.wait()?;
    Ok(())
}

/// Opens the protocol with a stdio server and waits for its answer.
fn greet(server: &mut Child) -> io::Result<(ChildStdin, BufReader<std::process::ChildStdout>)> {
    let mut wire = server.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut answers = BufReader::new(server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    send(&mut wire, &initialize())?;
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    send(
        &mut wire,
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    )?;
    Ok((wire, answers))
}

/// Runs the worker: holds the wire to `lych mcp`, makes a safe call every 300 ms, one write on the way.
pub(crate) fn worker() -> io::Result<()> {
    let job = read_job()?;
    let mut shim = Command::new(&job.lych)
        .args([Path::new("--home"), &job.home, Path::new("mcp")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create("shim.log")?)
        .spawn()?;
    let (mut wire, answers) = greet(&mut shim)?;
    let lines = reader(answers);
    let mut log = fs::File::create(ANSWERS)?;
    let (mut next, mut answered) = (1u64, 0u64);
    let mut write = job.write;
    while !is_over() {
        send(&mut wire, &call(next, &job.reads, "GET", "health"))?;
        if let Some(due) = write.take_if(|due| answered >= due.after) {
            send(&mut wire, &call(1_000_000, &due.channel, "POST", "deploys"))?;
        }
        next += 1;
        match drain(&lines, &mut log)? {
            Some(count) => answered += count,
            None => break,
        }
    }
    drop(wire);
    shim.wait()?;
    Ok(())
}

fn reader(mut answers: impl BufRead + Send + 'static) -> Receiver<String> {
    // Bounded: the shim may wait for us, as it would for any client.
    let (lines, received) = mpsc::sync_channel(64);
    std::thread::spawn(move || {
        let mut line = String::new();
        while matches!(answers.read_line(&mut line), Ok(count) if count > 0) {
            if lines.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    received
}

/// Writes down what came within one pace; none if the shim ended.
fn drain(lines: &Receiver<String>, log: &mut fs::File) -> io::Result<Option<u64>> {
    let end = std::time::Instant::now() + PACE;
    let mut answered = 0;
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => {
                log.write_all(line.as_bytes())?;
                answered += 1;
            }
            Err(RecvTimeoutError::Timeout) => return Ok(Some(answered)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "lych-drill", "version": env!("CARGO_PKG_VERSION")}}})
}

fn call(id: u64, channel: &str, method: &str, path: &str) -> Value {
    let mut arguments = json!({"channel": channel, "method": method, "path": path});
    if let (Some(arguments), "POST") = (arguments.as_object_mut(), method) {
        arguments.insert("body".to_owned(), json!({"version": "2026.11"}));
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "http_request", "arguments": arguments}})
}

fn send(wire: &mut ChildStdin, message: &Value) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    wire.write_all(&line)
}

fn read_job() -> io::Result<Job> {
    Ok(serde_json::from_slice(&fs::read(JOB)?)?)
}

/// Replaces a file at once, so that whoever polls for it never reads half of it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_added_extension("part");
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}

/// Told to stop, or the stage is gone with its folder.
fn is_over() -> bool {
    Path::new(STOP).exists() || !Path::new(JOB).exists()
}

fn wait_for_stop() {
    while !is_over() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The third-party server: speaks the protocol, and ignores the end of its input.
pub(crate) fn deaf_server() -> io::Result<()> {
    let mut line = String::new();
    let mut input = io::stdin().lock();
    while matches!(input.read_line(&mut line), Ok(count) if count > 0) {
        let request: Value = serde_json::from_str(&line).unwrap_or_default();
        line.clear();
        if let Some(id) = request.get("id") {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"}}});
            // Whether anybody reads it is not this server's concern: that is its defect.
            let _ = writeln!(io::stdout().lock(), "{answer}");
        }
    }
    wait_for_stop();
    Ok(())
}
