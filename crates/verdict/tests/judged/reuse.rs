//! Numbers that are given out again, by force and often: no later holder is taken for the one on record.

use std::{
    collections::BTreeSet,
    fs, io,
    process::{Child, Command, Stdio},
};

use inventory::{Live, Source, closer, take};
use model::{
    ChainLink, ChildSeen, ConnectionId, LaunchRecord, LinkRole, ProcessId, ProcessRef, SessionId,
    Stamp, Wall,
};
use sys::{process::Handle, procfs::ProcDir, unix_diag::UnixSocket};
use testkit::Proof;
use verdict::{Extent, Input, LogFacts, Suggest, Verdict, judge};

/// The live machine, of which only a few processes are looked at.
#[derive(Clone)]
struct Few {
    live: Live,
    pids: Vec<u32>,
}

impl Source for Few {
    type Process = ProcDir;

    fn now(&self) -> Stamp {
        self.live.now()
    }

    fn boot_id(&self) -> io::Result<String> {
        self.live.boot_id()
    }

    fn blind_spot(&self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn observer_uid(&self) -> u32 {
        self.live.observer_uid()
    }

    fn pids(&self) -> io::Result<Vec<u32>> {
        Ok(self.pids.clone())
    }

    fn process(&self, pid: u32) -> io::Result<ProcDir> {
        self.live.process(pid)
    }

    fn identity(&self, pid: u32) -> io::Result<ProcessId> {
        self.live.identity(pid)
    }

    fn unix_sockets(&self) -> io::Result<Vec<UnixSocket>> {
        Ok(Vec::new())
    }

    fn passwd(&self) -> io::Result<String> {
        Ok(String::new())
    }
}

fn cat() -> Child {
    Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A record that expects this process below this very test.
fn record(process: ProcessRef) -> LaunchRecord {
    let own = Handle::open(std::process::id()).unwrap();
    LaunchRecord {
        schema: LaunchRecord::SCHEMA.to_owned(),
        connection: ConnectionId::from_bytes([1; 10]),
        session: SessionId::from_bytes([2; 10]),
        session_seq: 1,
        chain: vec![ChainLink {
            process: own.describe().unwrap(),
            role: LinkRole::Holder,
        }],
        lost: Vec::new(),
        connected_at: Wall::from_millis(1),
        transport_closed_at: None,
        revoked_at: None,
        children: vec![ChildSeen {
            process,
            ppid: std::process::id(),
            pgid: 0,
            argv_sha256: String::new(),
            pipes: model::Known::Yes(Vec::new()),
            first_seen: Wall::from_millis(1),
            last_seen: Wall::from_millis(1),
        }],
    }
}

/// Judges the process that has this number now.
fn judged(pid: u32, record: &LaunchRecord) -> (Verdict, Suggest) {
    let few = Few {
        live: Live::open().unwrap(),
        pids: vec![pid],
    };
    let mut snapshot = take(&few).unwrap();
    closer(&few, &mut snapshot, &BTreeSet::from([pid]));
    let input = Input {
        snapshot: &snapshot,
        expected: &[],
        launched: &[],
        notes: &[],
        launches: std::slice::from_ref(record),
        log: &LogFacts::default(),
    };
    let report = judge(&input, Extent::Everything);
    let found = report.findings.iter().find(|one| one.root.pid == pid);
    let found = found.unwrap();
    (found.verdict, found.suggest)
}

#[test]
fn prove_reuse() {
    let mut proof = Proof::begin(200);
    let (mut reused, mut same_tick) = (0, 0);
    let mut tries = 0;
    while reused < proof.n() {
        tries += 1;
        assert!(tries < proof.n() * 20, "numbers are not given out again");
        let mut former = cat();
        let handle = Handle::open(former.id()).unwrap();
        let record = record(handle.describe().unwrap());
        former.kill().unwrap();
        former.wait().unwrap();
        let next = (former.id() - 1).to_string();
        if fs::write("/proc/sys/kernel/ns_last_pid", next).is_err() {
            eprintln!("NOT RUN: only root can have a number given out again");
            return;
        }
        let mut later = cat();
        if later.id() == former.id() && handle.id().pidfd_inode.is_some() {
            reused += 1;
            let now = Handle::open(later.id()).unwrap();
            same_tick += u64::from(now.id().start_ticks == handle.id().start_ticks);
            let told = judged(later.id(), &record);
            assert_eq!(told, (Verdict::Recycled, Suggest::Leave));
        }
        later.kill().unwrap();
        later.wait().unwrap();
    }
    proof.row("numbers given out again", reused);
    proof.row("of these with the same start tick", same_tick);
    proof.row("taken for the process on record", 0);
    proof.end();
}
