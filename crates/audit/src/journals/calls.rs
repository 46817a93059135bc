//! One call, from its clear headers and the bodies that can be opened.

use ledger::{CallFold, Calls};
use model::{Body, CallId, Known, OutcomeBody, Unsettled, Withdrawal};

use super::Opener;
use crate::{CallFilter, CallView, Reconciliation};

/// Tells whether a call is asked for.
pub(super) fn passes(filter: &CallFilter, id: CallId, call: &CallFold) -> bool {
    filter
        .session
        .is_none_or(|session| call.session == Some(session))
        && filter.call.is_none_or(|wanted| wanted == id)
        && filter.since.is_none_or(|since| call.first.at >= since)
        && (filter.states.is_empty() || filter.states.contains(&call.state))
}

/// Tells the calls that pass, the oldest first.
pub(super) fn views(opener: &Opener<'_>, calls: &Calls, filter: &CallFilter) -> Vec<CallView> {
    let all = calls.in_order().into_iter();
    let wanted = all.filter(|(id, call)| passes(filter, *id, call));
    wanted.map(|(id, call)| view(opener, id, call)).collect()
}

/// Tells a call.
pub(super) fn view(opener: &Opener<'_>, id: CallId, call: &CallFold) -> CallView {
    let attempt = match call.attempt {
        Some(mark) => opener.at(mark),
        None => Known::unknown("the call was refused before it became an attempt"),
    };
    let outcome = opener.at_any(call.settled);
    let reconciled = opener.at_any(call.reconciled);
    let reconciled_at = call.reconciled.map_or(call.first.at, |mark| mark.at);
    CallView {
        id,
        session_id: call.session,
        state: call.state,
        target: part(&attempt, |attempt| attempt.target),
        key: part(&attempt, |attempt| attempt.key),
        attempted_at: call.first.at,
        seq: call.first.seq,
        cleared_at: call.cleared.map(|mark| mark.at),
        settled_at: call.settled.map(|mark| mark.at),
        settled_seq: call.settled.map(|mark| mark.seq),
        status: outcome.clone().map(status),
        delivered: outcome.clone().map(delivered),
        remote_id: outcome.clone().map(remote_id),
        why: outcome.map(|body| body.and_then(why)),
        connection: part(&attempt, |attempt| attempt.connection),
        is_write: part(&attempt, |attempt| attempt.is_write),
        destination: part(&attempt, |attempt| attempt.destination),
        probe: part(&attempt, |attempt| attempt.probe),
        arguments: part(&attempt, |attempt| attempt.arguments),
        reconciled: reconciled.map(|body| finding(body?, reconciled_at)),
    }
}

/// The fields of an attempt's body.
#[derive(Clone)]
struct Attempt {
    target: model::Target,
    connection: model::ConnectionId,
    arguments: model::Digest,
    key: Option<model::RequestKey>,
    is_write: bool,
    destination: model::Foreign,
    probe: bool,
}

fn part<T>(body: &Known<Body>, take: impl FnOnce(Attempt) -> T) -> Known<T> {
    match body.clone() {
        Known::Unknown { unknown } => Known::Unknown { unknown },
        Known::Yes(Body::Attempt {
            target,
            connection,
            arguments,
            key,
            is_write,
            destination,
            probe,
        }) => Known::Yes(take(Attempt {
            target,
            connection,
            arguments,
            key,
            is_write,
            destination,
            probe,
        })),
        Known::Yes(_) => Known::unknown("the attempt's body is of another kind"),
    }
}

fn outcome(body: Option<Body>) -> Option<OutcomeBody> {
    match body? {
        Body::Outcome(outcome) => Some(outcome),
        Body::Empty
        | Body::SessionOpened { .. }
        | Body::Connected { .. }
        | Body::Disconnected { .. }
        | Body::ClientLost(_)
        | Body::SessionEnded { .. }
        | Body::Attempt { .. }
        | Body::Denied { .. }
        | Body::Reconciled { .. }
        | Body::DenialsCounted { .. }
        | Body::Revoked { .. }
        | Body::Acted { .. }
        | Body::IncidentStep { .. } => None,
    }
}

fn status(body: Option<Body>) -> Option<u16> {
    match outcome(body)? {
        OutcomeBody::Answered { status, .. } => Some(status),
        OutcomeBody::Withdrawn { .. }
        | OutcomeBody::Outliving { .. }
        | OutcomeBody::Waiting { .. }
        | OutcomeBody::Unresolved { .. } => None,
    }
}

fn delivered(body: Option<Body>) -> Option<bool> {
    match outcome(body)? {
        OutcomeBody::Answered { delivered, .. } => delivered,
        OutcomeBody::Withdrawn { .. }
        | OutcomeBody::Outliving { .. }
        | OutcomeBody::Waiting { .. }
        | OutcomeBody::Unresolved { .. } => None,
    }
}

fn remote_id(body: Option<Body>) -> Option<model::Foreign> {
    match outcome(body)? {
        OutcomeBody::Answered { remote_id, .. } => remote_id,
        OutcomeBody::Outliving { job } => Some(job),
        OutcomeBody::Withdrawn { .. }
        | OutcomeBody::Waiting { .. }
        | OutcomeBody::Unresolved { .. } => None,
    }
}

fn why(body: Body) -> Option<String> {
    if let Body::Denied { why } = &body {
        return Some(why.code().to_owned());
    }
    match outcome(Some(body))? {
        OutcomeBody::Withdrawn { proof } => Some(proof_word(proof).to_owned()),
        OutcomeBody::Waiting { on } => Some(on),
        OutcomeBody::Unresolved { why } => Some(unsettled_word(why).to_owned()),
        OutcomeBody::Answered { .. } | OutcomeBody::Outliving { .. } => None,
    }
}

const fn proof_word(proof: Withdrawal) -> &'static str {
    match proof {
        Withdrawal::NeverCleared => "never_cleared",
        Withdrawal::HandedBackUnwritten => "handed_back_unwritten",
    }
}

const fn unsettled_word(why: Unsettled) -> &'static str {
    match why {
        Unsettled::ConnectionBroke => "connection_broke",
        Unsettled::TimedOut => "timed_out",
        Unsettled::Revoked => "revoked",
        Unsettled::ClientLost => "client_lost",
        Unsettled::DaemonEnded => "daemon_ended",
        Unsettled::AnswerUnreadable => "answer_unreadable",
    }
}

fn finding(body: Body, at: model::Wall) -> Option<Reconciliation> {
    let Body::Reconciled {
        happened,
        evidence,
        by,
    } = body
    else {
        return None;
    };
    Some(Reconciliation {
        happened,
        evidence,
        by,
        at,
    })
}
