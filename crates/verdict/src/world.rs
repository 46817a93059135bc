//! The look with what is asked of it again and again: children, and which configured server a process fits.

use std::collections::{BTreeMap, HashMap};

use clients::{Match, Matcher, Part, Strength};
use inventory::{Process, Snapshot, TcpSocket};
use model::{LaunchRecord, LinkRole};

use crate::Input;

/// A look, prepared for judging.
pub(crate) struct World<'a> {
    pub(crate) input: &'a Input<'a>,
    children: HashMap<u32, Vec<u32>>,
    fits: BTreeMap<u32, Fit>,
    shims: HashMap<u32, Vec<&'a LaunchRecord>>,
    tcp: HashMap<u64, Vec<&'a TcpSocket>>,
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
        let mut tcp: HashMap<u64, Vec<&TcpSocket>> = HashMap::new();
        for socket in &input.snapshot.tcp {
            tcp.entry(socket.inode).or_default().push(socket);
        }
        Self {
            input,
            children,
            fits,
            shims,
            tcp,
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
        let mut found = Vec::new();
        let mut open = vec![pid];
        while let Some(at) = open.pop() {
            for child in self.children.get(&at).into_iter().flatten() {
                if !cut(*child) && *child != pid && !found.contains(child) {
                    found.push(*child);
                    open.push(*child);
                }
            }
        }
        found.sort_unstable();
        found
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

    /// Returns what is known of a TCP socket.
    pub(crate) fn tcp(&self, inode: u64) -> impl Iterator<Item = &'a TcpSocket> {
        self.tcp.get(&inode).into_iter().flatten().copied()
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

impl Fit {
    pub(crate) fn is_launcher(self) -> bool {
        self.found.part == Part::Launcher
    }

    /// Tells whether program and server argument both fit one server.
    pub(crate) fn names_a_server(self) -> bool {
        self.found.strength >= Strength::Strong && !self.ambiguous
    }
}
