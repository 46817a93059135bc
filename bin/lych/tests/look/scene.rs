//! A crashed client, its configuration in a home of its own, and `lych` run as one user or another.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
};

use serde_json::Value;
use sys::process::Handle;
use testkit::{Deadline, wait_until};

pub(crate) const CLIENT: &str = include_str!("../../../../crates/verdict/tests/judged/client.py");
pub(crate) const SERVER: &str = include_str!("../../../../crates/verdict/tests/judged/server.py");

/// A user to run programs as; only root can choose another than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Own,
    Nobody,
    /// Neither the test's own nor the one that fixtures run as.
    Stranger,
}

impl User {
    /// The words to put before a command.
    pub(crate) fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::Own => &["env"],
            Self::Nobody => &[
                "setpriv",
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                "--",
            ],
            Self::Stranger => &[
                "setpriv",
                "--reuid",
                "65533",
                "--regid",
                "65533",
                "--clear-groups",
                "--",
            ],
        }
    }

    /// Another user may not enter the folders that root's path leads through.
    pub(crate) fn path(self) -> OsString {
        match self {
            Self::Own => std::env::var_os("PATH").unwrap(),
            Self::Nobody | Self::Stranger => "/usr/bin:/bin".into(),
        }
    }

    /// Returns whom files must be given to so that they are this user's.
    pub(crate) const fn uid(self) -> Option<u32> {
        match self {
            Self::Own => None,
            Self::Nobody => Some(65534),
            Self::Stranger => Some(65533),
        }
    }

    /// Returns a third user, if the test may become one.
    pub(crate) fn stranger() -> Option<Self> {
        Self::other().map(|_| Self::Stranger)
    }

    /// Returns another user than the test's own, if the test may become one.
    pub(crate) fn other() -> Option<Self> {
        (sys::process::own_uid() == 0).then_some(Self::Nobody)
    }
}

/// A folder with a home, a client and its server.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    user: User,
    client: Child,
    _leash: ChildStdin,
    server: Handle,
}

impl Scene {
    /// Starts a client of this user, with its server on pipes and both in the user's configuration.
    pub(crate) fn start(user: User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path());
        for (name, text) in [("client.py", CLIENT), ("server.py", SERVER)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_lych"), folder.path().join("lych")).unwrap();
        let server = folder.path().join("server.py").display().to_string();
        let text = format!(
            r#"{{"mcpServers": {{"fixture": {{"command": "python3", "args": ["{server}", "--stdio"]}}}}}}"#
        );
        let config = folder.path().join(".claude.json");
        fs::write(&config, text).unwrap();
        if user == User::Nobody {
            std::os::unix::fs::chown(&config, Some(65534), Some(65534)).unwrap();
        }
        let (first, rest) = user.prefix().split_first().unwrap();
        let mut client = Command::new(first)
            .args(rest)
            .arg("python3")
            .arg(folder.path().join("client.py"))
            .arg("pipes")
            .env("PATH", user.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let leash = client.stdin.take().unwrap();
        let told: Vec<String> = BufReader::new(client.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .take_while(|line| line != "done")
            .collect();
        let pid = told[0].strip_prefix("server ").unwrap().parse().unwrap();
        let server = Handle::open(pid).unwrap();
        Self {
            folder,
            user,
            client,
            _leash: leash,
            server,
        }
    }

    /// Kills the client as a crash does.
    pub(crate) fn crash(&mut self) {
        self.client.kill().unwrap();
        self.client.wait().unwrap();
        let client = self.client.id();
        wait_until("the server to be adopted", Deadline::usual(), || {
            self.server.stat_now().unwrap().ppid != client
        });
    }

    pub(crate) fn server(&self) -> u32 {
        self.server.id().pid
    }

    pub(crate) fn client(&self) -> u32 {
        self.client.id()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `lych` as the user whose processes these are.
    pub(crate) fn lych(&self, args: &[&str]) -> Output {
        self.lych_as(self.user, args)
    }

    pub(crate) fn lych_as(&self, user: User, args: &[&str]) -> Output {
        let program = self.path("lych").display().to_string();
        let mut words = user.prefix().to_vec();
        words.push(&program);
        words.extend(args);
        self.run(&words)
    }

    /// Runs a command with this scene's home and nothing else of the test's environment.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let (first, rest) = words.split_first().unwrap();
        Command::new(first)
            .args(rest)
            .current_dir("/")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs `lych ps --json` as this user.
    pub(crate) fn report_as(&self, user: User) -> Value {
        let output = self.lych_as(user, &["ps", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
        if self.server.is_alive().unwrap_or(false) {
            let pid = self.server().to_string();
            let _ = Command::new("kill").args(["-KILL", &pid]).status();
        }
    }
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Returns the finding whose root has this number.
pub(crate) fn finding(report: &Value, pid: u32) -> Option<&Value> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["root"]["pid"] == pid)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
