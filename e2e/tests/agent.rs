//! An agent that speaks MCP by hand over `lych mcp`: as plain as can be, so that a crash hits ours alone.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};
use testkit::{Deadline, Held, World};

/// The stand-in for a client that is a process of its own.
pub const BRIDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/bridge.py");

/// The command line of a shim of this world.
pub fn shim(world: &World) -> Vec<OsString> {
    let lych = testkit::program("lych").into_os_string();
    let home = world.folder().as_os_str().to_owned();
    vec![lych, "--home".into(), home, "mcp".into()]
}

/// Returns the code of a refusal; none if the result is none.
pub fn refused(result: &Value) -> Option<&str> {
    result["structuredContent"]["refused"]["code"].as_str()
}

/// One client's connection. Dropping it is EOF, and then the shim's end.
pub struct Agent {
    stdin: Option<ChildStdin>,
    answers: Receiver<Value>,
    started: Held,
    next_id: u64,
}

impl Agent {
    /// Starts a shim of this world and shakes hands as clients of 2025 do. We are its client, but where agents
    /// are another user's.
    pub fn open(world: &World) -> Self {
        if world.two().is_some() {
            return Self::apart(world, BRIDGE.as_ref());
        }
        let mut words = shim(world).into_iter();
        let mut command = world.command(words.next().expect("a program"));
        command.args(words);
        Self::over(world, command)
    }

    /// Starts a client of its own that starts the shim: a run apart from every other one. The client is a
    /// script, and is known by what it says.
    pub fn apart(world: &World, script: &Path) -> Self {
        let mut command = world.command("python3");
        command.arg(script).args(shim(world));
        Self::over(world, command)
    }

    /// Starts whatever `command` says, which leads to a shim of this world.
    pub fn over(world: &World, command: Command) -> Self {
        let mut command = world.as_agent(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let notes = File::create(world.folder().join("shim.stderr")).expect("a file for its notes");
        command.stderr(notes);
        let mut shim = Held::start(&mut command);
        let stdout = shim.take_stdout().expect("a piped output");
        let (to, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("one JSON value a line");
                if to.send(value).is_err() {
                    return;
                }
            }
        });
        let mut agent = Self {
            stdin: shim.take_stdin(),
            answers,
            started: shim,
            next_id: 1,
        };
        agent.shake_hands(world);
        agent
    }

    fn shake_hands(&mut self, world: &World) {
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "e2e", "version": "1" },
        });
        let id = self.request("initialize", &hello);
        let answer = self.answer(id, Deadline::usual()).unwrap_or_else(|| {
            let notes = fs::read_to_string(world.folder().join("shim.stderr"));
            panic!("no handshake; the newest shim says: {notes:?}")
        });
        assert!(answer["result"].is_object(), "{answer:#}");
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Kills what was started with SIGKILL.
    pub fn crash(&mut self) {
        self.started.crash();
    }

    /// Returns the number of what was started: the client, or the shim if there is none.
    pub fn pid(&self) -> u32 {
        self.started.pid()
    }

    /// Takes the next answer of any request; none if the connection ends or the deadline passes first.
    pub fn next(&self, deadline: Deadline) -> Option<Value> {
        self.answers.recv_timeout(deadline.left()).ok()
    }

    /// Gives a request up, as clients do.
    pub fn cancel(&mut self, id: u64) {
        self.write(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": id, "reason": "test" },
        }));
    }

    /// Makes a call and returns its result.
    pub fn call(&mut self, method: &str, path: &str) -> Value {
        let id = self.send(method, path);
        let answer = self.answer(id, Deadline::usual()).expect("an answer");
        answer["result"].clone()
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a use of `http_request` on the channel of [`crate::gate::Gate`] and returns its id.
    pub fn send(&mut self, method: &str, path: &str) -> u64 {
        let arguments = json!({ "channel": "api", "method": method, "path": path });
        self.request(
            "tools/call",
            &json!({ "name": "http_request", "arguments": arguments }),
        )
    }

    /// Waits for the answer to a request; none if the connection ends or the deadline passes first.
    pub fn answer(&self, id: u64, deadline: Deadline) -> Option<Value> {
        loop {
            let answer = self.answers.recv_timeout(deadline.left()).ok()?;
            if answer["id"] == json!(id) {
                return Some(answer);
            }
        }
    }

    fn write(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.stdin {
            // A shim whose daemon died has gone: its absence shows in the missing answer.
            drop(writeln!(stdin, "{message}"));
        }
    }
}
