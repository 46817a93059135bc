//! Looks made of values, as no machine need ever have shown them: every rule once where it holds and once where it
//! just does not.

use std::collections::{BTreeMap, BTreeSet};

use clients::{Client, Expected, Launched, Source};
use inventory::{
    Access, Descriptor, Holder, Pipe, Process, Snapshot, Socket, Target, TcpSocket, UdpSocket,
    Unreadable,
};
use model::{
    ChainLink, ChildSeen, ConnectionId, Foreign, Known, LaunchRecord, LinkRole, ProcessId,
    ProcessRef, SessionId, SessionState, Wall,
};
use verdict::{Extent, Finding, Input, LogFacts, Report, SessionFact, candidates, judge};

mod things;

/// A look that is being made up.
#[derive(Clone)]
pub(crate) struct Values {
    processes: BTreeMap<u32, Process>,
    pipes: BTreeMap<u64, Pipe>,
    sockets: BTreeMap<u64, Socket>,
    tcp: Vec<TcpSocket>,
    udp: Vec<UdpSocket>,
    gaps: Vec<Unreadable>,
    pub(crate) expected: Vec<Expected>,
    pub(crate) launched: Vec<Launched>,
    pub(crate) launches: Vec<LaunchRecord>,
    pub(crate) log: LogFacts,
}

/// All of it is of one user, in one session, at one moment.
const SESSION: u32 = 50;

/// A client (100) with its server (200), both in order.
pub(crate) fn in_use() -> Values {
    Values::new()
        .with(100, 50, 100, "client")
        .with(200, 100, 200, SRV)
        .served(200, 100)
}

/// A server (200) whose client is gone.
pub(crate) fn left() -> Values {
    Values::new().with(200, 1, 200, SRV).abandoned(200)
}

impl Values {
    /// A machine with its init, a session, and a shell in it.
    pub(crate) fn new() -> Self {
        let values = Self {
            processes: BTreeMap::new(),
            pipes: BTreeMap::new(),
            sockets: BTreeMap::new(),
            tcp: Vec::new(),
            udp: Vec::new(),
            gaps: Vec::new(),
            expected: expected(),
            launched: Vec::new(),
            launches: Vec::new(),
            log: LogFacts::default(),
        };
        values.with(1, 0, 0, "init").with(SESSION, 1, 10, "bash")
    }

    /// Adds a process.
    pub(crate) fn with(mut self, pid: u32, ppid: u32, start: u64, line: &str) -> Self {
        let words: Vec<Foreign> = line.split(' ').map(Foreign::from).collect();
        let name = words[0].raw().rsplit('/').next().unwrap().to_owned();
        let process = Process {
            id: id(pid, start),
            observed_at: Wall::from_millis(1_000_000),
            uid: 1000,
            user: Foreign::from("user"),
            comm: Foreign::from(name.as_str()),
            command: Known::Yes(words),
            exe: Known::unknown("not asked"),
            cwd: Known::unknown("not asked"),
            ppid,
            pgid: SESSION,
            sid: if pid == 1 { 1 } else { SESSION },
            tty: None,
            stat: "S".to_owned(),
            elapsed_ms: 1000,
            cpu_ms: 0,
            rss_bytes: 0,
            threads: 1,
            kernel_thread: false,
            descriptors: Known::Yes(Vec::new()),
            closer: None,
        };
        self.processes.insert(pid, process);
        self
    }

    /// Changes a process.
    pub(crate) fn but(mut self, pid: u32, change: impl FnOnce(&mut Process)) -> Self {
        change(self.processes.get_mut(&pid).unwrap());
        self
    }

    /// Lays a pipe between these; without a writer it has hung up.
    pub(crate) fn pipe(
        mut self,
        inode: u64,
        writer: Option<(u32, u32)>,
        reader: Option<(u32, u32)>,
    ) -> Self {
        let mut holders = Vec::new();
        for (end, access) in [(writer, Access::Write), (reader, Access::Read)] {
            let Some((pid, fd)) = end else {
                continue;
            };
            holders.push(Holder { pid, fd, access });
            let process = self.processes.get_mut(&pid).unwrap();
            let Known::Yes(open) = &mut process.descriptors else {
                panic!("pid {pid} shows no descriptors");
            };
            open.push(Descriptor {
                fd,
                access: Some(access),
                close_on_exec: None,
                locked: false,
                wakes_in_ms: None,
                named_pipe: None,
                target: Target::Pipe { inode },
            });
        }
        let pipe = Pipe {
            inode,
            holders,
            hung_up: Known::Yes(writer.is_none()),
            unread_bytes: Known::Yes(0),
        };
        self.pipes.insert(inode, pipe);
        self
    }

    /// Adds a server of this number whose client is that one, on two pipes.
    pub(crate) fn served(self, server: u32, client: u32) -> Self {
        let pipe = u64::from(server) * 10;
        self.pipe(pipe, Some((client, 7)), Some((server, 0))).pipe(
            pipe + 1,
            Some((server, 1)),
            Some((client, 8)),
        )
    }

    /// The same, with nobody at the other ends.
    pub(crate) fn abandoned(self, server: u32) -> Self {
        let pipe = u64::from(server) * 10;
        self.pipe(pipe, None, Some((server, 0)))
            .pipe(pipe + 1, Some((server, 1)), None)
    }

    /// Says that something could not be seen.
    pub(crate) fn gap(mut self, what: &str) -> Self {
        self.gaps.push(Unreadable {
            pid: None,
            what: what.to_owned(),
            why: "a test says so".to_owned(),
        });
        self
    }

    /// Says that something of one process could not be seen.
    pub(crate) fn gap_of(mut self, pid: u32, what: &str) -> Self {
        self = self.gap(what);
        self.gaps.last_mut().unwrap().pid = Some(pid);
        self
    }

    /// Says what the log has of the first record's run.
    pub(crate) fn logged(mut self, state: SessionState, since: Option<Wall>) -> Self {
        self.log.read = true;
        let fact = SessionFact { state, since };
        self.log.sessions.insert(self.launches[0].session, fact);
        self
    }

    /// Adds a record of a client with what it had below it: number, start, parent and line of each.
    pub(crate) fn recorded(mut self, client: (u32, u64), below: &[(u32, u64, u32, &str)]) -> Self {
        let number = u8::try_from(self.launches.len()).unwrap();
        let children = below.iter().map(|(pid, start, ppid, line)| ChildSeen {
            process: reference(*pid, *start, line),
            ppid: *ppid,
            pgid: SESSION,
            argv_sha256: String::new(),
            pipes: Known::Yes(Vec::new()),
            first_seen: Wall::from_millis(1),
            last_seen: Wall::from_millis(2),
        });
        self.launches.push(LaunchRecord {
            schema: LaunchRecord::SCHEMA.to_owned(),
            connection: ConnectionId::from_bytes([number; 10]),
            session: SessionId::from_bytes([number; 10]),
            session_seq: 1,
            chain: vec![link(client, LinkRole::Holder, "client")],
            lost: Vec::new(),
            connected_at: Wall::from_millis(1),
            transport_closed_at: None,
            revoked_at: None,
            children: children.collect(),
        });
        self
    }

    pub(crate) fn judge(self) -> Report {
        self.judge_to(Extent::Servers)
    }

    pub(crate) fn judge_to(self, extent: Extent) -> Report {
        self.with_input(|input| judge(input, extent))
    }

    /// Returns what must be looked at closer.
    pub(crate) fn candidates(self) -> BTreeSet<u32> {
        self.with_input(candidates)
    }

    fn with_input<T>(self, use_it: impl FnOnce(&Input<'_>) -> T) -> T {
        let snapshot = Snapshot {
            schema: inventory::SCHEMA.to_owned(),
            observed_at: Wall::from_millis(1_000_000),
            finished_at: Wall::from_millis(1_000_000),
            boot_id: BOOT.to_owned(),
            observer_uid: 1000,
            complete: self.gaps.is_empty(),
            unreadable: self.gaps,
            processes: self.processes.into_values().collect(),
            pipes: self.pipes.into_values().collect(),
            sockets: self.sockets.into_values().collect(),
            tcp: self.tcp,
            udp: self.udp,
        };
        use_it(&Input {
            snapshot: &snapshot,
            expected: &self.expected,
            launched: &self.launched,
            notes: &[],
            launches: &self.launches,
            log: &self.log,
        })
    }

    /// Returns what is said of one process.
    pub(crate) fn told(self, pid: u32) -> Option<Finding> {
        let findings = self.judge().findings;
        findings.into_iter().find(|finding| {
            finding.root.pid == pid || finding.members.iter().any(|member| member.pid == pid)
        })
    }

    /// Returns the words for it: verdict, confidence, and the root of its finding.
    pub(crate) fn words(self, pid: u32) -> String {
        self.told(pid).map_or_else(
            || "nothing".to_owned(),
            |one| {
                let (verdict, confidence) = (one.verdict.word(), one.confidence.word());
                format!("{verdict} {confidence} {}", one.root.pid)
            },
        )
    }
}

pub(crate) fn id(pid: u32, start: u64) -> ProcessId {
    ProcessId {
        boot_id: BOOT.to_owned(),
        pid,
        start_ticks: start,
        pidfd_inode: None,
    }
}

pub(crate) fn link((pid, start): (u32, u64), role: LinkRole, line: &str) -> ChainLink {
    ChainLink {
        process: reference(pid, start, line),
        role,
    }
}

fn reference(pid: u32, start: u64, line: &str) -> ProcessRef {
    ProcessRef {
        id: id(pid, start),
        command: line.split(' ').map(Foreign::from).collect(),
        exe: None,
        exe_id: None,
    }
}

/// One server, and one in a container.
fn expected() -> Vec<Expected> {
    let text = r#"{"mcpServers": {
        "fixture": {"command": "python3", "args": ["/opt/srv.py", "--stdio"]},
        "boxed": {"command": "docker", "args": ["run", "-i", "mcp/boxed"]}}}"#;
    configured(Client::ClaudeCode, text)
}

/// The servers of this client's configuration.
pub(crate) fn configured(client: Client, text: &str) -> Vec<Expected> {
    let source = Source {
        client,
        file: "/home/user/.claude.json".into(),
        owner_uid: 1000,
    };
    clients::parse(&source, text.as_bytes()).unwrap()
}

pub(crate) const SRV: &str = "python3 /opt/srv.py --stdio";

const BOOT: &str = "a boot";
