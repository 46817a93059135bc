//! A client that reads and writes on its own thread, so that nothing but what stands before it is measured.

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::Held;

/// A client over the standard input and output of a program.
pub struct Client {
    /// The program.
    pub program: Held,
    /// Its input.
    pub stdin: Option<ChildStdin>,
    /// Its output.
    pub stdout: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    /// Starts the program and shakes hands; none if it ends before it answers.
    pub fn start(command: &mut Command) -> Option<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut program = Held::start(command);
        let stdin = program.take_stdin();
        let stdout = BufReader::new(program.take_stdout().expect("a piped output"));
        let mut client = Self {
            program,
            stdin,
            stdout,
            line: String::new(),
        };
        client.send(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}}),
        );
        client.receive(0)?;
        Some(client)
    }

    /// Ends the handshake, which some servers insist on.
    pub fn ready(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Sends a use of a tool.
    pub fn ask(&mut self, id: usize, tool: &str, arguments: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}));
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open input");
        // In one write, as clients do; piece by piece the program would be woken for each.
        let line = format!("{message}\n");
        stdin
            .write_all(line.as_bytes())
            .expect("a program that reads");
    }

    /// Waits for the answer to a request, past everything else that is said meanwhile.
    pub fn receive(&mut self, id: usize) -> Option<Value> {
        loop {
            let answer = self.next()?;
            if answer["id"] == json!(id) && answer.get("method").is_none() {
                return Some(answer);
            }
        }
    }

    /// Waits for the answer to any request.
    pub fn receive_any(&mut self) -> Option<Value> {
        loop {
            let answer = self.next()?;
            if answer.get("id").is_some() && answer.get("method").is_none() {
                return Some(answer);
            }
        }
    }

    fn next(&mut self) -> Option<Value> {
        self.line.clear();
        let read = self.stdout.read_line(&mut self.line).ok()?;
        (read > 0).then(|| serde_json::from_str(&self.line).expect("one JSON value a line"))
    }

    /// Makes so many calls, so many of them on the way at once, and returns how many a second came back.
    pub fn calls_a_second(
        &mut self,
        (many, in_flight): (usize, usize),
        tool: &str,
        arguments: &Value,
    ) -> Option<f64> {
        let begun = Instant::now();
        for id in 0..in_flight {
            self.ask(id + 100_000, tool, arguments);
        }
        for id in in_flight..many {
            self.receive_any()?;
            self.ask(id + 100_000, tool, arguments);
        }
        for _ in 0..in_flight {
            self.receive_any()?;
        }
        Some(f64::from(u32::try_from(many).ok()?) / begun.elapsed().as_secs_f64())
    }
}

/// Times in the order of their length.
pub struct Times(Vec<Duration>);

impl Times {
    /// Takes so many.
    pub fn of(count: usize, mut one: impl FnMut() -> Duration) -> Self {
        let mut all: Vec<Duration> = (0..count).map(|_| one()).collect();
        all.sort_unstable();
        Self(all)
    }

    /// Returns the one at this place of a hundred, in milliseconds.
    pub fn at(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[index].as_secs_f64() * 1e3
    }

    /// Returns a row of a table.
    pub fn row(&self, what: &str, goal: &str) -> String {
        format!(
            "| {what} | {:.2} | {:.2} | {goal} |\n",
            self.at(50),
            self.at(99)
        )
    }
}
