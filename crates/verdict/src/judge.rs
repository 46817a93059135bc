//! From a look to a report.

use std::collections::BTreeSet;

use inventory::{Process, Target, TcpState, Unreadable};
use model::Foreign;

use crate::{
    Also, Confidence, Evidence, EvidenceSource, EvidenceStrength, Finding, Input, ProcessView,
    Report, SCHEMA, ServerView, Suggest, Sums, Transport, Verdict,
    authority::{Gate, authority},
    case::Case,
    leftovers::leftovers,
    records,
    recycled::recycled,
    report::finding_id,
    unit_verdict::Decision,
    units::{Unit, Units},
    wire::{self, Way},
    world::World,
};

/// How much a report holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What clients started, and what is left over.
    Servers,
    /// Every process but the kernel's own threads.
    Everything,
}

/// Judges a look.
#[must_use]
pub fn judge(input: &Input<'_>, extent: Extent) -> Report {
    let world = World::new(input);
    let units = Units::of(&world);
    let mut findings = records::findings(&world, &units);
    let mut told: BTreeSet<u32> = BTreeSet::new();
    for finding in &findings {
        told.insert(finding.root.pid);
        told.extend(finding.members.iter().map(|member| member.pid));
    }
    for unit in units.iter().filter(|unit| !told.contains(&unit.root.pid())) {
        findings.push(finding(&world, unit, &units));
    }
    told.extend(units.iter().flat_map(Unit::all));
    for unit in leftovers(&world, |pid| told.contains(&pid)) {
        told.extend(unit.all());
        findings.push(leftover(&world, &unit, &units));
    }
    let recycled = recycled(&world, |pid| told.contains(&pid));
    told.extend(recycled.iter().map(|finding| finding.root.pid));
    findings.extend(recycled);
    // What ended below a client concerns that client, too. Whoever is not told who that is sees the parent.
    let owners: BTreeSet<u32> = findings
        .iter()
        .flat_map(|finding| {
            let owner = finding.owner.as_ref().map(|owner| owner.pid);
            let above = finding.server.is_some().then_some(finding.root.ppid);
            owner.into_iter().chain(above)
        })
        .collect();
    let rest = input
        .snapshot
        .processes
        .iter()
        .filter(|process| !process.kernel_thread && !told.contains(&process.pid()));
    findings.extend(rest.filter_map(|process| {
        plain(&world, process, extent, |pid| {
            told.contains(&pid) || owners.contains(&pid)
        })
    }));
    findings.sort_by_key(|finding| (finding.verdict, finding.root.pid));
    let notes = input.notes.iter().map(|note| Unreadable {
        pid: None,
        what: note.file.display().to_string(),
        why: note.why.clone(),
    });
    let unreadable: Vec<Unreadable> = input
        .snapshot
        .unreadable
        .iter()
        .cloned()
        .chain(notes)
        .collect();
    Report {
        schema: SCHEMA.to_owned(),
        observed_at: input.snapshot.observed_at,
        boot_id: input.snapshot.boot_id.clone(),
        complete: unreadable.is_empty(),
        sums: sums(input, &findings, &unreadable),
        unreadable,
        findings,
    }
}

/// Names the processes that must be looked at closer before they can be judged.
#[must_use]
pub fn candidates(input: &Input<'_>) -> BTreeSet<u32> {
    let world = World::new(input);
    let units = Units::of(&world);
    let mut pids: BTreeSet<u32> = units.iter().flat_map(Unit::all).collect();
    for unit in units.iter() {
        let case = Case::new(&world, unit, &units);
        let ends = case
            .stdin
            .seen
            .holders
            .iter()
            .chain(&case.stdout.seen.holders);
        pids.extend(ends.map(|holder| holder.pid));
    }
    pids.extend(
        leftovers(&world, |pid| units.with(pid).is_some())
            .iter()
            .flat_map(Unit::all),
    );
    for record in input.launches {
        pids.extend(record.chain.iter().map(|link| link.process.id.pid));
        pids.extend(record.children.iter().map(|child| child.process.id.pid));
        // What hangs below the holder is of the run too.
        let holder = records::holder(record);
        pids.extend(
            holder
                .into_iter()
                .flat_map(|holder| world.descendants(holder.process.id.pid, |_| false)),
        );
    }
    pids
}

fn finding(world: &World<'_>, unit: &Unit<'_>, units: &Units<'_>) -> Finding {
    let mut case = Case::new(world, unit, units);
    let server = case.server();
    let decision = case.decide();
    told(case, server, decision)
}

/// A helper that its server left behind; it has no wire of its own to be judged by.
fn leftover(world: &World<'_>, unit: &Unit<'_>, units: &Units<'_>) -> Finding {
    let mut case = Case::new(world, unit, units);
    let decision = case.decide_leftover();
    told(case, None, decision)
}

fn told(mut case: Case<'_, '_>, server: Option<ServerView>, decision: Decision) -> Finding {
    let (verdict, confidence) = decision;
    let (world, unit) = (case.world, case.unit);
    let processes: Vec<&Process> = unit.all().filter_map(|pid| world.process(pid)).collect();
    if !verdict.is_in_use() {
        case.note_waits(&processes);
    }
    case.note_owner_hints(verdict, server.as_ref());
    case.evidence.sort_by_key(|evidence| evidence.source);
    let authority = match unit.record {
        Some(record) => records::run_authority(world, record, &processes),
        None => authority(world, &processes, Gate::None),
    };
    Finding {
        id: finding_id(&unit.root.id),
        verdict,
        confidence,
        also: also(world, verdict, &processes, &case.transport()),
        root: ProcessView::from(unit.root),
        members: processes
            .iter()
            .skip(1)
            .copied()
            .map(ProcessView::from)
            .collect(),
        server,
        session: unit.record.map(|record| record.session),
        owner: case.owner.clone(),
        transport: case.transport(),
        suggest: suggest(verdict, confidence),
        authority,
        evidence: case.evidence,
    }
}

const fn suggest(verdict: Verdict, confidence: Confidence) -> Suggest {
    match (verdict, confidence) {
        (_, Confidence::Proven) if verdict.is_orphan() => Suggest::Contain,
        (Verdict::LogicalOrphan, _) => Suggest::Contain,
        (Verdict::Live | Verdict::Managed | Verdict::Zombie | Verdict::Recycled, _) => {
            Suggest::Leave
        }
        (_, _) => Suggest::Report,
    }
}

fn also(
    world: &World<'_>,
    verdict: Verdict,
    processes: &[&Process],
    transport: &Transport,
) -> Vec<Also> {
    if verdict.is_in_use() {
        return Vec::new();
    }
    let mut also = Vec::new();
    if processes.iter().any(|process| spins(process)) {
        also.push(Also::Spinning);
    }
    let listens = |inode| {
        world
            .tcp(inode)
            .any(|socket| socket.state == TcpState::Listen)
    };
    let mut open = processes.iter().flat_map(|process| process.open());
    let holds = |target: &Target| matches!(target, Target::Socket { inode } if listens(*inode));
    if open.any(|open| open.locked || holds(&open.target)) {
        also.push(Also::Holds);
    }
    let withstands = |process: &&Process| {
        let closer = process.closer.as_ref();
        closer.and_then(|closer| closer.withstands_term.value()) == Some(&true)
    };
    if processes.iter().any(withstands) {
        also.push(Also::TermImmune);
    }
    let unread = transport
        .stdin
        .unread_bytes
        .as_ref()
        .and_then(|bytes| bytes.value());
    if unread.is_some_and(|bytes| *bytes > 0) {
        also.push(Also::Busy);
    }
    also
}

/// Runs now, and has wanted a processor most of its whole life, whether or not it got one.
fn spins(process: &Process) -> bool {
    let waited = process
        .closer
        .as_ref()
        .and_then(|closer| closer.runnable_ms);
    let wanted_ms = process.cpu_ms.max(waited.unwrap_or(0));
    process.stat.starts_with('R') && wanted_ms.saturating_mul(2) > process.elapsed_ms.max(2000)
}

/// A process that nobody configured: told of as it is, without a judgement.
fn plain(
    world: &World<'_>,
    process: &Process,
    extent: Extent,
    concerns_us: impl Fn(u32) -> bool,
) -> Option<Finding> {
    let of_a_unit = process.ppid == 1 || concerns_us(process.ppid);
    let zombie = process.is_zombie();
    if extent == Extent::Servers && !(zombie && of_a_unit) {
        return None;
    }
    let transport = Transport {
        stdin: wire::usual(world.snapshot(), process, Way::In).seen,
        stdout: wire::usual(world.snapshot(), process, Way::Out).seen,
    };
    let held = wire::strangers(&transport.stdin, |pid| pid == process.pid());
    let (verdict, confidence, what) = if zombie {
        let what = format!(
            "it has ended; its parent pid {} has not collected it",
            process.ppid
        );
        (Verdict::Zombie, Confidence::Proven, what)
    } else if let Some(holder) = held.first() {
        let what = format!("pid {} holds the other end of its input", holder.pid);
        (Verdict::Live, Confidence::Inferred, what)
    } else {
        let what = "no record or configuration names it, so it is not judged".to_owned();
        (Verdict::Unknown, Confidence::Unknown, what)
    };
    Some(Finding {
        id: finding_id(&process.id),
        verdict,
        confidence,
        also: Vec::new(),
        root: ProcessView::from(process),
        members: Vec::new(),
        server: None,
        session: None,
        owner: None,
        transport,
        authority: authority(world, &[process], Gate::None),
        evidence: vec![Evidence {
            what,
            source: EvidenceSource::Proc,
            strength: EvidenceStrength::Strong,
            at: process.observed_at,
        }],
        suggest: Suggest::Leave,
    })
}

fn sums(input: &Input<'_>, findings: &[Finding], unreadable: &[Unreadable]) -> Sums {
    let count = |test: &dyn Fn(&Finding) -> bool| findings.iter().filter(|one| test(one)).count();
    // What is told of without being judged is no server.
    let judged = |one: &Finding| one.server.is_some() || one.session.is_some();
    let pids: BTreeSet<u32> = unreadable.iter().filter_map(|gap| gap.pid).collect();
    let orphans = findings.iter().filter(|one| one.verdict.is_orphan());
    Sums {
        processes: input.snapshot.processes.len(),
        live: count(&|one| one.verdict.is_in_use() && judged(one)),
        orphaned: count(&|one| one.verdict.is_orphan()),
        suspected: count(&|one| one.verdict == Verdict::LogicalOrphanSuspect),
        unknown: count(&|one| one.verdict == Verdict::Unknown && judged(one)),
        orphaned_rss_bytes: orphans.map(rss).sum(),
        not_readable: pids.len(),
    }
}

fn rss(finding: &Finding) -> u64 {
    let members: u64 = finding.members.iter().map(|member| member.rss_bytes).sum();
    finding.root.rss_bytes + members
}

/// Returns the command line of a process as one text for a person.
#[must_use]
pub fn command_text(process: &ProcessView) -> Foreign {
    match process.command.value() {
        Some(words) if words.is_empty() => Foreign::from("(no command line)"),
        Some(words) => {
            let words: Vec<&str> = words.iter().map(Foreign::raw).collect();
            Foreign::new(words.join(" "))
        }
        None => Foreign::from("(command line not readable)"),
    }
}
