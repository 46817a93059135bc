//! A client with its servers as real processes, a crash of the client, and the judgement.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use clients::{Client, Expected, Launched, Source};
use inventory::{Live, Snapshot};
use model::LaunchRecord;
use sys::process::Handle;
use verdict::{Extent, Finding, Input, LogFacts, Report, candidates, judge};

const CLIENT: &str = include_str!("client.py");
const SERVER: &str = include_str!("server.py");
const HELPER: &str = "import signal\nprint('ready', flush=True)\nsignal.pause()\n";

/// One client and what it started; all of it is ended with the scene.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    client: Child,
    // Dropping it ends the client in the ordinary way.
    _leash: Option<ChildStdin>,
    told: Vec<(String, String)>,
    started: Vec<Handle>,
    /// What those started in turn.
    further: Vec<Handle>,
}

impl Scene {
    /// Starts a client that starts its servers in this way.
    pub(crate) fn start(style: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, style, &["python3"])
    }

    pub(crate) fn start_in(folder: tempfile::TempDir, style: &str, program: &[&str]) -> Self {
        for (name, text) in [
            ("client.py", CLIENT),
            ("server.py", SERVER),
            ("helper.py", HELPER),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let (first, rest) = program.split_first().unwrap();
        let mut client = Command::new(first)
            .args(rest)
            .arg(folder.path().join("client.py"))
            .arg(style)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let leash = client.stdin.take();
        let lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let told: Vec<(String, String)> = lines
            .map(Result::unwrap)
            .take_while(|line| line != "done")
            .map(|line| {
                let (word, value) = line.split_once(' ').unwrap();
                (word.to_owned(), value.to_owned())
            })
            .collect();
        let mut scene = Self {
            folder,
            client,
            _leash: leash,
            told,
            started: Vec::new(),
            further: Vec::new(),
        };
        for word in ["server", "helper", "inner"] {
            let pids: Vec<u32> = scene.all(word).map(|pid| pid.parse().unwrap()).collect();
            // A fixture may be over by now, if that is what it is for.
            scene
                .started
                .extend(pids.into_iter().filter_map(|pid| Handle::open(pid).ok()));
        }
        let look = inventory::take(&Live::open().unwrap()).unwrap();
        for one in &scene.started {
            let below = look.children(one.id().pid).map(|child| child.pid());
            scene
                .further
                .extend(below.map(|pid| Handle::open(pid).unwrap()));
        }
        scene
    }

    fn all(&self, word: &str) -> impl Iterator<Item = &str> {
        self.told
            .iter()
            .filter(move |told| told.0 == word)
            .map(|told| told.1.as_str())
    }

    pub(crate) fn value(&self, word: &str) -> &str {
        self.all(word).next().unwrap()
    }

    pub(crate) fn server(&self) -> u32 {
        self.value("server").parse().unwrap()
    }

    pub(crate) fn helper(&self) -> u32 {
        self.value("helper").parse().unwrap()
    }

    pub(crate) fn client(&self) -> u32 {
        self.client.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the client as a crash does, and waits until its children belong to somebody else.
    pub(crate) fn crash(&mut self) {
        let client = self.client.id();
        self.client.kill().unwrap();
        self.client.wait().unwrap();
        wait_until(|| {
            self.started
                .iter()
                .all(|one| one.stat_now().unwrap().ppid != client)
        });
    }

    /// The configuration that says so.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let server = self.folder.path().join("server.py");
        let text = format!(
            r#"{{"mcpServers": {{"fixture": {{"command": "python3", "args": ["{}", "--stdio"]}}}}}}"#,
            server.display()
        );
        let source = Source {
            client: Client::ClaudeCode,
            file: PathBuf::from("/home/user/.claude.json"),
            owner_uid: sys::process::own_uid(),
        };
        clients::parse(&source, text.as_bytes()).unwrap()
    }

    /// The same with one more argument.
    pub(crate) fn expected_with(&self, flag: &str) -> Vec<Expected> {
        let mut expected = self.expected();
        expected[0].args.push(flag.into());
        expected
    }

    /// Looks at the machine and judges this scene's processes.
    pub(crate) fn judge(&self) -> Judged {
        Judged::of(&self.expected(), &[], &LogFacts::default())
    }

    /// Judges what ps(1) and lsof(8) say, as on a machine that has no `/proc`: as they say it, and as if they had
    /// listed the descriptors of every process.
    pub(crate) fn judge_portable(expected: &[Expected]) -> [Judged; 2] {
        let now = model::Wall::from(std::time::SystemTime::now());
        let mut snapshot = inventory::take_portable(now, sys::process::own_uid()).unwrap();
        let log = LogFacts::default();
        let judged = |snapshot: &Snapshot| Judged {
            report: judge(&input(snapshot, expected, &[], &log), Extent::Servers),
        };
        let as_it_is = judged(&snapshot);
        for process in &mut snapshot.processes {
            if process.descriptors.value().is_none() {
                process.descriptors = model::Known::Yes(Vec::new());
            }
        }
        snapshot.unreadable.clear();
        [as_it_is, judged(&snapshot)]
    }

    /// Judges without knowing any configuration.
    pub(crate) fn judge_unconfigured(&self) -> Judged {
        Judged::of(&[], &[], &LogFacts::default())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
        for process in self.started.iter().chain(&self.further) {
            if process.is_alive().unwrap_or(false) {
                let pid = process.id().pid.to_string();
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
            }
        }
    }
}

/// A look and what it was judged to be.
pub(crate) struct Judged {
    pub(crate) report: Report,
}

impl Judged {
    pub(crate) fn of(expected: &[Expected], launches: &[LaunchRecord], log: &LogFacts) -> Self {
        Self::with(expected, launches, log, |_| ())
    }

    /// Judges a look that was changed before.
    pub(crate) fn with(
        expected: &[Expected],
        launches: &[LaunchRecord],
        log: &LogFacts,
        change: impl FnOnce(&mut Snapshot),
    ) -> Self {
        let source = Live::open().unwrap();
        let mut snapshot = inventory::take(&source).unwrap();
        let pids = candidates(&input(&snapshot, expected, launches, log));
        inventory::closer(&source, &mut snapshot, &pids);
        change(&mut snapshot);
        let report = judge(&input(&snapshot, expected, launches, log), Extent::Servers);
        Self { report }
    }

    /// Judges with what clients have logged about the servers they started.
    pub(crate) fn logged(expected: &[Expected], launched: &[Launched]) -> Self {
        let source = Live::open().unwrap();
        let snapshot = inventory::take(&source).unwrap();
        let log = LogFacts::default();
        let input = Input {
            launched,
            ..input(&snapshot, expected, &[], &log)
        };
        let report = judge(&input, Extent::Servers);
        Self { report }
    }

    /// Returns the finding that a process is of.
    pub(crate) fn of_pid(&self, pid: u32) -> Option<&Finding> {
        self.report.findings.iter().find(|finding| {
            finding.root.pid == pid || finding.members.iter().any(|member| member.pid == pid)
        })
    }

    pub(crate) fn finding(&self, pid: u32) -> &Finding {
        self.of_pid(pid).unwrap()
    }
}

const fn input<'a>(
    snapshot: &'a Snapshot,
    expected: &'a [Expected],
    launches: &'a [LaunchRecord],
    log: &'a LogFacts,
) -> Input<'a> {
    Input {
        snapshot,
        expected,
        launched: &[],
        notes: &[],
        launches,
        log,
    }
}

/// Everything that a finding rests on, as one text.
pub(crate) fn evidence(finding: &Finding) -> String {
    let lines: Vec<&str> = finding
        .evidence
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    lines.join("\n")
}

/// Looks until it is so.
pub(crate) fn wait_until(is_so: impl FnMut() -> bool) {
    testkit::wait_until(
        "the fixture to get there",
        testkit::Deadline::usual(),
        is_so,
    );
}

/// Makes a named pipe that a fixture tells its pid through.
pub(crate) fn fifo(folder: &Path) {
    let status = Command::new("mkfifo")
        .arg(folder.join("fifo"))
        .status()
        .unwrap();
    assert!(status.success());
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    fs::File::create(folder.join(name))
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}
