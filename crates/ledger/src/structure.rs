//! The rules of order that clear headers show without any key.
//!
//! Only what is still open is remembered, so memory grows with the open attempts and the revoked runs, not with the
//! log.

use std::collections::BTreeMap;

use model::{CallId, CallState, Kind, Seq, SessionId, Wall};

use crate::{
    fold::state_after,
    header::Header,
    report::{OpenAttempt, StructureFinding},
};

mod pending;
mod recent;

use pending::Pending;
use recent::Recent;

/// How many findings are listed; more say nothing new.
const FINDINGS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    call: Option<CallId>,
    session: Option<SessionId>,
    at: Wall,
    state: CallState,
}

/// The rules, applied record by record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Structure {
    /// What stands before this was given up: references there cannot be followed.
    pub(crate) begins_at: Seq,
    open: Pending<Open>,
    answered: Recent,
    revoked: BTreeMap<SessionId, Seq>,
    epoch_closed: bool,
    findings: Vec<StructureFinding>,
}

impl Structure {
    /// Takes the next record into account.
    pub(crate) fn apply(&mut self, header: &Header) {
        if header.kind == Kind::EpochOpened {
            self.epoch_closed = false;
        } else if self.epoch_closed && header.kind != Kind::Commit {
            self.broken(header, "a record follows the end of its daemon run");
        }
        if header.kind == Kind::EpochClosed {
            self.epoch_closed = true;
        }
        if let (Kind::Revoked, Some(session)) = (header.kind, header.session) {
            self.revoked.entry(session).or_insert(header.seq);
        }
        if header.kind == Kind::Attempt {
            self.attempted(header);
        } else if header.kind == Kind::Cleared {
            self.cleared(header);
        } else if header.kind == Kind::Reconciled {
            self.reconciled(header);
        } else if header.kind.closes_attempt() {
            self.closed(header);
        }
    }

    fn attempted(&mut self, header: &Header) {
        if header.call.is_none() || header.session.is_none() {
            self.broken(header, "an attempt names no run or no call");
        }
        let open = Open {
            call: header.call,
            session: header.session,
            at: header.stamp.wall,
            state: CallState::Attempted,
        };
        self.open.add(header.seq, open);
    }

    fn cleared(&mut self, header: &Header) {
        if header
            .session
            .is_some_and(|session| self.revoked.contains_key(&session))
        {
            self.broken(header, "a call was cleared after its run was revoked");
        }
        match header.refers_to.and_then(|seq| self.open.get_mut(seq)) {
            Some(open) if open.call == header.call && open.session == header.session => {
                open.state = CallState::Cleared;
            }
            _ => self.broken(header, "a clearance refers to no open attempt of its call"),
        }
    }

    fn closed(&mut self, header: &Header) {
        let Some(attempt) = header.refers_to else {
            // A call that is refused before it becomes an attempt has nothing to close.
            if header.kind != Kind::Denied {
                self.broken(header, "an outcome refers to no attempt");
            }
            return;
        };
        let Some(open) = self.open.get_mut(attempt) else {
            // Whether an answer could be delivered is known later and noted by a second one.
            let known = attempt >= self.begins_at;
            if known && (header.kind != Kind::Answered || !self.answered.has(attempt)) {
                self.broken(header, "an outcome refers to no open attempt");
            }
            return;
        };
        let was = open.state;
        if open.call != header.call {
            self.broken(header, "an outcome refers to another call's attempt");
            return;
        }
        let state = state_after(header.kind).unwrap_or(was);
        open.state = state;
        if !state.is_open() {
            self.open.remove(attempt);
        }
        self.check_way(header, was);
        if header.kind == Kind::Answered {
            self.answered.add(attempt);
        }
    }

    /// The order in the log is the gate's order: an answer without a clearance cannot have come about.
    fn check_way(&mut self, header: &Header, was: CallState) {
        let never_cleared = was == CallState::Attempted;
        if never_cleared && matches!(header.kind, Kind::Answered | Kind::Outliving) {
            self.broken(header, "an answer came to a call that was never cleared");
        }
        if !never_cleared && header.kind == Kind::Denied {
            self.broken(header, "a call was denied after it had been cleared");
        }
    }

    fn reconciled(&mut self, header: &Header) {
        match header.refers_to.filter(|attempt| *attempt < header.seq) {
            Some(attempt) => {
                self.open.remove(attempt);
            }
            None => self.broken(header, "a reconciliation refers to no attempt"),
        }
    }

    fn broken(&mut self, header: &Header, what: &'static str) {
        if self.findings.len() < FINDINGS {
            self.findings.push(StructureFinding {
                seq: header.seq,
                session: header.session,
                call: header.call,
                what,
            });
        }
    }

    /// Returns the broken rules and the attempts without a known end.
    pub(crate) fn finish(self) -> (Vec<StructureFinding>, Vec<OpenAttempt>) {
        let open = self.open.into_all().map(|(seq, open)| OpenAttempt {
            call: open.call,
            session: open.session,
            seq,
            attempted_at: open.at,
            state: open.state,
        });
        (self.findings, open.collect())
    }
}
