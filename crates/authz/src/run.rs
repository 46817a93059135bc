//! The runs the gate knows: who joined, who is dead, who may still act.
//!
//! | state | left for | by |
//! |---|---|---|
//! | pending | live | an operator, a remembered shape, or a policy that asks nobody |
//! | live | abandoned | a process above the holder died |
//! | live, abandoned | lost | the holder died |
//! | any but ended | revoked | an operator, or the end of its time |
//! | live, abandoned, lost | ended | the last connection closed and nothing is in flight |
//!
//! A revoked run stays revoked until its holder is dead: a new connection of the same holder joins it.

use std::collections::HashMap;

use model::{
    Body, ChainLink, ConnectionId, Denial, Entry, Kind, Lost, LostBasis, ProcessId, Seq, SessionId,
    SessionState, Ticket, Wall,
};
use serde::Serialize;

use crate::{Gate, gate::State, sync::lock};

/// A connection that asks to take part.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// Its id.
    pub connection: ConnectionId,
    /// Shim → … → client.
    pub chain: Vec<ChainLink>,
    /// The process that holds the other end of its standard input; none if that could not be told.
    pub holder: Option<ProcessId>,
    /// The user it belongs to.
    pub uid: u32,
    /// Why it is admitted.
    pub admission: String,
}

/// The run a connection now belongs to.
#[derive(Debug)]
pub struct Admission {
    /// Which run.
    pub session: SessionId,
    /// The place of the run's first record.
    pub session_seq: Option<Seq>,
    /// Whether it joined a run that was already there.
    pub joined: bool,
    /// The claim on the record of the connection; the run's own lies before it.
    pub ticket: Ticket,
}

/// A run as `sessions list` shows it while the daemon holds it in memory.
#[derive(Debug, Clone, Serialize)]
pub struct RunView {
    /// Which run.
    pub id: SessionId,
    /// Its state.
    pub state: SessionState,
    /// How many connections it has.
    pub connections: usize,
    /// Whether it may change anything outside.
    pub ownership_complete: bool,
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) holder: Option<ProcessId>,
    pub(crate) opened_seq: Option<Seq>,
    pub(crate) connections: Vec<ConnectionId>,
    /// Whether it may act where runs wait for somebody.
    pub(crate) admitted: bool,
    pub(crate) revoked: Option<Option<Seq>>,
    pub(crate) abandoned: bool,
    pub(crate) lost: bool,
    pub(crate) ended: bool,
    /// Processes of its chains that were found dead.
    pub(crate) dead: Vec<ProcessId>,
    /// Refusals by reason: the first is recorded by itself, the rest are counted.
    pub(crate) denials: HashMap<Denial, u64>,
}

impl Run {
    pub(crate) const fn state(&self, runs_wait: bool) -> SessionState {
        if self.revoked.is_some() {
            SessionState::Revoked
        } else if self.ended {
            SessionState::Ended
        } else if self.lost {
            SessionState::Lost
        } else if runs_wait && !self.admitted {
            SessionState::Pending
        } else if self.abandoned {
            SessionState::Abandoned
        } else {
            SessionState::Live
        }
    }

    /// Why no call of this run may begin, if so. A closed scope is named before anything else.
    pub(crate) fn closed(&self) -> Option<Denial> {
        if let Some(seq) = self.revoked {
            return Some(Denial::Revoked {
                scope: "run".to_owned(),
                seq,
            });
        }
        (self.lost || self.ended).then_some(Denial::ClientLost)
    }
}

impl Gate {
    /// Lets a connection take part: in its holder's run if there is one, else in a new one.
    ///
    /// # Errors
    /// The operating system has no randomness for a new id.
    pub fn admit(&self, who: Newcomer) -> std::io::Result<Admission> {
        let fresh = SessionId::random()?;
        let mut state = lock(&self.state);
        let known = who.holder.as_ref().and_then(|holder| state.run_of(holder));
        let joined = known.is_some();
        let session = known.unwrap_or(fresh);
        if !joined {
            let ticket = self.open(&mut state, fresh, &who);
            drop(ticket);
        }
        let ticket = self.journal.push(Entry {
            kind: Kind::Connected,
            session: Some(session),
            call: None,
            refers_to: None,
            body: Body::Connected {
                connection: who.connection,
                chain: who.chain,
            },
        });
        let run = state.runs.get_mut(&session);
        let session_seq = run.as_ref().and_then(|run| run.opened_seq);
        if let Some(run) = run {
            run.connections.push(who.connection);
        }
        Ok(Admission {
            session,
            session_seq,
            joined,
            ticket,
        })
    }

    fn open(&self, state: &mut State, session: SessionId, who: &Newcomer) -> Ticket {
        let ticket = self.journal.push(Entry {
            kind: Kind::SessionOpened,
            session: Some(session),
            call: None,
            refers_to: None,
            body: Body::SessionOpened {
                chain: who.chain.clone(),
                ownership_complete: who.holder.is_some(),
                admission: who.admission.clone(),
                uid: who.uid,
            },
        });
        let run = Run {
            holder: who.holder.clone(),
            opened_seq: ticket.seq(),
            connections: Vec::new(),
            // While the vault is shut nobody knows whether runs wait.
            admitted: !state.runs_wait && !state.locked,
            revoked: None,
            abandoned: false,
            lost: false,
            ended: false,
            dead: Vec::new(),
            denials: HashMap::new(),
        };
        state.runs.insert(session, run);
        ticket
    }

    /// Records that a client, or a process above it, was found dead or stuck.
    ///
    /// Each process is recorded once, however many connections it stood behind; none comes back for the
    /// second time. Only a dead holder closes the intake: what has not been cleared is cancelled at once, what is in
    /// flight is left to its channel's grace.
    pub fn lost(&self, session: SessionId, what: Lost) -> Option<Ticket> {
        let mut state = lock(&self.state);
        let basis = what.basis;
        let process = what.process.as_ref().map(|process| process.id.clone());
        if let (Some(run), Some(id)) = (state.runs.get_mut(&session), process) {
            if run.dead.contains(&id) {
                return None;
            }
            run.dead.push(id);
        }
        let ticket = self.journal.push(Entry {
            kind: Kind::ClientLost,
            session: Some(session),
            call: None,
            refers_to: None,
            body: Body::ClientLost(what),
        });
        if let Some(run) = state.runs.get_mut(&session) {
            match basis {
                LostBasis::HolderExited => run.lost = true,
                LostBasis::AncestorExited => run.abandoned = true,
                LostBasis::TransportClosed | LostBasis::ClientStuck => {}
            }
            if run.lost {
                state.cancel_uncleared(session);
            }
        }
        Some(ticket)
    }

    /// Records that a connection's transport closed; the last one of a run ends it.
    pub fn disconnected(&self, session: SessionId, connection: ConnectionId, at: Wall) -> Ticket {
        let mut state = lock(&self.state);
        let mut ticket = self.journal.push(Entry {
            kind: Kind::Disconnected,
            session: Some(session),
            call: None,
            refers_to: None,
            body: Body::Disconnected {
                connection,
                transport_closed_at: at,
            },
        });
        let Some(run) = state.runs.get_mut(&session) else {
            return ticket;
        };
        run.connections.retain(|known| *known != connection);
        if run.connections.is_empty() && !run.ended {
            run.ended = true;
            ticket = self.journal.push(Entry {
                kind: Kind::SessionEnded,
                session: Some(session),
                call: None,
                refers_to: None,
                body: Body::SessionEnded {
                    why: "its last connection closed".to_owned(),
                },
            });
        }
        // A revoked run is kept, so that the same holder cannot come back with a clean one.
        let forget = run.ended && run.revoked.is_none();
        if forget {
            state.runs.remove(&session);
        }
        ticket
    }

    /// Takes over a run that was revoked before this daemon started and whose holder still lives: whoever
    /// restarts the daemon must not get a clean run by it.
    pub fn still_revoked(&self, session: SessionId, holder: ProcessId, seq: Option<Seq>) {
        let run = Run {
            holder: Some(holder),
            opened_seq: None,
            connections: Vec::new(),
            admitted: false,
            revoked: Some(seq),
            abandoned: false,
            lost: false,
            ended: true,
            dead: Vec::new(),
            denials: HashMap::new(),
        };
        lock(&self.state).runs.entry(session).or_insert(run);
    }

    /// Forgets a revoked run whose holder is known to be dead.
    pub fn holder_is_dead(&self, holder: &ProcessId) {
        lock(&self.state).runs.retain(|_, run| {
            !(run.ended && run.holder.as_ref().is_some_and(|known| known.same(holder)))
        });
    }

    /// Counts the calls of a connection that are under way.
    #[must_use]
    pub fn under_way(&self, connection: ConnectionId) -> usize {
        lock(&self.state).under_way(connection)
    }

    /// Lists the runs in memory.
    #[must_use]
    pub fn runs(&self) -> Vec<RunView> {
        let state = lock(&self.state);
        let view = |(id, run): (&SessionId, &Run)| RunView {
            id: *id,
            state: run.state(state.runs_wait),
            connections: run.connections.len(),
            ownership_complete: run.holder.is_some(),
        };
        state.runs.iter().map(view).collect()
    }
}
