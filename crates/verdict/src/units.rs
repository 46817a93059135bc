//! Which processes belong together: launcher, server and helpers are one unit, and one finding.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clients::Strength;
use inventory::Process;
use model::LaunchRecord;

use crate::{
    EndState, leftovers,
    parentage::{Parent, parent},
    wire::{self, Way},
    world::{Fit, Recorded, World},
};

/// Processes that belong together.
pub(crate) struct Unit<'a> {
    /// The one at the top: it is what the client started.
    pub(crate) root: &'a Process,
    /// The others.
    pub(crate) members: Vec<u32>,
    /// The configured server that they are.
    pub(crate) fit: Option<Fit>,
    /// The record of their connection.
    pub(crate) record: Option<&'a LaunchRecord>,
    /// What a record of another connection of the same client says about one of them.
    pub(crate) census: Option<Recorded<'a>>,
}

impl<'a> Unit<'a> {
    /// Returns a process with all that lives below it, not counting what belongs to another unit. What has ended
    /// there and was not collected is told of by itself: nothing of it is left to stop.
    pub(crate) fn below(
        world: &World<'a>,
        root: &'a Process,
        is_another: impl Fn(u32) -> bool,
    ) -> Self {
        Self {
            root,
            members: world.descendants(root.pid(), |pid| {
                is_another(pid) || world.process(pid).is_some_and(Process::is_zombie)
            }),
            fit: None,
            record: None,
            census: world.recorded(root),
        }
    }

    /// Tells whether a process is of this unit.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.root.pid() == pid || self.members.contains(&pid)
    }

    /// Returns all its processes, the root first.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.root.pid()).chain(self.members.iter().copied())
    }
}

/// All units of a look, and which one a process is of.
pub(crate) struct Units<'a> {
    all: Vec<Unit<'a>>,
    of_pid: HashMap<u32, usize>,
}

impl<'a> Units<'a> {
    /// Finds the units of a look.
    pub(crate) fn of(world: &World<'a>) -> Self {
        let roots: BTreeMap<u32, &Process> = starts(world)
            .into_iter()
            .map(|process| top(world, process))
            .map(|root| (root.pid(), root))
            .collect();
        let is_root = |pid| roots.contains_key(&pid);
        let mut all: Vec<Unit<'_>> = roots
            .values()
            .map(|root| unit(world, root, is_root))
            .collect();
        add_those_that_left(world, &mut all);
        let of_pid = all
            .iter()
            .enumerate()
            .flat_map(|(at, unit)| unit.all().map(move |pid| (pid, at)))
            .collect();
        Self { all, of_pid }
    }

    /// Returns the unit that a process is of.
    pub(crate) fn with(&self, pid: u32) -> Option<&Unit<'a>> {
        self.of_pid.get(&pid).and_then(|at| self.all.get(*at))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Unit<'a>> {
        self.all.iter()
    }
}

fn unit<'a>(world: &World<'a>, root: &'a Process, is_root: impl Fn(u32) -> bool) -> Unit<'a> {
    let mut unit = Unit::below(world, root, is_root);
    unit.record = world.record_of_shim(root);
    let wired = wired(world, root, &unit.members);
    let tied = || std::iter::once(root.pid()).chain(wired.iter().copied());
    let is_known = unit.record.is_some()
        || tied().any(|pid| world.fit(pid).is_some())
        || tied().any(|pid| {
            world
                .process(pid)
                .is_some_and(|one| world.recorded(one).is_some())
        });
    if !is_known {
        unit.members = wired;
    }
    unit.fit = unit
        .all()
        .filter_map(|pid| world.fit(pid))
        .max_by_key(|fit| (fit.found.strength, fit.found.part));
    let census = unit
        .all()
        .find_map(|pid| world.recorded(world.process(pid)?));
    unit.census = census;
    unit
}

/// Adds what left the tree of its unit while that lives: helpers that a record saw below it, containers of its
/// client.
fn add_those_that_left(world: &World<'_>, all: &mut [Unit<'_>]) {
    let mut known: BTreeSet<u32> = all.iter().flat_map(Unit::all).collect();
    for process in &world.snapshot().processes {
        if process.kernel_thread || process.is_zombie() || known.contains(&process.pid()) {
            continue;
        }
        let above = leftovers::lives_for(world, process).filter(|above| known.contains(above));
        let Some(unit) = above.and_then(|above| all.iter_mut().find(|unit| unit.has(above))) else {
            continue;
        };
        let left = Unit::below(world, process, |pid| known.contains(&pid));
        known.extend(left.all());
        unit.members.extend(left.all());
    }
}

/// What lives by the wire of a process, or by one that it holds. Of what nobody knows to be a server no more
/// is claimed: a whole working session, with clients and servers in use, may hang below a shell that lost its
/// terminal.
fn wired(world: &World<'_>, root: &Process, members: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        let below = members.iter().filter_map(|pid| world.process(*pid));
        for child in below.filter(|child| child.ppid == at.pid()) {
            if wire::share_ends(root, child) || holds_input_of(world, at, child) {
                found.push(child.pid());
                open.push(child);
            }
        }
    }
    found.sort_unstable();
    found
}

/// The processes that are judged because something says that they are, or were, a client's.
fn starts<'a>(world: &World<'a>) -> Vec<&'a Process> {
    let mut pids: BTreeSet<u32> = world
        .fitting()
        .filter(|pid| may_be_server(world, *pid))
        .collect();
    for process in &world.snapshot().processes {
        let is_shim = !process.is_zombie() && world.record_of_shim(process).is_some();
        if is_shim || lost_both_ends(world, process) {
            pids.insert(process.pid());
        }
    }
    pids.into_iter()
        .filter_map(|pid| world.process(pid))
        .collect()
}

/// A program that was started with other arguments than configured is only looked at if it has a wire, or if
/// that cannot be seen.
fn may_be_server(world: &World<'_>, pid: u32) -> bool {
    let weak = world
        .fit(pid)
        .is_some_and(|fit| fit.found.strength == Strength::Weak);
    let wired = |process: &Process| {
        process.descriptors.value().is_none()
            || wire::usual(world.snapshot(), process, Way::In).is_wire()
    };
    !weak || world.process(pid).is_some_and(wired)
}

/// Its input is at its end, nobody is seen to take its output, and its parent is gone: so a server looks that
/// nobody has configured. One direction alone is not enough: `x | nohup job &` has it too.
fn lost_both_ends(world: &World<'_>, process: &Process) -> bool {
    // Whose child it is comes first: it is told at once, and most processes have their parent.
    let alone = || matches!(parent(world, process), Parent::Adopter(_));
    if process.kernel_thread || process.is_zombie() || !alone() {
        return false;
    }
    let end = |way| wire::usual(world.snapshot(), process, way);
    let (input, output) = (end(Way::In), end(Way::Out));
    input.is_wire()
        && input.seen.state == EndState::Eof
        && output.is_wire()
        && output.seen.state != EndState::Open
}

fn holds_input_of(world: &World<'_>, above: &Process, below: &Process) -> bool {
    let input = wire::usual(world.snapshot(), below, Way::In);
    input.is_wire()
        && input
            .seen
            .holders
            .iter()
            .any(|holder| holder.pid == above.pid())
}

/// Climbs to the process that the client itself started, through launchers, wrappers that pass their input on,
/// and relays with wires of their own that lost their client.
fn top<'a>(world: &World<'a>, start: &'a Process) -> &'a Process {
    let mut root = start;
    while let Some(above) = world.parent(root) {
        let launches = world.fit(above.pid()).is_some_and(|above| {
            above.is_launcher()
                && world
                    .fit(root.pid())
                    .is_none_or(|below| below.at == above.at)
        });
        // A server that starts servers of its own is a unit of its own, whatever became of its client.
        let relays = world.fit(above.pid()).is_none()
            && holds_input_of(world, above, root)
            && lost_both_ends(world, above);
        if !launches && !relays && !wire::share_input(above, root) {
            break;
        }
        root = above;
    }
    root
}
