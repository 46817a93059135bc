//! The sixth step: do the local side and the remote side agree that the run has ended?

use model::{CallId, CallState, Known, ProcessId};
use serde::{Deserialize, Serialize};
use supervise::Respawn;
use sys::process::Handle;

use crate::{
    attribute::known,
    authority::CallFact,
    case::Case,
    confirm::{Confirmation, confirmation},
    desk::Desk,
    error::IncidentError,
    fate,
    preserve::Preserve,
    revoke::Revoke,
    step::Body,
    terminate::{Terminated, came_back},
};

/// What both sides look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconcile {
    /// The run's calls as they are now.
    pub calls: Known<Vec<CallFact>>,
    /// Those whose effect outside is not known to have ended.
    pub open: Vec<CallId>,
    /// Processes that still live.
    pub left: Vec<ProcessId>,
    /// Processes of which it could not be found out, with the reason.
    pub unclear: Vec<String>,
    /// Who came back.
    pub respawned: Known<Vec<Respawn>>,
    /// Whether nothing is left on this machine.
    pub local_ended: bool,
    /// Whether nothing is left at the remote side; unknown where no record could tell.
    pub remote_ended: Known<bool>,
}

impl Reconcile {
    /// Tells whether this process was looked for and had ended.
    pub(crate) fn says_gone(&self, process: &ProcessId) -> bool {
        self.unclear.is_empty() && !self.left.iter().any(|left| left.same(process))
    }

    /// Tells whether both sides are known to have ended.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.local_ended && self.remote_ended.value() == Some(&true)
    }
}

/// An incident in which both sides have been compared.
#[derive(Debug)]
pub struct Reconciled {
    pub(crate) case: Case,
    pub(crate) preserve: Preserve,
    pub(crate) revoke: Revoke,
    pub(crate) confirm: Confirmation,
    pub(crate) body: Reconcile,
}

impl Terminated {
    /// Compares both sides.
    ///
    /// # Errors
    /// The file system refused.
    pub fn reconcile(mut self, desk: &mut Desk<'_>) -> Result<Reconciled, IncidentError> {
        self.look_for_a_late_refusal(desk)?;
        let (left, unclear) = left(&self.case);
        let came_back = self.came_back(desk);
        let calls = match self.attribute.session {
            Some(session) => known(desk.authority.calls(session)),
            None => self.attribute.calls.clone(),
        };
        let open = calls.value().map(|calls| open(calls)).unwrap_or_default();
        let nobody_back = came_back.value().is_some_and(Vec::is_empty);
        let body = Reconcile {
            local_ended: left.is_empty() && unclear.is_empty() && nobody_back,
            remote_ended: self.remote_ended(&calls, &open),
            calls,
            open,
            left,
            unclear,
            respawned: came_back,
        };
        self.case
            .append(desk, Vec::new(), Body::Reconcile(body.clone()))?;
        Ok(Reconciled {
            case: self.case,
            preserve: self.preserve,
            revoke: self.revoke,
            confirm: self.confirm,
            body,
        })
    }

    /// A survivor that is told to end often makes one more call: its refusal confirms as well as any.
    fn look_for_a_late_refusal(&mut self, desk: &mut Desk<'_>) -> Result<(), IncidentError> {
        if !matches!(self.confirm, Confirmation::NotObserved { .. }) {
            return Ok(());
        }
        let subjects = &self.preserve.subjects;
        let now = confirmation(&self.revoke, subjects, std::time::Duration::ZERO, desk);
        if now.is_refused() {
            self.confirm = now.clone();
            self.case.append(desk, Vec::new(), Body::Confirm(now))?;
        }
        Ok(())
    }

    fn came_back(&self, desk: &mut Desk<'_>) -> Known<Vec<Respawn>> {
        let passes: Vec<_> = self
            .case
            .steps()
            .filter_map(|step| step.body.terminate())
            .map(|body| (body.ended.as_slice(), &body.before))
            .collect();
        let now = match came_back(&passes, desk.eyes) {
            Known::Yes(now) => now,
            unknown @ Known::Unknown { .. } => return unknown,
        };
        let newest = self.case.newest(Body::terminate).filter(|_| self.fresh);
        let before = newest.and_then(|body| body.respawned.value().cloned());
        let mut all = before.unwrap_or_default();
        all.extend(now);
        all.dedup_by(|a, b| a.now.id.same(&b.now.id));
        Known::Yes(all)
    }

    fn remote_ended(&self, calls: &Known<Vec<CallFact>>, open: &[CallId]) -> Known<bool> {
        if self.attribute.session.is_none() {
            return Known::unknown(
                "no run of ours: what these processes did outside is not on record",
            );
        }
        match calls {
            Known::Yes(_) => Known::Yes(open.is_empty()),
            Known::Unknown { unknown } => Known::unknown(unknown.clone()),
        }
    }
}

/// A call that is only attempted counts as well: a missing clearance proves nothing.
fn open(calls: &[CallFact]) -> Vec<CallId> {
    let is_open = |call: &&CallFact| {
        (call.state.is_open() || call.state == CallState::Attempted) && !only_reads(call)
    };
    calls.iter().filter(is_open).map(|call| call.id).collect()
}

/// A read whose answer was lost changed nothing outside (RFC 9110, 9.2.1), so there is nothing to agree on.
/// One whose target is not known may have been a write.
fn only_reads(call: &CallFact) -> bool {
    let target = call.target.value();
    target.is_some_and(|target| matches!(target.method.raw(), "GET" | "HEAD" | "OPTIONS"))
}

/// Returns who of all processes of the incident still lives, and of whom that cannot be told.
fn left(case: &Case) -> (Vec<ProcessId>, Vec<String>) {
    let mut left = Vec::new();
    let mut unclear = Vec::new();
    for process in fate::processes(case) {
        match Handle::reopen(&process.id) {
            Ok(_) => left.push(process.id),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => unclear.push(format!("process {}: {error}", process.id.pid)),
        }
    }
    (left, unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_leaves_nothing_to_agree_on_and_a_write_or_an_unknown_target_does() {
        let call = |target: serde_json::Value| -> CallFact {
            serde_json::from_value(serde_json::json!({
                "id": "c-0000000000000000", "state": "unresolved", "seq": 1,
                "attempted_at": "2026-01-01T00:00:00.000Z", "cleared_at": null, "settled_at": null,
                "target": target, "destination": "x", "key": null, "status": null,
                "remote_id": null, "why": null, "denied_seq": null
            }))
            .unwrap()
        };
        let with = |method: &str| {
            call(
                serde_json::json!({"channel": "a", "operation": null, "method": method, "path": "/"}),
            )
        };

        assert!(only_reads(&with("GET")));
        assert!(!only_reads(&with("POST")));
        assert!(!only_reads(&call(
            serde_json::json!({"unknown": "the vault is locked"})
        )));
    }
}
