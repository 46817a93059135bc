//! The look with what is asked of it again and again: children, and which configured server a process fits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clients::{Launched, Match, Matcher, Part, Strength};
use inventory::{Process, Snapshot, TcpSocket, UdpSocket};
use model::{ChildSeen, LaunchRecord, LinkRole, Wall};

use crate::Input;

/// A look, prepared for judging.
pub(crate) struct World<'a> {
    pub(crate) input: &'a Input<'a>,
    children: HashMap<u32, Vec<u32>>,
    fits: BTreeMap<u32, Fit>,
    shims: HashMap<u32, Vec<&'a LaunchRecord>>,
    recorded: HashMap<u32, Vec<Recorded<'a>>>,
    tcp: HashMap<u64, Vec<&'a TcpSocket>>,
    udp: HashMap<u64, Vec<&'a UdpSocket>>,
    launched: Matcher,
}

/// What a launch record says about a process below its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded<'a> {
    /// The record of the client's connection.
    pub(crate) record: &'a LaunchRecord,
    /// The process as it was then.
    pub(crate) child: &'a ChildSeen,
}

/// Which configured server a process fits best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Its place among the expected servers.
    pub(crate) at: usize,
    /// How well, as which part.
    pub(crate) found: Match,
    /// Whether another command line is fitted just as well.
    pub(crate) ambiguous: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for process in &input.snapshot.processes {
            children
                .entry(process.ppid)
                .or_default()
                .push(process.pid());
        }
        let matcher = Matcher::new(input.expected);
        let fits = input
            .snapshot
            .processes
            .iter()
            .filter_map(|process| Some((process.pid(), fit(input, &matcher, process)?)))
            .collect();
        let mut shims: HashMap<u32, Vec<&LaunchRecord>> = HashMap::new();
        for record in input.launches {
            for shim in record
                .chain
                .iter()
                .filter(|link| link.role == LinkRole::Shim)
            {
                shims.entry(shim.process.id.pid).or_default().push(record);
            }
        }
        let mut recorded: HashMap<u32, Vec<Recorded<'_>>> = HashMap::new();
        for record in input.launches {
            for child in &record.children {
                let of_pid = recorded.entry(child.process.id.pid).or_default();
                of_pid.push(Recorded { record, child });
            }
        }
        let mut tcp: HashMap<u64, Vec<&TcpSocket>> = HashMap::new();
        for socket in &input.snapshot.tcp {
            tcp.entry(socket.inode).or_default().push(socket);
        }
        let mut udp: HashMap<u64, Vec<&UdpSocket>> = HashMap::new();
        for socket in &input.snapshot.udp {
            udp.entry(socket.inode).or_default().push(socket);
        }
        Self {
            input,
            children,
            fits,
            shims,
            recorded,
            tcp,
            udp,
            launched: Matcher::of_launched(input.launched),
        }
    }

    pub(crate) const fn snapshot(&self) -> &'a Snapshot {
        self.input.snapshot
    }

    pub(crate) fn process(&self, pid: u32) -> Option<&'a Process> {
        self.input.snapshot.process(pid)
    }

    pub(crate) fn fit(&self, pid: u32) -> Option<Fit> {
        self.fits.get(&pid).copied()
    }

    pub(crate) fn fitting(&self) -> impl Iterator<Item = u32> {
        self.fits.keys().copied()
    }

    /// Returns the parent, unless its number belongs to a younger process by now.
    pub(crate) fn parent(&self, process: &Process) -> Option<&'a Process> {
        self.process(process.ppid)
            .filter(|parent| parent.id.start_ticks <= process.id.start_ticks)
            .filter(|parent| parent.pid() != process.pid())
    }

    /// Returns everything below a process, without the trees below `cut`.
    pub(crate) fn descendants(&self, pid: u32, cut: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = BTreeSet::new();
        let mut open = vec![pid];
        while let Some(at) = open.pop() {
            for child in self.children.get(&at).into_iter().flatten() {
                if !cut(*child) && *child != pid && found.insert(*child) {
                    open.push(*child);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Returns the launch record whose shim this process is.
    pub(crate) fn record_of_shim(&self, process: &Process) -> Option<&'a LaunchRecord> {
        let is_this = |record: &&&LaunchRecord| {
            let mut links = record.chain.iter();
            links.any(|link| link.role == LinkRole::Shim && link.process.id.same(&process.id))
        };
        self.shims
            .get(&process.pid())?
            .iter()
            .find(is_this)
            .copied()
    }

    /// Returns what a record says about this very process, the last that saw it.
    pub(crate) fn recorded(&self, process: &Process) -> Option<Recorded<'a>> {
        let of_pid = self.recorded.get(&process.pid())?.iter();
        of_pid
            .filter(|seen| seen.child.process.id.same(&process.id))
            .max_by_key(|seen| seen.child.last_seen)
            .copied()
    }

    /// Returns what records say about processes that do not live any more.
    pub(crate) fn recorded_dead(&self) -> impl Iterator<Item = Recorded<'a>> {
        let gone = |seen: &&Recorded<'_>| {
            let id = &seen.child.process.id;
            let same_boot = id.boot_id == self.snapshot().boot_id;
            let lives = |process: &Process| process.id.same(id) && !process.is_zombie();
            same_boot && !self.process(id.pid).is_some_and(lives)
        };
        self.recorded.values().flatten().filter(gone).copied()
    }

    /// Returns what clients have logged about starting this very process: the same command, when it began.
    pub(crate) fn launched(&self, process: &Process) -> Vec<&'a Launched> {
        let began = Wall::from_millis(
            process
                .observed_at
                .millis()
                .saturating_sub(process.elapsed_ms),
        );
        let command = process.command.value().map_or(&[][..], Vec::as_slice);
        let matches = self.launched.matches(command).into_iter();
        matches
            .filter(|(_, found)| found.strength >= Strength::Strong)
            .filter_map(|(at, _)| self.input.launched.get(at))
            .filter(|one| one.speaks_of(process.uid) && one.at.is_near(began, LOGGED_WITHIN_MS))
            .collect()
    }

    /// Returns what is known of a TCP socket.
    pub(crate) fn tcp(&self, inode: u64) -> impl Iterator<Item = &'a TcpSocket> {
        self.tcp.get(&inode).into_iter().flatten().copied()
    }

    /// Returns what is known of a UDP socket.
    pub(crate) fn udp(&self, inode: u64) -> impl Iterator<Item = &'a UdpSocket> {
        self.udp.get(&inode).into_iter().flatten().copied()
    }
}

/// Picks the best of all servers that a process fits.
fn fit(input: &Input<'_>, matcher: &Matcher, process: &Process) -> Option<Fit> {
    if process.kernel_thread || process.is_zombie() {
        return None;
    }
    let command = process
        .command
        .value()
        .filter(|command| !command.is_empty())?;
    let mut found = matcher.matches(command);
    let speaks = |at: usize| {
        input
            .expected
            .get(at)
            .is_some_and(|one| one.speaks_of(process.uid))
    };
    found.retain(|(at, _)| speaks(*at));
    let (at, best) = found
        .iter()
        .max_by_key(|(at, found)| (found.strength, found.part, std::cmp::Reverse(*at)))
        .copied()?;
    let line = |at: usize| {
        input
            .expected
            .get(at)
            .map(|server| (&server.command, &server.args))
    };
    let ambiguous = found
        .iter()
        .any(|(other, found)| found.strength == best.strength && line(*other) != line(at));
    Some(Fit {
        at,
        found: best,
        ambiguous,
    })
}

/// A client logs right before or after it starts a server; a launcher takes a few seconds more to start it.
const LOGGED_WITHIN_MS: u64 = 10_000;

impl Fit {
    pub(crate) fn is_launcher(self) -> bool {
        self.found.part == Part::Launcher
    }

    /// Tells whether program and server argument both fit one server.
    pub(crate) fn names_a_server(self) -> bool {
        self.found.strength >= Strength::Strong && !self.ambiguous
    }
}
