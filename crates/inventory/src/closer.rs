//! A closer look at few processes: what they were started with, where they live, whom they talk to.

use std::{
    collections::{BTreeSet, HashMap},
    io,
};

use model::{Foreign, Known};
use sys::procfs::{File, Link};

use crate::{
    Access, Activity, Closer, Descriptor, Look, Snapshot, Source, Target,
    descriptor::numbered,
    pass::{entry, why},
    tcp, waits,
};

/// Looks closer at these processes of `snapshot`, which gets their full identities too.
///
/// One that has ended since, or whose number another process has now, keeps what was seen of it.
pub fn closer<S: Source>(source: &S, snapshot: &mut Snapshot, pids: &BTreeSet<u32>) {
    let mut seen_namespaces: BTreeSet<u64> = snapshot
        .tcp
        .iter()
        .map(|socket| socket.network_namespace)
        .collect();
    for pid in pids {
        if let Err(error) = look(source, snapshot, *pid, &mut seen_namespaces)
            && error.kind() != io::ErrorKind::NotFound
        {
            snapshot
                .unreadable
                .push(entry(Some(*pid), "closer look", &error));
        }
    }
    add_activity(source, snapshot);
    snapshot.complete = snapshot.unreadable.is_empty();
    snapshot.finished_at = source.now().wall;
}

fn look<S: Source>(
    source: &S,
    snapshot: &mut Snapshot,
    pid: u32,
    seen_namespaces: &mut BTreeSet<u64>,
) -> io::Result<()> {
    let Some(process) = snapshot.process_mut(pid) else {
        return Ok(());
    };
    if process.is_zombie() || process.kernel_thread || process.closer.is_some() {
        return Ok(());
    }
    let look = source.process(pid)?;
    let id = source.identity(pid)?;
    // The folder was open before the identity was taken and still answers after it: both are of one process.
    let stat = look.stat()?;
    if stat.start_ticks != process.id.start_ticks || !id.same(&process.id) || stat.state.is_dead() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let namespace = look.link(Link::NetworkNamespace).and_then(|text| {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        numbered(&text, b"net:[").ok_or_else(bad)
    });
    process.closer = Some(Closer {
        env_names: known(look.read(File::Environment).map(|content| names(&content))),
        cgroup: known(
            look.read(File::ControlGroup)
                .and_then(|content| cgroup(&content)),
        ),
        network_namespace: match &namespace {
            Ok(inode) => Known::Yes(*inode),
            Err(error) => Known::unknown(why(error)),
        },
        exe_id: known(look.exe_id()),
        withstands_term: known(
            look.read(File::Status)
                .and_then(|content| withstands_term(&content)),
        ),
        runnable_ms: look
            .read(File::SchedulerStatistics)
            .ok()
            .and_then(|content| waits::runnable_ms(&content)),
        waits: known(
            look.read(File::SystemCall)
                .and_then(|content| waits::parse(&content)),
        ),
    });
    let descriptors = match &mut process.descriptors {
        Known::Yes(descriptors) => descriptors.as_mut_slice(),
        Known::Unknown { .. } => &mut [],
    };
    for open in descriptors.iter_mut() {
        if let Ok(info) = look.descriptor_info(open.fd) {
            let is_socket = matches!(open.target, Target::Socket { .. } | Target::Kernel { .. });
            open.access = open.access.or((!is_socket).then(|| info.access.into()));
            open.close_on_exec = Some(info.close_on_exec);
            open.locked = info.locked;
        }
    }
    let input: Vec<(u32, u64)> = descriptors.iter().filter_map(read_pipe).collect();
    process.id = id;
    for (fd, inode) in input {
        probe_pipe(snapshot, &look, fd, inode);
    }
    if let Ok(namespace) = namespace
        && seen_namespaces.insert(namespace)
    {
        inet(&look, snapshot, pid, namespace);
    }
    Ok(())
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

/// Asks a pipe that the pass had no reason to ask, since a writer was in sight.
fn probe_pipe<L: Look>(snapshot: &mut Snapshot, look: &L, fd: u32, inode: u64) {
    let found = snapshot
        .pipes
        .binary_search_by_key(&inode, |pipe| pipe.inode);
    let Some(pipe) = found.ok().and_then(|at| snapshot.pipes.get_mut(at)) else {
        return;
    };
    if pipe.hung_up.value().is_none()
        && let Ok(probe) = look.probe_pipe(fd, inode)
    {
        pipe.hung_up = Known::Yes(probe.hung_up);
        pipe.unread_bytes = Known::Yes(probe.unread_bytes);
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

/// The path in version 2's hierarchy (cgroups(7)): the line that starts with `0::`.
fn cgroup(content: &[u8]) -> io::Result<Foreign> {
    let path = content
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"));
    path.map(Foreign::from_bytes)
        .ok_or_else(|| io::Error::other("no control group of version 2"))
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
    fn the_control_group_is_that_of_version_two() {
        let seen = cgroup(b"12:pids:/x\n0::/user.slice/app.scope\n").unwrap();

        assert_eq!(seen.raw(), "/user.slice/app.scope");
        assert!(cgroup(b"12:pids:/x\n").is_err());
    }
}
