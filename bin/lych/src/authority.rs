//! The daemon's authority, as an incident reaches it: over the operator's socket, on record.

use std::time::{Duration, Instant};

use incident::{
    Authority, CallFact, Probed, Refusal, RefusedBy, Revocation, RunFact, Unanswered, Verification,
};
use model::{
    CallState, ChainLink, Digest, Explain, Home, IncidentId, Known, LinkRole, Lost, ProcessId,
    ProcessRef, Scope, Seq, SessionId, Wall,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::{
    CallView, SessionView,
    operator::{Request, Revoked},
};

use crate::{audit::known, operator::Operator};

/// How often the log is asked whether the survivor was refused.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The daemon of one home.
pub(crate) struct Daemon {
    operator: Operator,
    home: Home,
}

impl Daemon {
    /// Connects to the daemon.
    ///
    /// # Errors
    /// Nobody listens; use [`incident::Absent`] then.
    pub(crate) fn connect(home: &Home) -> Result<Self, Explain> {
        Ok(Self {
            operator: Operator::connect(home)?,
            home: home.clone(),
        })
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        field: &str,
    ) -> Result<T, Unanswered> {
        let mut value = self.operator.ask(request).map_err(failed)?;
        let part = if field.is_empty() {
            value
        } else {
            value.get_mut(field).map(Value::take).unwrap_or_default()
        };
        serde_json::from_value(part)
            .map_err(|error| Unanswered::Failed(format!("the daemon's answer: {error}")))
    }

    fn views(&mut self) -> Result<Vec<SessionView>, Unanswered> {
        self.ask(&Request::SessionsList, "sessions")
    }

    fn call_views(&mut self, session: SessionId) -> Result<Vec<CallView>, Unanswered> {
        let request = Request::ActivityList {
            session: Some(session),
            since: None,
            open_only: false,
            last: None,
        };
        self.ask(&request, "calls")
    }
}

fn failed(error: Explain) -> Unanswered {
    let text = error.why.map_or_else(
        || error.what.clone(),
        |why| format!("{}: {why}", error.what),
    );
    if error.exit == model::Exit::Unreachable {
        Unanswered::Absent(text)
    } else {
        Unanswered::Failed(text)
    }
}

impl Authority for Daemon {
    fn run_of(&mut self, process: &ProcessId) -> Result<Option<SessionId>, Unanswered> {
        let mut views = self.views()?;
        // A process can belong to several runs one after the other: the newest names it last.
        views.reverse();
        let in_chain = |view: &SessionView| {
            chain_of(view)
                .iter()
                .any(|link| link.role != LinkRole::Above && link.process.id.same(process))
        };
        Ok(views.iter().find(|view| in_chain(view)).map(|view| view.id))
    }

    fn session(&mut self, id: SessionId) -> Result<Option<RunFact>, Unanswered> {
        let view = self.views()?.into_iter().find(|view| view.id == id);
        Ok(view.map(|view| run_fact(&view)))
    }

    fn calls(&mut self, session: SessionId) -> Result<Vec<CallFact>, Unanswered> {
        // What we asked ourselves is none of the run's own.
        let own = |call: &CallView| call.probe.value() != Some(&true);
        let calls = self.call_views(session)?.into_iter().filter(own);
        Ok(calls.map(call_fact).collect())
    }

    fn revoke(&mut self, scope: &Scope, reason: &str) -> Result<Revocation, Unanswered> {
        let request = Request::Revoke {
            scope: scope.clone(),
            reason: reason.to_owned(),
        };
        let revoked: Revoked = self.ask(&request, "")?;
        Ok(Revocation {
            seq: revoked.seq,
            at: revoked.at,
            in_flight: revoked.in_flight,
            by: revoked.by,
        })
    }

    fn refusal_after(
        &mut self,
        session: SessionId,
        after: Seq,
        at_most: Duration,
    ) -> Result<Option<Refusal>, Unanswered> {
        let end = Instant::now() + at_most;
        loop {
            let own = |call: &&CallView| call.probe.value() != Some(&true);
            let denied = |call: &CallView| {
                call.settled_seq
                    .filter(|seq| call.state == CallState::Denied && *seq > after)
            };
            if let Some(seq) = self
                .call_views(session)?
                .iter()
                .filter(own)
                .filter_map(denied)
                .min()
            {
                return Ok(Some(Refusal {
                    seq,
                    by: RefusedBy::OwnAttempt,
                }));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn probe(&mut self, session: SessionId) -> Result<Probed, Unanswered> {
        let said: Value = self.ask(&Request::Probe { session }, "")?;
        let seq = said.get("seq").and_then(Value::as_u64);
        let why = said.get("refused").and_then(Value::as_str);
        Ok(match (why, seq) {
            // A run that the gate does not hold any more has no authority either.
            (Some("revoked" | "client_lost"), Some(seq)) => Probed::Refused(seq),
            (Some(why), _) => Probed::Otherwise(format!("it was refused as {why}")),
            (None, _) => Probed::Otherwise("the gate would have let it through".to_owned()),
        })
    }

    fn anchor(
        &mut self,
        incident: IncidentId,
        step: &str,
        sha256: Digest,
        late: bool,
    ) -> Result<Seq, Unanswered> {
        // What cannot be told is all of it: then nothing is given up.
        let from = known::oldest_of(&self.home, incident).unwrap_or(Some(1));
        let request = Request::IncidentStep {
            incident,
            step: step.to_owned(),
            sha256,
            late,
            from,
        };
        self.ask(&request, "seq")
    }

    fn verify(&mut self) -> Result<Verification, Unanswered> {
        let report = ledger::verify(&self.home.audit(), &ledger::VerifyOptions::default());
        let json =
            serde_json::to_value(&report).map_err(|error| Unanswered::Failed(error.to_string()))?;
        Ok(Verification {
            json,
            text: report.to_string(),
        })
    }
}

fn chain_of(view: &SessionView) -> &[ChainLink] {
    view.chain.value().map(Vec::as_slice).unwrap_or_default()
}

fn run_fact(view: &SessionView) -> RunFact {
    let holder = chain_of(view).iter().find(|link| link.role.is_holder());
    let client: Known<ProcessRef> = match (holder, view.chain.why()) {
        (Some(link), _) => link.process.clone().into(),
        (None, Some(why)) => Known::unknown(why),
        (None, None) => Known::unknown("no process was seen to hold the run's wire"),
    };
    RunFact {
        session: view.id,
        state: view.state,
        client,
        client_reported: holder.is_some_and(|link| link.role == LinkRole::HolderReported),
        opened_at: view
            .opened_at
            .value()
            .copied()
            .unwrap_or(Wall::from_millis(0)),
        lost: lost_of(view),
        revoked_at: view.revoked_at,
    }
}

/// The first thing that was found out: when the client was lost is when that began.
fn lost_of(view: &SessionView) -> Known<Option<Lost>> {
    match view.lost.first() {
        None => Known::Yes(None),
        Some(first) => first.lost.clone().map(Some),
    }
}

fn call_fact(view: CallView) -> CallFact {
    let denied_seq = view.settled_seq.filter(|_| view.state == CallState::Denied);
    CallFact {
        id: view.id,
        state: view.state,
        seq: view.seq,
        attempted_at: view.attempted_at,
        cleared_at: view.cleared_at,
        settled_at: view.settled_at,
        target: view.target,
        destination: view.destination,
        key: optional(view.key),
        status: optional(view.status),
        remote_id: optional(view.remote_id),
        why: optional(view.why),
        denied_seq,
    }
}

/// Turns "known to be none" inside out: none, or a value that is known or not.
fn optional<T>(known: Known<Option<T>>) -> Option<Known<T>> {
    match known {
        Known::Yes(None) => None,
        Known::Yes(Some(value)) => Some(Known::Yes(value)),
        Known::Unknown { unknown } => Some(Known::unknown(unknown)),
    }
}
