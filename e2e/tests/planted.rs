//! Something else than a file stands where a file of the home belongs: a start says so and ends, or does without it.

use std::{
    fs::{self, File},
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    process::Stdio,
};

use model::IncidentId;
use testkit::{Deadline, Held, Target, look_until};

use crate::{agent::Agent, gate::Gate};

/// What stands there instead.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Pipe,
    Folder,
    Socket,
    /// A link to a device that can be read without an end.
    Link,
    /// A file that can be read for hours.
    Endless,
}

const KINDS: [Kind; 5] = [
    Kind::Pipe,
    Kind::Folder,
    Kind::Socket,
    Kind::Link,
    Kind::Endless,
];

/// What became of a start.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// The daemon answers.
    Serves,
    /// It ended with this last line.
    Said(String),
}

/// A home with a call on record, closed in order.
fn closed_home() -> Gate {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    drop(agent.call("GET", "/r/x"));
    drop(agent);
    gate.close();
    gate
}

impl Kind {
    fn plant(self, gate: &Gate, at: &Path) {
        match self {
            Self::Pipe => {
                let mut mkfifo = gate.world.command("mkfifo");
                let made = gate.world.finish(mkfifo.arg(at), b"", Deadline::usual());
                drop(made.expect_code(0));
            }
            Self::Folder => fs::create_dir(at).expect("a free name"),
            Self::Socket => drop(UnixListener::bind(at).expect("a free name")),
            Self::Link => symlink("/dev/zero", at).expect("a free name"),
            Self::Endless => {
                let file = File::create(at).expect("a free name");
                file.set_len(1 << 40).expect("a file without blocks");
            }
        }
    }

    /// What is said of it, where it is told at all.
    const fn named(self) -> &'static str {
        match self {
            Self::Pipe => "a named pipe",
            Self::Folder => "a folder",
            Self::Socket => "a socket",
            Self::Link | Self::Endless => "",
        }
    }
}

/// Puts something in a file's place while `look` looks.
fn with<T>(gate: &Gate, file: &Path, kind: Kind, look: impl FnOnce() -> T) -> T {
    let aside = file.with_added_extension("aside");
    let was_there = fs::rename(file, &aside).is_ok();
    kind.plant(gate, file);
    let seen = look();
    if fs::symlink_metadata(file).is_ok_and(|meta| meta.is_dir()) {
        fs::remove_dir_all(file).expect("our own folder");
    } else {
        drop(fs::remove_file(file));
    }
    if was_there {
        fs::rename(aside, file).expect("the file goes back");
    }
    seen
}

/// Starts the daemon and waits until it serves or has ended.
fn start(gate: &Gate) -> Start {
    let mut command = gate.world.lychd([""; 0]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut daemon = Held::start(command.stderr(Stdio::piped()));
    let socket = gate.world.home().operator_socket();
    let serves = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
    let ended = look_until(Deadline::usual(), || {
        if serves() {
            return Some(false);
        }
        daemon.ended().map(|_| true)
    });
    match ended.expect("it neither serves nor ends") {
        true => {
            let stderr = daemon.take_stderr().expect("a pipe");
            let said = std::io::read_to_string(stderr).expect("text");
            Start::Said(said.lines().last().unwrap_or_default().to_owned())
        }
        false => {
            let status = gate.world.run(["status", "--json"]);
            drop(status.expect_code(0));
            gate.close();
            Start::Serves
        }
    }
}

fn first_in(folder: &Path) -> PathBuf {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    names.sort();
    names.into_iter().next().expect("a file in it")
}

#[test]
fn a_file_the_log_needs_is_missed_by_name_and_nobody_waits() {
    let gate = closed_home();
    let audit = gate.world.home().audit();
    let needed = [
        audit.join("LOG"),
        audit.join("HEAD"),
        audit.join("seg/0000000000.seg"),
        audit.join("LOCK"),
    ];
    for file in &needed {
        for kind in KINDS {
            let name = file.file_name().expect("a name").to_string_lossy();
            // A lock holds whatever is written in it.
            if name == "LOCK" && matches!(kind, Kind::Endless) {
                continue;
            }
            let (started, verified) = with(&gate, file, kind, || {
                (start(&gate), gate.world.run(["audit", "verify"]))
            });

            let Start::Said(said) = started else {
                panic!("{kind:?} for {name}: it serves");
            };
            assert!(said.contains(&*name), "{kind:?} for {name}: {said}");
            assert!(said.contains(kind.named()), "{kind:?} for {name}: {said}");
            if name != "LOCK" {
                assert_ne!(
                    verified.code(),
                    Some(0),
                    "{kind:?} for {name}: {verified:?}"
                );
                let told = format!("{}{}", verified.stdout, verified.stderr);
                assert!(told.contains(kind.named()), "{kind:?} for {name}: {told}");
            }
        }
    }
    assert_eq!(start(&gate), Start::Serves);
}

#[test]
fn a_folder_that_is_none_is_named_and_nobody_waits() {
    let gate = closed_home();
    let home = gate.world.home();
    let folders = [
        home.audit(),
        home.audit().join("seg"),
        home.audit().join("keys"),
        home.audit().join("quarantine"),
        home.launches(),
        home.run_folder().to_owned(),
    ];
    for folder in &folders {
        for kind in [Kind::Pipe, Kind::Socket, Kind::Link, Kind::Endless] {
            let started = with(&gate, folder, kind, || start(&gate));

            let name = folder.file_name().expect("a name").to_string_lossy();
            let Start::Said(said) = started else {
                panic!("{kind:?} for {name}: it serves");
            };
            assert!(said.contains(&*name), "{kind:?} for {name}: {said}");
            assert!(
                said.contains("is not a folder"),
                "{kind:?} for {name}: {said}"
            );
        }
    }
    for kind in KINDS {
        let started = with(&gate, &home.audit().join("held"), kind, || start(&gate));
        assert_eq!(started, Start::Serves, "{kind:?}");
    }
}

#[test]
fn a_key_file_of_the_log_that_is_none_is_named_and_nobody_waits() {
    let gate = closed_home();
    let key = first_in(&gate.world.home().audit().join("keys"));
    for kind in KINDS {
        let (_, verified) = with(&gate, &key, kind, || {
            (start(&gate), gate.world.run(["audit", "verify"]))
        });

        assert_ne!(verified.code(), Some(0), "{kind:?}: {verified:?}");
        let told = format!("{}{}", verified.stdout, verified.stderr);
        assert!(told.contains(kind.named()), "{kind:?}: {told}");
    }
}

#[test]
fn what_only_helps_is_done_without() {
    let gate = closed_home();
    let home = gate.world.home();
    let helpful = [
        home.audit().join("held/key-00"),
        home.audit().join("held/tail"),
        home.launches().join("planted.json"),
        first_in(&home.launches()),
        home.config_file(),
    ];
    for file in &helpful {
        for kind in KINDS {
            let started = with(&gate, file, kind, || start(&gate));

            assert_eq!(started, Start::Serves, "{kind:?} for {}", file.display());
        }
    }
}

#[test]
fn what_the_daemon_writes_to_is_named_if_it_is_no_file() {
    let gate = closed_home();
    let home = gate.world.home();
    let written = [
        home.daemon_log(),
        home.lock(),
        home.audit().join("seg/spare"),
        home.audit().join("HEAD.tmp"),
    ];
    for file in &written {
        for kind in [Kind::Pipe, Kind::Folder, Kind::Socket, Kind::Link] {
            let started = with(&gate, file, kind, || start(&gate));

            let name = file.file_name().expect("a name").to_string_lossy();
            match started {
                Start::Said(said) => {
                    assert!(said.contains(&*name), "{kind:?} for {name}: {said}");
                    assert!(said.contains(kind.named()), "{kind:?} for {name}: {said}");
                }
                // The log goes on without a new head, and without room that was prepared.
                Start::Serves => assert!(file.starts_with(home.audit()), "{kind:?} for {name}"),
            }
        }
    }
}

#[test]
fn a_vault_that_is_no_file_is_named_and_nobody_waits() {
    let gate = closed_home();
    let daemon = gate.open_daemon();
    drop(gate.world.run(["lock"]).expect_code(0));
    let home = gate.world.home();
    for file in [
        home.vault(),
        home.identity(),
        PathBuf::from(gate.key_file()),
    ] {
        for kind in KINDS {
            let unlocked = with(&gate, &file, kind, || gate.unlock());

            let name = file.file_name().expect("a name").to_string_lossy();
            assert_ne!(unlocked.code(), Some(0), "{kind:?} for {name}");
            assert!(
                unlocked.stderr.contains(&*name),
                "{kind:?} for {name}: {unlocked:?}"
            );
        }
    }
    drop(gate.unlock().expect_code(0));
    gate.close();
    drop(daemon);
}

#[test]
fn an_incident_whose_file_is_none_is_named_and_nobody_waits() {
    let gate = closed_home();
    let id = IncidentId::from_bytes([7; 10]);
    let folder = gate.world.home().incidents().join(id.to_string());
    fs::create_dir_all(&folder).expect("a folder of the user");
    let step = folder.join("001-preserve.json");
    for kind in [Kind::Pipe, Kind::Folder, Kind::Socket] {
        let shown = with(&gate, &step, kind, || {
            gate.world.run(["incident", "show", &id.to_string()])
        });

        assert_ne!(shown.code(), Some(0), "{kind:?}: {shown:?}");
        assert!(shown.stderr.contains(kind.named()), "{kind:?}: {shown:?}");
    }
}
