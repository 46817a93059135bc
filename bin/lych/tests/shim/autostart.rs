//! A daemon started by a shim shares nothing with the shim or its client.

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
};

use serde_json::Value;
use sys::process::Handle;
use testkit::{Deadline, Held, World, wait_for};

use crate::stage::{all, shim};

/// A daemon that welcomes, notes what it was started with, and ends with its last connection.
const FAKE: &str = r#"#!PYTHON
import fcntl, json, os, socket, sys
home = sys.argv[sys.argv.index("--home") + 1]
run = os.path.join(home, "run")
os.makedirs(run, mode=0o700, exist_ok=True)
lock = open(os.path.join(run, "lock"), "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(0)
def links():
    for fd in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink("/proc/self/fd/" + fd)
        except OSError:
            pass
facts = {"pid": os.getpid(), "args": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(),
         "sid": os.getsid(0), "pgid": os.getpgid(0), "ppid": os.getppid(), "fds": list(links())}
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(run, "agent.sock"))
listener.listen()
peers = []
for _ in range(WANTED):
    peer, _ = listener.accept()
    hello = peer.makefile("rb").readline()
    peer.sendall(b'{"welcome":{"protocol":1,"version":"0","session":"SESSION","connection":"CONNECTION"}}\n')
    peers.append(peer)
with open(os.path.join(home, "facts.tmp"), "w") as file:
    json.dump(facts, file)
os.rename(os.path.join(home, "facts.tmp"), os.path.join(home, "facts"))
for peer in peers:
    while peer.recv(4096):
        pass
    peer.close()
"#;

/// Lays a copy of the shim and a daemon for this many connections into one folder.
fn install(world: &World, connections: usize) -> PathBuf {
    let folder = world.folder().join("bin");
    fs::create_dir(&folder).unwrap();
    let lych = folder.join("lych");
    // A hard link has the file's other name, which is what the system tells of it: a copy does not.
    fs::copy(env!("CARGO_BIN_EXE_lych"), &lych).unwrap();
    let python = world.finish(
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]),
        b"",
        Deadline::usual(),
    );
    let text = FAKE
        .replace("PYTHON", python.stdout.trim())
        .replace("WANTED", &connections.to_string())
        .replace("SESSION", &world.session_id().to_string())
        .replace("CONNECTION", &world.connection_id().to_string());
    let lychd = folder.join("lychd");
    fs::write(&lychd, text).unwrap();
    fs::set_permissions(&lychd, Permissions::from_mode(0o755)).unwrap();
    lych
}

fn facts(world: &World) -> Value {
    let path = world.folder().join("facts");
    wait_for("the daemon's facts", Deadline::usual(), || {
        serde_json::from_slice(&fs::read(&path).ok()?).ok()
    })
}

fn start(world: &World, lych: &Path) -> Held {
    let mut command = shim(world, lych);
    command
        .env("HTTPS_PROXY", "http://evil.example")
        .env("LD_PRELOAD_TEST", "x")
        .process_group(0);
    Held::start(&mut command)
}

#[test]
fn a_daemon_that_a_shim_started_has_nothing_of_the_client_and_outlives_its_crash() {
    let world = World::new();
    let lych = install(&world, 2);
    let mut first = start(&world, &lych);
    let mut second = start(&world, &lych);
    let facts = facts(&world);
    let pid = u32::try_from(facts["pid"].as_u64().unwrap()).unwrap();
    let daemon = Handle::open(pid).unwrap();

    assert_eq!(facts["cwd"], "/");
    assert_eq!(facts["args"][1], "agent");
    assert_eq!(
        (&facts["sid"], &facts["pgid"]),
        (&facts["pid"], &facts["pid"])
    );
    let parent = facts["ppid"].as_u64().unwrap();
    assert!(
        ![first.pid(), second.pid(), std::process::id()].contains(&u32::try_from(parent).unwrap())
    );
    let names: Vec<&String> = facts["env"].as_object().unwrap().keys().collect();
    for name in names {
        // Python itself adds LC_CTYPE.
        let kept = [
            "HOME", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME",
        ];
        assert!(
            kept.contains(&name.as_str()) || name.starts_with("XDG_"),
            "{name}"
        );
    }
    for link in facts["fds"].as_array().unwrap() {
        let link = link.as_str().unwrap();
        assert!(!link.starts_with("pipe:"), "{link}");
    }

    let mut stdin = first.take_stdin().unwrap();
    first.crash();
    assert!(daemon.is_alive().unwrap());

    // The client's end of the pipe breaks: nobody but the shim had the other one.
    let broken = wait_for("the pipe to break", Deadline::usual(), || {
        stdin.write_all(b"x").err()
    });
    assert_eq!(broken.kind(), std::io::ErrorKind::BrokenPipe);
    drop(second.take_stdin());
    assert_eq!(second.wait(Deadline::usual()).code(), Some(0));
    assert!(daemon.wait_exit(crate::stage::SOON).unwrap());
}

#[test]
fn without_a_daemon_beside_it_the_shim_says_what_is_missing() {
    let world = World::new();
    let lych = install(&world, 1);
    fs::remove_file(lych.with_file_name("lychd")).unwrap();
    let mut client = start(&world, &lych);

    let stderr = all(client.take_stderr().unwrap());

    assert_eq!(client.wait(Deadline::usual()).code(), Some(5));
    assert!(
        stderr.contains("there is no lychd beside this lych"),
        "{stderr}"
    );
    assert!(stderr.contains("hint:"), "{stderr}");
}

#[test]
fn a_daemon_that_ends_at_once_is_told_with_the_last_line_of_its_log() {
    let world = World::new();
    let lych = install(&world, 1);
    let lychd = lych.with_file_name("lychd");
    fs::write(
        &lychd,
        "#!/bin/sh\necho 'error: the disk is full' >&2\nexit 1\n",
    )
    .unwrap();
    let mut client = start(&world, &lych);

    let stderr = all(client.take_stderr().unwrap());

    assert!(stderr.contains("error: the disk is full"), "{stderr}");
    assert_eq!(client.wait(Deadline::usual()).code(), Some(5));
}
