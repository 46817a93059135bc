//! Public servers, unchanged, started by the official clients through the launchers people use; then the client
//! is killed: idle, in the middle of a call, or with the other end of its server's input left to a bystander.
//! Every process that stays must be called what it is, and those of a living twin in use.

use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Deadline, Leftover, Proof, World, program};

const PYTHON_USER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/user.py");
const NODE_USER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/user.mjs");
const FAST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/fast.py");

/// How long a server may take to go by itself; those that react to the end of their input take far less.
const GOES_WITHIN: Duration = Duration::from_secs(6);

/// The official client that starts a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    Python,
    TypeScript,
}

/// How a client is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Idle,
    MidCall,
    LeakedStdin,
}

/// A public server as a configuration names it; `FOLDER` and `PORT` stand for what the play has.
struct Public {
    name: &'static str,
    command: &'static str,
    args: &'static [&'static str],
    /// A tool that takes its time, with its arguments.
    slow: Option<(&'static str, &'static str)>,
}

const SERVERS: [Public; 8] = [
    Public {
        name: "@modelcontextprotocol/server-everything",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-everything", "stdio"],
        slow: Some((
            "trigger-long-running-operation",
            r#"{"duration": 60, "steps": 60}"#,
        )),
    },
    Public {
        name: "@modelcontextprotocol/server-filesystem",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-filesystem", "FOLDER"],
        slow: Some(("read_text_file", r#"{"path": "FOLDER/fifo"}"#)),
    },
    Public {
        name: "@modelcontextprotocol/server-memory",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-memory"],
        slow: None,
    },
    Public {
        name: "@playwright/mcp",
        command: "npx",
        args: &["-y", "@playwright/mcp"],
        slow: None,
    },
    Public {
        name: "mcp-server-time",
        command: "uvx",
        args: &["mcp-server-time@2026.10.19", "--local-timezone=UTC"],
        slow: None,
    },
    Public {
        name: "mcp-server-git",
        command: "uvx",
        args: &["mcp-server-git@2026.10.19"],
        slow: Some(("git_status", r#"{"repo_path": "FOLDER/repository"}"#)),
    },
    Public {
        name: "mcp-server-fetch",
        command: "uvx",
        args: &["mcp-server-fetch@2026.10.24", "--allow-private-ips"],
        slow: Some(("fetch", r#"{"url": "http://127.0.0.1:PORT/"}"#)),
    },
    Public {
        name: "fastmcp",
        command: "uvx",
        args: &["--from", "fastmcp==4.2.3", "fastmcp", "run", FAST],
        slow: Some(("slow", r#"{"seconds": 60}"#)),
    },
];

/// Returns a folder that `cargo xtask tools` fills.
fn installed(name: &str) -> PathBuf {
    let target = env::var_os("LYCH_TOOLS").map_or_else(
        || {
            let lych = program("lych");
            lych.ancestors()
                .nth(2)
                .expect("the target folder")
                .to_owned()
        },
        PathBuf::from,
    );
    let folder = target.join(name);
    let there = folder.exists();
    assert!(
        there,
        "{} is missing: run `cargo xtask tools` once",
        folder.display()
    );
    folder
}

/// A client with its server in a world of its own.
struct User {
    world: World,
    client: Child,
    /// Takes connections and answers none.
    _silent: TcpListener,
}

impl User {
    fn start(server: &Public, sdk: Sdk, loss: Loss) -> Self {
        let world = World::new();
        let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = silent.local_addr().expect("its address").port().to_string();
        let folder = world.folder().join("data");
        prepare(&folder);
        let place = folder.to_str().expect("a plain path").to_owned();
        let fill = |text: &str| text.replace("FOLDER", &place).replace("PORT", &port);
        let args: Vec<String> = server.args.iter().map(|word| fill(word)).collect();
        let mut line = vec![server.command.to_owned()];
        line.extend(args.iter().cloned());
        let call = server.slow.filter(|_| loss == Loss::MidCall);
        let call = call.map_or(Value::Null, |(tool, with)| {
            json!([
                tool,
                serde_json::from_str::<Value>(&fill(with)).expect("JSON")
            ])
        });
        let config = json!({ "mcpServers": {
            "public": { "command": server.command, "args": args }
        }});
        world.write(".claude.json", config.to_string());
        let mut command = client(&world, sdk);
        command.args([json!(line).to_string(), call.to_string()]);
        if loss == Loss::LeakedStdin {
            command.arg("leak");
        }
        let mut client = command.spawn().expect("a client");
        let out = client.stdout.take().expect("its output");
        let ready = BufReader::new(out).lines().next();
        assert_eq!(ready.expect("a word").expect("a line"), "ready");
        Self {
            world,
            client,
            _silent: silent,
        }
    }

    /// Kills the client and gives what it leaves the time to go by itself.
    fn crash(&mut self) {
        self.client.kill().expect("a client that lives");
        self.client.wait().expect("a client that ended");
        let patience = Deadline::after(GOES_WITHIN);
        while !self.left().is_empty() && !patience.passed() {
            std::thread::yield_now();
        }
    }

    /// Returns what is told of the server's processes.
    fn told(&self) -> Vec<(String, Value)> {
        let mut command = self.world.lych(["ps", "--json"]);
        command.env("HOME", self.world.folder());
        let patience = Deadline::after(Duration::from_secs(60));
        let done = self.world.finish(&mut command, b"", patience);
        let report: Value = done.expect_code(0).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let of = |pid: u32| {
            findings.iter().find(|finding| {
                let members = finding["members"].as_array().expect("members");
                finding["root"]["pid"] == pid || members.iter().any(|one| one["pid"] == pid)
            })
        };
        let left = self.left().into_iter();
        left.map(|left| {
            let finding = of(left.pid).cloned().unwrap_or_default();
            (left.command, finding)
        })
        .collect()
    }

    /// The server's processes: neither the client nor the bystander that its end was left to.
    fn left(&self) -> Vec<Leftover> {
        let mut all = Leftover::of(self.world.folder());
        all.retain(|one| one.pid != self.client.id() && one.command != BYSTANDER);
        all
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
        for left in Leftover::of(self.world.folder()) {
            let pid = left.pid.to_string();
            let mut kill = Command::new("kill");
            let _ = kill.args(["-KILL", &pid]).stderr(Stdio::null()).status();
        }
    }
}

const BYSTANDER: &str = "sleep 600";

/// A folder to serve: a named pipe that nobody writes to, and a repository whose status takes a minute.
fn prepare(folder: &Path) {
    let repository = folder.join("repository");
    let script = "mkfifo \"$0/fifo\" && git init -q \"$1\" && git -C \"$1\" config core.fsmonitor \"sleep 60; :\"";
    std::fs::create_dir_all(&repository).expect("a folder");
    let made = Command::new("sh")
        .args(["-c", script])
        .args([folder, &repository])
        .status()
        .expect("a shell");
    assert!(made.success(), "the folder to serve was not made");
}

/// A client of an official SDK that starts npx and uvx as people have them; what they need is there already, and
/// nothing is fetched.
fn client(world: &World, sdk: Sdk) -> Command {
    let (venv, modules) = (installed("venv-servers"), installed("servers"));
    let mut command = match sdk {
        Sdk::Python => {
            let mut command = world.command(venv.join("bin/python"));
            command.arg(PYTHON_USER);
            command
        }
        Sdk::TypeScript => {
            let mut command = world.command("node");
            command.arg(NODE_USER).arg(&modules);
            command
        }
    };
    let own = env::var_os("PATH").expect("a path");
    let mut path = vec![venv.join("bin")];
    path.extend(env::split_paths(&own));
    command
        .env("PATH", env::join_paths(path).expect("a path"))
        .env("LYCH_WORLD", world.folder())
        .env("npm_config_offline", "true")
        .env("UV_OFFLINE", "1")
        .env("UV_PYTHON", venv.join("bin/python"))
        .env("UV_CACHE_DIR", installed("uv-cache"))
        .current_dir(modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// What became of one server, for the table, and what was said wrongly.
struct Outcome {
    text: String,
    wrong: Vec<String>,
}

/// Kills the client of one of two and judges both.
fn play(server: &Public, sdk: Sdk, loss: Loss) -> Outcome {
    let mut user = User::start(server, sdk, loss);
    let twin = User::start(server, sdk, loss);
    user.crash();
    let expected = match loss {
        Loss::Idle | Loss::MidCall => ("OS_ORPHAN", "proven"),
        Loss::LeakedStdin => ("ORPHAN_HELD_OPEN", "inferred"),
    };
    let mut wrong = Vec::new();
    let (told, of_twin) = (user.told(), twin.told());
    for (command, finding) in &told {
        let said = (&finding["verdict"], &finding["confidence"]);
        // One that went while we looked is neither there nor told of.
        if said != (&json!(expected.0), &json!(expected.1)) && still_there(&user, command) {
            wrong.push(format!("{}: {command}: {finding:#}", server.name));
        }
    }
    for (command, finding) in &of_twin {
        if finding["verdict"] != "LIVE" {
            wrong.push(format!(
                "the twin of {}: {command}: {finding:#}",
                server.name
            ));
        }
    }
    if of_twin.is_empty() {
        wrong.push(format!("the twin of {} has no server", server.name));
    }
    let text = match told.len() {
        0 => format!("went by itself; twin: {} × LIVE", of_twin.len()),
        left => format!(
            "{left} left: {} {}; twin: {} × LIVE",
            expected.0,
            expected.1,
            of_twin.len()
        ),
    };
    Outcome { text, wrong }
}

fn still_there(user: &User, command: &str) -> bool {
    user.left().iter().any(|left| left.command == command)
}

fn judged_right(server: &Public, sdk: Sdk, loss: Loss) {
    let outcome = play(server, sdk, loss);

    assert!(outcome.wrong.is_empty(), "{}", outcome.wrong.join("\n"));
}

#[test]
fn the_official_everything_server_through_npx_is_judged_right_when_idle() {
    judged_right(&SERVERS[0], Sdk::TypeScript, Loss::Idle);
}

#[test]
fn the_official_everything_server_through_npx_is_judged_right_in_the_middle_of_a_call() {
    judged_right(&SERVERS[0], Sdk::Python, Loss::MidCall);
}

#[test]
fn the_official_time_server_through_uvx_is_judged_right_when_idle() {
    judged_right(&SERVERS[4], Sdk::Python, Loss::Idle);
}

#[test]
fn the_official_time_server_whose_input_a_bystander_holds_is_judged_right() {
    judged_right(&SERVERS[4], Sdk::Python, Loss::LeakedStdin);
}

/// Every server with every client and every loss; every day only the first of them.
#[test]
fn prove_servers() {
    let mut proof = Proof::begin(0);
    let sdks = [Sdk::Python, Sdk::TypeScript];
    let losses = [Loss::Idle, Loss::MidCall, Loss::LeakedStdin];
    let plays = SERVERS.iter().flat_map(|server| {
        let with = move |sdk| losses.map(|loss| (server, sdk, loss));
        sdks.into_iter().flat_map(with)
    });
    let plays: Vec<_> = match proof.n() {
        0 => plays.take(1).collect(),
        _ => plays.collect(),
    };
    let mut wrong = Vec::new();
    for (server, sdk, loss) in plays {
        let what = format!(
            "{} through {}, {sdk:?}, {loss:?}",
            server.name, server.command
        );
        if loss == Loss::MidCall && server.slow.is_none() {
            proof.row(&what, "not applicable: no tool of it takes its time");
            continue;
        }
        for _ in 0..proof.n().max(1) {
            let outcome = play(server, sdk, loss);
            proof.row(&what, &outcome.text);
            wrong.extend(outcome.wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    proof.end();
}
