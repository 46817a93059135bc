//! The way in: every attempt on record, every refusal on record, floods counted.

use model::{
    Body, CallId, ConnectionId, Denial, Entry, Kind, OutcomeBody, SessionId, Ticket, Withdrawal,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Gate,
    ask::{Ask, Attempted, Refused},
    gate::{Call, Stage, State},
    sync::lock,
};

/// Calls of one connection that may be under way at once; a client that has more is not reading answers.
const IN_FLIGHT_PER_CONNECTION: usize = 64;

impl Gate {
    /// Puts a call on record and decides whether it may go on.
    ///
    /// # Errors
    /// It may not; the refusal is on record or counted.
    pub fn attempt(&self, ask: Ask) -> Result<Attempted, Refused> {
        let mut state = lock(&self.state);
        let is_busy = state.under_way(ask.connection) >= IN_FLIGHT_PER_CONNECTION
            || state.calls.len() >= self.most_calls;
        let busy = is_busy.then_some(Denial::Busy);
        if let Some(why) = state.refusal(&ask).or(busy) {
            return Err(self.refuse(&mut state, &ask, why));
        }
        let ticket = self.journal.push(attempt_entry(&ask, false));
        if ticket.seq().is_none() {
            // A full disk takes no attempts and may be free again for the next; nothing was cleared.
            return Err(self.refuse(&mut state, &ask, Denial::NotRecorded));
        }
        let cancel = CancellationToken::new();
        let call = Call {
            session: ask.session,
            connection: ask.connection,
            channel: ask.target.channel.clone(),
            secret: ask.secret.clone(),
            stage: Stage::Attempted,
            cancel: cancel.clone(),
        };
        state.calls.insert(ask.call, call);
        Ok(Attempted {
            ask,
            ticket,
            cancel,
        })
    }

    /// Records a call that its channel's policy refuses.
    pub fn turn_away(&self, ask: &Ask, why: Denial) -> Refused {
        let mut state = lock(&self.state);
        let why = state.refusal(ask).unwrap_or(why);
        self.refuse(&mut state, ask, why)
    }

    /// Takes note that an attempt could not be made durable: it is off, and nothing more is cleared.
    pub fn unrecorded(&self, call: CallId) -> Refused {
        let mut state = lock(&self.state);
        state.unrecordable = true;
        state.calls.remove(&call);
        Refused {
            why: Denial::NotRecorded,
            call,
            ticket: None,
        }
    }

    /// Records how many further refusals of the same kind there were; to be called about once a second.
    pub fn count_denials(&self) -> Option<Ticket> {
        let mut state = lock(&self.state);
        let mut last = None;
        for (session, run) in &mut state.runs {
            for (why, count) in run.denials.iter_mut().filter(|(_, count)| **count > 0) {
                last = Some(self.journal.push(counted(*session, why.clone(), *count)));
                *count = 0;
            }
        }
        last
    }

    /// Makes the next refusal after a revocation one of its own again, however often the run was revoked before:
    /// it is what shows that this revocation holds.
    pub(crate) fn end_count_of_revoked(&self, state: &mut State, session: SessionId) {
        let Some(run) = state.runs.get_mut(&session) else {
            return;
        };
        let is_revoked = |why: &Denial, _: &mut u64| matches!(why, Denial::Revoked { .. });
        for (why, count) in run.denials.extract_if(is_revoked) {
            if count > 0 {
                drop(self.journal.push(counted(session, why, count)));
            }
        }
    }

    /// The first refusal of a run for one reason is two records of its own; later ones are counted, so
    /// that a client in a loop cannot fill the disk.
    fn refuse(&self, state: &mut State, ask: &Ask, why: Denial) -> Refused {
        state.note_refusal(ask, &why);
        if let Some(run) = state.runs.get_mut(&ask.session) {
            let reason = reason(&why);
            if let Some(count) = run.denials.get_mut(&reason) {
                *count += 1;
                return Refused {
                    why,
                    call: ask.call,
                    ticket: None,
                };
            }
            run.denials.insert(reason, 0);
        }
        self.put_refusal(attempt_entry(ask, false), ask, why)
    }

    fn put_refusal(&self, attempt: Entry, ask: &Ask, why: Denial) -> Refused {
        // On a full disk there is no room for attempts, and still some for refusals: then that stands alone.
        let attempt = self.journal.push(attempt);
        self.deny(ask, attempt.seq(), why)
    }

    /// Asks as the run itself would, to see on record that the gate refuses. There is no permit to be had
    /// this way, so nothing can leave; what the gate would have let through is on record as withdrawn.
    ///
    /// # Errors
    /// It is refused, which is what one hopes for. It is never counted together with other refusals.
    pub fn probe(&self, ask: &Ask) -> Result<Ticket, Refused> {
        let state = lock(&self.state);
        let attempt = attempt_entry(ask, true);
        if let Some(why) = state.refusal(ask) {
            return Err(self.put_refusal(attempt, ask, why));
        }
        let attempt = self.journal.push(attempt);
        let Some(seq) = attempt.seq() else {
            return Ok(attempt);
        };
        let body = Body::Outcome(OutcomeBody::Withdrawn {
            proof: Withdrawal::NeverCleared,
        });
        Ok(self
            .journal
            .push(self.entry(ask, Kind::Withdrawn, seq, body)))
    }
}

impl State {
    pub(crate) fn under_way(&self, connection: ConnectionId) -> usize {
        self.calls
            .values()
            .filter(|call| call.connection == connection)
            .count()
    }
}

/// What equal refusals have in common: the agent's own words are left out, or a client could make each of
/// its refusals a first one.
fn reason(why: &Denial) -> Denial {
    match why {
        Denial::Malformed { .. } => Denial::Malformed {
            what: String::new(),
        },
        Denial::NotYours { .. } => Denial::NotYours {
            what: String::new(),
        },
        Denial::Revoked { .. }
        | Denial::Locked
        | Denial::Pending
        | Denial::ClientLost
        | Denial::OwnershipIncomplete
        | Denial::UnknownChannel
        | Denial::NotAllowed
        | Denial::Repeat { .. }
        | Denial::Busy
        | Denial::NotRecorded
        | Denial::Secret => why.clone(),
    }
}

fn attempt_entry(ask: &Ask, probe: bool) -> Entry {
    Entry {
        kind: Kind::Attempt,
        session: Some(ask.session),
        call: Some(ask.call),
        refers_to: None,
        body: Body::Attempt {
            target: ask.target.clone(),
            connection: ask.connection,
            arguments: ask.arguments,
            key: ask.key.clone(),
            is_write: ask.is_write,
            destination: ask.destination.clone(),
            probe,
        },
    }
}

fn counted(session: SessionId, why: Denial, count: u64) -> Entry {
    Entry {
        kind: Kind::DenialsCounted,
        session: Some(session),
        call: None,
        refers_to: None,
        body: Body::DenialsCounted { why, count },
    }
}
