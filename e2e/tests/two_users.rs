//! Two real users of one machine: what one's daemon holds is out of the other's reach, whatever he tries.

use std::{
    fs,
    io::{Write, stdout},
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    process::{Command, Stdio},
};

use testkit::{Deadline, Finished, World};

use crate::gate::SECRET;

/// A user that the test makes, and removes again.
struct User {
    name: String,
    uid: u32,
}

impl User {
    /// Makes a user with neither home nor password; none where we cannot.
    fn make(which: &str) -> Option<Self> {
        let name = format!("lych{which}{}", std::process::id());
        let mut add = Command::new("useradd");
        add.args(["--no-create-home", "--shell", "/bin/false", &name]);
        let made = add.stderr(Stdio::null()).status();
        made.ok().filter(std::process::ExitStatus::success)?;
        let said = Command::new("id").args(["-u", &name]).output().ok()?;
        let uid = String::from_utf8(said.stdout).ok()?.trim().parse().ok();
        // Made, so it is removed also if its number cannot be told.
        let user = Self {
            name,
            uid: uid.unwrap_or(u32::MAX),
        };
        (user.uid != u32::MAX).then_some(user)
    }

    /// Runs a program as this user and in no group of ours.
    fn run(&self, world: &World, mut command: Command, input: &[u8]) -> Finished {
        command.uid(self.uid).gid(self.uid).current_dir("/");
        world.finish(&mut command, input, Deadline::usual())
    }

    fn lych(&self, world: &World, args: &[&str], input: &[u8]) -> Finished {
        self.run(world, world.lych(args), input)
    }

    /// Runs a line of Python, since a shell has no sockets; returns what it says.
    fn python(&self, world: &World, line: &str, args: &[&str]) -> Finished {
        let mut command = world.command("/usr/bin/python3");
        command.arg("-c").arg(line).args(args);
        self.run(world, command, b"")
    }
}

impl Drop for User {
    fn drop(&mut self) {
        drop(
            Command::new("userdel")
                .arg("--force")
                .arg(&self.name)
                .stderr(Stdio::null())
                .status(),
        );
    }
}

/// Says a hello of both sockets and prints what comes back, also where nobody waited for it.
const KNOCK: &str = "
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
const READ: &str = "import sys\nfor p in sys.argv[1:]:\n  try:\n    open(p,'rb').read(64)\n    print(p)\n  except OSError:\n    pass";

fn open_to_all(path: &std::path::Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("root may");
}

#[test]
fn another_user_reaches_neither_files_nor_sockets_nor_memory_of_the_daemon() {
    let world = World::new();
    let (Some(owner), Some(other)) = (User::make("a"), User::make("b")) else {
        drop(writeln!(stdout(), "NOT RUN: this user cannot make others"));
        return;
    };
    chown(world.folder(), Some(owner.uid), Some(owner.uid)).expect("root may");
    let key = world.folder().join("k");
    let key = key.to_str().expect("UTF-8");
    let init = [
        "init",
        "--yes",
        "--key-file",
        key,
        "--agent-readable",
        "--presence",
        "none",
    ];
    let init = owner.lych(&world, &init, b"");
    if init.stderr.contains("Permission denied") {
        drop(writeln!(
            stdout(),
            "NOT RUN: other users cannot start the programs where they were built"
        ));
        return;
    }
    drop(init.expect_code(0));
    let add = [
        "vault",
        "add",
        "t",
        "--for",
        "https://a.example",
        "--from-stdin",
    ];
    drop(owner.lych(&world, &add, SECRET.as_bytes()).expect_code(0));
    let status = owner
        .lych(&world, &["status", "--json"], b"")
        .expect_code(0)
        .json();
    let pid = status["daemon"]["pid"].as_u64().expect("a pid").to_string();
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
    assert_eq!(other.python(&world, READ, &paths).expect_code(0).stdout, "");
    for socket in [home.agent_socket(), home.operator_socket()] {
        let said = other.python(&world, KNOCK, &[&text(socket)]);
        assert!(said.stderr.contains("PermissionError"), "{}", said.stderr);
    }

    // Opened by mistake: the daemon itself looks who is there.
    for path in [world.folder(), home.run_folder()] {
        open_to_all(path);
    }
    for socket in [home.agent_socket(), home.operator_socket()] {
        open_to_all(&socket);
        let said = other.python(&world, KNOCK, &[&text(socket)]).expect_code(0);
        assert!(said.stdout.contains("another user"), "{}", said.stdout);
    }
    assert_eq!(other.python(&world, READ, &paths).expect_code(0).stdout, "");
    for args in [
        &["lock"][..],
        &["vault", "list"],
        &["down"],
        &["mcp"],
        &["unlock", "--key-file", key],
    ] {
        let said = other.lych(&world, args, b"");
        assert_ne!(said.code(), Some(0), "{args:?}: {}", said.stdout);
        assert!(!said.stdout.contains(SECRET) && !said.stderr.contains(SECRET));
    }
    let mut signal = world.command("/bin/sh");
    signal.args(["-c", &format!("kill -0 {pid}")]);
    assert_ne!(
        other.run(&world, signal, b"").code(),
        Some(0),
        "it could be signalled"
    );

    fs::set_permissions(world.folder(), fs::Permissions::from_mode(0o700)).expect("root may");
    fs::set_permissions(home.run_folder(), fs::Permissions::from_mode(0o700)).expect("root may");

    // Nothing of it did anything.
    drop(owner.lych(&world, &["vault", "list"], b"").expect_code(0));
    drop(owner.lych(&world, &["down"], b"").expect_code(0));
}
