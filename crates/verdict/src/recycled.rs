//! Records that name a process whose number has another holder by now.
//!
//! Such a process is a stranger: it is told of so that nobody takes it for the one on record, and is left
//! alone. Only records of this boot, whose connection is not known to have closed, expect anybody to live.

use std::collections::BTreeSet;

use inventory::Process;
use model::{LaunchRecord, LinkRole, ProcessId};

use crate::{
    Confidence, Evidence, EvidenceSource, EvidenceStrength, Finding, ProcessView, Suggest,
    Transport, Verdict,
    authority::{Gate, authority},
    report::finding_id,
    wire::{self, Way},
    world::World,
};

/// Returns a finding for every process that has a number which a record gives to another.
pub(crate) fn recycled(world: &World<'_>, is_told: impl Fn(u32) -> bool) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let open = |record: &&LaunchRecord| record.transport_closed_at.is_none();
    let mut findings = Vec::new();
    for record in world.input.launches.iter().filter(open) {
        for id in named(record) {
            let Some(process) = world.process(id.pid) else {
                continue;
            };
            let same_boot = id.boot_id == world.snapshot().boot_id;
            let another = same_boot && !id.same(&process.id);
            if another && !is_told(id.pid) && seen.insert(id.pid) {
                findings.push(finding(world, process, record, id));
            }
        }
    }
    findings
}

/// The processes that a record expects to find; those found dead are expected no more.
fn named(record: &LaunchRecord) -> impl Iterator<Item = &ProcessId> {
    let links = record
        .chain
        .iter()
        .filter(|link| link.role == LinkRole::Shim || link.role.is_holder())
        .map(|link| &link.process.id);
    let children = record.children.iter().map(|child| &child.process.id);
    let lost = |id: &ProcessId| record.lost.iter().any(|lost| lost.process.id.same(id));
    links.chain(children).filter(move |id| !lost(id))
}

fn finding(world: &World<'_>, process: &Process, record: &LaunchRecord, id: &ProcessId) -> Finding {
    let what = format!(
        "run {} names a process {} that started at tick {}{}; this one is another",
        record.session,
        id.pid,
        id.start_ticks,
        id.pidfd_inode
            .map_or_else(String::new, |inode| format!(", pidfd inode {inode}"))
    );
    Finding {
        id: finding_id(&process.id),
        verdict: Verdict::Recycled,
        confidence: Confidence::Proven,
        also: Vec::new(),
        root: ProcessView::from(process),
        members: Vec::new(),
        server: None,
        session: None,
        owner: None,
        transport: Transport {
            stdin: wire::usual(world.snapshot(), process, Way::In).seen,
            stdout: wire::usual(world.snapshot(), process, Way::Out).seen,
        },
        authority: authority(world, &[process], Gate::None),
        evidence: vec![Evidence {
            what,
            source: EvidenceSource::LaunchRecord,
            strength: EvidenceStrength::Strong,
            at: process.observed_at,
        }],
        suggest: Suggest::Leave,
    }
}
