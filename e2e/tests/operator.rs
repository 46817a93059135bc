//! An operator that speaks the daemon's socket by hand, for what would take the command thousands of starts.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
};

use serde_json::{Value, json};
use testkit::World;

/// A connection to the daemon.
pub struct Line {
    reader: BufReader<UnixStream>,
}

impl Line {
    /// Connects and shakes hands.
    pub fn open(world: &World) -> Self {
        Self::reach(world).expect("a daemon that listens")
    }

    /// The same; none if there is no daemon any more.
    pub fn reach(world: &World) -> Option<Self> {
        let stream = UnixStream::connect(world.home().operator_socket()).ok()?;
        let mut line = Self {
            reader: BufReader::new(stream),
        };
        let hello = json!({"min": wire::PROTOCOL_MIN, "max": wire::PROTOCOL_MAX,
            "version": wire::VERSION, "presence": "none"});
        let answer = line.ask(&hello)?;
        assert!(answer.get("done").is_some(), "{answer:#}");
        Some(line)
    }

    /// Asks for one thing and returns the whole answer.
    pub fn say(&mut self, request: &Value) -> Value {
        self.ask(request).expect("a daemon that answers")
    }

    /// The same; none if the daemon ends before it has answered.
    pub fn ask(&mut self, request: &Value) -> Option<Value> {
        writeln!(self.reader.get_mut(), "{request}").ok()?;
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Puts one record of some length on record.
    pub fn note(&mut self, bytes: usize) -> Value {
        self.say(
            &json!({"verb": "incident_step", "incident": "i-0000000000000000",
            "step": "x".repeat(bytes), "sha256": "0".repeat(64), "late": false}),
        )
    }

    /// Fills so many segments of the log with records as long as records may be, and begins the next.
    pub fn fill_segments(&mut self, segments: usize) {
        for _ in 0..segments * 80 + 3 {
            let answer = self.note(200_000);
            assert!(answer.get("done").is_some(), "{answer:#}");
        }
    }
}
