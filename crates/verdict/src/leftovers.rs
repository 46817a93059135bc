//! Helpers that outlived the server that started them: browsers, workers, containers.
//!
//! They have no wire to be judged by, and daemons by design look just like them. So one is told of only if
//! something ties it to a server or client that is gone: a record that saw it below one, or a profile folder
//! that only such a server makes. It is never proven, and its name alone ties it to nothing.

use inventory::Process;
use model::Foreign;

use crate::{
    Confidence, EvidenceSource as Source, EvidenceStrength as Weight, Verdict,
    case::Case,
    owners,
    parentage::{Parent, parent},
    records,
    unit_verdict::Decision,
    units::Unit,
    world::{Recorded, World},
};

/// What ties a helper to what is gone.
enum Tie<'a> {
    /// A record saw it below a client, and its parent of that time is dead.
    Recorded(Recorded<'a>),
    /// Its arguments name a folder that only servers of a certain kind make.
    Profile(&'static str),
    /// It runs in a container that began when a recorded container client did, which is dead.
    Container(Recorded<'a>),
}

/// Finds the helpers that nobody above them accounts for.
pub(crate) fn leftovers<'a>(world: &World<'a>, is_told: impl Fn(u32) -> bool) -> Vec<Unit<'a>> {
    let mut found: Vec<Unit<'_>> = Vec::new();
    for process in &world.snapshot().processes {
        let counts = !process.kernel_thread && !process.is_zombie() && !is_told(process.pid());
        if counts
            && tie(world, process).is_some()
            && found.iter().all(|unit| !unit.has(process.pid()))
        {
            found.push(Unit::below(world, process, &is_told));
        }
    }
    found
}

/// Returns the process that a record saw it below, if that one still lives: then somebody accounts for it.
pub(crate) fn recorded_parent(world: &World<'_>, process: &Process) -> Option<u32> {
    let seen = world.recorded(process)?;
    (!parent_is_dead(world, seen)).then_some(seen.child.ppid)
}

/// Tells whether a record saw a process below a parent that is gone.
pub(crate) fn is_recorded(world: &World<'_>, process: &Process) -> bool {
    matches!(tie(world, process), Some(Tie::Recorded(_)))
}

fn tie<'a>(world: &World<'a>, process: &Process) -> Option<Tie<'a>> {
    if !matches!(parent(world, process), Parent::Adopter(_)) {
        return None;
    }
    if let Some(seen) = world.recorded(process) {
        return parent_is_dead(world, seen).then_some(Tie::Recorded(seen));
    }
    let mut words = process.arguments();
    let profile = words.find_map(|word| PROFILES.iter().find(|part| word.contains(**part)));
    if let Some(part) = profile {
        return Some(Tie::Profile(part));
    }
    match container(world, process) {
        Some(Container::Left(seen)) => Some(Tie::Container(seen)),
        Some(Container::Used(_)) | None => None,
    }
}

/// Returns which living process one that left its tree still works for.
pub(crate) fn lives_for(world: &World<'_>, process: &Process) -> Option<u32> {
    let above = recorded_parent(world, process).or_else(|| match container(world, process) {
        Some(Container::Used(client)) => Some(client),
        Some(Container::Left(_)) | None => None,
    })?;
    // Asked last: few processes are recorded or run in a container.
    matches!(parent(world, process), Parent::Adopter(_)).then_some(above)
}

/// A helper whose recorded parent lives is where it was meant to be, whoever adopted it.
fn parent_is_dead(world: &World<'_>, seen: Recorded<'_>) -> bool {
    let ppid = seen.child.ppid;
    let recorded = seen
        .record
        .children
        .iter()
        .map(|child| &child.process.id)
        .chain(seen.record.chain.iter().map(|link| &link.process.id))
        .find(|id| id.pid == ppid);
    match (recorded, world.process(ppid)) {
        (_, None) => true,
        (Some(id), Some(living)) => !living.id.same(id) || living.is_zombie(),
        // Adopted already when it was seen first: who started it is not known.
        (None, Some(_)) => client_is_dead(world, seen),
    }
}

fn client_is_dead(world: &World<'_>, seen: Recorded<'_>) -> bool {
    records::holder(seen.record).is_some_and(|holder| records::alive(world, holder) == Some(false))
}

/// Whose container a process runs in.
enum Container<'a> {
    /// That of a container client which is dead, as a record has it.
    Left(Recorded<'a>),
    /// That of this living one.
    Used(u32),
}

/// The engine starts a container's process, so nothing but the moment ties it to its client: of several the one that
/// was started last before it.
fn container<'a>(world: &World<'a>, process: &Process) -> Option<Container<'a>> {
    let above = world.parent(process)?;
    let shim = ENGINES
        .iter()
        .any(|name| above.comm.raw().starts_with(name));
    if !shim {
        return None;
    }
    let ago = |then: u64| {
        let ticks = process.id.start_ticks.checked_sub(then);
        ticks.filter(|ticks| *ticks <= START_WINDOW)
    };
    let living = world.snapshot().processes.iter().filter_map(|one| {
        let runs = one
            .command
            .value()
            .is_some_and(|words| runs_container(words));
        let ago = ago(one.id.start_ticks).filter(|_| runs && !one.is_zombie())?;
        Some((ago, Container::Used(one.pid())))
    });
    let dead = world.recorded_dead().filter_map(|seen| {
        let ago = ago(seen.child.process.id.start_ticks)?;
        runs_container(&seen.child.process.command).then_some((ago, Container::Left(seen)))
    });
    // The living come first: of two that are as near, nothing is taken from the one that lives.
    let nearest = living.chain(dead).min_by_key(|(ago, _)| *ago);
    nearest.map(|(_, container)| container)
}

/// `docker run`, `podman run` and their like.
fn runs_container(command: &[Foreign]) -> bool {
    let words: Vec<&str> = command.iter().map(Foreign::raw).collect();
    let program = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        CONTAINER_CLIENTS.contains(&name)
    };
    words.iter().take(2).any(program) && words.contains(&"run")
}

impl Case<'_, '_> {
    /// Decides what a helper is that nobody above it accounts for.
    pub(crate) fn decide_leftover(&mut self) -> Decision {
        let root = self.unit.root;
        if let Some(why) = root.descriptors.why() {
            let what = format!("its descriptors could not be read: {why}");
            self.note(Source::Proc, Weight::Strong, what);
            return (Verdict::Unknown, Confidence::Unknown);
        }
        if let Parent::Adopter(why) = parent(self.world, root) {
            self.note(Source::Proc, Weight::Medium, why);
        }
        let confidence = match tie(self.world, root) {
            Some(Tie::Recorded(seen)) => self.leftover_by_record(seen),
            Some(Tie::Profile(part)) => {
                let what = format!("its arguments name a folder that MCP servers make ({part})");
                self.note(Source::Proc, Weight::Weak, what);
                Confidence::Suspected
            }
            Some(Tie::Container(seen)) => {
                let what = format!(
                    "its container began when pid {} of run {} did, which is dead; whether it was \
                     started by that is not seen",
                    seen.child.process.id.pid, seen.record.session
                );
                self.note(Source::Census, Weight::Weak, what);
                Confidence::Suspected
            }
            None => return (Verdict::Unknown, Confidence::Unknown),
        };
        self.unless_shared((Verdict::LeftoverChild, confidence))
    }

    fn leftover_by_record(&mut self, seen: Recorded<'_>) -> Confidence {
        let what = format!(
            "run {} saw it below pid {}, which is dead",
            seen.record.session, seen.child.ppid
        );
        self.note(Source::Census, Weight::Medium, what);
        // What the log does not know may have been written by anybody.
        let known = !owners::is_unknown_to_log(self.world, seen.record);
        if self.client_dead_by_record() && known {
            Confidence::Inferred
        } else {
            Confidence::Suspected
        }
    }
}

/// Profile folders of browsers that MCP servers start; a person's own browser has another.
const PROFILES: [&str; 3] = [
    "/ms-playwright/mcp-",
    "/puppeteer_dev_chrome_profile-",
    "/chrome-devtools-mcp/",
];

/// What stands above a container's first process; the kernel keeps 15 bytes of the name.
const ENGINES: [&str; 2] = ["containerd-shim", "conmon"];

const CONTAINER_CLIENTS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Ten seconds: an image that must be fetched first takes longer, and then nothing is claimed.
const START_WINDOW: u64 = 1000;
