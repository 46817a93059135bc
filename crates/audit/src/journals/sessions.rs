//! One run, from its clear headers and the bodies that can be opened.

use ledger::{Mark, SessionFold};
use model::{
    Body, ChainLink, ConnectionId, Foreign, Known, Lost, LostBasis, Operator, ProcessRef,
    SessionId, SessionState,
};

use super::Opener;
use crate::{LostView, SessionView};

/// Tells a run.
pub(super) fn view(opener: &Opener<'_>, id: SessionId, run: &SessionFold) -> SessionView {
    let opened = match run.opened {
        Some(mark) => opener.at(mark),
        None => Known::unknown("its first record is not in this log"),
    };
    let revoked = opener.at_any(run.revoked);
    let lost = lost(opener, run);
    SessionView {
        id,
        state: state(run, &lost),
        client: opening(&opened, |opening| holder(opening.chain)),
        chain: opening(&opened, |opening| opening.chain),
        ownership_complete: opening(&opened, |opening| opening.complete),
        admission: opening(&opened, |opening| opening.admission),
        opened_at: run.opened.map_or_else(
            || Known::unknown("its first record is not in this log"),
            |m| Known::Yes(m.at),
        ),
        seq: run.opened.map(|mark| mark.seq),
        lost,
        revoked_at: run.revoked.map(|mark| mark.at),
        revoked_seq: run.revoked.map(|mark| mark.seq),
        revoked_by: revoked
            .clone()
            .map(|body| revocation(body).and_then(|(by, _)| by)),
        revoked_reason: revoked.map(|body| revocation(body).map(|(_, reason)| reason)),
        ended_at: run.ended.map(|mark| mark.at),
        connections: connections(opener, &run.connected),
    }
}

/// The fields of the body that opens a run.
struct Opening {
    chain: Vec<ChainLink>,
    complete: bool,
    admission: String,
}

fn opening<T>(body: &Known<Body>, take: impl FnOnce(Opening) -> T) -> Known<T> {
    match body.clone() {
        Known::Unknown { unknown } => Known::Unknown { unknown },
        Known::Yes(Body::SessionOpened {
            chain,
            ownership_complete,
            admission,
            uid: _,
        }) => Known::Yes(take(Opening {
            chain,
            complete: ownership_complete,
            admission,
        })),
        Known::Yes(_) => Known::unknown("the run's first body is of another kind"),
    }
}

/// The process that held the run's wire, if it was told apart.
fn holder(chain: Vec<ChainLink>) -> Option<ProcessRef> {
    let holder = chain.into_iter().find(|link| link.role.is_holder());
    holder.map(|link| link.process)
}

fn lost(opener: &Opener<'_>, run: &SessionFold) -> Vec<LostView> {
    let recorded = run.lost.iter().map(|mark| LostView {
        recorded_at: mark.at,
        lost: match opener.at(*mark) {
            Known::Yes(Body::ClientLost(lost)) => Known::Yes(lost),
            Known::Yes(_) => Known::unknown("the record's body is of another kind"),
            Known::Unknown { unknown } => Known::Unknown { unknown },
        },
    });
    // The daemon that held the connections ended: a closed transport, between two known times.
    let with_daemon = run.daemon_ended.map(|(not_before, not_after)| LostView {
        recorded_at: not_after,
        lost: Known::Yes(Lost {
            basis: LostBasis::TransportClosed,
            not_before,
            not_after,
            process: None,
        }),
    });
    recorded.chain(with_daemon).collect()
}

/// Headers say "lost" for any trouble with the client; the bodies say which, and the gravest counts. A run whose
/// client was only stuck or abandoned can still come to its ordinary end.
fn state(run: &SessionFold, lost: &[LostView]) -> SessionState {
    let from_headers = run.state();
    if from_headers != SessionState::Lost {
        return from_headers;
    }
    let ended = run.ended.is_some();
    let each = lost.iter().map(|lost| {
        let basis = lost.lost.value().map(|lost| lost.basis);
        match basis {
            Some(LostBasis::ClientStuck | LostBasis::AncestorExited) if ended => {
                SessionState::Ended
            }
            Some(LostBasis::ClientStuck) => SessionState::Stuck,
            Some(LostBasis::AncestorExited) => SessionState::Abandoned,
            Some(LostBasis::TransportClosed | LostBasis::HolderExited) | None => SessionState::Lost,
        }
    });
    let gravity = |state: &SessionState| match state {
        SessionState::Lost => 3,
        SessionState::Ended => 2,
        SessionState::Abandoned => 1,
        SessionState::Stuck
        | SessionState::Pending
        | SessionState::Live
        | SessionState::Revoked => 0,
    };
    each.max_by_key(gravity).unwrap_or(from_headers)
}

fn revocation(body: Option<Body>) -> Option<(Option<Operator>, Foreign)> {
    let Some(Body::Revoked { reason, by, .. }) = body else {
        return None;
    };
    Some((by, reason))
}

fn connections(opener: &Opener<'_>, marks: &[Mark]) -> Known<Vec<ConnectionId>> {
    let mut all = Vec::with_capacity(marks.len());
    for mark in marks {
        match opener.at(*mark) {
            Known::Yes(Body::Connected { connection, .. }) => all.push(connection),
            Known::Yes(_) => return Known::unknown("a connection's body is of another kind"),
            Known::Unknown { unknown } => return Known::Unknown { unknown },
        }
    }
    Known::Yes(all)
}
