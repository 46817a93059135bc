//! From the hello to every kind of end.

use std::{
    fs::Permissions,
    io::Write,
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    process::Stdio,
    time::Duration,
};

use model::{Exit, Explain, Fault};
use sys::process::Handle;
use testkit::{Deadline, Held, World};

use crate::stage::{Daemon, all, shim, start};

fn inode(pipe: &impl AsFd) -> u64 {
    let copy = pipe.as_fd().try_clone_to_owned().unwrap();
    std::fs::File::from(copy).metadata().unwrap().ino()
}

#[test]
fn a_hello_tells_who_speaks_and_lines_go_both_ways_until_the_client_ends() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    let (mut stdin, stdout) = (client.take_stdin().unwrap(), client.take_stdout().unwrap());
    let (mut peer, hello) = daemon.welcome();
    assert_eq!(hello.stdin_inode, Some(inode(&stdin)));
    assert_eq!(hello.stdout_inode, Some(inode(&stdout)));
    assert_eq!(hello.parent, std::process::id());
    assert_eq!(hello.version, wire::VERSION);

    stdin.write_all(b"{\"question\":1}\n").unwrap();
    drop(stdin);
    assert_eq!(peer.rest(), "{\"question\":1}\n");
    peer.write(b"{\"answer\":1}\n");
    drop(peer);

    assert_eq!(all(stdout), "{\"answer\":1}\n");
    assert_eq!(client.wait(Deadline::usual()).code(), Some(0));
}

#[test]
fn a_refusal_is_explained_on_stderr_with_its_code_and_stdout_stays_clean() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    let (mut peer, _) = daemon.accept();
    let explain = Explain::new(Exit::Refused, Fault::Operator, "this run is not admitted")
        .because("it waits for a person")
        .next("run lych pending");

    peer.refuse(explain);

    let stdout = all(client.take_stdout().unwrap());
    let stderr = all(client.take_stderr().unwrap());
    assert_eq!(client.wait(Deadline::usual()).code(), Some(6));
    assert_eq!(stdout, "");
    assert_eq!(
        stderr,
        "error: this run is not admitted\ncause: it waits for a person\nhint:  run lych pending\n"
    );
}

#[test]
fn a_broken_stderr_changes_no_exit_code() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    drop(client.take_stderr());
    let (mut peer, _) = daemon.accept();

    peer.refuse(Explain::new(Exit::Refused, Fault::Caller, "no"));

    assert_eq!(client.wait(Deadline::usual()).code(), Some(6));
}

#[test]
fn a_daemon_that_closes_first_is_named_and_not_called_again() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    let (mut peer, _) = daemon.welcome();
    peer.write(b"{\"last\":1}\n");

    drop(peer);

    assert_eq!(all(client.take_stdout().unwrap()), "{\"last\":1}\n");
    let stderr = all(client.take_stderr().unwrap());
    assert!(
        stderr.contains("the daemon closed the connection"),
        "{stderr}"
    );
    assert_eq!(client.wait(Deadline::usual()).code(), Some(5));
    assert!(!daemon.somebody_waits(), "it must not connect again");
}

#[test]
fn an_idle_shim_whose_output_nobody_reads_lets_go_of_the_daemon() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    let (mut peer, _) = daemon.welcome();
    // The input stays open: a sibling of the client may have inherited it.
    let _stdin = client.take_stdin();

    drop(client.take_stdout());

    assert_eq!(peer.rest(), "");
    client.wait(Deadline::usual());
}

#[test]
fn waiting_costs_no_time_of_the_processor() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let mut client = start(&world);
    let (mut peer, _) = daemon.welcome();
    let stdout = client.take_stdout();
    // Half closed, which is the state with the most ends that are told for ever.
    drop(client.take_stdin());
    assert_eq!(peer.rest(), "");
    let shim = Handle::open(client.pid()).unwrap();
    let before = shim.stat_now().unwrap().cpu_ms();

    assert!(!shim.wait_exit(Duration::from_millis(500)).unwrap());

    let used = shim.stat_now().unwrap().cpu_ms() - before;
    assert!(used < 100, "{used} ms of 500");
    drop((stdout, peer));
    client.wait(Deadline::usual());
}

#[test]
fn a_socket_that_others_could_have_made_is_refused_and_nothing_is_started() {
    let world = World::new();
    let _daemon = Daemon::listen(&world);
    let run = world.home().run_folder().to_owned();
    std::fs::set_permissions(&run, Permissions::from_mode(0o777)).unwrap();
    let mut client = start(&world);

    let stderr = all(client.take_stderr().unwrap());

    assert_eq!(client.wait(Deadline::usual()).code(), Some(6));
    assert!(stderr.contains("not to be trusted"), "{stderr}");
    assert!(!world.home().daemon_log().exists());
}

#[test]
fn a_terminal_or_a_file_as_output_is_served_too() {
    let world = World::new();
    let daemon = Daemon::listen(&world);
    let output = world.write("output", "");
    let file = std::fs::File::create(&output).unwrap();
    let mut command = shim(&world, env!("CARGO_BIN_EXE_lych").as_ref());
    let mut client = Held::start(command.stdin(Stdio::null()).stdout(file));
    let (mut peer, _) = daemon.welcome();

    assert_eq!(peer.rest(), "");
    peer.write(&vec![b'x'; 100_000]);
    drop(peer);

    assert_eq!(client.wait(Deadline::usual()).code(), Some(0));
    assert_eq!(std::fs::metadata(&output).unwrap().len(), 100_000);
}
