//! What launch records add: runs whose meaning is gone though their wire is open.
//!
//! A logical orphan is asserted only with a record. A record is a hint of medium strength (the user could have
//! written it), so the log's clear headers confirm or contradict it.

use inventory::Process;
use model::{ChainLink, Known, LaunchRecord, SessionState};

use crate::{
    Authority, Confidence, Evidence, EvidenceSource as Source, EvidenceStrength as Weight, Finding,
    Owner, ProcessView, Suggest, Verdict,
    authority::authority,
    case::Case,
    report::finding_id,
    units::{Unit, Units},
    world::World,
};

/// Returns the client.
pub(crate) fn holder(record: &LaunchRecord) -> Option<&ChainLink> {
    record.chain.iter().find(|link| link.role.is_holder())
}

/// Tells whether the process of a link lives; none if that cannot be told.
pub(crate) fn alive(world: &World<'_>, link: &ChainLink) -> Option<bool> {
    match world.process(link.process.id.pid) {
        Some(process) => Some(process.id.same(&link.process.id) && !process.is_zombie()),
        None if hides_processes(world) => None,
        None => Some(false),
    }
}

fn hides_processes(world: &World<'_>) -> bool {
    world
        .snapshot()
        .unreadable
        .iter()
        .any(|gap| gap.pid.is_none() || gap.what == "process")
}

/// Returns the findings on runs, each with all processes that belong to it.
pub(crate) fn findings(world: &World<'_>, units: &Units<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for unit in units.iter() {
        let Some(record) = unit.record else {
            continue;
        };
        let Some(finding) = run(world, units, unit, record) else {
            continue;
        };
        // Several connections of one run have one holder: that is one finding.
        if found.iter().all(|other| other.id != finding.id) {
            found.push(finding);
        }
    }
    found
}

fn run(
    world: &World<'_>,
    units: &Units<'_>,
    unit: &Unit<'_>,
    record: &LaunchRecord,
) -> Option<Finding> {
    let holder = holder(record)?;
    let living = world
        .process(holder.process.id.pid)
        .filter(|_| alive(world, holder) == Some(true))?;
    let fact = world.input.log.sessions.get(&record.session);
    if fact.is_some_and(|fact| fact.state == SessionState::Ended) {
        return None;
    }
    let unknown_to_log = world.input.log.read && fact.is_none();
    let dead = first_dead_above(world, record);
    let revoked = is_revoked(world, record);
    // Clear headers call every trouble with a client lost, also one that was only stuck for a while.
    let troubled = fact.is_some_and(|fact| {
        matches!(
            fact.state,
            SessionState::Lost | SessionState::Abandoned | SessionState::Stuck
        )
    });
    let root = match dead {
        Some(_) => living,
        None if revoked || troubled => unit.root,
        None => return None,
    };
    let asserted = !unknown_to_log && (dead.is_some() || revoked);
    let mut case = Case::new(world, unit, units);
    let whose = match dead {
        Some(_) => format!("pid {}'s", unit.root.pid()),
        None => "its".to_owned(),
    };
    case.note_input(&whose);
    let owner = dead.map(|dead| {
        case.note(
            Source::LaunchRecord,
            Weight::Medium,
            dead_link_text(record, dead),
        );
        Owner {
            pid: dead.process.id.pid,
            command: dead.process.command.clone().into(),
            alive: false,
            stuck_since: None,
        }
    });
    case.evidence.extend(log_evidence(&case, record));
    // Below an owner that is gone stands a client, not a server.
    let server = if dead.is_some() { None } else { case.server() };
    case.evidence.sort_by_key(|evidence| evidence.source);
    let members = world.descendants(root.pid(), |_| false);
    let processes: Vec<&Process> = std::iter::once(root)
        .chain(members.iter().filter_map(|pid| world.process(*pid)))
        .collect();
    let (verdict, confidence, suggest) = if asserted {
        (
            Verdict::LogicalOrphan,
            Confidence::Inferred,
            Suggest::Contain,
        )
    } else {
        (
            Verdict::LogicalOrphanSuspect,
            Confidence::Suspected,
            Suggest::Report,
        )
    };
    Some(Finding {
        id: finding_id(&root.id),
        verdict,
        confidence,
        also: Vec::new(),
        root: ProcessView::from(root),
        members: processes
            .iter()
            .skip(1)
            .copied()
            .map(ProcessView::from)
            .collect(),
        server,
        session: Some(record.session),
        owner: owner.or_else(|| {
            case.owned_by(living);
            let stuck = fact.filter(|fact| fact.state == SessionState::Stuck);
            let recorded = stuck.and_then(|fact| fact.since).map(Known::Yes);
            let owner = case.owner.clone()?;
            Some(Owner {
                stuck_since: owner.stuck_since.or(recorded),
                ..owner
            })
        }),
        transport: case.transport(),
        authority: run_authority(world, record, &processes),
        evidence: case.evidence,
        suggest,
    })
}

/// The nearest link above the holder that is dead. A shell at the top may end in peace: `agent & exit`.
fn first_dead_above<'r>(world: &World<'_>, record: &'r LaunchRecord) -> Option<&'r ChainLink> {
    let found_dead = |link: &ChainLink| {
        let seen = |lost: &model::LinkSeen| lost.process.id.same(&link.process.id);
        record.lost.iter().any(seen) || alive(world, link) == Some(false)
    };
    // What stands between shim and holder are launchers; some of them end as soon as they have launched.
    record
        .chain
        .iter()
        .skip_while(|link| !link.role.is_holder())
        .skip(1)
        .find(|link| found_dead(link) && !is_plain_shell(link))
}

/// A shell that a person types into, and no script's.
pub(crate) fn is_plain_shell(link: &ChainLink) -> bool {
    let mut words = link.process.command.iter();
    let is_shell = words
        .next()
        .is_some_and(|program| clients::is_shell(program.raw()));
    is_shell && words.all(|word| !word.raw().ends_with('c') || !word.raw().starts_with('-'))
}

fn dead_link_text(record: &LaunchRecord, dead: &ChainLink) -> String {
    let command: Vec<String> = dead
        .process
        .command
        .iter()
        .map(ToString::to_string)
        .collect();
    let found = record
        .lost
        .iter()
        .find(|lost| lost.process.id.same(&dead.process.id))
        .map_or_else(String::new, |lost| format!(", found dead at {}", lost.at));
    format!(
        "run {} was started below pid {} ({}), which is dead{found}",
        record.session,
        dead.process.id.pid,
        command.join(" ")
    )
}

pub(crate) fn log_evidence(case: &Case<'_, '_>, record: &LaunchRecord) -> Option<Evidence> {
    let log = case.world.input.log;
    let (what, strength) = match log.sessions.get(&record.session) {
        Some(fact) => (
            format!("the log has run {} as {}", record.session, fact.state),
            Weight::Strong,
        ),
        None if log.read => (
            format!(
                "the log knows no run {}: the record may be false",
                record.session
            ),
            Weight::Strong,
        ),
        None => return None,
    };
    Some(Evidence {
        what,
        source: Source::Log,
        strength,
        at: case.at(),
    })
}

/// A run's way out is our own gate, as long as it was not taken away.
pub(crate) fn run_authority(
    world: &World<'_>,
    record: &LaunchRecord,
    processes: &[&Process],
) -> Authority {
    let gate = if is_revoked(world, record) {
        crate::authority::Gate::Revoked
    } else {
        crate::authority::Gate::Open
    };
    authority(world, processes, gate)
}

fn is_revoked(world: &World<'_>, record: &LaunchRecord) -> bool {
    let fact = world.input.log.sessions.get(&record.session);
    record.revoked_at.is_some() || fact.is_some_and(|fact| fact.state == SessionState::Revoked)
}
