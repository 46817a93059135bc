//! Public servers, unchanged, started by the official client through the launchers people use; then the client
//! is killed. Every process that stays must be called left over, and those of a living twin in use.

use std::{
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Deadline, Leftover, World, program};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/user.py");

/// How long a server may take to go by itself; those that react to the end of their input take far less.
const GOES_WITHIN: Duration = Duration::from_secs(6);

/// A public server as a configuration names it.
struct Public {
    name: &'static str,
    command: String,
    args: Vec<String>,
    /// A tool that takes its time, with its arguments.
    slow: Option<(&'static str, Value)>,
}

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

fn text(path: &std::path::Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}

fn everything() -> Public {
    Public {
        name: "everything",
        command: "npx".to_owned(),
        args: ["-y", "@modelcontextprotocol/server-everything", "stdio"]
            .map(str::to_owned)
            .to_vec(),
        slow: Some((
            "trigger-long-running-operation",
            json!({ "duration": 60, "steps": 60 }),
        )),
    }
}

fn time() -> Public {
    Public {
        name: "time",
        command: text(&installed("venv-servers").join("bin/mcp-server-time")),
        args: vec!["--local-timezone=UTC".to_owned()],
        slow: None,
    }
}

/// A client with its server in a world of its own.
struct User {
    world: World,
    client: Child,
}

impl User {
    fn start(server: &Public, busy: bool) -> Self {
        let world = World::new();
        let line: Vec<&String> = std::iter::once(&server.command)
            .chain(&server.args)
            .collect();
        let call = server.slow.as_ref().filter(|_| busy);
        let call = call.map_or_else(|| json!(null), |(tool, with)| json!([tool, with]));
        let config = json!({ "mcpServers": {
            server.name: { "command": server.command, "args": server.args }
        }});
        world.write(".claude.json", config.to_string());
        let mut command: Command = world.command(installed("venv-servers").join("bin/python"));
        let mut client = command
            .arg(SCRIPT)
            .args([json!(line).to_string(), call.to_string()])
            .env("PATH", env::var_os("PATH").expect("a path"))
            .env("LYCH_WORLD", world.folder())
            // What is installed here is what npx takes, and nothing is fetched.
            .current_dir(installed("servers"))
            .env("npm_config_offline", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a client");
        let out = client.stdout.take().expect("its output");
        let ready = BufReader::new(out).lines().next();
        assert_eq!(ready.expect("a word").expect("a line"), "ready");
        Self { world, client }
    }

    /// Returns what is told of the processes of this user, the client itself excepted.
    fn told(&self) -> Vec<(String, Value)> {
        let mut command = self.world.lych(["ps", "--json"]);
        command.env("HOME", self.world.folder());
        let done = self
            .world
            .finish(&mut command, b"", Deadline::after(Duration::from_secs(60)));
        let report: Value = done.expect_code(0).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let of = |pid: u32| {
            findings.iter().find(|finding| {
                let members = finding["members"].as_array().expect("members");
                finding["root"]["pid"] == pid || members.iter().any(|one| one["pid"] == pid)
            })
        };
        self.servers()
            .into_iter()
            .map(|left| {
                (
                    left.command.clone(),
                    of(left.pid).cloned().unwrap_or_default(),
                )
            })
            .collect()
    }

    fn servers(&self) -> Vec<Leftover> {
        let mut all = Leftover::of(self.world.folder());
        all.retain(|one| one.pid != self.client.id());
        all
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
        for left in self.servers() {
            let pid = left.pid.to_string();
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
        }
    }
}

/// Kills the client of one of two and judges both.
fn judged_right(server: &Public, busy: bool) {
    let mut user = User::start(server, busy);
    let twin = User::start(server, busy);
    user.client.kill().expect("a client that lives");
    user.client.wait().expect("a client that ended");
    let patience = Deadline::after(GOES_WITHIN);
    while !user.servers().is_empty() && !patience.passed() {
        std::thread::yield_now();
    }

    for (command, finding) in user.told() {
        assert_eq!(finding["verdict"], "OS_ORPHAN", "{command}: {finding:#}");
        assert_eq!(finding["confidence"], "proven", "{command}: {finding:#}");
    }
    let alive = twin.told();
    assert!(!alive.is_empty(), "the twin has no server");
    for (command, finding) in alive {
        assert_eq!(finding["verdict"], "LIVE", "{command}: {finding:#}");
    }
}

#[test]
fn the_official_everything_server_through_npx_is_judged_right_when_idle() {
    judged_right(&everything(), false);
}

#[test]
fn the_official_everything_server_through_npx_is_judged_right_in_the_middle_of_a_call() {
    judged_right(&everything(), true);
}

#[test]
fn the_official_time_server_is_judged_right_when_idle() {
    judged_right(&time(), false);
}
