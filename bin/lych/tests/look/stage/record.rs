//! The census of clients, as the daemon would have written it.

use std::fs;

use inventory::Live;
use model::{
    ChainLink, ChildSeen, ConnectionId, LaunchRecord, LinkRole, ProcessId, ProcessRef, SessionId,
    Wall,
};
use sys::process::Handle;

use super::{Stage, Troupe};

impl Stage {
    /// Writes the census of these clients as the daemon would have; of K18's, with another process's start.
    pub(crate) fn record(&self, subject: &Troupe, twin: Option<&Troupe>, recycled: bool) {
        let snapshot = inventory::take(&Live::open().unwrap()).unwrap();
        let folder = self.path("home").join("launches");
        fs::create_dir_all(&folder).unwrap();
        for (number, troupe) in [Some(subject), twin].into_iter().flatten().enumerate() {
            let Ok(client) = Handle::open(troupe.pid("client")) else {
                continue;
            };
            let holder = client.describe().unwrap();
            let mut below: Vec<u32> = vec![client.id().pid];
            let mut at = 0;
            while let Some(pid) = below.get(at).copied() {
                below.extend(snapshot.children(pid).map(inventory::Process::pid));
                at += 1;
            }
            let mut children: Vec<ChildSeen> = below
                .iter()
                .skip(1)
                .filter_map(|pid| child(*pid, None))
                .collect();
            // What has left the tree already was seen in it, in the moment before.
            let left = troupe.word("helper").filter(|pid| !below.contains(pid));
            children.extend(left.and_then(|pid| child(pid, Some(troupe.pid("server")))));
            let is_subject = number == 0;
            if troupe.is_container() {
                // A container's process is never below its client.
                children.retain(|seen| Some(seen.process.id.pid) != troupe.word("helper"));
            }
            if recycled && is_subject {
                let server = Handle::open(troupe.pid("server")).unwrap();
                children = vec![stranger(&server.describe().unwrap())];
            }
            let record = LaunchRecord {
                schema: LaunchRecord::SCHEMA.to_owned(),
                connection: ConnectionId::from_bytes([u8::try_from(number).unwrap(); 10]),
                session: SessionId::from_bytes([u8::try_from(number).unwrap(); 10]),
                session_seq: 1,
                chain: vec![ChainLink {
                    process: holder,
                    role: LinkRole::Holder,
                }],
                lost: Vec::new(),
                connected_at: Wall::from_millis(1),
                transport_closed_at: None,
                revoked_at: None,
                children,
            };
            let path = folder.join(format!("{number}.json"));
            fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        }
    }
}

fn child(pid: u32, ppid: Option<u32>) -> Option<ChildSeen> {
    let handle = Handle::open(pid).ok()?;
    Some(ChildSeen {
        process: handle.describe().ok()?,
        ppid: ppid.unwrap_or(handle.stat().ppid),
        pgid: handle.stat().pgid,
        argv_sha256: String::new(),
        pipes: model::Known::Yes(Vec::new()),
        first_seen: Wall::from_millis(1),
        last_seen: Wall::from_millis(2),
    })
}

/// A process that had this number before.
fn stranger(now: &ProcessRef) -> ChildSeen {
    let mut process = now.clone();
    process.id = ProcessId {
        start_ticks: now.id.start_ticks - 1,
        pidfd_inode: now.id.pidfd_inode.map(|inode| inode - 1),
        ..now.id.clone()
    };
    ChildSeen {
        process,
        ppid: 1,
        pgid: 1,
        argv_sha256: String::new(),
        pipes: model::Known::Yes(Vec::new()),
        first_seen: Wall::from_millis(1),
        last_seen: Wall::from_millis(2),
    }
}
