//! The fifth step: end the processes that were preserved, one by one, and see who comes back.

use std::time::Duration;

use model::{Foreign, Known, ProcessId, ProcessRef, Wall};
use serde::{Deserialize, Serialize};
use supervise::{
    Before, EndRecord, Evidence, Family, NotATarget, Plan, Respawn, Sighting, Standing, Target,
    respawned, terminate,
};
use sys::process::Handle;

use crate::{
    attribute::Attribute,
    case::Case,
    confirm::{Confirmation, Confirmed},
    desk::Desk,
    error::IncidentError,
    eyes::{Eyes, Sight},
    folder::{EvidenceFile, to_json},
    preserve::Preserve,
    revoke::Revoke,
    step::Body,
};

/// How the processes are ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How long they may take, and whether they may be forced.
    pub plan: Plan,
    /// How long is watched whether somebody starts one again.
    pub watch: Duration,
}

impl Ending {
    /// Restart loops that were seen wait two seconds; one that waits longer is found when the incident is
    /// taken up again.
    const WATCH: Duration = Duration::from_secs(4);

    /// Returns an ending by this plan, with the usual watch.
    #[must_use]
    pub const fn by(plan: Plan) -> Self {
        Self {
            plan,
            watch: Self::WATCH,
        }
    }
}

/// The pause between two looks of the watch.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// What was done to the processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminate {
    /// How long SIGTERM had to work, in milliseconds.
    pub grace_ms: u64,
    /// The operator's reason to kill what was left then.
    pub force: Option<Foreign>,
    /// What was done to each and what came of it.
    pub ended: Vec<EndRecord>,
    /// Who was there before the first signal; empty where that could not be seen.
    #[serde(default)]
    pub before: Before,
    /// Processes that were not signalled at all.
    pub not_signalled: Vec<NotSignalled>,
    /// Who came back.
    pub respawned: Known<Vec<Respawn>>,
}

/// A process that was not signalled at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSignalled {
    /// Which process.
    pub process: ProcessRef,
    /// Whether that is because it had ended.
    pub gone: bool,
    /// Why.
    pub why: String,
    /// When that was found.
    pub at: Wall,
}

/// What is about to be done, durable before the first signal: after a crash nothing else would tell that
/// signals may have been sent.
#[derive(Serialize)]
struct Intent<'a> {
    targets: Vec<&'a ProcessRef>,
    grace_ms: u64,
    force: Option<&'a str>,
}

/// An incident whose processes have been ended, as far as they could be.
#[derive(Debug)]
pub struct Terminated {
    pub(crate) case: Case,
    pub(crate) preserve: Preserve,
    pub(crate) attribute: Attribute,
    pub(crate) revoke: Revoke,
    pub(crate) confirm: Confirmation,
    /// Whether this was just done, so that whoever came back counts even if it is gone again.
    pub(crate) fresh: bool,
}

impl Confirmed {
    /// Ends the processes.
    ///
    /// # Errors
    /// The file system refused before the first signal, or after the last one: then the intent is durable
    /// and what became of the processes is found when the incident is taken up again.
    pub fn terminate(
        mut self,
        ending: &Ending,
        desk: &mut Desk<'_>,
    ) -> Result<Terminated, IncidentError> {
        let plan = &ending.plan;
        let (targets, not_signalled) = self.targets(desk);
        let intent = Intent {
            targets: targets.iter().map(Target::process).collect(),
            grace_ms: millis(plan.grace),
            force: plan.force.as_ref().map(supervise::Force::reason),
        };
        let mut evidence = vec![
            self.case
                .keep("terminate-intent.json", &to_json(&intent)?)?,
        ];
        let mut brood = Brood {
            case: &self.case,
            left_out: &self.preserve.left_out,
            eyes: &mut *desk.eyes,
            evidence: Vec::new(),
        };
        let before = before(brood.eyes);
        let ended = terminate(targets, plan, &mut brood, desk.clock);
        evidence.append(&mut brood.evidence);
        let body = Terminate {
            grace_ms: millis(plan.grace),
            force: plan
                .force
                .as_ref()
                .map(|force| Foreign::new(force.reason())),
            respawned: watch((&ended, &before), ending.watch, desk.eyes),
            ended,
            before,
            not_signalled,
        };
        self.case.append(desk, evidence, Body::Terminate(body))?;
        Ok(Terminated {
            case: self.case,
            preserve: self.preserve,
            attribute: self.attribute,
            revoke: self.revoke,
            confirm: self.body,
            fresh: true,
        })
    }

    /// Takes hold of every process of the incident that may be signalled.
    fn targets(&self, desk: &Desk<'_>) -> (Vec<Target>, Vec<NotSignalled>) {
        let mut targets = Vec::new();
        let mut others = Vec::new();
        let at = desk.clock.now().wall;
        for subject in &self.preserve.subjects {
            let evidence = Evidence {
                process: subject.process.clone(),
                standing: subject.standing,
            };
            match Target::verify(&evidence) {
                Ok(target) => targets.push(target),
                Err(refused) => others.push(not_signalled(&subject.process, &refused, at)),
            }
        }
        (targets, others)
    }
}

fn not_signalled(process: &ProcessRef, refused: &NotATarget, at: Wall) -> NotSignalled {
    NotSignalled {
        process: process.clone(),
        gone: refused.is_gone(),
        why: refused.to_string(),
        at,
    }
}

/// Finds children that were born after the evidence was taken, and preserves what they are first.
struct Brood<'a> {
    case: &'a Case,
    left_out: &'a [ProcessRef],
    eyes: &'a mut dyn Eyes,
    evidence: Vec<EvidenceFile>,
}

impl Family for Brood<'_> {
    fn new_children(&mut self, of: &[ProcessId]) -> Vec<Target> {
        // Who cannot be seen is not signalled: nothing would be known of it.
        let Ok(look) = self.eyes.look() else {
            return Vec::new();
        };
        look.processes
            .iter()
            .filter(|sight| {
                let id = &sight.process.id;
                let is_child = sight
                    .parent
                    .as_ref()
                    .is_some_and(|parent| of.iter().any(|one| one.same(parent)));
                let is_known = of.iter().any(|one| one.same(id))
                    || self.left_out.iter().any(|one| one.id.same(id));
                is_child && !is_known
            })
            .filter_map(|sight| adopt(self.case, &mut self.evidence, &sight.process))
            .collect()
    }
}

fn adopt(case: &Case, kept: &mut Vec<EvidenceFile>, process: &ProcessRef) -> Option<Target> {
    // Held once more for its full identity, before anything is written about it.
    let process = Handle::reopen(&process.id).and_then(|handle| handle.describe());
    let process = process.ok()?;
    let name = format!("child-{}.json", process.id.pid);
    let json = to_json(&process).ok()?;
    let target = Target::verify(&Evidence {
        process,
        standing: Standing::Endable,
    })
    .ok()?;
    let file = case.keep(&name, &json).ok()?;
    kept.push(file);
    Some(target)
}

/// Whoever cannot be seen now is taken for somebody new later: rather one question too many.
fn before(eyes: &mut dyn Eyes) -> Before {
    let look = eyes.look().ok();
    let processes = look.iter().flat_map(|look| &look.processes);
    Before::of(processes.map(|sight| &sight.process.id))
}

fn watch(
    pass: (&[EndRecord], &Before),
    at_most: Duration,
    eyes: &mut dyn Eyes,
) -> Known<Vec<Respawn>> {
    if !pass.0.iter().any(EndRecord::is_gone) {
        return Known::Yes(Vec::new());
    }
    let until = std::time::Instant::now() + at_most;
    loop {
        let found = came_back(&[pass], eyes);
        let nobody = found.value().is_some_and(Vec::is_empty);
        if !nobody || std::time::Instant::now() >= until {
            return found;
        }
        std::thread::sleep(WATCH_EVERY);
    }
}

/// Looks once for processes that somebody started in the place of ended ones: those that each pass ended, beside those
/// that were there before it.
pub(crate) fn came_back(
    passes: &[(&[EndRecord], &Before)],
    eyes: &mut dyn Eyes,
) -> Known<Vec<Respawn>> {
    let look = match eyes.look() {
        Ok(look) => look,
        Err(error) => return Known::unknown(error.to_string()),
    };
    let sighting = |sight: Sight| Sighting {
        process: sight.process,
        parent: sight.parent,
    };
    let all: Vec<Sighting> = look.processes.into_iter().map(sighting).collect();
    let in_place = |(ended, before): &(&[EndRecord], &Before)| respawned(ended, before, &all);
    let mut found: Vec<Respawn> = passes.iter().flat_map(in_place).collect();
    found.retain(|respawn| !eyes.is_in_use(&respawn.now.id));
    Known::Yes(found)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
