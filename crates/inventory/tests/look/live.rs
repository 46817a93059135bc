//! The look at this very machine, with processes started for it.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, ChildStdin, Command, Stdio},
};

use inventory::{Access, Live, Process, Snapshot, Target, TcpState, closer, take};

/// A python program that says `ready` and then reads on; killed and reaped at the end.
struct Reader(Child);

impl Reader {
    fn start(stdin: Stdio, program: &str) -> Self {
        let child = Command::new("python3")
            .args(["-c", program, "--token=hunter2"])
            .env("SOME_TOKEN", "value-of-the-token")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = Self(child);
        let out = reader.0.stdout.as_mut().unwrap();
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        reader
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn take_stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a signal and nothing else, so that its end of the wire stays as it is.
const IGNORES_STDIN: &str = "import signal; print('ready', flush=True); signal.pause()";

fn look() -> Snapshot {
    take(&Live::open().unwrap()).unwrap()
}

fn find(snapshot: &Snapshot, pid: u32) -> &Process {
    snapshot.process(pid).unwrap()
}

fn stdin_inode(process: &Process) -> u64 {
    let stdin = process.descriptor(0).unwrap();
    let (Target::Pipe { inode } | Target::Socket { inode }) = stdin.target else {
        panic!("{stdin:?}");
    };
    inode
}

#[test]
fn a_process_whose_first_thread_has_ended_lives_and_its_descriptors_are_not_known() {
    let script = "import ctypes, threading, time\n\
        threading.Thread(target=time.sleep, args=(1000,)).start()\n\
        print('ready', flush=True)\n\
        exit_this_thread = ctypes.CDLL(None).syscall\n\
        exit_this_thread({'x86_64': 60}.get(__import__('os').uname().machine, 93), 0)\n";
    let hollow = Reader::start(Stdio::null(), script);
    let is_hollow = |seen: &Snapshot| seen.process(hollow.pid()).unwrap().stat.starts_with('Z');
    let mut seen = look();
    while !is_hollow(&seen) {
        seen = look();
    }

    let process = seen.process(hollow.pid()).unwrap();

    assert!(!process.is_zombie(), "{}", process.stat);
    let why = process.descriptors.why();
    assert_eq!(why, Some("its first thread has ended"));
    assert!(!seen.complete && !seen.all_holders_seen());
}

#[test]
fn every_field_of_a_process_is_there_and_its_secret_is_not() {
    let reader = Reader::start(Stdio::piped(), IGNORES_STDIN);

    let mut snapshot = look();
    closer(
        &Live::open().unwrap(),
        &mut snapshot,
        &BTreeSet::from([reader.pid()]),
    );
    let seen = find(&snapshot, reader.pid());

    assert_eq!(seen.ppid, std::process::id());
    assert!(seen.pgid > 0 && seen.rss_bytes > 0 && seen.threads == 1);
    assert!(seen.exe.value().unwrap().raw().contains("python"));
    assert!(seen.cwd.value().unwrap().raw().ends_with("inventory"));
    assert_eq!(seen.arguments().last(), Some("--token=[redacted:7]"));
    let more = seen.closer.as_ref().unwrap();
    let names = more.env_names.value().unwrap();
    assert!(names.iter().any(|name| name.raw() == "SOME_TOKEN"));
    let text = serde_json::to_string(&snapshot).unwrap();
    assert!(!text.contains("value-of-the-token"));
    assert!(!text.contains("hunter2"));
}

#[test]
fn the_writer_of_a_pipe_is_named_with_its_descriptor_and_its_end_is_proven() {
    let mut reader = Reader::start(Stdio::piped(), IGNORES_STDIN);
    let mut stdin = reader.take_stdin();
    stdin.write_all(b"never read").unwrap();

    let mut held = look();
    closer(
        &Live::open().unwrap(),
        &mut held,
        &BTreeSet::from([reader.pid()]),
    );
    drop(stdin);
    let closed = look();

    let pipe = held.pipe(stdin_inode(find(&held, reader.pid()))).unwrap();
    let writers: Vec<u32> = pipe.writers().map(|writer| writer.pid).collect();
    assert_eq!(writers, [std::process::id()]);
    assert_eq!(pipe.hung_up.value(), Some(&false));
    assert_eq!(pipe.unread_bytes.value(), Some(&10));
    let pipe = closed
        .pipe(stdin_inode(find(&closed, reader.pid())))
        .unwrap();
    assert_eq!(pipe.writers().count(), 0);
    assert_eq!(pipe.hung_up.value(), Some(&true));
}

#[test]
fn a_socketpair_names_its_other_end_and_then_that_it_is_closed() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let reader = Reader::start(Stdio::from(OwnedFd::from(theirs)), IGNORES_STDIN);

    let held = look();
    drop(ours);
    let closed = look();

    let socket = held.socket(stdin_inode(find(&held, reader.pid()))).unwrap();
    let peer = held.socket(socket.peer.unwrap()).unwrap();
    let holders: Vec<u32> = peer.holders.iter().map(|holder| holder.pid).collect();
    assert_eq!(holders, [std::process::id()]);
    let socket = closed
        .socket(stdin_inode(find(&closed, reader.pid())))
        .unwrap();
    assert_eq!(socket.peer, Some(0));
    assert!(socket.no_more_input);
}

#[test]
fn a_sibling_that_inherited_the_write_end_is_in_the_list() {
    let mut reader = Reader::start(Stdio::piped(), IGNORES_STDIN);
    let stdin = reader.take_stdin();
    let sibling = Reader::start(Stdio::from(OwnedFd::from(stdin)), IGNORES_STDIN);

    let snapshot = look();

    let pipe = snapshot
        .pipe(stdin_inode(find(&snapshot, reader.pid())))
        .unwrap();
    let writers: Vec<(u32, u32, Access)> = pipe
        .writers()
        .map(|writer| (writer.pid, writer.fd, writer.access))
        .collect();
    assert_eq!(writers, [(sibling.pid(), 0, Access::Write)]);
}

#[test]
fn whoever_holds_a_named_pipe_is_found_under_whatever_name_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo")
        .args([path("one"), path("beside")])
        .status();
    assert!(made.unwrap().success());
    std::fs::hard_link(path("one"), path("two")).unwrap();
    let both = |name: &str| {
        let mut opening = std::fs::File::options();
        opening.read(true).write(true).open(path(name)).unwrap()
    };
    let ours = both("two");
    let _beside = both("beside");
    let reader = Reader::start(
        Stdio::from(std::fs::File::open(path("one")).unwrap()),
        IGNORES_STDIN,
    );
    let mut snapshot = look();
    let named = |snapshot: &Snapshot, pid| find(snapshot, pid).descriptor(0).unwrap().named_pipe;

    closer(
        &Live::open().unwrap(),
        &mut snapshot,
        &BTreeSet::from([std::process::id()]),
    );
    let before = named(&snapshot, reader.pid());
    closer(
        &Live::open().unwrap(),
        &mut snapshot,
        &BTreeSet::from([reader.pid()]),
    );

    assert_eq!(before, None, "nobody asked for it");
    let pipe = named(&snapshot, reader.pid()).unwrap();
    let mut holders: Vec<(u32, u32, Access)> = snapshot
        .named_pipe(pipe)
        .map(|one| (one.pid, one.fd, one.access))
        .collect();
    holders.sort_unstable_by_key(|(pid, ..)| *pid != reader.pid());
    let own = u32::try_from(std::os::fd::AsRawFd::as_raw_fd(&ours)).unwrap();
    assert_eq!(
        holders,
        [
            (reader.pid(), 0, Access::Read),
            (std::process::id(), own, Access::ReadWrite)
        ]
    );
    let open = find(&snapshot, std::process::id()).descriptor(own).unwrap();
    assert_eq!(open.close_on_exec, Some(true));
}

#[test]
fn a_writer_of_a_named_pipe_is_looked_at_closer_with_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let mut opening = std::fs::File::options();
    let both = opening.read(true).write(true).open(&path).unwrap();
    let script = format!(
        "import signal; end = open({:?}, 'w'); print('ready', flush=True); signal.pause()",
        path.display().to_string()
    );
    let writer = Reader::start(Stdio::null(), &script);
    let reader = Reader::start(
        Stdio::from(std::fs::File::open(&path).unwrap()),
        IGNORES_STDIN,
    );
    drop(both);
    let mut snapshot = look();

    closer(
        &Live::open().unwrap(),
        &mut snapshot,
        &BTreeSet::from([reader.pid()]),
    );

    assert!(find(&snapshot, reader.pid()).closer.is_some());
    assert!(find(&snapshot, writer.pid()).closer.is_some());
    assert!(find(&snapshot, std::process::id()).closer.is_none());
}

#[test]
fn a_listener_is_found_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = std::process::id();

    let mut snapshot = look();
    closer(
        &Live::open().unwrap(),
        &mut snapshot,
        &BTreeSet::from([own]),
    );

    let address = listener.local_addr().unwrap();
    let seen = snapshot
        .tcp
        .iter()
        .find(|socket| socket.local == address)
        .unwrap();
    assert_eq!(seen.state, TcpState::Listen);
    let held = find(&snapshot, own)
        .open()
        .any(|open| open.target == Target::Socket { inode: seen.inode });
    assert!(held);
}

#[test]
fn a_zombie_is_a_process_without_a_program_and_nothing_of_it_counts_as_unreadable() {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let handle = sys::process::Handle::open(pid);
    if let Ok(handle) = handle {
        assert!(
            handle
                .wait_exit(std::time::Duration::from_secs(10))
                .unwrap()
        );
    }

    let snapshot = look();
    child.wait().unwrap();

    assert!(find(&snapshot, pid).is_zombie());
    assert!(snapshot.unreadable.iter().all(|gap| gap.pid != Some(pid)));
}

#[test]
fn a_snapshot_reads_back_as_it_was_written() {
    let snapshot = look();

    let text = serde_json::to_string(&snapshot).unwrap();
    let back: Snapshot = serde_json::from_str(&text).unwrap();

    assert_eq!(back, snapshot);
}

#[test]
fn a_look_costs_sixteen_calls_a_process_and_one_or_two_a_descriptor() {
    // One pipe that all of them hold: the costly case of those who ask per descriptor who else has it.
    let (shared, _reader) = {
        let (reader, writer) = std::io::pipe().unwrap();
        (writer, reader)
    };
    let children: Vec<Reader> = (0..60).map(|_| Reader(held(&shared))).collect();

    let before = sys::procfs::calls();
    let snapshot = look();
    let calls = sys::procfs::calls() - before;

    let of_pipes = |process: &Process| {
        let pipes = process
            .open()
            .filter(|open| matches!(open.target, Target::Pipe { .. }));
        pipes.count()
    };
    let allowed: usize = snapshot
        .processes
        .iter()
        .map(|process| 16 + process.open().count() + of_pipes(process))
        .sum();
    // A pipe without a writer in sight is asked itself; and processes come and go under the look.
    let unwritten = snapshot
        .pipes
        .iter()
        .filter(|pipe| pipe.writers().next().is_none());
    let allowed = allowed + 8 * unwritten.count() + 200;
    assert!(
        calls <= u64::try_from(allowed).unwrap(),
        "{calls} calls for {} processes, {allowed} allowed",
        snapshot.processes.len()
    );
    let inode = shared_inode(&snapshot, children[0].pid());
    let pipe = snapshot.pipe(inode).unwrap();
    assert_eq!(pipe.writers().count(), children.len() + 1);
}

/// A shell with the end at its standard error.
fn held(shared: &std::io::PipeWriter) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", "echo ready; read x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(shared.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.as_mut().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    child
}

fn shared_inode(snapshot: &Snapshot, pid: u32) -> u64 {
    let open = find(snapshot, pid).descriptor(2).unwrap();
    let Target::Pipe { inode } = open.target else {
        panic!("{open:?}");
    };
    inode
}
