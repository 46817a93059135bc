//! A folder with a home, its configuration and records, and the clients that play on it.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use inventory::Live;
use model::{
    ChainLink, ChildSeen, ConnectionId, LaunchRecord, LinkRole, ProcessId, ProcessRef, SessionId,
    Wall,
};
use serde_json::{Value, json};
use sys::process::Handle;
use testkit::{Deadline, Leftover, wait_until};

use crate::scene::{CLIENT, SERVER, User, text};

const HELPER: &str = "import signal\nprint('ready', flush=True)\nsignal.pause()\n";

/// Where plays are given.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    user: User,
    port: u16,
}

/// One client and what it told about those it started.
pub(crate) struct Troupe {
    starter: Child,
    _leash: ChildStdin,
    told: Vec<(String, String)>,
    server: Option<Handle>,
}

impl Stage {
    pub(crate) fn open(user: User, port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        for (name, text) in [
            ("client.py", CLIENT),
            ("server.py", SERVER),
            ("helper.py", HELPER),
            ("docker", include_str!("fakes/docker.py")),
            ("ssh", include_str!("fakes/ssh.py")),
            ("subreaper.py", include_str!("fakes/subreaper.py")),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::hard_link(env!("CARGO_BIN_EXE_lych"), folder.path().join("lych"))
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_lych"), folder.path().join("lych")).map(drop))
            .unwrap();
        Self { folder, user, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Configures the server that plays of this style start, and the one it starts in turn.
    pub(crate) fn configure(&self, style: &str) {
        let server = self.path("server.py").display().to_string();
        let mut flags = vec![vec!["--stdio".to_owned()]];
        let own = style.strip_prefix("flag:").map(str::to_owned);
        let implied = [
            "gateway", "browser", "worker", "moved", "unread", "listener", "token", "probe",
        ]
        .contains(&style)
        .then(|| match style {
            "probe" => "--mute".to_owned(),
            "token" => "--token=hunter2".to_owned(),
            "unread" => "--deaf".to_owned(),
            "listener" => "--listen".to_owned(),
            other => format!("--{other}"),
        });
        if let Some(flag) = own.or(implied) {
            let plain = vec!["--stdio".to_owned(), flag];
            if style == "gateway" {
                flags.push(plain);
            } else {
                flags = vec![plain];
            }
        }
        let servers: serde_json::Map<String, Value> = flags
            .iter()
            .enumerate()
            .map(|(at, flags)| {
                let mut args = vec![server.clone()];
                args.extend(flags.iter().cloned());
                (
                    format!("fixture-{at}"),
                    json!({"command": "python3", "args": args}),
                )
            })
            .collect();
        let config = self.path(".claude.json");
        fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
        self.give(&config);
    }

    fn give(&self, path: &Path) {
        if let Some(uid) = self.user.uid() {
            chown(path, Some(uid), Some(uid)).unwrap();
        }
    }

    /// Starts a client of this style and waits until it has said all.
    pub(crate) fn enter(&self, style: &str) -> Troupe {
        let (first, rest) = self.user.prefix().split_first().unwrap();
        let mut command = Command::new(first);
        command.args(rest).arg("python3");
        let style = match style.strip_prefix("subreaper:") {
            Some(style) => {
                command.arg(self.path("subreaper.py")).arg("python3");
                style
            }
            None => style,
        };
        let mut starter = command
            .arg(self.path("client.py"))
            .arg(style)
            .env("PATH", self.user.path())
            .env("FIXTURE_PORT", self.port.to_string())
            .env("FIXTURE_API_TOKEN", "value-of-the-token")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let leash = starter.stdin.take().unwrap();
        let lines = BufReader::new(starter.stdout.take().unwrap()).lines();
        let told: Vec<(String, String)> = lines
            .map(Result::unwrap)
            .take_while(|line| line != "done")
            .map(|line| {
                let (word, value) = line.split_once(' ').unwrap();
                (word.to_owned(), value.to_owned())
            })
            .collect();
        let mut troupe = Troupe {
            starter,
            _leash: leash,
            told,
            server: None,
        };
        troupe.server = Handle::open(troupe.pid("server")).ok();
        troupe
    }

    /// Writes the census of these clients as the daemon would have; of K18's, with another process's start.
    pub(crate) fn record(&self, subject: &Troupe, twin: Option<&Troupe>, recycled: bool) {
        let snapshot = inventory::take(&Live::open().unwrap()).unwrap();
        let folder = self.path("home").join("launches");
        fs::create_dir_all(&folder).unwrap();
        for (number, troupe) in [Some(subject), twin].into_iter().flatten().enumerate() {
            let Ok(client) = Handle::open(troupe.pid("client")) else {
                continue;
            };
            let holder = client.describe().unwrap();
            let mut below: Vec<u32> = vec![client.id().pid];
            let mut at = 0;
            while let Some(pid) = below.get(at).copied() {
                below.extend(snapshot.children(pid).map(inventory::Process::pid));
                at += 1;
            }
            let mut children: Vec<ChildSeen> = below
                .iter()
                .skip(1)
                .filter_map(|pid| child(*pid, None))
                .collect();
            // What has left the tree already was seen in it, in the moment before.
            let left = troupe.word("helper").filter(|pid| !below.contains(pid));
            children.extend(left.and_then(|pid| child(pid, Some(troupe.pid("server")))));
            let is_subject = number == 0;
            let docker = is_subject && troupe.is_container();
            if docker {
                // A container's process is never below its client.
                children.retain(|seen| Some(seen.process.id.pid) != troupe.word("helper"));
            }
            if recycled && is_subject {
                children = vec![stranger(&holder)];
            }
            let record = LaunchRecord {
                schema: LaunchRecord::SCHEMA.to_owned(),
                connection: ConnectionId::from_bytes([u8::try_from(number).unwrap(); 10]),
                session: SessionId::from_bytes([u8::try_from(number).unwrap(); 10]),
                session_seq: 1,
                chain: vec![ChainLink {
                    process: holder,
                    role: LinkRole::Holder,
                }],
                lost: Vec::new(),
                connected_at: Wall::from_millis(1),
                transport_closed_at: None,
                revoked_at: None,
                children,
            };
            let path = folder.join(format!("{number}.json"));
            fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        }
    }

    /// Runs `lych ps --json` as this user.
    pub(crate) fn report(&self, user: User) -> Value {
        let (first, rest) = user.prefix().split_first().unwrap();
        let output = Command::new(first)
            .args(rest)
            .arg(self.path("lych"))
            .args(["ps", "--json"])
            .current_dir("/")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("LYCH_HOME", self.path("home"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn child(pid: u32, ppid: Option<u32>) -> Option<ChildSeen> {
    let handle = Handle::open(pid).ok()?;
    Some(ChildSeen {
        process: handle.describe().ok()?,
        ppid: ppid.unwrap_or(handle.stat().ppid),
        pgid: handle.stat().pgid,
        argv_sha256: String::new(),
        pipes: Vec::new(),
        first_seen: Wall::from_millis(1),
        last_seen: Wall::from_millis(2),
    })
}

/// A process that had this number before.
fn stranger(now: &ProcessRef) -> ChildSeen {
    let mut process = now.clone();
    process.id = ProcessId {
        start_ticks: now.id.start_ticks - 1,
        pidfd_inode: now.id.pidfd_inode.map(|inode| inode - 1),
        ..now.id.clone()
    };
    ChildSeen {
        process,
        ppid: 1,
        pgid: 1,
        argv_sha256: String::new(),
        pipes: Vec::new(),
        first_seen: Wall::from_millis(1),
        last_seen: Wall::from_millis(2),
    }
}

impl Troupe {
    pub(crate) fn pid(&self, word: &str) -> u32 {
        self.word(word)
            .unwrap_or_else(|| panic!("no {word} in {:?}", self.told))
    }

    fn word(&self, word: &str) -> Option<u32> {
        let mut told = self.told.iter().filter(|told| told.0 == word);
        told.next().map(|told| told.1.parse().unwrap())
    }

    fn is_container(&self) -> bool {
        let server = self.server.as_ref().and_then(|one| one.describe().ok());
        server.is_some_and(|one| {
            one.command
                .iter()
                .any(|word| word.raw().ends_with("/docker"))
        })
    }

    /// Kills the client as a crash does, and waits until its children are somebody else's.
    pub(crate) fn crash(&mut self) {
        let client = self.pid("client");
        kill(client);
        if client == self.starter.id() {
            self.starter.wait().unwrap();
        }
        self.settle();
    }

    /// Waits until the server hangs below another process than its client, if that is what became of it.
    pub(crate) fn settle(&mut self) {
        let client = self.pid("client");
        let Ok(handle) = Handle::open(client) else {
            let adopted = || {
                let server = self.server.as_ref().unwrap();
                server.stat_now().map_or(true, |stat| stat.ppid != client)
            };
            wait_until("the server to be adopted", Deadline::usual(), adopted);
            return;
        };
        drop(handle);
    }

    /// Kills the server alone.
    pub(crate) fn kill_server(&mut self) {
        let server = self.server.as_ref().unwrap();
        kill(server.id().pid);
        assert!(
            server
                .wait_exit(std::time::Duration::from_secs(10))
                .unwrap()
        );
    }

    /// Connects to what the server listens on.
    pub(crate) fn connect(&self) -> TcpStream {
        let port = u16::try_from(self.pid("port")).unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap()
    }
}

impl Drop for Troupe {
    fn drop(&mut self) {
        let _ = self.starter.kill();
        let _ = self.starter.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A loop that starts its server again is among them: first those, then what they had started.
        for _ in 0..3 {
            for left in Leftover::of(self.folder.path()) {
                kill(left.pid);
            }
        }
        wait_until("the stage to be empty", Deadline::usual(), || {
            Leftover::of(self.folder.path()).is_empty()
        });
    }
}

fn kill(pid: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}
