//! A world with the gate set up: daemon running, vault open, one channel to a counting target.

use std::{path::PathBuf, process::Stdio};

use testkit::{Deadline, Finished, Held, Target, World, wait_until};

/// The secret in the vault. Whoever finds this text anywhere but at the target has found a leak.
pub const SECRET: &str = "canary-5e6f3b";

/// What the gate is set up with.
pub struct Gate {
    /// The outside system.
    pub target: Target,
    /// Home, clock and programs.
    pub world: World,
    key_file: PathBuf,
    policy: String,
}

impl Gate {
    /// Sets a gate up before `target`: one channel `api`, with reads below `/r/` and writes below `/w/`.
    pub fn before(target: Target) -> Self {
        Self::in_world(World::of_this_run(), target)
    }

    /// The same in a world that was prepared.
    pub fn in_world(world: World, target: Target) -> Self {
        let url = target.url();
        Self::set_up(world, &url, "", target)
    }

    /// The same, with the way to `target` beginning at `url`, and a further line for the channel.
    pub fn leading_to(url: &str, line: &str, target: Target) -> Self {
        Self::set_up(World::new(), url, line, target)
    }

    fn set_up(world: World, url: &str, line: &str, target: Target) -> Self {
        // Where the daemon can make it: among what is its own, if it is a user of its own.
        let key_file = world.home().identity().with_file_name("opener.key");
        let gate = Self {
            target,
            world,
            key_file,
            policy: policy(url, line),
        };
        gate.init();
        let added = gate.world.run_with(
            ["vault", "add", "token", "--for", url, "--from-stdin"],
            SECRET.as_bytes(),
        );
        drop(added.expect_code(0));
        gate.world.write("config.toml", &gate.policy);
        drop(gate.world.run(["channels", "apply"]).expect_code(0));
        gate
    }

    fn init(&self) {
        let key_file = self.key_file.to_str().expect("a world's folder is UTF-8");
        let init = self.world.run([
            "init",
            "--yes",
            "--key-file",
            key_file,
            "--agent-readable",
            "--presence",
            "none",
        ]);
        drop(init.expect_code(0));
        self.world.wait_for_daemon(Deadline::usual());
    }

    /// Applies another policy for the same channel: `head` stands before it.
    pub fn apply(&self, head: &str) {
        let policy = self.policy.replace("admission = \"allow\"\n", head);
        self.world.write("config.toml", policy);
        drop(self.world.run(["channels", "apply"]).expect_code(0));
    }

    /// Sets a PIN.
    pub fn set_pin(&self, pin: &str) {
        let set = self
            .world
            .run_with(["vault", "presence", "--new-pin-fd", "0"], pin.as_bytes());
        drop(set.expect_code(0));
    }

    /// Returns the file that opens the vault.
    pub fn key_file(&self) -> &str {
        self.key_file.to_str().expect("a world's folder is UTF-8")
    }

    /// Starts the daemon as a child of the test, so that it can be killed, and opens the vault.
    pub fn open_daemon(&self) -> Held {
        let mut command = self.world.lychd([""; 0]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Held::start(&mut command);
        let key_file = self.key_file.to_str().expect("a world's folder is UTF-8");
        // A killed daemon leaves its socket behind, so its being there says nothing yet.
        wait_until("the daemon to open its vault", Deadline::usual(), || {
            let unlocked = self.world.run(["unlock", "--key-file", key_file]);
            unlocked.code() == Some(0)
        });
        daemon
    }

    /// Tries to open the vault with the right key.
    pub fn unlock(&self) -> Finished {
        let key_file = self.key_file.to_str().expect("a world's folder is UTF-8");
        self.world.run(["unlock", "--key-file", key_file])
    }

    /// Returns the id of the one run there is.
    pub fn only_run(&self) -> String {
        let listed = self
            .world
            .run(["sessions", "list", "--json"])
            .expect_code(0)
            .json();
        let runs = listed["sessions"].as_array().expect("a list of runs");
        assert_eq!(runs.len(), 1, "{listed:#}");
        runs[0]["id"].as_str().expect("an id").to_owned()
    }

    /// Stops the daemon, as an operator would.
    pub fn close(&self) {
        drop(self.world.run(["down"]).expect_code(0));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Whatever became of the test, no daemon stays; the world looks whether that is so.
        let mut down = self.world.lych(["down"]);
        drop(down.output());
    }
}

fn policy(url: &str, line: &str) -> String {
    format!(
        r#"admission = "allow"

[channel.api]
kind = "http"
base = "{url}/"
secret = "token"
{line}
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}

[[channel.api.operation]]
name = "read"
allow = ["GET /r/**"]

[[channel.api.operation]]
name = "write"
allow = ["POST /w/**"]
idempotency = {{ header = "Idempotency-Key", window = "24h" }}
"#
    )
}
