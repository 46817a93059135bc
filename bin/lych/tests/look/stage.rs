//! A folder with a home, its configuration and records, and the clients that play on it.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use clients::Places;
use inventory::Snapshot;
use model::{Foreign, Known, Wall};
use serde_json::{Value, json};
use testkit::{Deadline, Leftover, wait_until};
use verdict::{Extent, Input, LogFacts, judge};

use crate::scene::{CLIENT, SERVER, User, text};

const HELPER: &str = "import signal\nprint('ready', flush=True)\nsignal.pause()\n";

mod record;
mod troupe;

pub(crate) use troupe::Troupe;

use troupe::kill;

/// Where plays are given.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    user: User,
    port: u16,
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
            ("shim.py", include_str!("fakes/shim.py")),
            ("ssh", include_str!("fakes/ssh.py")),
            ("subreaper.py", include_str!("fakes/subreaper.py")),
            ("keeper.py", include_str!("fakes/keeper.py")),
            ("server.sh", include_str!("fakes/server.sh")),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::hard_link(env!("CARGO_BIN_EXE_lych"), folder.path().join("lych"))
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_lych"), folder.path().join("lych")).map(drop))
            .unwrap();
        Self { folder, user, port }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whom the pid file names that the servers of this folder share.
    pub(crate) fn pid_file(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path("server.pid")).ok()?;
        text.trim().parse().ok()
    }

    /// Configures the server that plays of this style start, and the one it starts in turn.
    pub(crate) fn configure(&self, style: &str) {
        let server = self.path("server.py").display().to_string();
        let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let own = |flag: &str| of(&["python3", &server, "--stdio", flag]);
        let fake = |name: &str, rest: &[&str]| {
            let name = self.path(name).display().to_string();
            of(&[&["python3", &name], rest].concat())
        };
        let plain: Vec<String> = of(&["python3", &server, "--stdio"]);
        let lines = match style.split_once(':').unwrap_or((style, "")) {
            ("flag", flag) => vec![own(flag)],
            ("probe", _) => vec![own("--mute")],
            ("stale-pid-file", _) => vec![own("--pid-file-once")],
            ("token", _) => vec![own("--token=hunter2")],
            ("unread", _) => vec![own("--deaf")],
            ("listener", _) => vec![own("--listen")],
            ("browser" | "worker" | "moved", _) => vec![own(&format!("--{style}"))],
            ("gateway", _) => vec![plain, own("--gateway")],
            ("docker", _) => vec![fake("docker", &["run", "-i", "--rm", "mcp/fixture"])],
            ("ssh", _) => vec![fake("ssh", &["-M", "host", "server"])],
            ("replaced", _) => {
                let script = self.path("server.sh").display().to_string();
                vec![of(&["./srv", &script, "--stdio"])]
            }
            _ => vec![plain],
        };
        let servers: serde_json::Map<String, Value> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| {
                let server = json!({"command": line[0], "args": line[1..]});
                (format!("fixture-{at}"), server)
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
        let mut words: Vec<String> = Vec::new();
        let mut say = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        let (outside, style) = match style.strip_prefix("namespace:") {
            Some(style) => (false, style),
            None => (true, style),
        };
        if !outside {
            say(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        }
        say(self.user.prefix());
        let style = match style.strip_prefix("subreaper:") {
            Some(style) => {
                say(&["python3", &self.path("subreaper.py").display().to_string()]);
                style
            }
            None => style,
        };
        let server = self.path("server.py").display().to_string();
        match style {
            "keeper" => {
                let keeper = self.path("keeper.py").display().to_string();
                say(&["python3", &keeper, "python3", &server, "--stdio"]);
            }
            style => {
                let client = self.path("client.py").display().to_string();
                say(&["python3", &client, style]);
            }
        }
        let mut starter = Command::new(&words[0])
            .args(&words[1..])
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
        Troupe::of(starter, leash, told, !outside)
    }

    /// Runs `lych ps --json` as this user.
    pub(crate) fn report(&self, user: User, all: bool) -> Value {
        let all: &[&str] = if all { &["--all"] } else { &[] };
        self.json(user.prefix(), &[&["ps", "--json"], all].concat())
    }

    /// The same by root from within a namespace, where nothing is on record.
    pub(crate) fn report_inside(&self, troupe: &Troupe) -> Value {
        let first = troupe.first().to_string();
        let enter = [
            "nsenter", "--target", &first, "--pid", "--mount", "--", "env",
        ];
        let nothing = format!("LYCH_HOME={}", self.path("nothing").display());
        self.json(&[&enter[..], &[&nothing]].concat(), &["ps", "--json"])
    }

    /// What this user sees, with a control group for one process that is a service's, or cannot be read.
    pub(crate) fn report_with(&self, user: User, pid: u32, service: bool) -> Value {
        let seen = self.json(user.prefix(), &["snapshot"]);
        let mut snapshot: Snapshot = serde_json::from_value(seen).unwrap();
        let mut processes = snapshot.processes.iter_mut();
        let closer = processes.find(|one| one.pid() == pid);
        let closer = closer.and_then(|one| one.closer.as_mut()).unwrap();
        closer.cgroup = if service {
            Known::Yes(Foreign::from("/system.slice/mcp-fixture.service"))
        } else {
            Known::unknown("no answer")
        };
        self.judged(&snapshot, Extent::Servers)
    }

    /// What ps(1) and lsof(8) lead to, as if they had listed the descriptors of every process. As they are, it may be
    /// unknown, or taken to be in use: never more left over.
    pub(crate) fn portable(&self, all: bool) -> Value {
        let now = Wall::from(std::time::SystemTime::now());
        let extent = if all {
            Extent::Everything
        } else {
            Extent::Servers
        };
        let mut snapshot = inventory::take_portable(now, sys::process::own_uid()).unwrap();
        let as_it_is = self.judged(&snapshot, extent);
        for process in &mut snapshot.processes {
            if process.descriptors.value().is_none() {
                process.descriptors = Known::Yes(Vec::new());
            }
        }
        snapshot.unreadable.clear();
        let report = self.judged(&snapshot, extent);
        let verdict_of = |report: &Value, pid: &Value| {
            let mut findings = report["findings"].as_array().unwrap().iter();
            let found = findings.find(|one| one["root"]["pid"] == *pid);
            found.map_or(Value::Null, |one| one["verdict"].clone())
        };
        for finding in as_it_is["findings"].as_array().unwrap() {
            let pid = &finding["root"]["pid"];
            let told = &finding["verdict"];
            let less = ["UNKNOWN", "LIVE", "SHARED"]
                .map(Value::from)
                .contains(told);
            assert!(less || *told == verdict_of(&report, pid), "{finding:#}");
        }
        report
    }

    fn judged(&self, snapshot: &Snapshot, extent: Extent) -> Value {
        let places = Places {
            homes: vec![self.folder.path().to_owned()],
            ..Places::default()
        };
        let input = Input {
            snapshot,
            expected: &places.read().expected,
            launched: &[],
            notes: &[],
            launches: &[],
            log: &LogFacts::default(),
        };
        serde_json::to_value(judge(&input, extent)).unwrap()
    }

    /// Lets this user contain a process, and returns what came of it.
    pub(crate) fn contain(&self, user: User, pid: u32) -> Value {
        let home = self.path(&format!("home-of-{user:?}"));
        fs::create_dir_all(&home).unwrap();
        if let Some(uid) = user.uid() {
            chown(&home, Some(uid), Some(uid)).unwrap();
        }
        let home = format!("LYCH_HOME={}", home.display());
        let prefix = [user.prefix(), &["env", &home]].concat();
        let pid = pid.to_string();
        let output = self.run(&prefix, &["contain", &pid, "--yes", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    fn json(&self, prefix: &[&str], args: &[&str]) -> Value {
        let output = self.run(prefix, args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn run(&self, prefix: &[&str], args: &[&str]) -> Output {
        Command::new(prefix[0])
            .args(&prefix[1..])
            .arg(self.path("lych"))
            .args(args)
            .current_dir("/")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("LYCH_HOME", self.path("home"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
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
