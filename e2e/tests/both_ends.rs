//! Both ends of the sockets: strangers on them, fifteen that start the daemon at once, a hostile client.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use testkit::{Deadline, Held, Target, World, wait_for, wait_until};

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    gate::Gate,
};

/// As many as a person's editor, terminals and agents start when a machine boots.
const SHIMS: usize = 15;

/// Variables that would lead the daemon or its connections astray, and that hold a mark to look for.
const HOSTILE: &[&str] = &[
    "LD_PRELOAD",
    "http_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSLKEYLOGFILE",
    "RUST_LOG",
    "CI_TOKEN",
];

const MARK: &str = "hostile-7d1c";

#[test]
fn fifteen_shims_at_once_start_one_daemon_and_all_are_served() {
    let world = World::new();
    let agents: Vec<_> = thread::scope(|scope| {
        let starting: Vec<_> = (0..SHIMS)
            .map(|_| scope.spawn(|| Agent::open(&world)))
            .collect();
        starting
            .into_iter()
            .map(|agent| agent.join().expect("an agent"))
            .collect()
    });

    let daemons = daemons(&world);

    assert_eq!(agents.len(), SHIMS);
    assert_eq!(daemons.len(), 1, "{daemons:?}");
    drop(agents);
    drop(world.run(["down"]).expect_code(0));
}

pub fn daemons(world: &World) -> Vec<u32> {
    let lychd = testkit::program("lychd");
    let is_daemon =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == lychd);
    let seen = world.processes().into_iter().map(|process| process.pid);
    seen.filter(is_daemon).collect()
}

/// A client with a hostile environment and a strange descriptor, in a group of its own.
fn hostile_client(world: &World) -> Command {
    let mut command = world.command("python3");
    command.arg(BRIDGE).args(shim(world));
    for name in HOSTILE {
        command.env(name, format!("/{MARK}/{name}"));
    }
    command.env("LYCH_HOME", world.folder().join("elsewhere"));
    command
}

#[test]
fn a_daemon_started_by_a_hostile_client_has_nothing_of_it_and_survives_the_end_of_its_group() {
    let world = World::new();
    let inherited = world.write("inherited", "x");
    let client = hostile_client(&world);
    // A descriptor that the client leaves open for its children.
    let mut command = world.command("sh");
    command
        .args(["-c", "exec 9<\"$0\"; exec \"$@\""])
        .arg(&inherited);
    command.arg(client.get_program()).args(client.get_args());
    for (name, value) in client.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let held = Held::start(&mut command);
    let daemon = wait_for("the daemon", Deadline::usual(), || {
        let all = daemons(&world);
        world.home().agent_socket().exists().then_some(())?;
        all.first().copied()
    });

    let mut end_group = world.command("sh");
    end_group.args(["-c", &format!("kill -9 -{}", held.pid())]);
    drop(
        world
            .finish(&mut end_group, b"", Deadline::usual())
            .expect_code(0),
    );
    drop(held);

    assert_eq!(daemons(&world), [daemon]);
    let status = world.run(["status", "--json"]).expect_code(0).json();
    assert_eq!(status["daemon"]["pid"], daemon);
    let environ = fs::read(format!("/proc/{daemon}/environ")).unwrap_or_default();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(
        !environ.contains(MARK) && !environ.contains("LYCH_HOME"),
        "{environ}"
    );
    let maps = fs::read_to_string(format!("/proc/{daemon}/maps")).unwrap_or_default();
    assert!(!maps.contains(MARK), "{maps}");
    assert!(
        !world.folder().join("elsewhere").exists(),
        "LYCH_HOME won over --home"
    );
    for target in descriptors(daemon) {
        let ours = target.starts_with("socket:")
            || target.starts_with("anon_inode:")
            || target == "/dev/null"
            || (target.starts_with(&*world.folder().to_string_lossy())
                && !target.ends_with("/inherited"));
        assert!(ours, "the daemon holds {target}");
    }
    drop(world.run(["down"]).expect_code(0));
}

fn descriptors(pid: u32) -> Vec<String> {
    let folder = fs::read_dir(format!("/proc/{pid}/fd"));
    folder
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect()
}

/// An editor that runs for weeks starts its servers anew with every window.
#[test]
fn a_client_that_comes_and_goes_leaves_no_more_open_than_its_own_watch() {
    let world = World::new();
    let come_and_go = |times| (0..times).for_each(|_| drop(Agent::open(&world)));
    let gone = || {
        let listed = world
            .run(["sessions", "list", "--json"])
            .expect_code(0)
            .json();
        let all = listed["sessions"].as_array().expect("a list");
        all.iter().all(|run| run["state"] == "ended")
    };
    come_and_go(2);
    let daemon = daemons(&world).first().copied().expect("a daemon");
    wait_until("the first to be gone", Deadline::usual(), gone);
    let before = descriptors(daemon).len();

    come_and_go(20);

    // Whatever is opened for a connection is closed a moment after it.
    wait_until("what was opened to be closed", Deadline::usual(), || {
        gone() && descriptors(daemon).len() <= before + 2
    });
    drop(world.run(["down"]).expect_code(0));
}

#[test]
fn a_client_whose_proxy_and_certificates_are_hostile_changes_nothing_about_a_call() {
    let gate = Gate::before(Target::start());
    let mut command = gate.world.command("python3");
    command.arg(BRIDGE).args(shim(&gate.world));
    for name in HOSTILE.iter().filter(|name| **name != "LD_PRELOAD") {
        command.env(name, "http://127.0.0.1:1/");
    }
    let mut agent = Agent::over(&gate.world, command);

    assert_eq!(refused(&agent.call("GET", "/r/x")), None);

    assert_eq!(gate.target.count(), 1);
}

/// Runs a shim to its end and returns its code and what it says.
fn shim_says(world: &World) -> (Option<i32>, String) {
    let finished = world.run(["mcp"]);
    assert_eq!(finished.stdout, "", "stdout is the protocol alone");
    (finished.code(), finished.stderr)
}

#[test]
fn a_socket_in_a_folder_that_others_could_write_is_refused_and_no_daemon_is_started() {
    let world = World::new();
    let run = world.home().run_folder().to_owned();
    fs::create_dir(&run).expect("a folder");
    let squatter = UnixListener::bind(world.home().agent_socket()).expect("a socket");
    squatter.set_nonblocking(true).expect("no waiting");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).expect("our folder");

    let (code, said) = shim_says(&world);

    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("not to be trusted"), "{said}");
    assert!(squatter.accept().is_err(), "the shim spoke to the squatter");
    assert!(daemons(&world).is_empty());
}

#[test]
fn a_socket_behind_a_link_is_refused() {
    let world = World::new();
    let real = world.folder().join("real");
    fs::create_dir(&real).expect("a folder");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).expect("our folder");
    let _squatter = UnixListener::bind(real.join("agent.sock")).expect("a socket");
    std::os::unix::fs::symlink(&real, world.home().run_folder()).expect("a link");

    let (code, said) = shim_says(&world);

    assert_eq!(code, Some(6), "{said}");
}

#[test]
fn a_socket_of_another_user_is_refused_before_a_word_is_said() {
    let world = World::new();
    let run = world.home().run_folder().to_owned();
    fs::create_dir(&run).expect("a folder");
    let mut probe = world.command("true");
    probe.uid(NOBODY);
    if probe.status().is_err() {
        // Only root can start a program as somebody else.
        use std::io::Write;
        drop(writeln!(
            std::io::stdout(),
            "NOT RUN: this user cannot be another one"
        ));
        return;
    }
    std::os::unix::fs::chown(&run, Some(NOBODY), Some(NOBODY)).expect("root may");
    let squatter = UnixListener::bind(world.home().agent_socket()).expect("a socket");
    squatter.set_nonblocking(true).expect("no waiting");

    let (code, said) = shim_says(&world);

    assert_eq!(code, Some(6), "{said}");
    assert!(squatter.accept().is_err(), "the shim spoke to the squatter");
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

#[test]
fn a_program_that_is_not_our_shim_is_refused_on_the_agents_socket_and_told_so() {
    let gate = Gate::before(Target::start());
    let socket = gate.world.home().agent_socket();

    let said = speak(
        &gate.world,
        &socket,
        "{\"min\":1,\"max\":1,\"version\":\"0.1.0\",\"role\":\"mcp\",\"stdin_inode\":null,\"stdout_inode\":null,\"parent\":1,\"argv0\":\"lych\"}\n",
    );

    assert!(
        said.contains("refused") && said.contains("not the one beside the daemon"),
        "{said}"
    );
}

#[test]
fn no_operator_verb_exists_on_the_agents_socket() {
    let gate = Gate::before(Target::start());
    let socket = gate.world.home().agent_socket();

    let said = speak(&gate.world, &socket, "{\"verb\":\"lock\"}\n");

    assert!(said.contains("refused"), "{said}");
    drop(gate.world.run(["vault", "list"]).expect_code(0));
}

/// Says one line on a socket and returns all that comes back.
fn speak(world: &World, socket: &Path, line: &str) -> String {
    let mut command = world.command("python3");
    command.args([
        "-c",
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode())\n\
         b=b''\nwhile True:\n  c=s.recv(4096)\n  if not c: break\n  b+=c\nprint(b.decode())",
    ]);
    command.arg(socket).arg(line);
    world
        .finish(&mut command, b"", Deadline::usual())
        .expect_code(0)
        .stdout
}

#[test]
fn a_second_daemon_leaves_the_first_alone_and_ends_with_0() {
    let gate = Gate::before(Target::start());
    let before = daemons(&gate.world);

    let mut second = gate.world.lychd([""; 0]);
    let second = gate.world.finish(&mut second, b"", Deadline::usual());

    assert_eq!(second.code(), Some(0), "{second:?}");
    wait_until("the first alone", Deadline::usual(), || {
        daemons(&gate.world) == before
    });
    drop(gate.world.run(["vault", "list"]).expect_code(0));
}
