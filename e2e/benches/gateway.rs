//! What the gate costs and how soon it acts, on real processes: the figures of docs/performance.md.
//!
//! Every call is made by a client over a shim to a daemon with an open vault, which records the attempt, sends
//! to a target on loopback over a new connection, and records the outcome before it answers. The target called
//! directly, also over a new connection, is what that is compared with; the disk's own sync stands beside it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot begin has nothing to tell"
)]

#[path = "../tests/gate.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod gate;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write, stdout},
    net::TcpStream,
    os::unix::net::UnixStream,
    process::{ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use gate::Gate;
use serde_json::{Value, json};
use testkit::{Deadline, Held, Target};

/// Repetitions of what starts or ends a process.
const STARTS: usize = 60;

/// Calls one behind the other.
const CALLS: usize = 1_500;

/// Calls on the way at once, and how many are made so.
const IN_FLIGHT: usize = 32;
const MANY: usize = 6_000;

/// Revocations.
const REVOCATIONS: usize = 60;

/// Connections while the daemon's memory is read.
const CONNECTIONS: usize = 33;

/// A client that reads and writes on its own thread, so that nothing but the gate is measured.
struct Client {
    shim: Held,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn start(gate: &Gate) -> Self {
        let mut command = gate.world.lych(["mcp"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut shim = Held::start(&mut command);
        let stdin = shim.take_stdin();
        let stdout = BufReader::new(shim.take_stdout().expect("a piped output"));
        let mut client = Self {
            shim,
            stdin,
            stdout,
            line: String::new(),
        };
        client.send(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}}),
        );
        drop(client.receive());
        client
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open input");
        writeln!(stdin, "{message}").expect("a shim that reads");
    }

    fn ask(&mut self, id: usize) {
        let arguments = json!({"channel": "api", "method": "GET", "path": "/r/x"});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "http_request", "arguments": arguments}}));
    }

    fn receive(&mut self) -> Value {
        self.line.clear();
        self.stdout
            .read_line(&mut self.line)
            .expect("a shim that answers");
        serde_json::from_str(&self.line).expect("one JSON value a line")
    }

    fn is_refused(&mut self, id: usize) -> bool {
        self.ask(id);
        let answer = self.receive();
        answer["result"]["structuredContent"]["refused"].is_object()
    }
}

/// The operator's end, without a process in between.
struct Operator(BufReader<UnixStream>);

impl Operator {
    fn connect(gate: &Gate) -> Self {
        let stream = UnixStream::connect(gate.world.home().operator_socket());
        let mut operator = Self(BufReader::new(stream.expect("a daemon")));
        let hello = json!({"min": 1, "max": 1, "version": "bench", "presence": "none"});
        drop(operator.ask(&hello));
        operator
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.0.get_mut(), "{request}").expect("a daemon that reads");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a daemon that answers");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert!(answer["failed"].is_null(), "{answer}");
        answer
    }
}

/// Times in the order of their length.
struct Times(Vec<Duration>);

impl Times {
    fn of(count: usize, mut one: impl FnMut() -> Duration) -> Self {
        let mut all: Vec<Duration> = (0..count).map(|_| one()).collect();
        all.sort_unstable();
        Self(all)
    }

    fn at(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[index].as_secs_f64() * 1e3
    }

    fn row(&self, what: &str, goal: &str) -> String {
        format!(
            "| {what} | {:.2} | {:.2} | {goal} |\n",
            self.at(50),
            self.at(99)
        )
    }
}

fn sync_times(gate: &Gate) -> Times {
    let mut file = File::create(gate.world.folder().join("sync")).expect("a file");
    Times::of(500, || {
        let begun = Instant::now();
        file.write_all(&[7; 300]).expect("a write");
        file.sync_data().expect("a sync");
        begun.elapsed()
    })
}

fn direct_times(gate: &Gate) -> Times {
    let address = gate.target.address();
    Times::of(CALLS, || {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).expect("a target");
        stream.set_nodelay(true).expect("a socket");
        write!(
            stream,
            "GET /r/x HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        )
        .expect("a target that reads");
        let mut answer = [0; 512];
        assert!(stream.read(&mut answer).expect("an answer") > 0);
        begun.elapsed()
    })
}

fn call_times(gate: &Gate) -> Times {
    let mut client = Client::start(gate);
    let mut id = 0;
    Times::of(CALLS, || {
        id += 1;
        let begun = Instant::now();
        assert!(!client.is_refused(id));
        begun.elapsed()
    })
}

fn start_times(gate: &Gate) -> Times {
    Times::of(STARTS, || {
        let begun = Instant::now();
        let client = Client::start(gate);
        let took = begun.elapsed();
        drop(client);
        took
    })
}

fn exit_times(gate: &Gate) -> Times {
    Times::of(STARTS, || {
        let mut client = Client::start(gate);
        assert!(!client.is_refused(1));
        let begun = Instant::now();
        drop(client.stdin.take());
        // The output's end and the exit come together; a wait by polling would measure its own pause.
        let mut rest = Vec::new();
        client.stdout.read_to_end(&mut rest).expect("the end");
        let took = begun.elapsed();
        assert!(client.shim.wait(Deadline::usual()).success());
        took
    })
}

fn calls_a_second(gate: &Gate) -> f64 {
    let mut client = Client::start(gate);
    let begun = Instant::now();
    for id in 0..IN_FLIGHT {
        client.ask(id + 1);
    }
    for id in IN_FLIGHT..MANY {
        drop(client.receive());
        client.ask(id + 1);
    }
    for _ in 0..IN_FLIGHT {
        drop(client.receive());
    }
    f64::from(u32::try_from(MANY).expect("a count")) / begun.elapsed().as_secs_f64()
}

fn revoke_times(gate: &Gate) -> Times {
    let mut client = Client::start(gate);
    let mut operator = Operator::connect(gate);
    let revoke = json!({"verb": "revoke", "scope": {"scope": "channel", "channel": "api"}, "reason": "bench"});
    let apply = json!({"verb": "channels_apply", "dry_run": false});
    let mut id = 0;
    let times = Times::of(REVOCATIONS, || {
        id += 1;
        assert!(!client.is_refused(id));
        let begun = Instant::now();
        writeln!(operator.0.get_mut(), "{revoke}").expect("a daemon that reads");
        loop {
            id += 1;
            if client.is_refused(id) {
                break;
            }
        }
        let took = begun.elapsed();
        let mut line = String::new();
        operator.0.read_line(&mut line).expect("an answer");
        drop(operator.ask(&apply));
        took
    });
    drop(client);
    times
}

/// Returns a field of a process's status in kilobytes.
fn kilobytes(pid: u64, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).expect("a number")
}

fn memory(gate: &Gate) -> String {
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| Client::start(gate)).collect();
    for client in &mut clients {
        assert!(!client.is_refused(1));
    }
    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    let daemon = status["daemon"]["pid"].as_u64().expect("a pid");
    let shim = u64::from(clients[0].shim.pid());
    format!(
        "| shim, RssAnon, kB | {} | ≤ 1024 |\n| daemon with {CONNECTIONS} connections, VmRSS, MB | {} | ≤ 40 |\n",
        kilobytes(shim, "RssAnon"),
        kilobytes(daemon, "VmRSS") / 1024,
    )
}

fn main() {
    let gate = Gate::before(Target::start());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (sync, direct, call) = (sync_times(&gate), direct_times(&gate), call_times(&gate));
    let added = (call.at(50) - direct.at(50)) * 1e3;
    let mut table = format!(
        "load when it began: {load}\n| what | p50 ms | p99 ms | goal |\n|---|---|---|---|\n"
    );
    table.push_str(&sync.row("this disk: append 300 bytes and sync", "-"));
    table.push_str(&direct.row("the target, called directly", "-"));
    table.push_str(&call.row("a call through the gate, attempt and outcome on disk", "-"));
    table.push_str(&start_times(&gate).row("start of a shim to the first reply", "≤ 5"));
    table.push_str(&exit_times(&gate).row("end of input to the shim's last byte", "≤ 10"));
    table.push_str(&revoke_times(&gate).row("revoke to the first refusal", "p99 ≤ 5 and one sync"));
    table.push_str("\n| what | value | goal |\n|---|---|---|\n");
    table.push_str(&format!(
        "| added by the gate, p50, µs | {added:.0} | ≤ 400 |\n"
    ));
    let rate = calls_a_second(&gate);
    table.push_str(&format!(
        "| calls a second, {IN_FLIGHT} on the way | {rate:.0} | ≥ 2500 |\n"
    ));
    table.push_str(&memory(&gate));
    gate.close();
    // Whoever closed the output does not want the table.
    drop(stdout().write_all(table.as_bytes()));
}
