//! A client with its configured server, in a world of its own.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use sys::process::Handle;
use testkit::{Deadline, Finished, Held, World, wait_until};

const CLIENT: &str = include_str!("../../../../crates/verdict/tests/judged/client.py");
const SERVER: &str = include_str!("../../../../crates/verdict/tests/judged/server.py");

/// A client of this world, with its configured server on pipes.
pub(crate) struct Scene {
    // Dropped before the world, which looks for what is left.
    client: Held,
    pub(crate) server: Handle,
    pub(crate) world: World,
}

const KEEPER: &str = include_str!("../look/fakes/keeper.py");

impl Scene {
    pub(crate) fn start() -> Self {
        Self::below("client.py", CLIENT, |_| vec!["pipes".to_owned()])
    }

    /// A server below a supervisor that brings it back.
    pub(crate) fn kept() -> Self {
        let line = |server: &str| ["python3", server, "--stdio"].map(str::to_owned).to_vec();
        Self::below("keeper.py", KEEPER, line)
    }

    fn below(name: &str, script: &str, args: impl Fn(&str) -> Vec<String>) -> Self {
        let world = World::new();
        let client = world.write(name, script);
        let server = world.write("server.py", SERVER).display().to_string();
        world.write(
            ".claude.json",
            format!(
                r#"{{"mcpServers": {{"fixture": {{"command": "python3", "args": ["{server}", "--stdio"]}}}}}}"#
            ),
        );
        let mut command = world.command("python3");
        command.arg(client).args(args(&server));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = Held::start(&mut command);
        let told: Vec<String> = BufReader::new(client.take_stdout().unwrap())
            .lines()
            .map(Result::unwrap)
            .take_while(|line| line != "done")
            .collect();
        let pid = told[0].strip_prefix("server ").unwrap().parse().unwrap();
        let server = Handle::open(pid).unwrap();
        Self {
            client,
            server,
            world,
        }
    }

    pub(crate) fn crash(&mut self) {
        let client = self.client.pid();
        self.client.crash();
        wait_until("the server to be adopted", Deadline::usual(), || {
            self.server.stat_now().unwrap().ppid != client
        });
    }

    /// Kills the client or supervisor, and the server that it started last.
    pub(crate) fn end_kept(mut self) {
        self.client.crash();
        for left in self.world.processes() {
            let pid = left.pid.to_string();
            let mut kill = std::process::Command::new("kill");
            drop(kill.args(["-KILL", &pid]).stderr(Stdio::null()).status());
        }
    }

    pub(crate) fn client(&self) -> u32 {
        self.client.pid()
    }

    pub(crate) fn server(&self) -> String {
        self.server.id().pid.to_string()
    }

    pub(crate) fn contain(&self, args: &[&str]) -> Finished {
        let mut all = vec!["contain"];
        all.extend(args);
        self.world.run(all)
    }

    /// Ends what a test leaves on purpose, through the verb itself.
    pub(crate) fn end(mut self) {
        self.crash();
        drop(self.contain(&[&self.server(), "--yes", "--json"]));
    }
}
