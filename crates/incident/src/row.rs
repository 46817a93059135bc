//! One row per process: the thirteen things that a reviewer asks for, and the three times.

use model::{CallId, Foreign, Known, Operator, SessionId, Target, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    attribute::Attribute,
    authority::{CallFact, Revocation},
    case::Case,
    fate::Fate,
    follow_up::FollowUp,
    preserve::Preserve,
    revoke::Revoke,
    step::Body,
    subject::{Named, Place, Subject},
    times::{ClientLost, Window, client_lost, last_action, last_success, window},
};

/// What the last attempted call acted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// The channel: which kind of outside system.
    pub class: String,
    /// Account or endpoint.
    pub account: Known<Foreign>,
    /// Operation, method and path.
    pub operation: Foreign,
}

/// What came of the last attempted call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The call's state.
    pub outcome: String,
    /// The remote side's own id.
    pub remote_id: Option<Known<Foreign>>,
}

/// When authority was revoked and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// When.
    pub at: Wall,
    /// By whom.
    pub operator: Operator,
}

/// What was done to the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// The last signal it got.
    pub signal: Option<String>,
    /// What came of it, in one word.
    pub result: String,
    /// The same in words.
    pub why: Option<String>,
    /// How it ended.
    pub exit: Option<Known<Value>>,
    /// What it means that it was killed.
    pub forced: Option<String>,
}

/// One call, with its place among the three times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRow {
    /// Which call.
    pub id: CallId,
    /// Where it lies.
    pub window: Window,
    /// Its state.
    pub state: String,
    /// When it was asked for.
    pub attempted_at: Wall,
    /// When its bytes could leave.
    pub cleared_at: Option<Wall>,
    /// When its outcome was recorded.
    pub settled_at: Option<Wall>,
    /// What it acted on.
    pub target: Known<Acted>,
    /// The id it carried to the remote side.
    pub key: Option<Known<model::RequestKey>>,
    /// The answer's status.
    pub status: Option<Known<u16>>,
    /// The remote side's own id.
    pub remote_id: Option<Known<Foreign>>,
    /// Why it was refused, withdrawn or is unresolved.
    pub why: Option<Known<String>>,
}

/// One row of the record. `null` is known to be none; what is not known says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// When the process was seen.
    pub observed_at: Wall,
    /// The client that owned it.
    pub client: Known<Named>,
    /// The process.
    pub server: Known<Named>,
    /// Where it stood.
    pub parent_and_group: Known<Place>,
    /// The run that owned it.
    pub session_id: Known<Option<SessionId>>,
    /// The state of that run's authority.
    pub authorization: Known<Option<String>>,
    /// When the newest action that is known to have succeeded was answered.
    pub last_success_at: Known<Option<Wall>>,
    /// When the last call before the revocation was asked for.
    pub last_attempt_at: Known<Option<Wall>>,
    /// Which call that was.
    pub last_attempt_call: Known<Option<CallId>>,
    /// What it acted on.
    pub target: Known<Option<Acted>>,
    /// What came of it.
    pub result: Known<Option<Outcome>>,
    /// When authority was revoked and by whom.
    pub revocation: Known<Option<Taken>>,
    /// What was done to the process; none if nothing was yet.
    pub termination: Option<Termination>,
    /// What is to be done.
    pub follow_up: Vec<FollowUp>,
    /// When its client was lost.
    pub client_lost: Known<Option<ClientLost>>,
    /// When the newest action that may have reached the outside began.
    pub last_action_started_at: Known<Option<Wall>>,
    /// When its run's authority was revoked.
    pub revoked_at: Known<Option<Wall>>,
    /// The run's calls.
    pub calls: Known<Vec<CallRow>>,
}

/// What the steps say so far.
struct Told<'a> {
    case: &'a Case,
    attribute: Option<&'a Attribute>,
    revoke: Option<&'a Revoke>,
    calls: Known<Vec<CallFact>>,
}

/// Returns one row for every process of the incident, or one for a run of which no process was found.
pub(crate) fn rows(case: &Case, follow_up: &[FollowUp]) -> Vec<Row> {
    let Some(preserve) = preserved(case) else {
        return Vec::new();
    };
    let told = Told::by(case);
    if preserve.subjects.is_empty() {
        return vec![told.row(None, preserve.observed_at, follow_up)];
    }
    let row = |one: &Subject| told.row(Some(one), one.observed_at, follow_up);
    preserve.subjects.iter().map(row).collect()
}

pub(crate) fn preserved(case: &Case) -> Option<&Preserve> {
    case.newest(Body::preserve)
}

impl<'a> Told<'a> {
    fn by(case: &'a Case) -> Self {
        let attribute = case.newest(Body::attribute);
        let reconcile = case.newest(Body::reconcile);
        // A later look that got no answer does not take back what an earlier one found.
        let later = reconcile
            .map(|body| &body.calls)
            .filter(|calls| calls.value().is_some());
        let calls = later.or(attribute.map(|body| &body.calls)).cloned();
        Self {
            case,
            attribute,
            revoke: case.newest(Body::revoke),
            calls: calls.unwrap_or_else(|| Known::unknown(NOT_YET)),
        }
    }

    fn row(&self, subject: Option<&Subject>, observed_at: Wall, follow_up: &[FollowUp]) -> Row {
        let process = subject.map(|subject| &subject.process);
        let pid = process.map(|process| process.id.pid);
        let lost = client_lost(subject, self.attribute);
        let lost_at = lost.value().and_then(Option::as_ref);
        let calls: Known<Vec<CallRow>> = self
            .calls
            .clone()
            .map(|calls| calls.iter().map(|call| self.call(call, lost_at)).collect());
        let last = self.last_attempt(lost_at);
        Row {
            observed_at,
            client: self.client(subject),
            server: process.map_or_else(none_found, |process| Known::Yes(process.into())),
            parent_and_group: subject.map_or_else(none_found, |subject| subject.place.clone()),
            session_id: self.session(),
            authorization: self.authorization(),
            last_success_at: self.calls.clone().map(|calls| last_success(&calls)),
            last_attempt_at: last.clone().map(|call| call.map(|call| call.attempted_at)),
            last_attempt_call: last.clone().map(|call| call.map(|call| call.id)),
            target: last_target(&last),
            result: last.map(|call| call.as_ref().map(outcome)),
            revocation: self.revocation(),
            termination: process
                .and_then(|process| Fate::of(self.case, &process.id))
                .map(Termination::from),
            follow_up: follow_up
                .iter()
                .filter(|item| item.pid.is_none() || item.pid == pid)
                .cloned()
                .collect(),
            last_action_started_at: self.calls.clone().map(|calls| last_action(&calls)),
            revoked_at: self.revocation().map(|taken| taken.map(|taken| taken.at)),
            client_lost: lost,
            calls,
        }
    }

    fn client(&self, subject: Option<&Subject>) -> Known<Named> {
        let of_run = self.attribute.and_then(|body| body.run.value()?.as_ref());
        let recorded = of_run.and_then(|run| Some((run.client.value()?, run.client_reported)));
        match recorded {
            Some((client, reported)) => Known::Yes(Named {
                reported,
                ..client.into()
            }),
            None => subject.map_or_else(none_found, |subject| subject.client.clone()),
        }
    }

    fn session(&self) -> Known<Option<SessionId>> {
        let Some(attribute) = self.attribute else {
            return Known::unknown(NOT_YET);
        };
        match (attribute.session, attribute.not_asked()) {
            (Some(session), _) => Known::Yes(Some(session)),
            (None, Some(why)) => Known::unknown(why),
            (None, None) => Known::Yes(None),
        }
    }

    fn authorization(&self) -> Known<Option<String>> {
        if let Some(Revoke::Revoked { .. }) = self.revoke {
            return Known::Yes(Some("revoked".to_owned()));
        }
        match self.attribute.map(|attribute| &attribute.run) {
            Some(Known::Yes(Some(run))) => Known::Yes(Some(run.state.word().to_owned())),
            Some(Known::Yes(None)) => self.session().map(|_| None),
            Some(Known::Unknown { unknown }) => Known::unknown(unknown.clone()),
            None => Known::unknown(NOT_YET),
        }
    }

    fn taken(&self) -> Option<&Revocation> {
        match self.revoke {
            Some(Revoke::Revoked { revocation, .. }) => Some(revocation),
            Some(Revoke::NothingOfOurs { .. } | Revoke::NoDaemon { .. }) | None => None,
        }
    }

    fn revocation(&self) -> Known<Option<Taken>> {
        if let Some(Revoke::NoDaemon { why, .. }) = self.revoke {
            return Known::unknown(why.clone());
        }
        Known::Yes(self.taken().map(|revocation| Taken {
            at: revocation.at,
            operator: revocation.by.clone(),
        }))
    }

    /// The refused call that confirms the revocation is no action of the run: the last one before counts.
    fn last_attempt(&self, lost: Option<&ClientLost>) -> Known<Option<CallFact>> {
        self.calls.clone().map(|calls| {
            let before = calls
                .into_iter()
                .filter(|call| window(call, lost, self.taken()) != Window::AfterRevocation);
            before.max_by_key(|call| call.seq)
        })
    }

    fn call(&self, call: &CallFact, lost: Option<&ClientLost>) -> CallRow {
        CallRow {
            id: call.id,
            window: window(call, lost, self.taken()),
            state: call.state.word().to_owned(),
            attempted_at: call.attempted_at,
            cleared_at: call.cleared_at,
            settled_at: call.settled_at,
            target: acted(call),
            key: call.key.clone(),
            status: call.status.clone(),
            remote_id: call.remote_id.clone(),
            why: call.why.clone(),
        }
    }
}

fn last_target(last: &Known<Option<CallFact>>) -> Known<Option<Acted>> {
    match last {
        Known::Unknown { unknown } => Known::unknown(unknown.clone()),
        Known::Yes(None) => Known::Yes(None),
        Known::Yes(Some(call)) => acted(call).map(Some),
    }
}

fn acted(call: &CallFact) -> Known<Acted> {
    call.target.clone().map(|target| Acted {
        class: target.channel.to_string(),
        account: call.destination.clone(),
        operation: Foreign::new(operation(&target)),
    })
}

fn operation(target: &Target) -> String {
    let (method, path) = (target.method.raw(), target.path.raw());
    match &target.operation {
        Some(name) => format!("{name}: {method} {path}"),
        None => format!("{method} {path}"),
    }
}

fn outcome(call: &CallFact) -> Outcome {
    Outcome {
        outcome: call.state.word().to_owned(),
        remote_id: call.remote_id.clone(),
    }
}

impl From<Fate> for Termination {
    fn from(fate: Fate) -> Self {
        Self {
            signal: fate.signal,
            result: fate.result,
            why: fate.why,
            exit: fate.exit,
            forced: fate.forced,
        }
    }
}

fn none_found<T>() -> Known<T> {
    Known::unknown("no process of this run was found")
}

const NOT_YET: &str = "this step has not been taken yet";
