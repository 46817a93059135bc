//! Reads a folder and hands back the value that the next step consumes, so that a crash costs one step.

use model::{Home, IncidentId};

use crate::{
    attribute::{Attribute, Attributed},
    case::Case,
    confirm::{Confirmation, Confirmed},
    error::IncidentError,
    preserve::{Preserve, Preserved},
    reconcile::{Reconcile, Reconciled},
    record::{Recorded, State},
    revoke::{Revoke, Revoked},
    step::Body,
    terminate::Terminated,
};

/// How far an incident has come.
#[derive(Debug)]
pub enum Stage {
    /// Next: attribute.
    Preserved(Preserved),
    /// Next: revoke.
    Attributed(Attributed),
    /// Next: confirm.
    Revoked(Revoked),
    /// Next: terminate.
    Confirmed(Confirmed),
    /// Next: reconcile.
    Terminated(Terminated),
    /// Next: record.
    Reconciled(Reconciled),
    /// It has a record.
    Recorded(Recorded),
}

/// Opens an incident where it stopped.
///
/// # Errors
/// There is none, it is closed, somebody works on it, its folder is damaged, or its first step was cut off:
/// then nothing was done to any process and a new one can be opened.
pub fn resume(home: &Home, id: IncidentId) -> Result<Stage, IncidentError> {
    let case = Case::open(home, id)?;
    if case.is_closed() {
        return Err(IncidentError::Closed(id));
    }
    let steps = Steps::of(&case);
    let record = steps.record;
    Stage::from(case, steps, record)
}

/// The newest step of each kind, each only if it belongs to the newest pass.
struct Steps {
    preserve: Option<Preserve>,
    attribute: Option<Attribute>,
    revoke: Option<Revoke>,
    confirm: Option<Confirmation>,
    terminated: bool,
    reconcile: Option<Reconcile>,
    record: Option<State>,
}

impl Steps {
    fn of(case: &Case) -> Self {
        let mut found = Self {
            preserve: None,
            attribute: None,
            revoke: None,
            confirm: None,
            terminated: false,
            reconcile: None,
            record: None,
        };
        for step in case.steps() {
            match step.body.clone() {
                Body::Preserve(body) => found.preserve = Some(body),
                Body::Attribute(body) => found.attribute = Some(*body),
                Body::Revoke(body) => found.revoke = Some(body),
                // A refusal that was seen late is written after the processes were ended.
                Body::Confirm(body) => found.confirm = Some(body),
                Body::Terminate(_) => {
                    found.terminated = true;
                    found.reconcile = None;
                    found.record = None;
                }
                Body::Reconcile(body) => {
                    found.reconcile = Some(body);
                    found.record = None;
                }
                Body::Record(body) => found.record = Some(body.state),
                Body::Note { .. } | Body::Attach { .. } | Body::Close { .. } => {}
            }
        }
        found
    }
}

impl Stage {
    fn from(case: Case, steps: Steps, record: Option<State>) -> Result<Self, IncidentError> {
        let Some(preserve) = steps.preserve else {
            return Err(IncidentError::Damaged {
                path: case.folder().to_owned(),
                why: "its first step was cut off; nothing was done, open a new one".to_owned(),
            });
        };
        let Some(attribute) = steps.attribute else {
            let body = preserve;
            return Ok(Self::Preserved(Preserved { case, body }));
        };
        let Some(revoke) = steps.revoke else {
            return Ok(Self::Attributed(Attributed {
                case,
                preserve,
                body: attribute,
            }));
        };
        let Some(confirm) = steps.confirm else {
            return Ok(Self::Revoked(Revoked {
                case,
                preserve,
                attribute,
                body: revoke,
            }));
        };
        if !steps.terminated {
            return Ok(Self::Confirmed(Confirmed {
                case,
                preserve,
                attribute,
                revoke,
                body: confirm,
            }));
        }
        if let Some(state) = record {
            return Ok(Self::Recorded(Recorded { case, state }));
        }
        Ok(match steps.reconcile {
            None => Self::Terminated(Terminated {
                case,
                preserve,
                attribute,
                revoke,
                confirm,
                fresh: true,
            }),
            Some(body) => Self::Reconciled(Reconciled {
                case,
                preserve,
                revoke,
                confirm,
                body,
            }),
        })
    }
}

impl Recorded {
    /// Takes the incident up again: to end what was left if anything was, else to compare both sides again.
    ///
    /// # Errors
    /// The folder is damaged.
    pub fn again(self) -> Result<Stage, IncidentError> {
        let mut steps = Steps::of(&self.case);
        let reconciled = steps.reconcile.take();
        let anything_left = reconciled.is_some_and(|body| !body.left.is_empty());
        steps.terminated = !anything_left;
        let mut stage = Stage::from(self.case, steps, None)?;
        if let Stage::Terminated(done) = &mut stage {
            // Who came back then has been judged; only who is there now counts.
            done.fresh = false;
        }
        Ok(stage)
    }
}
