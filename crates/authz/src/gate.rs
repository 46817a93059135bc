//! The one lock: clear, close, settle.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use model::{
    Body, CallId, ChannelName, ConnectionId, Denial, Digest, Entry, Foreign, Journal, Kind,
    OperationName, Operator, OutcomeBody, ProcessId, Scope, SecretName, Seq, SessionId, Ticket,
    Withdrawal,
};
use tokio_util::sync::CancellationToken;

use crate::{
    ask::{Ask, Cleared, Permit, Refused, Settled},
    run::Run,
    sync::{Mutex, lock},
    writes::{OpenWrites, Twin},
};

/// How far a call in memory has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Attempted,
    Cleared,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: SessionId,
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelName,
    pub(crate) secret: Option<SecretName>,
    pub(crate) stage: Stage,
    pub(crate) cancel: CancellationToken,
}

impl Call {
    fn is_in(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Run { session } => self.session == *session,
            Scope::Channel { channel } => self.channel == *channel,
            Scope::Secret { secret } => self.secret.as_ref() == Some(secret),
            Scope::All => true,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) runs: HashMap<SessionId, Run>,
    pub(crate) calls: HashMap<CallId, Call>,
    pub(crate) open_writes: OpenWrites,
    pub(crate) closed_channels: HashMap<ChannelName, Option<Seq>>,
    pub(crate) closed_secrets: HashMap<SecretName, Option<Seq>>,
    pub(crate) locked: bool,
    /// Whether a run acts only when somebody has admitted it.
    pub(crate) runs_wait: bool,
    /// Set once something could not be recorded; nothing is cleared from then on.
    pub(crate) unrecordable: bool,
}

impl State {
    pub(crate) fn run_of(&self, holder: &ProcessId) -> Option<SessionId> {
        let same = |run: &Run| run.holder.as_ref().is_some_and(|known| known.same(holder));
        self.runs
            .iter()
            .find(|(_, run)| same(run) && !run.lost)
            .map(|(id, _)| *id)
    }

    pub(crate) fn cancel_uncleared(&self, session: SessionId) {
        let waiting = |call: &&Call| call.session == session && call.stage == Stage::Attempted;
        self.calls
            .values()
            .filter(waiting)
            .for_each(|call| call.cancel.cancel());
    }

    /// Why this call may not begin, the closed scopes first.
    pub(crate) fn refusal(&self, ask: &Ask) -> Option<Denial> {
        let secret = ask.secret.as_ref();
        let shut = secret
            .and_then(|name| self.closed_secrets.get(name))
            .map(|seq| revoked("secret", *seq));
        let run = self.runs.get(&ask.session);
        if let Some(why) = self.revoked_for(ask.session, &ask.target.channel).or(shut) {
            return Some(why);
        }
        if let Some(why) = self.waits_for(ask.session) {
            return Some(why);
        }
        if ask.is_write && run.is_some_and(|run| run.holder.is_none()) {
            return Some(Denial::OwnershipIncomplete);
        }
        let open = self.open_writes.repeated_by(ask);
        open.map(|of| Denial::Repeat { of })
    }

    /// Why nothing of this channel may be used by this run, whatever is asked.
    pub(crate) fn shut_for(&self, session: SessionId, channel: &ChannelName) -> Option<Denial> {
        self.revoked_for(session, channel)
            .or_else(|| self.waits_for(session))
    }

    /// What was taken away for good, and is said before anything that passes.
    fn revoked_for(&self, session: SessionId, channel: &ChannelName) -> Option<Denial> {
        let run = self.runs.get(&session);
        run.map_or(Some(Denial::ClientLost), Run::closed)
            // Who it is would be on no record: nobody could say whose its calls were.
            .or_else(|| run?.opened_seq.is_none().then_some(Denial::NotRecorded))
            .or_else(|| {
                let seq = self.closed_channels.get(channel)?;
                Some(revoked("channel", *seq))
            })
    }

    /// What the run, or the whole house, waits for.
    fn waits_for(&self, session: SessionId) -> Option<Denial> {
        if self.locked {
            return Some(Denial::Locked);
        }
        if self.unrecordable {
            return Some(Denial::NotRecorded);
        }
        let admitted = self.runs.get(&session).is_some_and(|run| run.admitted);
        (self.runs_wait && !admitted).then_some(Denial::Pending)
    }

    /// Remembers what a person may want to decide about.
    pub(crate) fn note_refusal(&mut self, ask: &Ask, why: &Denial) {
        if let Denial::Repeat { of } = why {
            self.open_writes.was_asked(*of, ask.session);
        }
    }

    fn close(&mut self, scope: &Scope, seq: Option<Seq>) {
        match scope {
            Scope::Run { session } => {
                if let Some(run) = self.runs.get_mut(session) {
                    run.revoked.get_or_insert(seq);
                }
            }
            Scope::Channel { channel } => {
                self.closed_channels.entry(channel.clone()).or_insert(seq);
            }
            Scope::Secret { secret } => {
                self.closed_secrets.entry(secret.clone()).or_insert(seq);
            }
            Scope::All => self.locked = true,
        }
    }
}

fn revoked(scope: &str, seq: Option<Seq>) -> Denial {
    Denial::Revoked {
        scope: scope.to_owned(),
        seq,
    }
}

/// Calls of all connections that may be under way at once: each holds a descriptor, and an operator's
/// connection needs one too.
const IN_FLIGHT_OF_ALL: usize = 1024;

/// Where all authority of one daemon is decided.
pub struct Gate {
    pub(crate) state: Mutex<State>,
    pub(crate) journal: Arc<dyn Journal>,
    /// Calls of all connections that may be under way at once.
    pub(crate) most_calls: usize,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// What a closing did.
#[derive(Debug)]
pub struct Closed {
    /// The claim on its record. If it fails the closing still holds, but is not on record.
    pub ticket: Ticket,
    /// Calls whose bytes may already have left.
    pub in_flight: Vec<CallId>,
    /// Whether there was anything to close: an unknown run is closed by nobody.
    pub known: bool,
}

/// A write that an earlier daemon left open.
#[derive(Debug, Clone)]
pub struct OpenCall {
    /// Which call.
    pub call: CallId,
    /// Its channel.
    pub channel: ChannelName,
    /// Its operation.
    pub operation: Option<OperationName>,
    /// Digest of its arguments.
    pub arguments: Digest,
}

impl Gate {
    /// Returns a gate that writes to `journal`; it starts locked.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        let state = State {
            locked: true,
            runs_wait: true,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            journal,
            most_calls: IN_FLIGHT_OF_ALL,
        }
    }

    /// Lets no more than so many calls be under way at once, where the system has room for fewer than usual.
    #[must_use]
    pub fn with_room_for(mut self, calls: usize) -> Self {
        self.most_calls = calls.min(IN_FLIGHT_OF_ALL);
        self
    }

    /// Lets one call's bytes leave, if nothing has closed in the meantime.
    ///
    /// The connection is already up, so that what follows is the sending itself. The record is pushed,
    /// not awaited: the attempt is on disk, and after a crash an attempt without outcome is unresolved.
    ///
    /// # Errors
    /// Something closed since the attempt, or a twin of this write is open.
    pub fn clear(&self, permit: Permit) -> Result<Cleared, Refused> {
        let mut state = lock(&self.state);
        let cancelled = permit.cancel.is_cancelled().then_some(Denial::ClientLost);
        if let Some(why) = state.refusal(&permit.ask).or(cancelled) {
            state.calls.remove(&permit.ask.call);
            state.note_refusal(&permit.ask, &why);
            return Err(self.deny(&permit.ask, permit.attempt_seq, why));
        }
        let ticket = self.journal.push(self.entry(
            &permit.ask,
            Kind::Cleared,
            permit.attempt_seq,
            Body::Empty,
        ));
        if ticket.seq().is_none() {
            state.unrecordable = true;
            state.calls.remove(&permit.ask.call);
            return Err(self.deny(&permit.ask, permit.attempt_seq, Denial::NotRecorded));
        }
        if let Some(call) = state.calls.get_mut(&permit.ask.call) {
            call.stage = Stage::Cleared;
        }
        state.open_writes.add(&permit.ask);
        Ok(Cleared {
            ask: permit.ask,
            attempt_seq: permit.attempt_seq,
            cancel: permit.cancel,
        })
    }

    /// Takes authority away, from the very next call on.
    ///
    /// Calls that were not cleared are cancelled and can no longer be; calls in flight are cancelled too
    /// and listed, because their bytes may have left.
    pub fn close(&self, scope: Scope, reason: Foreign, by: Option<Operator>) -> Closed {
        let mut state = lock(&self.state);
        let concerned: Vec<(CallId, Stage)> = state
            .calls
            .iter()
            .filter(|(_, call)| call.is_in(&scope))
            .map(|(id, call)| (*id, call.stage))
            .collect();
        let in_flight: Vec<CallId> = concerned
            .iter()
            .filter(|(_, stage)| *stage == Stage::Cleared)
            .map(|(id, _)| *id)
            .collect();
        let session = match &scope {
            Scope::Run { session } => Some(*session),
            Scope::Channel { .. } | Scope::Secret { .. } | Scope::All => None,
        };
        let known = session.is_none_or(|session| state.runs.contains_key(&session));
        if let Some(session) = session {
            self.end_count_of_revoked(&mut state, session);
        }
        let ticket = self.journal.push(Entry {
            kind: Kind::Revoked,
            session,
            call: None,
            refers_to: None,
            body: Body::Revoked {
                scope: scope.clone(),
                reason,
                by,
                in_flight: in_flight.clone(),
            },
        });
        state.unrecordable |= ticket.seq().is_none();
        state.close(&scope, ticket.seq());
        for (id, _) in &concerned {
            if let Some(call) = state.calls.get(id) {
                call.cancel.cancel();
            }
        }
        Closed {
            ticket,
            in_flight,
            known,
        }
    }

    /// Opens what [`close`](Self::close) of everything shut: the vault is unlocked.
    ///
    /// `left_open` are the writes whose outcome an earlier daemon did not learn.
    pub fn unlocked(&self, left_open: Vec<OpenCall>) {
        let mut state = lock(&self.state);
        for open in left_open {
            let twin = Twin {
                channel: open.channel,
                operation: open.operation,
                arguments: open.arguments,
            };
            state.open_writes.left_open(twin, open.call);
        }
        state.locked = false;
    }

    /// Gives a channel or secret back; a policy applied anew does that.
    pub fn reopen(&self, channels: &HashSet<ChannelName>, secrets: &HashSet<SecretName>) {
        let mut state = lock(&self.state);
        state
            .closed_channels
            .retain(|name, _| !channels.contains(name));
        state
            .closed_secrets
            .retain(|name, _| !secrets.contains(name));
    }

    /// Records how a cleared call ended. Only after the ticket may the answer go to the agent.
    pub fn settle(&self, cleared: Cleared, outcome: OutcomeBody) -> Ticket {
        let mut state = lock(&self.state);
        state.calls.remove(&cleared.ask.call);
        let (kind, is_final) = match &outcome {
            OutcomeBody::Withdrawn { .. } => (Kind::Withdrawn, true),
            OutcomeBody::Answered { .. } => (Kind::Answered, true),
            OutcomeBody::Outliving { .. } => (Kind::Outliving, false),
            OutcomeBody::Waiting { .. } => (Kind::Waiting, false),
            OutcomeBody::Unresolved { .. } => (Kind::Unresolved, false),
        };
        if is_final {
            state.open_writes.close(cleared.ask.call);
        }
        let body = Body::Outcome(outcome);
        self.journal
            .push(self.entry(&cleared.ask, kind, cleared.attempt_seq, body))
    }

    /// Records that an answer came and could not be delivered: done, and nobody was told.
    pub fn undelivered(&self, settled: Settled) -> Option<Ticket> {
        let OutcomeBody::Answered {
            status, remote_id, ..
        } = settled.outcome
        else {
            return None;
        };
        let _order = lock(&self.state);
        let body = Body::Outcome(OutcomeBody::Answered {
            status,
            delivered: Some(false),
            remote_id,
        });
        Some(
            self.journal
                .push(self.entry(&settled.ask, Kind::Answered, settled.attempt_seq, body)),
        )
    }

    /// Records that a permitted call was given up before anything of it could leave.
    pub fn withdraw(&self, permit: Permit) -> Ticket {
        let mut state = lock(&self.state);
        state.calls.remove(&permit.ask.call);
        let body = Body::Outcome(OutcomeBody::Withdrawn {
            proof: Withdrawal::NeverCleared,
        });
        self.journal
            .push(self.entry(&permit.ask, Kind::Withdrawn, permit.attempt_seq, body))
    }

    /// Records what an operator found out about an open call; the same write may then be made again.
    pub fn reconcile(
        &self,
        session: Option<SessionId>,
        call: CallId,
        attempt_seq: Seq,
        found: (bool, String),
        by: Operator,
    ) -> Ticket {
        let mut state = lock(&self.state);
        state.open_writes.close(call);
        self.journal.push(Entry {
            kind: Kind::Reconciled,
            session,
            call: Some(call),
            refers_to: Some(attempt_seq),
            body: Body::Reconciled {
                happened: found.0,
                evidence: found.1,
                by,
            },
        })
    }

    pub(crate) fn entry(
        &self,
        ask: &Ask,
        kind: Kind,
        attempt: impl Into<Option<Seq>>,
        body: Body,
    ) -> Entry {
        Entry {
            kind,
            session: Some(ask.session),
            call: Some(ask.call),
            refers_to: attempt.into(),
            body,
        }
    }

    /// Records a refusal; without an attempt there is nothing that it refers to.
    pub(crate) fn deny(&self, ask: &Ask, attempt: impl Into<Option<Seq>>, why: Denial) -> Refused {
        let body = Body::Denied { why: why.clone() };
        let ticket = self
            .journal
            .push(self.entry(ask, Kind::Denied, attempt, body));
        Refused {
            why,
            call: ask.call,
            ticket: Some(ticket),
        }
    }
}
