//! The stage of a drill: a home of its own, a running daemon, two channels, and clients to crash.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    client::{self, Job, Pids, Write1},
    target::{Target, Unreachable},
};

/// The channel that answers.
pub(super) const READS: &str = "deploys";
/// The channel whose remote side does not let a connection be established.
pub(super) const STALLED: &str = "stalled";

/// The end of everything the drill waits for. All of it takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A drill's surroundings; dropping it ends what it started and removes the folder.
pub(super) struct Stage {
    pub(super) lych: PathBuf,
    pub(super) home: PathBuf,
    pub(super) target: Target,
    _stalled: Unreachable,
    keep: bool,
    clients: Vec<PathBuf>,
}

/// What a command of ours printed and how it ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: i32,
}

/// A client on the stage.
pub(super) struct Client {
    pub(super) folder: PathBuf,
    pub(super) harness: Child,
    pub(super) pids: Pids,
}

impl Stage {
    /// Sets everything up with the commands a person would use.
    pub(super) fn set_up(home: Option<&Path>, keep: bool) -> io::Result<Self> {
        let lych = std::env::current_exe()?;
        let home = match home {
            Some(home) => home.to_owned(),
            None => {
                let name = model::ConnectionId::random()?.to_string();
                std::env::temp_dir().join(format!("lych-drill-{}", name.get(2..10).unwrap_or("0")))
            }
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&home)?;
        // Nobody needs to know it, and it is worth nothing outside.
        let secret = model::ConnectionId::random()?.to_string();
        let stage = Self {
            lych,
            target: Target::start(&secret)?,
            _stalled: Unreachable::open()?,
            home,
            keep,
            clients: Vec::new(),
        };
        stage.install(&secret)?;
        Ok(stage)
    }

    fn install(&self, secret: &str) -> io::Result<()> {
        let base = format!("http://{}/v1", self.target.address());
        let stalled = format!("http://{}/v1", self._stalled.address()?);
        self.must(&["init", "--yes"], None)?;
        let add = [
            "vault",
            "add",
            "deploy-token",
            "--for",
            &base,
            "--for",
            &stalled,
            "--from-stdin",
        ];
        self.must(&add, Some(secret))?;
        fs::write(self.home.join("config.toml"), config(&base, &stalled))?;
        self.must(&["channels", "apply"], None)?;
        // The third-party server, under a name of its own, and where clients are told of it.
        symlink(&self.lych, self.server())?;
        let mcp = serde_json::json!({"mcpServers": {
            "lychgate": {"command": self.lych, "args": ["--home", self.home, "mcp"]},
            "notes": {"command": self.server(), "args": ["--stdio"]}}});
        fs::write(
            self.home.join(".mcp.json"),
            serde_json::to_vec_pretty(&mcp)?,
        )
    }

    fn server(&self) -> PathBuf {
        self.home.join("notes-server")
    }

    /// Runs one of our commands and returns what it printed, whatever its exit code.
    pub(super) fn run(&self, args: &[&str], input: Option<&str>) -> io::Result<Ran> {
        use io::Write;
        let mut child = Command::new(&self.lych)
            .arg("--home")
            .arg(&self.home)
            .args(args)
            .current_dir(&self.home)
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        Ok(Ran {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }

    fn must(&self, args: &[&str], input: Option<&str>) -> io::Result<Ran> {
        let ran = self.run(args, input)?;
        if ran.code == 0 {
            return Ok(ran);
        }
        Err(io::Error::other(format!(
            "`lych {}` ended with {}: {}",
            args.join(" "),
            ran.code,
            ran.stderr.trim()
        )))
    }

    /// Runs one of our commands and reads its JSON.
    pub(super) fn json(&self, args: &[&str]) -> io::Result<Value> {
        let ran = self.run(args, None)?;
        serde_json::from_str(&ran.stdout).map_err(|error| {
            io::Error::other(format!(
                "`lych {}` ended with {}: {error}: {}",
                args.join(" "),
                ran.code,
                ran.stderr.trim()
            ))
        })
    }

    /// Starts a client and waits until its safe calls are answered.
    pub(super) fn client(&mut self, name: &str, write: Option<Write1>) -> io::Result<Client> {
        let folder = self.home.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        self.clients.push(folder.clone());
        let job = Job {
            lych: self.lych.clone(),
            home: self.home.clone(),
            server: self.server(),
            reads: READS.to_owned(),
            write,
        };
        client::write_whole(&folder.join(client::JOB), &serde_json::to_vec(&job)?)?;
        let harness = Command::new(&self.lych)
            .args(["drill", "harness"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("harness.log"))?)
            .spawn()?;
        let pids = until("the client to start", || {
            let bytes = fs::read(folder.join(client::PIDS)).ok()?;
            serde_json::from_slice(&bytes).ok()
        })?;
        until("the client's calls to be answered", || {
            (answers(&folder) >= 2).then_some(())
        })?;
        Ok(Client {
            folder,
            harness,
            pids,
        })
    }

    /// Ends the clients that still live, in the ordinary way, and waits for it.
    pub(super) fn dismiss(&mut self, mut client: Client) -> io::Result<()> {
        fs::write(client.folder.join(client::STOP), b"")?;
        client.harness.wait().map(drop)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for folder in &self.clients {
            // Whatever still lives of a client that went wrong ends at its next look.
            let _ = fs::write(folder.join(client::STOP), b"");
        }
        let _ = self.run(&["down"], None);
        if !self.keep {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

/// Counts the answers a client has seen, its greeting not among them.
pub(super) fn answers(folder: &Path) -> usize {
    fs::read_to_string(folder.join(client::ANSWERS)).map_or(0, |text| text.lines().count())
}

/// Looks again and again until something is there.
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("waited {PATIENCE:?} for {what}"),
            ));
        }
        std::thread::sleep(LOOK);
    }
}

fn config(base: &str, stalled: &str) -> String {
    let channel = |name: &str, base: &str| {
        format!(
            r#"
[channel.{name}]
kind = "http"
base = "{base}"
secret = "deploy-token"
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
[[channel.{name}.operation]]
name = "health"
allow = ["GET /health"]
[[channel.{name}.operation]]
name = "deploy"
allow = ["POST /deploys"]
idempotency = {{ header = "Idempotency-Key", window = "24h" }}
result_kept = "remote"
"#
        )
    };
    format!(
        "admission = \"allow\"\n{}{}",
        channel(READS, base),
        channel(STALLED, stalled)
    )
}
