//! One client with those it started: what they said, and what becomes of them.

use std::{
    fs,
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
};

use sys::process::Handle;
use testkit::{Deadline, wait_until};

/// One client and what it told about those it started.
pub(crate) struct Troupe {
    starter: Child,
    _leash: ChildStdin,
    told: Vec<(String, String)>,
    /// The namespace that it plays in, if that is one of its own.
    inside: Option<Namespace>,
    server: Option<Handle>,
}

impl Troupe {
    pub(super) fn of(
        starter: Child,
        leash: ChildStdin,
        told: Vec<(String, String)>,
        in_a_namespace: bool,
    ) -> Self {
        let inside = in_a_namespace.then(|| Namespace::below(starter.id(), &told));
        let told = match &inside {
            Some(namespace) => namespace.seen_from_outside(&told),
            None => told,
        };
        let mut troupe = Self {
            starter,
            _leash: leash,
            told,
            inside,
            server: None,
        };
        troupe.server = Handle::open(troupe.pid("server")).ok();
        troupe
    }

    /// Returns the number out here of its namespace's number 1.
    pub(super) fn first(&self) -> u32 {
        self.inside.as_ref().unwrap().first
    }

    pub(crate) fn pid(&self, word: &str) -> u32 {
        self.word(word)
            .unwrap_or_else(|| panic!("no {word} in {:?}", self.told))
    }

    pub(super) fn word(&self, word: &str) -> Option<u32> {
        let mut told = self.told.iter().filter(|told| told.0 == word);
        told.next().map(|told| told.1.parse().unwrap())
    }

    /// Returns the number that a process has in its own namespace.
    pub(crate) fn inside(&self, word: &str) -> u32 {
        let told = &self.inside.as_ref().unwrap().told;
        let mut told = told.iter().filter(|told| told.0 == word);
        told.next().unwrap().1.parse().unwrap()
    }

    pub(crate) fn server_lives(&self) -> bool {
        let server = self.server.as_ref().unwrap();
        server.is_alive().unwrap()
    }

    pub(super) fn is_container(&self) -> bool {
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

/// A namespace of processes, which have numbers of their own there.
struct Namespace {
    /// The number out here of its number 1.
    first: u32,
    told: Vec<(String, String)>,
}

impl Namespace {
    fn below(starter: u32, told: &[(String, String)]) -> Self {
        let children = fs::read_to_string(format!("/proc/{starter}/task/{starter}/children"));
        let first = children.unwrap().trim().parse().unwrap();
        let told = told.to_vec();
        Self { first, told }
    }

    fn seen_from_outside(&self, told: &[(String, String)]) -> Vec<(String, String)> {
        let outside = |inside: &str| {
            let entries = fs::read_dir("/proc").unwrap().flatten();
            let mut pids = entries.filter_map(|one| one.file_name().to_str()?.parse().ok());
            let pid = pids.find(|pid: &u32| self.has(*pid, inside));
            pid.unwrap().to_string()
        };
        let told = told.iter();
        told.map(|(word, pid)| (word.clone(), outside(pid)))
            .collect()
    }

    /// Tells whether this process is in it and has that number there (proc_pid_status(5), `NSpid`).
    fn has(&self, pid: u32, inside: &str) -> bool {
        let of = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let last = pids.and_then(|pids| pids.split_whitespace().last());
        of(pid) == of(self.first) && last == Some(inside)
    }
}

pub(super) fn kill(pid: u32) {
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}
