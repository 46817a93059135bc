//! A closer look at few processes: what they were started with, where they live, whom they talk to.

use std::{collections::BTreeSet, io};

use model::{Foreign, Known};
use sys::procfs::{File, Link};

use crate::{
    Closer, Look, Snapshot, Source, Target,
    descriptor::numbered,
    pass::{entry, why},
    tcp,
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
    });
    let descriptors = match &mut process.descriptors {
        Known::Yes(descriptors) => descriptors.as_mut_slice(),
        Known::Unknown { .. } => &mut [],
    };
    for open in descriptors {
        let has_locks = matches!(open.target, Target::File { .. });
        let is_wire = matches!(open.target, Target::Pipe { .. } | Target::Socket { .. });
        if (has_locks || is_wire)
            && let Ok(info) = look.descriptor_info(open.fd)
        {
            open.close_on_exec = Some(info.close_on_exec);
            open.locked = info.locked;
        }
    }
    process.id = id;
    if let Ok(namespace) = namespace
        && seen_namespaces.insert(namespace)
    {
        for file in [File::Tcp4, File::Tcp6] {
            match look.read(file) {
                Ok(content) => snapshot.tcp.extend(tcp::parse(&content, namespace)),
                // A kernel without IPv6 has no such file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => snapshot
                    .unreadable
                    .push(entry(Some(pid), "TCP sockets", &error)),
            }
        }
    }
    Ok(())
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
