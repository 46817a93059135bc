//! Two real users of one machine: what one's daemon holds is out of the other's reach, whatever he tries.

use std::{
    fs,
    io::{Write, stdout},
    os::unix::fs::{PermissionsExt, chown},
    process::Command,
};

use testkit::{Deadline, Finished, User, World};

use crate::gate::SECRET;

/// Runs a program as this user.
pub fn run(user: &User, world: &World, command: &Command, input: &[u8]) -> Finished {
    let mut command = user.as_it(command);
    command.current_dir("/");
    world.finish(&mut command, input, Deadline::usual())
}

pub fn lych(user: &User, world: &World, args: &[&str], input: &[u8]) -> Finished {
    run(user, world, &world.lych(args), input)
}

/// Runs a line of Python, since a shell has no sockets; returns what it says.
pub fn python(user: &User, world: &World, line: &str, args: &[&str]) -> Finished {
    let mut command = world.command("/usr/bin/python3");
    command.arg("-c").arg(line).args(args);
    run(user, world, &command, b"")
}

/// Says a hello of both sockets and prints what comes back, also where nobody waited for it.
pub const KNOCK: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(b'{\"min\":1,\"max\":1,\"version\":\"0.1.0\",\"role\":\"mcp\",\"presence\":\"tty\",'
        b'\"stdin_inode\":null,\"stdout_inode\":null,\"parent\":1,\"argv0\":\"lych\"}\\n')
except BrokenPipeError:
    pass
print(s.recv(65536).decode())
";

/// Prints each of these that can be read.
pub const READ: &str = "import sys\nfor p in sys.argv[1:]:\n  try:\n    open(p,'rb').read(64)\n    print(p)\n  except OSError:\n    pass";

pub fn open_to_all(path: &std::path::Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("root may");
}

/// Tries to attach to each of these processes and to open its memory; says of which it could, and first of a child.
const ATTACH: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
libc.ptrace.restype = ctypes.c_long
SEIZE, READABLE = 0x4206, ['mem', 'environ', 'maps']
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
for pid in [child] + [int(one) for one in sys.argv[1:]]:
    name = 'child' if pid == child else 'daemon'
    if libc.ptrace(SEIZE, pid, 0, 0) == 0:
        print(name, 'attached')
    for part in READABLE:
        try:
            open(f'/proc/{pid}/{part}', 'rb').close()
            print(name, part)
        except OSError:
            pass
os.close(writer)
os.waitpid(child, 0)
";

/// Has this user set a daemon up; none if he cannot start the programs where they were built.
fn daemon_of(owner: &User, world: &World, key: &str) -> Option<String> {
    chown(world.folder(), Some(owner.uid()), Some(owner.uid())).expect("root may");
    let init = [
        "init",
        "--yes",
        "--key-file",
        key,
        "--agent-readable",
        "--presence",
        "none",
    ];
    let init = lych(owner, world, &init, b"");
    if init.stderr.contains("Permission denied") {
        drop(writeln!(
            stdout(),
            "NOT RUN: other users cannot start the programs where they were built"
        ));
        return None;
    }
    drop(init.expect_code(0));
    let status = lych(owner, world, &["status", "--json"], b"")
        .expect_code(0)
        .json();
    Some(status["daemon"]["pid"].as_u64().expect("a pid").to_string())
}

#[test]
fn a_program_of_the_same_user_can_neither_attach_to_the_daemon_nor_open_its_memory() {
    let world = World::new();
    let Some(owner) = User::make(&[]) else {
        drop(writeln!(stdout(), "NOT RUN: this user cannot make others"));
        return;
    };
    let key = world.folder().join("k");
    let Some(pid) = daemon_of(&owner, &world, key.to_str().expect("UTF-8")) else {
        return;
    };

    let tried = python(&owner, &world, ATTACH, &[&pid]).expect_code(0);

    // The child shows that this user may do it at all.
    let could: Vec<&str> = tried.stdout.lines().collect();
    assert_eq!(
        could,
        ["child attached", "child mem", "child environ", "child maps"]
    );
    drop(lych(&owner, &world, &["down"], b"").expect_code(0));
}

#[test]
fn another_user_reaches_neither_files_nor_sockets_nor_memory_of_the_daemon() {
    let world = World::new();
    let (Some(owner), Some(other)) = (User::make(&[]), User::make(&[])) else {
        drop(writeln!(stdout(), "NOT RUN: this user cannot make others"));
        return;
    };
    let key = world.folder().join("k");
    let key = key.to_str().expect("UTF-8");
    let Some(pid) = daemon_of(&owner, &world, key) else {
        return;
    };
    let add = [
        "vault",
        "add",
        "t",
        "--for",
        "https://a.example",
        "--from-stdin",
    ];
    drop(lych(&owner, &world, &add, SECRET.as_bytes()).expect_code(0));
    let home = world.home();
    let text = |path: std::path::PathBuf| path.to_str().expect("UTF-8").to_owned();

    // As it is: nothing can even be named.
    let files = [
        home.vault(),
        home.identity(),
        home.audit().join("LOG"),
        home.config_file(),
        home.daemon_log(),
    ];
    let files = files.map(text);
    let mut paths: Vec<String> = files.to_vec();
    paths.extend(["mem", "environ", "maps"].map(|part| format!("/proc/{pid}/{part}")));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(
        python(&other, &world, READ, &paths).expect_code(0).stdout,
        ""
    );
    for socket in [home.agent_socket(), home.operator_socket()] {
        let said = python(&other, &world, KNOCK, &[&text(socket)]);
        assert!(said.stderr.contains("PermissionError"), "{}", said.stderr);
    }

    // Opened by mistake: the daemon itself looks who is there.
    for path in [world.folder(), home.run_folder()] {
        open_to_all(path);
    }
    for socket in [home.agent_socket(), home.operator_socket()] {
        open_to_all(&socket);
        let said = python(&other, &world, KNOCK, &[&text(socket)]).expect_code(0);
        assert!(said.stdout.contains("another user"), "{}", said.stdout);
    }
    assert_eq!(
        python(&other, &world, READ, &paths).expect_code(0).stdout,
        ""
    );
    for args in [
        &["lock"][..],
        &["vault", "list"],
        &["down"],
        &["mcp"],
        &["unlock", "--key-file", key],
    ] {
        let said = lych(&other, &world, args, b"");
        assert_ne!(said.code(), Some(0), "{args:?}: {}", said.stdout);
        assert!(!said.stdout.contains(SECRET) && !said.stderr.contains(SECRET));
    }
    let mut signal = world.command("/bin/sh");
    signal.args(["-c", &format!("kill -0 {pid}")]);
    assert_ne!(
        run(&other, &world, &signal, b"").code(),
        Some(0),
        "it could be signalled"
    );

    fs::set_permissions(world.folder(), fs::Permissions::from_mode(0o700)).expect("root may");
    fs::set_permissions(home.run_folder(), fs::Permissions::from_mode(0o700)).expect("root may");

    // Nothing of it did anything.
    drop(lych(&owner, &world, &["vault", "list"], b"").expect_code(0));
    drop(lych(&owner, &world, &["down"], b"").expect_code(0));
}
