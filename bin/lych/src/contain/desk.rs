//! What every step of an incident is given on this machine, with a daemon or without one.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use incident::{
    Absent, Authority, CallFact, Desk, Probed, Refusal, Revocation, RunFact, Unanswered,
    Verification,
};
use model::{Digest, Exit, Explain, Home, IncidentId, Presence, ProcessId, Scope, Seq, SessionId};
use sys::clock::SystemClock;
use wire::operator::{Request, WardenAct};

use super::eyes::Machine;
use crate::{authority::Daemon, operator::Operator, pin::PinArgs};

/// Everything that a [`Desk`] borrows.
pub(crate) struct Office {
    authority: Box<dyn Authority>,
    eyes: Machine,
    clock: SystemClock,
    operator: model::Operator,
}

impl Office {
    /// Opens it, with the daemon's authority where a daemon runs.
    ///
    /// # Errors
    /// Something listens that is not the user's own daemon.
    pub(crate) fn open(home: &Home) -> Result<Self, Explain> {
        let authority: Box<dyn Authority> = match Daemon::connect(home) {
            Ok(daemon) => Box::new(daemon),
            Err(error) if error.exit == Exit::Unreachable => Box::new(Offline {
                absent: Absent::because(error.what),
                home: home.clone(),
            }),
            Err(error) => return Err(error),
        };
        Ok(Self {
            authority,
            eyes: Machine::of(home),
            clock: SystemClock,
            operator: operator(),
        })
    }

    /// Lets a person stand behind an act, by the rule that is in force; what follows is done in that
    /// presence.
    ///
    /// Where no daemon can tell the rule (none runs, or its vault is shut) a terminal or nothing is what is
    /// recorded.
    ///
    /// # Errors
    /// The rule asks for a PIN that was not given, or was wrong.
    pub(crate) fn stand_behind(
        &mut self,
        home: &Home,
        pin: &PinArgs,
        act: WardenAct,
    ) -> Result<(), Explain> {
        let asked = Operator::connect(home)
            .and_then(|mut operator| pin.ask(&mut operator, &Request::StandBehind { act }));
        match asked {
            Ok(said) => {
                let presence = said.get("presence").cloned().unwrap_or_default();
                if let Ok(presence) = serde_json::from_value(presence) {
                    self.operator.presence = presence;
                }
                Ok(())
            }
            Err(error) if matches!(error.exit, Exit::Unreachable | Exit::Locked) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the desk.
    pub(crate) fn desk(&mut self) -> Desk<'_> {
        Desk {
            clock: &self.clock,
            authority: self.authority.as_mut(),
            eyes: &mut self.eyes,
            operator: self.operator.clone(),
        }
    }
}

/// Without a daemon presence can only be a terminal or nothing.
fn operator() -> model::Operator {
    model::Operator {
        uid: sys::process::own_uid(),
        login_uid: sys::login::login_uid(std::process::id()),
        presence: if io::stdin().is_terminal() {
            Presence::Tty
        } else {
            Presence::None
        },
    }
}

/// No daemon: nobody holds authority, but the log can be verified all the same.
struct Offline {
    absent: Absent,
    home: Home,
}

impl Authority for Offline {
    fn run_of(&mut self, process: &ProcessId) -> Result<Option<SessionId>, Unanswered> {
        self.absent.run_of(process)
    }

    fn session(&mut self, id: SessionId) -> Result<Option<RunFact>, Unanswered> {
        self.absent.session(id)
    }

    fn calls(&mut self, session: SessionId) -> Result<Vec<CallFact>, Unanswered> {
        self.absent.calls(session)
    }

    fn revoke(&mut self, scope: &Scope, reason: &str) -> Result<Revocation, Unanswered> {
        self.absent.revoke(scope, reason)
    }

    fn refusal_after(
        &mut self,
        session: SessionId,
        after: Seq,
        at_most: Duration,
    ) -> Result<Option<Refusal>, Unanswered> {
        self.absent.refusal_after(session, after, at_most)
    }

    fn probe(&mut self, session: SessionId) -> Result<Probed, Unanswered> {
        self.absent.probe(session)
    }

    fn anchor(
        &mut self,
        incident: IncidentId,
        step: &str,
        sha256: Digest,
        late: bool,
    ) -> Result<Seq, Unanswered> {
        self.absent.anchor(incident, step, sha256, late)
    }

    fn verify(&mut self) -> Result<Verification, Unanswered> {
        let folder = self.home.audit();
        if !folder.is_dir() {
            return Err(Unanswered::Failed(
                "there is no log on this machine".to_owned(),
            ));
        }
        let report = ledger::verify(&folder, &ledger::VerifyOptions::default());
        let json =
            serde_json::to_value(&report).map_err(|error| Unanswered::Failed(error.to_string()))?;
        Ok(Verification {
            json,
            text: report.to_string(),
        })
    }
}
