//! What is still to be done, computed from the steps: nobody can forget to write it down.

use model::{Foreign, Known, Operator, Wall};
use serde::{Deserialize, Serialize};

use crate::{
    case::Case, confirm::Confirmation, reconcile::Reconciled, revoke::Revoke, step::Body,
    subject::Subject,
};

/// One thing that is still to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowUp {
    /// Names it within the incident; the same thing has the same name when the incident is taken up again.
    pub id: String,
    /// What kind of thing it is.
    pub kind: FollowUpKind,
    /// What to do.
    pub what: Foreign,
    /// The process that it is about.
    pub pid: Option<u32>,
    /// That it is done; none while it is open.
    pub done: Option<Done>,
}

/// What kind of thing is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUpKind {
    /// Replace or disable a secret that a process holds itself.
    Rotate,
    /// Find out what became of a call.
    Reconcile,
    /// End a process that is still there.
    End,
    /// Stop whoever starts it again.
    StopSupervisor,
    /// Take authority away, which could not be done.
    Revoke,
    /// Find out what could not be seen.
    Look,
}

/// That something is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// When it was noted.
    pub at: Wall,
    /// By whom.
    pub by: Operator,
    /// What was noted.
    pub note: Foreign,
}

impl FollowUp {
    /// Tells whether it is still to be done.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.done.is_none()
    }

    fn new(kind: FollowUpKind, id: String, what: String, pid: Option<u32>) -> Self {
        Self {
            id,
            kind,
            what: Foreign::new(what),
            pid,
            done: None,
        }
    }
}

impl Case {
    /// Returns what the newest record asks for, with what has been noted as done.
    #[must_use]
    pub fn follow_up(&self) -> Vec<FollowUp> {
        let record = self.latest_record();
        let mut items = record
            .map(|record| record.follow_up.clone())
            .unwrap_or_default();
        for item in &mut items {
            item.done = self.steps().find_map(|step| {
                let Body::Note { text, done } = &step.body else {
                    return None;
                };
                (done.as_ref() == Some(&item.id)).then(|| Done {
                    at: step.at.wall,
                    by: step.by.clone(),
                    note: text.clone(),
                })
            });
        }
        items
    }
}

/// Returns everything that a finished pass leaves to be done.
pub(crate) fn required(done: &Reconciled) -> Vec<FollowUp> {
    let mut items = Vec::new();
    rotations(done, &mut items);
    calls(done, &mut items);
    processes(done, &mut items);
    if let Revoke::NoDaemon { session, why } = &done.revoke {
        items.push(FollowUp::new(
            FollowUpKind::Revoke,
            format!("revoke:{session}"),
            format!("revoke {session}, which could not be done: {why}"),
            None,
        ));
    }
    unseen(done, &mut items);
    items
}

/// Ending a process removes one copy of a secret from memory and nothing else.
fn rotations(done: &Reconciled, items: &mut Vec<FollowUp>) {
    for subject in &done.preserve.subjects {
        let pid = subject.process.id.pid;
        for secret in &subject.reach.secrets {
            let name = secret.raw();
            let id = format!("rotate:{name}@{pid}");
            let what = format!("rotate or disable {name}: process {pid} held it itself");
            items.push(FollowUp::new(FollowUpKind::Rotate, id, what, Some(pid)));
        }
    }
}

fn calls(done: &Reconciled, items: &mut Vec<FollowUp>) {
    for call in &done.body.open {
        let id = format!("reconcile:{call}");
        let what = format!("find out what became of call {call}, then `lych reconcile resolve`");
        items.push(FollowUp::new(FollowUpKind::Reconcile, id, what, None));
    }
    if let Known::Unknown { unknown } = &done.body.remote_ended {
        let what = format!("look at the remote side yourself: {unknown}");
        let id = "look:remote".to_owned();
        items.push(FollowUp::new(FollowUpKind::Look, id, what, None));
    }
}

fn processes(done: &Reconciled, items: &mut Vec<FollowUp>) {
    for process in &done.body.left {
        let pid = process.pid;
        let what = format!("end process {pid}, which is still there");
        let id = format!("end:{pid}");
        items.push(FollowUp::new(FollowUpKind::End, id, what, Some(pid)));
    }
    for respawn in done.body.respawned.value().into_iter().flatten() {
        let (by, now) = (respawn.by.pid, respawn.now.id.pid);
        let what = format!("stop process {by}, which started it again as process {now}");
        let id = format!("stop:{by}");
        items.push(FollowUp::new(
            FollowUpKind::StopSupervisor,
            id,
            what,
            Some(by),
        ));
    }
    for (at, why) in done.body.unclear.iter().enumerate() {
        let what = format!("find out whether it has ended: {why}");
        let id = format!("look:process-{}", at + 1);
        items.push(FollowUp::new(FollowUpKind::Look, id, what, None));
    }
    if let Known::Unknown { unknown } = &done.body.respawned {
        let what = format!("look whether anything was started again: {unknown}");
        let id = "look:respawn".to_owned();
        items.push(FollowUp::new(FollowUpKind::Look, id, what, None));
    }
}

/// What a process reached through somebody else's socket is not ended with it.
fn paths(subject: &Subject, items: &mut Vec<FollowUp>) {
    if subject.reach.paths.is_empty() {
        return;
    }
    let pid = subject.process.id.pid;
    let paths: Vec<&str> = subject.reach.paths.iter().map(Foreign::raw).collect();
    let what = format!(
        "process {pid} could reach {}: look there for what it did",
        paths.join(", ")
    );
    let id = format!("look:paths@{pid}");
    items.push(FollowUp::new(FollowUpKind::Look, id, what, Some(pid)));
}

fn unseen(done: &Reconciled, items: &mut Vec<FollowUp>) {
    if let Confirmation::NotObserved { why } = &done.confirm {
        let what = format!("no refusal was seen ({why}): make sure that its authority is gone");
        let id = "look:refusal".to_owned();
        items.push(FollowUp::new(FollowUpKind::Look, id, what, None));
    }
    for subject in &done.preserve.subjects {
        paths(subject, items);
    }
    for process in &done.preserve.left_out {
        let pid = process.id.pid;
        let what = format!("look at process {pid}, a child that no finding counts among them");
        let id = format!("look:child-{pid}");
        items.push(FollowUp::new(FollowUpKind::Look, id, what, Some(pid)));
    }
}
