//! Chains of real processes, each let go by closing the standard input it inherits.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use super::*;

/// A tree of processes that ends when its root's standard input closes.
struct Tree {
    root: Child,
    shim: Handle,
}

impl Tree {
    /// Starts `harness`, a Python program that starts the rest and prints the number of the shim.
    fn start(harness: &str) -> Self {
        let mut root = Command::new("python3")
            .args(["-c", harness])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(root.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let shim = Handle::open(line.trim().parse().unwrap()).unwrap();
        Self { root, shim }
    }

    fn look(self) -> (Chain, Ended) {
        let shim = Handle::reopen(self.shim.id()).unwrap();
        let chain = above(shim, None).unwrap();
        (chain, Ended(self.root))
    }
}

/// Ends the tree on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// Wraps a worker's program into a harness that starts it, with its own standard input, and waits for it.
fn harness(worker: &str) -> String {
    format!(
        "import subprocess, sys\nworker = {worker:?}\n\
         sys.exit(subprocess.Popen([sys.executable, '-c', worker]).wait())\n"
    )
}

/// A shim: it tells its number when it runs, then waits for the end of its input. Before that its command line
/// may still be empty, since exec(2) closes descriptors before it sets the arguments up.
const SHIM: &str = "SHIM = ['sh', '-c', 'echo $$; read line', 'shim']\n";

/// What a worker does last: wait for the end, then let the shim go.
const REST: &str = "sys.stdin.read()\nwire.close()\nshim.wait()\n";

/// The usual worker.
fn worker_with_a_pipe() -> String {
    format!(
        "import subprocess, sys\n{SHIM}shim = subprocess.Popen(SHIM, stdin=-1)\nwire = shim.stdin\n{REST}"
    )
}

fn pid_of(link: &Link) -> u32 {
    link.handle.id().pid
}

fn last_word(link: &Link) -> &str {
    link.process.command.last().map_or("", model::Foreign::raw)
}

#[test]
fn the_worker_holds_the_pipe_and_the_harness_stands_above_it() {
    let tree = Tree::start(&harness(&worker_with_a_pipe()));
    let root = tree.root.id();
    let (chain, _ended) = tree.look();

    let holder = chain.holder().unwrap();
    let shim = &chain.links()[0];
    assert_eq!(last_word(shim), "shim");
    assert_eq!(pid_of(holder), shim.handle.stat().ppid);
    assert_eq!(pid_of(&chain.above_holder()[0]), root);
    let roles: Vec<LinkRole> = chain.recorded().iter().map(|link| link.role).collect();
    assert_eq!(
        roles[..3],
        [LinkRole::Shim, LinkRole::Holder, LinkRole::Above]
    );
}

#[test]
fn what_a_shim_says_of_its_holder_is_taken_only_for_a_process_above_it_and_stays_its_word() {
    let tree = Tree::start(&harness(&worker_with_a_pipe()));
    let (seen, _ended) = tree.look();
    let shim = || Handle::reopen(&seen.links()[0].process.id).unwrap();
    let named = seen.holder().unwrap().process.id.clone();

    let told = reported(shim(), Some(&named)).unwrap();

    assert_eq!(told.holder().unwrap().process.id, named);
    let roles: Vec<LinkRole> = told.recorded().iter().map(|link| link.role).collect();
    assert_eq!(
        roles[..3],
        [LinkRole::Shim, LinkRole::HolderReported, LinkRole::Above]
    );
    assert_eq!(told.links().len(), seen.links().len(), "the chain is seen");
    let itself = seen.links()[0].process.id.clone();
    let later = ProcessId {
        start_ticks: named.start_ticks + 1,
        ..named
    };
    let stranger = Handle::open(1).unwrap().id().clone();
    for other in [itself, later, stranger] {
        let told = reported(shim(), Some(&other)).unwrap();
        assert_eq!(
            told.holder().unwrap_err(),
            &Incomplete::NotAbove { pid: other.pid }
        );
    }
    let told = reported(shim(), None).unwrap();
    assert_eq!(told.holder().unwrap_err(), &Incomplete::Unreported);
}

#[test]
fn the_peer_of_a_socketpair_is_its_holder() {
    let worker = format!(
        "import socket, subprocess, sys\n{SHIM}wire, far = socket.socketpair()\n\
         shim = subprocess.Popen(SHIM, stdin=far)\nfar.close()\n{REST}"
    );
    let (chain, _ended) = Tree::start(&harness(&worker)).look();

    let holder = pid_of(chain.holder().unwrap());

    assert_eq!(holder, chain.links()[0].handle.stat().ppid);
}

#[test]
fn a_shell_and_a_new_session_between_client_and_shim_do_not_end_the_chain() {
    // A shell gives its background jobs no input of its own, so the job takes it from a copy.
    let wrapper = "exec 3<&0; sh -c \"echo \\$\\$; read line\" shim <&3 3<&- & wait";
    let worker = format!(
        "import subprocess, sys\n\
         shim = subprocess.Popen(['sh', '-c', {wrapper:?}, 'wrapper'], stdin=-1, start_new_session=True)\n\
         wire = shim.stdin\n{REST}"
    );
    let (chain, _ended) = Tree::start(&harness(&worker)).look();

    let words: Vec<&str> = chain.links().iter().map(last_word).take(2).collect();
    assert_eq!(words, ["shim", "wrapper"]);
    let wrapper = &chain.links()[1];
    assert_eq!(wrapper.handle.stat().sid, pid_of(wrapper));
    assert_eq!(
        pid_of(chain.holder().unwrap()),
        pid_of(&chain.links()[2]),
        "the worker above the wrapper holds the wire"
    );
}

#[test]
fn the_chain_ends_with_the_first_session_leader_above_the_holder() {
    let outer = format!(
        "import subprocess, sys\ninner = {:?}\n\
         sys.exit(subprocess.Popen([sys.executable, '-c', inner], start_new_session=True).wait())\n",
        harness(&worker_with_a_pipe())
    );
    let tree = Tree::start(&outer);
    let outermost = tree.root.id();
    let (chain, _ended) = tree.look();

    let last = chain.links().last().unwrap();

    assert_eq!(last.handle.stat().sid, pid_of(last));
    assert_eq!(last.handle.stat().ppid, outermost);
    assert_eq!(chain.links().len(), 3);
}

#[test]
fn two_links_with_the_write_end_leave_the_ownership_incomplete() {
    let worker = format!(
        "import os, subprocess, sys\n{SHIM}shim = subprocess.Popen(SHIM, stdin=int(sys.argv[1]))\n\
         sys.stdin.read()\nos.close(int(sys.argv[2]))\nshim.wait()\n"
    );
    let harness = format!(
        "import os, subprocess, sys\nworker = {worker:?}\nread, write = os.pipe()\n\
         command = [sys.executable, '-c', worker, str(read), str(write)]\n\
         worker = subprocess.Popen(command, pass_fds=(read, write))\n\
         os.close(read)\nsys.stdin.read()\nos.close(write)\nworker.wait()\n"
    );
    let (chain, _ended) = Tree::start(&harness).look();

    let why = chain.holder().unwrap_err();

    assert!(
        matches!(why, Incomplete::Several { pids } if pids.len() == 2),
        "{why}"
    );
    assert!(chain.above_holder().is_empty());
}

#[test]
fn a_write_end_outside_of_the_chain_is_nobodys() {
    let worker = format!(
        "import subprocess, sys\n{SHIM}aside = [sys.executable, '-c', 'import sys; sys.stdin.read()']\n\
         shim = subprocess.Popen(SHIM, stdin=-1, stdout=-1)\nwire = shim.stdin\n\
         aside = subprocess.Popen(aside, pass_fds=(wire.fileno(),))\nwire.close()\n\
         print(shim.stdout.readline().decode(), flush=True)\nsys.stdin.read()\naside.wait()\nshim.wait()\n"
    );
    let (chain, _ended) = Tree::start(&harness(&worker)).look();

    assert_eq!(chain.holder().unwrap_err(), &Incomplete::Nobody);
}

#[test]
fn a_standard_input_that_nobody_feeds_is_named() {
    // In a subshell: some shells redirect their own input for as long as a simple command runs.
    let worker = "import os, subprocess, sys\nread, write = os.pipe()\nos.set_inheritable(read, True)\n\
         shim = subprocess.Popen(['sh', '-c', 'echo $$; (cat <&' + str(read) + '); true'], \
         stdin=subprocess.DEVNULL, close_fds=False)\n\
         sys.stdin.read()\nos.close(write)\nshim.wait()\n";
    let (chain, _ended) = Tree::start(&harness(worker)).look();

    let why = chain.holder().unwrap_err();

    assert!(
        matches!(why, Incomplete::NoWire { what } if what == "/dev/null"),
        "{why}"
    );
}

#[test]
fn a_shim_that_names_another_input_than_it_has_is_not_believed() {
    let tree = Tree::start(&harness(&worker_with_a_pipe()));
    let shim = Handle::reopen(tree.shim.id()).unwrap();
    let _ended = Ended(tree.root);

    let chain = above(shim, Some(1)).unwrap();

    let why = chain.holder().unwrap_err();
    assert!(
        matches!(why, Incomplete::OtherWire { claimed: 1, .. }),
        "{why}"
    );
}

fn look(pid: u32, holds: io::Result<bool>) -> Look {
    let index = usize::try_from(pid).unwrap();
    Look { index, pid, holds }
}

fn forbidden() -> io::Result<bool> {
    Err(io::ErrorKind::PermissionDenied.into())
}

#[test]
fn another_users_process_in_the_chain_hides_nothing_below_it() {
    let looks = [look(1, Ok(false)), look(2, Ok(true)), look(3, forbidden())];

    assert_eq!(choose(looks.into_iter()), Ok(2));
}

#[test]
fn where_only_unreadable_processes_can_be_the_holder_they_are_named() {
    let looks = [look(1, Ok(false)), look(2, forbidden())];

    let why = choose(looks.into_iter()).unwrap_err();

    assert_eq!(why, Incomplete::NobodyReadable { pids: vec![2] });
}
