//! Runs and calls as folds over clear headers: what a reader without keys can say about both.
//!
//! A fold is applied to the records in their order; applied to a part and then to the rest it is what it is applied
//! to the whole. It remembers where the records with the sealed details stand, for whoever can open them.

use std::collections::BTreeMap;

use model::{CallId, CallState, Kind, Seq, SessionId, SessionState, Wall};

use crate::{header::Header, segment::Place};

/// One record that a fold remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub seq: Seq,
    /// When it was queued.
    pub at: Wall,
    /// Where it stands, for whoever wants its body.
    pub place: Place,
}

impl Mark {
    const fn of(header: &Header, place: Place) -> Self {
        Self {
            seq: header.seq,
            at: header.stamp.wall,
            place,
        }
    }
}

/// One run, as its clear headers tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFold {
    /// The record that opened it.
    pub opened: Option<Mark>,
    /// Connections that joined.
    pub connected: Vec<Mark>,
    /// Connections that ended.
    pub disconnected: Vec<Mark>,
    /// What was found out about its client: lost, stuck or abandoned; the sealed body says which.
    pub lost: Vec<Mark>,
    /// The first revocation of this run.
    pub revoked: Option<Mark>,
    /// Its end in the ordinary way.
    pub ended: Option<Mark>,
    /// Not before and not after: the daemon that held its connections ended meanwhile, and nothing joined since.
    pub daemon_ended: Option<(Wall, Wall)>,
}

impl SessionFold {
    /// Returns the state as far as headers tell it: any trouble with the client is `lost` here.
    ///
    /// A lost client's last connection closes too, so `lost` outranks `ended`.
    #[must_use]
    pub const fn state(&self) -> SessionState {
        if self.revoked.is_some() {
            SessionState::Revoked
        } else if !self.lost.is_empty() || self.daemon_ended.is_some() {
            SessionState::Lost
        } else if self.ended.is_some() {
            SessionState::Ended
        } else {
            SessionState::Live
        }
    }
}

/// All runs of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sessions {
    runs: BTreeMap<SessionId, SessionFold>,
    last_seen: Option<Wall>,
}

impl Sessions {
    /// Takes the next record into account.
    pub fn apply(&mut self, header: &Header, place: Place) {
        if header.kind == Kind::EpochOpened {
            self.daemon_began(header.stamp.wall);
        }
        self.last_seen = Some(header.stamp.wall);
        let Some(session) = header.session else {
            return;
        };
        if !belongs_to_a_run(header.kind) {
            return;
        }
        let run = self.runs.entry(session).or_default();
        let mark = Mark::of(header, place);
        if header.kind == Kind::SessionOpened {
            run.opened = run.opened.or(Some(mark));
        } else if header.kind == Kind::Connected {
            run.connected.push(mark);
            // Whoever joins shows that the run goes on in this daemon.
            run.daemon_ended = None;
        } else if header.kind == Kind::Disconnected {
            run.disconnected.push(mark);
        } else if header.kind == Kind::ClientLost {
            run.lost.push(mark);
        } else if header.kind == Kind::SessionEnded {
            run.ended = run.ended.or(Some(mark));
        } else if header.kind == Kind::Revoked {
            run.revoked = run.revoked.or(Some(mark));
        }
    }

    /// The daemon that held all connections has ended since the last record, whatever became of the clients.
    fn daemon_began(&mut self, now: Wall) {
        let since = self.last_seen.unwrap_or(now);
        for run in self.runs.values_mut() {
            if run.ended.is_none() && run.lost.is_empty() && run.daemon_ended.is_none() {
                // A wall clock can be set back; the bounds are still bounds then.
                run.daemon_ended = Some((since.min(now), since.max(now)));
            }
        }
    }

    /// Returns one run.
    #[must_use]
    pub fn get(&self, session: SessionId) -> Option<&SessionFold> {
        self.runs.get(&session)
    }

    /// Returns all runs, the oldest first.
    #[must_use]
    pub fn in_order(&self) -> Vec<(SessionId, &SessionFold)> {
        let mut all: Vec<_> = self.runs.iter().map(|(id, run)| (*id, run)).collect();
        all.sort_by_key(|(_, run)| run.opened.map_or(Seq::MAX, |mark| mark.seq));
        all
    }
}

const fn belongs_to_a_run(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::SessionOpened
            | Kind::Connected
            | Kind::Disconnected
            | Kind::ClientLost
            | Kind::SessionEnded
            | Kind::Revoked
    )
}

/// One call, as its clear headers tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFold {
    /// Whose call it is.
    pub session: Option<SessionId>,
    /// The first record of the call: its attempt, or the refusal of one that was not recorded by itself.
    pub first: Mark,
    /// The attempt.
    pub attempt: Option<Mark>,
    /// From when on its bytes may have left.
    pub cleared: Option<Mark>,
    /// The newest outcome.
    pub settled: Option<Mark>,
    /// An operator's finding.
    pub reconciled: Option<Mark>,
    /// What it has come to.
    pub state: CallState,
}

impl CallFold {
    /// Tells whether its end is not known.
    #[must_use]
    pub const fn is_unsettled(&self) -> bool {
        self.state.is_open() || matches!(self.state, CallState::Attempted)
    }
}

/// All calls of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls {
    calls: BTreeMap<CallId, CallFold>,
}

impl Calls {
    /// Takes the next record into account.
    pub fn apply(&mut self, header: &Header, place: Place) {
        let (Some(id), Some(state)) = (header.call, state_after(header.kind)) else {
            return;
        };
        let mark = Mark::of(header, place);
        let call = self.calls.entry(id).or_insert(CallFold {
            session: header.session,
            first: mark,
            attempt: None,
            cleared: None,
            settled: None,
            reconciled: None,
            state,
        });
        call.state = state;
        if header.kind == Kind::Attempt {
            call.attempt = call.attempt.or(Some(mark));
        } else if header.kind == Kind::Cleared {
            call.cleared = call.cleared.or(Some(mark));
        } else if header.kind == Kind::Reconciled {
            call.reconciled = Some(mark);
        } else {
            call.settled = Some(mark);
        }
    }

    /// The same for whoever keeps only what may still have to be asked about: a call with a known end is forgotten at
    /// once. It costs as much with ten thousand open calls as with one.
    pub fn apply_unsettled(&mut self, header: &Header, place: Place) {
        self.apply(header, place);
        if let Some(id) = header.call
            && self.get(id).is_some_and(|call| !call.is_unsettled())
        {
            self.calls.remove(&id);
        }
    }

    /// Follows records to where they stand now: `place` says so by a record's number, if it has moved.
    pub fn relocate(&mut self, place: impl Fn(Seq) -> Option<Place>) {
        for call in self.calls.values_mut() {
            let others = [
                &mut call.attempt,
                &mut call.cleared,
                &mut call.settled,
                &mut call.reconciled,
            ];
            for mark in others.into_iter().flatten().chain([&mut call.first]) {
                mark.place = place(mark.seq).unwrap_or(mark.place);
            }
        }
    }

    /// Returns one call.
    #[must_use]
    pub fn get(&self, call: CallId) -> Option<&CallFold> {
        self.calls.get(&call)
    }

    /// Returns all calls, the oldest first.
    #[must_use]
    pub fn in_order(&self) -> Vec<(CallId, &CallFold)> {
        let mut all: Vec<_> = self.calls.iter().map(|(id, call)| (*id, call)).collect();
        all.sort_by_key(|(_, call)| call.first.seq);
        all
    }
}

/// Returns the state that a record of this kind puts its call into; none if it says nothing about one.
pub(crate) const fn state_after(kind: Kind) -> Option<CallState> {
    match kind {
        Kind::Attempt => Some(CallState::Attempted),
        Kind::Denied => Some(CallState::Denied),
        Kind::Cleared => Some(CallState::Cleared),
        Kind::Withdrawn => Some(CallState::Withdrawn),
        Kind::Answered => Some(CallState::Answered),
        Kind::Outliving => Some(CallState::Outliving),
        Kind::Waiting => Some(CallState::Waiting),
        Kind::Unresolved => Some(CallState::Unresolved),
        Kind::Reconciled => Some(CallState::Reconciled),
        Kind::EpochOpened
        | Kind::Commit
        | Kind::EpochEndorsed
        | Kind::RootEndorsed
        | Kind::EpochClosed
        | Kind::TailRepaired
        | Kind::KeyErased
        | Kind::Pruned
        | Kind::SessionOpened
        | Kind::Connected
        | Kind::Disconnected
        | Kind::ClientLost
        | Kind::SessionEnded
        | Kind::DenialsCounted
        | Kind::Revoked
        | Kind::Acted
        | Kind::IncidentStep => None,
    }
}
