//! What hangs below a connected client: written beside the log, so that servers that are not ours, and what
//! they leave behind, can be attributed after the client is gone.
//!
//! Looked at when a client connects and every two seconds from then on; written when something new has stayed
//! for two looks, and every thirty seconds. Nobody is judged here and nothing is read but what every process
//! of the same user may read. What a client starts and loses between two looks is not in it.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use model::{ChildSeen, Clock, ConnectionId, Known, ProcessId, Wall, hex};
use sha2::{Digest, Sha256};
use sys::{
    children::descendants,
    process::Handle,
    procfs::{File, ProcFs},
};

use crate::daemon::Daemon;

/// How often it is looked. Longer, and more is lost at a crash; shorter, and an idle daemon is not idle.
const EVERY: Duration = Duration::from_secs(2);

/// After how many looks without news the times are written again: thirty seconds.
const LOOKS_PER_WRITE: u32 = 15;

/// A client with more below it is recorded in part: the record stays small enough for every reader.
const MOST: usize = 256;

/// Bytes of a child's command line: with as many children as there may be, every reader still takes the record.
const MOST_OF_A_COMMAND: usize = 1024;

/// Keeps the census of one connection until its client ends or the connection does, whoever is first.
pub(crate) async fn keep(daemon: Arc<Daemon>, connection: ConnectionId, holder: ProcessId) {
    let mut census = Census::default();
    let mut since_written = LOOKS_PER_WRITE;
    loop {
        let now = daemon.clock.now().wall;
        let of = holder.clone();
        let looked = tokio::task::spawn_blocking(move || look(&of, now)).await;
        let Ok(Ok(seen)) = looked else {
            return;
        };
        since_written += 1;
        let news = census.take(seen);
        if news || since_written >= LOOKS_PER_WRITE {
            since_written = 0;
            daemon
                .launches
                .census(connection, census.children(), &daemon.notes);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Census {
    first_look_done: bool,
    children: BTreeMap<ProcessId, ChildSeen>,
    /// Seen once: most of those are tools that run for a moment.
    fresh: BTreeMap<ProcessId, ChildSeen>,
}

impl Census {
    /// Takes in a look and tells whether there is something to write down.
    fn take(&mut self, seen: Vec<ChildSeen>) -> bool {
        let mut news = false;
        let mut fresh = BTreeMap::new();
        for child in seen {
            let id = child.process.id.clone();
            if let Some(known) = self.children.get_mut(&id) {
                known.last_seen = child.last_seen;
            } else if let Some(before) = self.fresh.remove(&id) {
                let first_seen = before.first_seen;
                self.children.insert(
                    id,
                    ChildSeen {
                        first_seen,
                        ..child
                    },
                );
                news = true;
            } else if self.first_look_done {
                fresh.insert(id, child);
            } else {
                self.children.insert(id, child);
                news = true;
            }
        }
        self.fresh = fresh;
        self.first_look_done = true;
        self.forget();
        news
    }

    /// Forgets those that were seen last the longest ago, if there are too many.
    fn forget(&mut self) {
        while self.children.len() > MOST {
            let oldest = self.children.values().min_by_key(|child| child.last_seen);
            let Some(id) = oldest.map(|child| child.process.id.clone()) else {
                return;
            };
            self.children.remove(&id);
        }
    }

    fn children(&self) -> Vec<ChildSeen> {
        self.children.values().cloned().collect()
    }
}

/// Looks once; an error means that the client is gone or cannot be looked below.
fn look(holder: &ProcessId, now: Wall) -> io::Result<Vec<ChildSeen>> {
    let held = Handle::reopen(holder)?;
    let proc = ProcFs::open()?;
    let below = descendants(holder.pid, MOST)?;
    // What was listed below it is below it only if it still lives.
    if !held.is_alive()? {
        return Err(io::ErrorKind::NotFound.into());
    }
    let own = std::process::id();
    let found = below.into_iter().filter(|pid| *pid != own);
    Ok(found
        .filter_map(|pid| child(&proc, pid, now).ok())
        .collect())
}

fn child(proc: &ProcFs, pid: u32, now: Wall) -> io::Result<ChildSeen> {
    let handle = Handle::open(pid)?;
    let folder = proc.process(pid)?;
    let line = folder.read(File::CommandLine)?;
    let pipes = match folder.descriptors() {
        Ok(wires) => {
            let first = wires.iter().filter(|open| open.fd < 2);
            Known::Yes(first.filter_map(|open| inode(&open.target)).collect())
        }
        Err(error) => Known::unknown(error.to_string()),
    };
    // All of it is of the process that the handle holds, since that lives at the end of `describe`.
    Ok(ChildSeen {
        process: handle.describe()?.shortened(MOST_OF_A_COMMAND),
        ppid: handle.stat().ppid,
        pgid: handle.stat().pgid,
        argv_sha256: hex(&Sha256::digest(line)),
        pipes,
        first_seen: now,
        last_seen: now,
    })
}

/// The number in `pipe:[N]` and `socket:[N]`.
fn inode(target: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(target).ok()?;
    let (kind, rest) = text.split_once(":[")?;
    let number = rest.strip_suffix(']')?;
    matches!(kind, "pipe" | "socket")
        .then(|| number.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: u32, at: u64) -> ChildSeen {
        let id = ProcessId {
            boot_id: "boot".to_owned(),
            pid,
            start_ticks: 1,
            pidfd_inode: None,
        };
        ChildSeen {
            process: model::ProcessRef {
                id,
                command: Vec::new(),
                exe: None,
                exe_id: None,
            },
            ppid: 1,
            pgid: 1,
            argv_sha256: String::new(),
            pipes: Known::Yes(Vec::new()),
            first_seen: Wall::from_millis(at),
            last_seen: Wall::from_millis(at),
        }
    }

    #[test]
    fn what_is_there_at_connect_is_written_at_once_and_what_comes_later_once_it_stays() {
        let mut census = Census::default();

        assert!(census.take(vec![seen(7, 1)]));
        assert!(!census.take(vec![seen(7, 2), seen(8, 2)]));
        assert_eq!(census.children().len(), 1);
        assert!(census.take(vec![seen(7, 3), seen(8, 3)]));

        let written = census.children();
        assert_eq!(written.len(), 2);
        assert_eq!(written[1].first_seen, Wall::from_millis(2));
        assert!(
            written
                .iter()
                .all(|child| child.last_seen == Wall::from_millis(3))
        );
    }

    #[test]
    fn what_runs_for_a_moment_only_is_never_written() {
        let mut census = Census::default();
        census.take(Vec::new());

        for at in 1..50 {
            assert!(!census.take(vec![seen(100 + at, u64::from(at))]));
        }
        assert!(census.children().is_empty());
    }

    #[test]
    fn of_too_many_the_longest_gone_are_forgotten() {
        let mut census = Census::default();
        let many = u32::try_from(MOST).unwrap();
        census.take((0..many).map(|pid| seen(1000 + pid, 1)).collect());

        for at in [2, 3] {
            census.take((0..10).map(|pid| seen(9000 + pid, at)).collect());
        }

        assert_eq!(census.children().len(), MOST);
        assert!(
            census
                .children()
                .iter()
                .any(|child| child.process.id.pid == 9009)
        );
    }

    #[test]
    fn a_look_names_a_child_by_its_digest_and_its_wires() {
        let mut cat = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let own = Handle::open(std::process::id()).unwrap();

        let found = look(own.id(), Wall::from_millis(5)).unwrap();

        let child = found
            .iter()
            .find(|child| child.process.id.pid == cat.id())
            .unwrap();
        assert_eq!(child.argv_sha256.len(), 64);
        assert_eq!(child.pipes.value().map(Vec::len), Some(2));
        assert_eq!(child.ppid, std::process::id());
        drop(cat.stdin.take());
        cat.wait().unwrap();
    }
}
