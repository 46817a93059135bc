//! A closer look at few processes: what they were started with, where they live, whom they talk to.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
};

use model::{Foreign, Known, ProcessId, Wall};
use sys::procfs::{DescriptorInfo, File, Link, PipeProbe};

use crate::{
    Access, Activity, Closer, Descriptor, Look, Snapshot, Source, Target,
    crew::{self, Memory},
    descriptor::numbered,
    named,
    pass::{entry, why},
    tcp, waits,
};

/// Looks closer at these processes of `snapshot`, which gets their full identities too.
///
/// If one has a named pipe for its input or output, whoever else holds that is found, and looked at closer as well.
/// One that has ended since, or whose number another process has now, keeps what was seen of it. One whose
/// memory the kernel does not answer for is looked at without it.
pub fn closer<S: Source>(source: &S, snapshot: &mut Snapshot, pids: &BTreeSet<u32>) {
    let holders = named::find(source, snapshot, pids);
    let pids = &(pids | &holders);
    let wanted: BTreeMap<u32, Wanted> = pids
        .iter()
        .filter_map(|pid| Some((*pid, wanted(snapshot, *pid)?)))
        .collect();
    for (pid, seen) in all(source, wanted) {
        match seen {
            Ok(seen) => put(snapshot, pid, seen),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => snapshot
                .unreadable
                .push(entry(Some(pid), "closer look", &error)),
        }
    }
    add_inet(source, snapshot, pids);
    add_activity(source, snapshot);
    snapshot.complete = snapshot.unreadable.is_empty();
    snapshot.finished_at = source.now().wall;
}

/// What to look at, as the look before saw it.
struct Wanted {
    id: ProcessId,
    descriptors: Vec<u32>,
    /// Pipes it reads from that nobody has asked yet, with the descriptor to ask through.
    pipes: Vec<(u32, u64)>,
}

/// What a closer look at one process showed.
struct Seen {
    id: ProcessId,
    details: Closer,
    descriptors: Vec<(u32, DescriptorInfo)>,
    pipes: Vec<(u64, PipeProbe)>,
    /// Its memory did not answer.
    silent: bool,
}

fn wanted(snapshot: &Snapshot, pid: u32) -> Option<Wanted> {
    let process = snapshot.process(pid)?;
    if process.is_zombie() || process.kernel_thread || process.closer.is_some() {
        return None;
    }
    let unasked = |(_, inode): &(u32, u64)| {
        let pipe = snapshot.pipe(*inode);
        pipe.is_some_and(|pipe| pipe.hung_up.value().is_none())
    };
    Some(Wanted {
        id: process.id.clone(),
        descriptors: process.open().map(|open| open.fd).collect(),
        pipes: process
            .open()
            .filter_map(read_pipe)
            .filter(unasked)
            .collect(),
    })
}

/// Looks at these, in the order of their numbers.
fn all<S: Source>(
    source: &S,
    wanted: BTreeMap<u32, Wanted>,
) -> impl Iterator<Item = (u32, io::Result<Seen>)> {
    let pids = wanted.keys().copied().collect();
    let source = source.clone();
    let lag = scheduler_lag(&source).ok();
    crew::looks(pids, move |pid, memory| {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        look(
            &source,
            pid,
            wanted.get(&pid).ok_or_else(gone)?,
            memory,
            lag,
        )
    })
}

fn look<S: Source>(
    source: &S,
    pid: u32,
    wanted: &Wanted,
    memory: Memory,
    lag: Option<u64>,
) -> io::Result<Seen> {
    let look = source.process(pid)?;
    let id = source.identity(pid)?;
    // The folder was open before the identity was taken and still answers after it: both are of one process.
    let stat = look.stat()?;
    if stat.start_ticks != wanted.id.start_ticks || !id.same(&wanted.id) || stat.state.is_dead() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let info = |fd: &u32| Some((*fd, look.descriptor_info(*fd).ok()?));
    let ask = |(fd, inode): &(u32, u64)| Some((*inode, look.probe_pipe(*fd, *inode).ok()?));
    let wakers = if stat.threads > 1 {
        known(look.threads_system_calls(MOST_THREADS).map(waits::wakers))
    } else {
        Known::Yes(Vec::new())
    };
    Ok(Seen {
        id,
        details: Closer {
            last_ran: known(last_ran(source, &look, lag)),
            wakers,
            ..details(&look, memory)
        },
        descriptors: wanted.descriptors.iter().filter_map(info).collect(),
        pipes: wanted.pipes.iter().filter_map(ask).collect(),
        silent: memory == Memory::Left,
    })
}

fn details<L: Look>(look: &L, memory: Memory) -> Closer {
    let namespace = |link, start: &[u8]| {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        known(
            look.link(link)
                .and_then(|text| numbered(&text, start).ok_or_else(bad)),
        )
    };
    let status = look.read(File::Status);
    let of_status = |error: &io::Error| io::Error::new(error.kind(), why(error));
    let status = || status.as_ref().map_err(of_status);
    let environment = memory.read(|| look.read(File::Environment));
    let runnable = look.read(File::SchedulerStatistics);
    Closer {
        env_names: known(environment.map(|content| names(&content))),
        cgroup: known(
            look.read(File::ControlGroup)
                .and_then(|content| cgroup(&content)),
        ),
        network_namespace: namespace(Link::NetworkNamespace, b"net:["),
        pid_namespace: namespace(Link::PidNamespace, b"pid:["),
        mount_namespace: namespace(Link::MountNamespace, b"mnt:["),
        user_namespace: namespace(Link::UserNamespace, b"user:["),
        namespace_pids: known(status().and_then(|content| namespace_pids(content))),
        exe_id: known(memory.read(|| look.exe_id())),
        last_ran: Known::unknown("not asked"),
        wakers: Known::unknown("not asked"),
        withstands_term: known(status().and_then(|content| withstands_term(content))),
        runnable_ms: runnable
            .ok()
            .and_then(|content| waits::runnable_ms(&content)),
        waits: known(
            memory
                .read(|| look.read(File::SystemCall))
                .and_then(|content| waits::parse(&content)),
        ),
    }
}

/// How far the scheduler's clock is behind the one that counts from boot: our own thread runs now on both.
fn scheduler_lag<S: Source>(source: &S) -> io::Result<u64> {
    let ran = source.process(std::process::id())?.last_ran()?;
    Ok(source.now().boot_ms.saturating_sub(ran))
}

fn last_ran<S: Source>(source: &S, look: &S::Process, lag: Option<u64>) -> io::Result<Wall> {
    let lag = lag.ok_or(io::ErrorKind::Unsupported)?;
    let ran = look.last_ran()?;
    let now = source.now();
    let ago = now.boot_ms.saturating_sub(ran.saturating_add(lag));
    Ok(Wall::from_millis(now.wall.millis().saturating_sub(ago)))
}

/// Adds to a look what a closer one showed.
fn put(snapshot: &mut Snapshot, pid: u32, seen: Seen) {
    if seen.silent {
        let gap = entry(Some(pid), "environment", &crew::no_answer());
        snapshot.unreadable.push(gap);
    }
    for (inode, probe) in seen.pipes {
        if let Some(pipe) = snapshot.pipe_mut(inode) {
            pipe.hung_up = Known::Yes(probe.hung_up);
            pipe.unread_bytes = Known::Yes(probe.unread_bytes);
        }
    }
    let Some(process) = snapshot.process_mut(pid) else {
        return;
    };
    process.id = seen.id;
    process.closer = Some(seen.details);
    let Known::Yes(descriptors) = &mut process.descriptors else {
        return;
    };
    // Both are in the order of their numbers.
    let mut infos = seen.descriptors.into_iter().peekable();
    for open in descriptors {
        if let Some((_, info)) = infos.next_if(|(fd, _)| *fd == open.fd) {
            let is_socket = matches!(open.target, Target::Socket { .. } | Target::Kernel { .. });
            open.access = open.access.or((!is_socket).then(|| info.access.into()));
            open.close_on_exec = Some(info.close_on_exec);
            open.locked = info.locked;
            open.wakes_in_ms = info.wakes_in_ms;
        }
    }
}

/// Reads the sockets of every network namespace that was not read yet, through one of its processes.
fn add_inet<S: Source>(source: &S, snapshot: &mut Snapshot, pids: &BTreeSet<u32>) {
    let mut read: BTreeSet<u64> = snapshot
        .tcp
        .iter()
        .map(|socket| socket.network_namespace)
        .collect();
    for pid in pids {
        let details = snapshot.process(*pid).and_then(|one| one.closer.as_ref());
        let namespace = details.and_then(|details| details.network_namespace.value());
        if let Some(namespace) = namespace.copied()
            && !read.contains(&namespace)
            && holds_others(snapshot, *pid)
            && let Ok(look) = source.process(*pid)
        {
            read.insert(namespace);
            inet(&look, snapshot, *pid, namespace);
        }
    }
}

/// Reads the sockets of one network namespace through one of its processes.
fn inet<L: Look>(look: &L, snapshot: &mut Snapshot, pid: u32, namespace: u64) {
    for file in [File::Tcp4, File::Tcp6, File::Udp4, File::Udp6] {
        match look.read(file) {
            Ok(content) if matches!(file, File::Udp4 | File::Udp6) => {
                snapshot.udp.extend(tcp::parse_udp(&content, namespace));
            }
            Ok(content) => snapshot.tcp.extend(tcp::parse(&content, namespace)),
            // A kernel without IPv6 has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let what = "TCP and UDP sockets";
                snapshot.unreadable.push(entry(Some(pid), what, &error));
            }
        }
    }
}

/// Tells whether it holds sockets that are no unix sockets: those of the others are nobody's here.
fn holds_others(snapshot: &Snapshot, pid: u32) -> bool {
    let mut open = snapshot
        .process(pid)
        .into_iter()
        .flat_map(crate::Process::open);
    open.any(|open| match open.target {
        Target::Socket { inode } => snapshot.socket(inode).is_none(),
        Target::Pipe { .. }
        | Target::Null
        | Target::Terminal { .. }
        | Target::File { .. }
        | Target::Kernel { .. } => false,
    })
}

/// Adds what the connections of our own network namespace have done; of others the kernel tells us nothing.
fn add_activity<S: Source>(source: &S, snapshot: &mut Snapshot) {
    if snapshot.tcp.is_empty() {
        return;
    }
    let listed = source.tcp_activity().unwrap_or_default();
    let activity: HashMap<u64, Activity> = listed
        .into_iter()
        .map(|one| {
            let activity = Activity {
                sent_ms_ago: one.sent_ms_ago,
                received_ms_ago: one.received_ms_ago,
                bytes_sent: one.bytes_sent,
                bytes_received: one.bytes_received,
            };
            (one.inode, activity)
        })
        .collect();
    for socket in &mut snapshot.tcp {
        // 0 is the inode of all that no process holds.
        socket.activity = activity
            .get(&socket.inode)
            .filter(|_| socket.inode != 0)
            .copied();
    }
}

/// A pipe that is read from, and so may be asked.
fn read_pipe(open: &Descriptor) -> Option<(u32, u64)> {
    match open.target {
        Target::Pipe { inode } if open.access.is_some_and(Access::reads) => Some((open.fd, inode)),
        Target::Pipe { .. }
        | Target::Socket { .. }
        | Target::Null
        | Target::Terminal { .. }
        | Target::File { .. }
        | Target::Kernel { .. } => None,
    }
}

fn known<T>(read: io::Result<T>) -> Known<T> {
    read.map_or_else(|error| Known::unknown(why(&error)), Known::Yes)
}

/// Cuts every variable at its `=` before anything is kept of it.
fn names(environ: &[u8]) -> Vec<Foreign> {
    let name = |variable: &[u8]| {
        let end = variable.iter().position(|byte| *byte == b'=')?;
        variable.get(..end).map(Foreign::from_bytes)
    };
    let mut names: Vec<Foreign> = environ
        .split(|byte| *byte == 0)
        .filter_map(name)
        .filter(|name| !name.raw().is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The path in version 2's hierarchy (cgroups(7)): the line that starts with `0::`. Where that is not in use, the one
/// that the service manager or the container's engine made in version 1's.
fn cgroup(content: &[u8]) -> io::Result<Foreign> {
    // `ID:CONTROLLERS:PATH`
    let of = |controllers: &[u8]| {
        let lines = content.split(|byte| *byte == b'\n');
        let mut fields = lines.map(|line| line.splitn(3, |byte| *byte == b':').skip(1));
        fields.find_map(|mut line| (line.next()? == controllers).then(|| line.next())?)
    };
    let unified = of(b"");
    let used = unified.filter(|path| *path != b"/");
    let path = used.or_else(|| of(b"name=systemd")).or(unified);
    path.map(Foreign::from_bytes)
        .ok_or_else(|| io::Error::other("no control group that a unit or a container would have"))
}

/// Whether SIGTERM is among the ignored or blocked signals (proc_pid_status(5): bit n-1 is signal n).
fn withstands_term(content: &[u8]) -> io::Result<bool> {
    let text = String::from_utf8_lossy(content);
    let mask = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let mask = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        mask.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    let term = 1 << (SIGTERM - 1);
    Ok((mask("SigIgn:")? | mask("SigBlk:")?) & term != 0)
}

/// The numbers it has, from the reader's namespace to its own (proc_pid_status(5), `NSpid`).
fn namespace_pids(content: &[u8]) -> io::Result<Vec<u32>> {
    let text = String::from_utf8_lossy(content);
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let pids = line.map(|line| line.split_ascii_whitespace().map(str::parse).collect());
    match pids {
        Some(Ok(pids)) => Ok(pids),
        Some(Err(_)) | None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Threads of one process whose waits are read.
const MOST_THREADS: usize = 64;

/// signal(7), the same on all architectures.
const SIGTERM: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_environment_only_names_are_kept() {
        let seen = names(b"TOKEN=ghp_secret\0PATH=/bin\0junk\0=odd\0\0");

        let seen: Vec<&str> = seen.iter().map(Foreign::raw).collect();
        assert_eq!(seen, ["PATH", "TOKEN"]);
    }

    #[test]
    fn a_process_withstands_term_if_it_ignores_or_blocks_it() {
        let status = |blocked: u64, ignored: u64| {
            let text = format!("Name:\tx\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n");
            withstands_term(text.as_bytes()).unwrap()
        };

        assert!(status(0x4000, 0) && status(0, 0x4000));
        assert!(!status(0x2000, 0x8001));
        assert!(withstands_term(b"nonsense").is_err());
    }

    #[test]
    fn a_process_in_a_namespace_has_a_number_of_each() {
        let pids = |line: &str| namespace_pids(format!("Name:\tx\n{line}\n").as_bytes());

        assert_eq!(pids("NSpid:\t4242\t7\t1").unwrap(), [4242, 7, 1]);
        assert!(pids("NSpid:\tx").is_err() && pids("Pid:\t7").is_err());
    }

    #[test]
    fn the_control_group_is_that_of_version_two_or_the_one_that_a_manager_made() {
        let seen = cgroup(b"12:pids:/x\n0::/user.slice/app.scope\n").unwrap();
        let older = cgroup(b"12:pids:/x\n1:name=systemd:/docker/0123\n0::/\n").unwrap();
        let none = cgroup(b"12:pids:/x\n0::/\n").unwrap();

        assert_eq!(seen.raw(), "/user.slice/app.scope");
        assert_eq!((older.raw(), none.raw()), ("/docker/0123", "/"));
        assert!(cgroup(b"12:pids:/x\n").is_err());
    }
}
