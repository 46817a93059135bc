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

#[path = "gateway/client.rs"]
mod client;
#[path = "gateway/echo.rs"]
mod echo;
#[path = "gateway/peers.rs"]
mod peers;
#[path = "gateway/web.rs"]
mod web;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write, stdout},
    net::TcpStream,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use client::{Client, Times};
use gate::Gate;
use serde_json::{Value, json};
use testkit::{Deadline, Target};

/// Repetitions of what starts or ends a process.
const STARTS: usize = 60;

/// A pause between them, which is not measured: a place is free again a quarter of a second after its connection was
/// closed, and one client has a quarter of all places.
const BETWEEN: Duration = Duration::from_millis(10);

/// Calls one behind the other.
const CALLS: usize = 1_500;

/// Calls on the way at once, and how many are made so.
const IN_FLIGHT: usize = 32;
const MANY: usize = 6_000;

/// Revocations.
const REVOCATIONS: usize = 60;

/// Connections while the daemon's memory is read.
const CONNECTIONS: usize = 33;

fn start(gate: &Gate) -> Client {
    Client::start(&mut gate.world.lych(["mcp"])).expect("a shim that is welcomed")
}

fn is_refused(client: &mut Client, id: usize) -> bool {
    client.ask(id, "http_request", &arguments());
    let answer = client.receive(id).expect("a shim that answers");
    answer["result"]["structuredContent"]["refused"].is_object()
}

fn arguments() -> Value {
    json!({"channel": "api", "method": "GET", "path": "/r/x"})
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
        say(self.0.get_mut(), request);
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a daemon that answers");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert!(answer["failed"].is_null(), "{answer}");
        answer
    }
}

/// Says one line in one write.
fn say(stream: &mut UnixStream, message: &Value) {
    let line = format!("{message}\n");
    stream
        .write_all(line.as_bytes())
        .expect("a daemon that reads");
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

/// The same request, made by ourselves.
fn ask_target(stream: &mut TcpStream, more: &str) {
    let head = format!("GET /r/x HTTP/1.1\r\nhost: target\r\n{more}\r\n");
    stream
        .write_all(head.as_bytes())
        .expect("a target that reads");
    let mut answer = [0; 512];
    assert!(stream.read(&mut answer).expect("an answer") > 0);
}

fn dial_target(gate: &Gate) -> TcpStream {
    let stream = TcpStream::connect(gate.target.address()).expect("a target");
    stream.set_nodelay(true).expect("a socket");
    stream
}

fn direct_times(gate: &Gate) -> Times {
    Times::of(CALLS, || {
        let begun = Instant::now();
        ask_target(&mut dial_target(gate), "connection: close\r\n");
        begun.elapsed()
    })
}

/// Over one connection, as the gate does it for reads.
fn direct_times_kept(gate: &Gate) -> Times {
    let mut stream = dial_target(gate);
    Times::of(CALLS, || {
        let begun = Instant::now();
        ask_target(&mut stream, "");
        begun.elapsed()
    })
}

fn call_times(gate: &Gate) -> Times {
    let mut client = start(gate);
    let mut id = 0;
    Times::of(CALLS, || {
        id += 1;
        let begun = Instant::now();
        assert!(!is_refused(&mut client, id));
        begun.elapsed()
    })
}

fn start_times(gate: &Gate) -> Times {
    Times::of(STARTS, || {
        let begun = Instant::now();
        let client = start(gate);
        let took = begun.elapsed();
        drop(client);
        thread::sleep(BETWEEN);
        took
    })
}

fn exit_times(gate: &Gate) -> Times {
    Times::of(STARTS, || {
        let mut client = start(gate);
        assert!(!is_refused(&mut client, 1));
        let begun = Instant::now();
        drop(client.stdin.take());
        // The output's end and the exit come together; a wait by polling would measure its own pause.
        let mut rest = Vec::new();
        client.stdout.read_to_end(&mut rest).expect("the end");
        let took = begun.elapsed();
        assert!(client.program.wait(Deadline::usual()).success());
        thread::sleep(BETWEEN);
        took
    })
}

fn calls_a_second(gate: &Gate) -> f64 {
    let rate = start(gate).calls_a_second((MANY, IN_FLIGHT), "http_request", &arguments());
    rate.expect("a shim that answers")
}

fn revoke_times(gate: &Gate) -> Times {
    let mut client = start(gate);
    let mut operator = Operator::connect(gate);
    let revoke = json!({"verb": "revoke", "scope": {"scope": "channel", "channel": "api"}, "reason": "bench"});
    let apply = json!({"verb": "channels_apply", "dry_run": false});
    let mut id = 0;
    let times = Times::of(REVOCATIONS, || {
        id += 1;
        assert!(!is_refused(&mut client, id));
        let begun = Instant::now();
        say(operator.0.get_mut(), &revoke);
        loop {
            id += 1;
            if is_refused(&mut client, id) {
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

/// Returns a field of a process's status in kilobytes; 0 of one that has just ended.
fn kilobytes(pid: u64, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn memory(gate: &Gate) -> String {
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| start(gate)).collect();
    for client in &mut clients {
        assert!(!is_refused(client, 1));
    }
    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    let daemon = status["daemon"]["pid"].as_u64().expect("a pid");
    let shim = u64::from(clients[0].program.pid());
    format!(
        "| shim, RssAnon, kB | {} | ≤ 1024 |\n| daemon with {CONNECTIONS} connections, VmRSS, MB | {} | ≤ 40 |\n",
        kilobytes(shim, "RssAnon"),
        kilobytes(daemon, "VmRSS") / 1024,
    )
}

fn main() {
    if std::env::args().any(|arg| arg == "--serve-lines") {
        echo::over_lines();
        return;
    }
    let gate = Gate::before(Target::start());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (sync, dialled, direct) = (
        sync_times(&gate),
        direct_times(&gate),
        direct_times_kept(&gate),
    );
    let call = call_times(&gate);
    let added = (call.at(50) - direct.at(50)) * 1e3;
    let mut table = format!(
        "load when it began: {load}\n| what | p50 ms | p99 ms | goal |\n|---|---|---|---|\n"
    );
    table.push_str(&sync.row("this disk: append 300 bytes and sync", "-"));
    table.push_str(&dialled.row("the target, called directly, a connection each", "-"));
    table.push_str(&direct.row("the target, called directly, over one connection", "-"));
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
    table.push_str("\nBeside it, in the same run:\n\n");
    table.push_str(&peers::table());
    // Whoever closed the output does not want the table.
    drop(stdout().write_all(table.as_bytes()));
}
