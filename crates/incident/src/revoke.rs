//! The third step: take the run's authority away, explicitly, also where the crash already ended it.

use model::{Scope, SessionId};
use serde::{Deserialize, Serialize};

use crate::{
    attribute::{Attribute, Attributed},
    authority::{Revocation, Unanswered},
    case::Case,
    desk::Desk,
    error::IncidentError,
    preserve::Preserve,
    step::Body,
};

/// What came of the revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "revoke", rename_all = "snake_case")]
pub enum Revoke {
    /// The run's authority is gone.
    Revoked {
        /// From what it was taken.
        scope: Scope,
        /// The operator's reason.
        reason: String,
        /// The daemon's answer.
        revocation: Revocation,
    },
    /// No run of ours is known to own these processes: there is nothing of ours to take away.
    NothingOfOurs {
        /// Why none is known.
        why: String,
    },
    /// The run could not be revoked, because nobody holds authority now.
    NoDaemon {
        /// Which run.
        session: SessionId,
        /// Why nobody does.
        why: String,
    },
}

/// An incident whose run has lost its authority, as far as it had any from us.
#[derive(Debug)]
pub struct Revoked {
    pub(crate) case: Case,
    pub(crate) preserve: Preserve,
    pub(crate) attribute: Attribute,
    pub(crate) body: Revoke,
}

impl Attributed {
    /// Revokes the run, and nothing wider.
    ///
    /// # Errors
    /// The daemon is there and did not revoke, or the file system refused. The incident stays where it is:
    /// going on would end the processes while their run may still act.
    pub fn revoke(mut self, reason: &str, desk: &mut Desk<'_>) -> Result<Revoked, IncidentError> {
        let body = match self.body.session {
            None => Revoke::NothingOfOurs {
                why: self.body.why_nobody(),
            },
            Some(session) => revoke(session, reason, desk)?,
        };
        self.case
            .append(desk, Vec::new(), Body::Revoke(body.clone()))?;
        Ok(Revoked {
            case: self.case,
            preserve: self.preserve,
            attribute: self.body,
            body,
        })
    }
}

fn revoke(session: SessionId, reason: &str, desk: &mut Desk<'_>) -> Result<Revoke, IncidentError> {
    let scope = Scope::Run { session };
    match desk.authority.revoke(&scope, reason) {
        Ok(revocation) => Ok(Revoke::Revoked {
            scope,
            reason: reason.to_owned(),
            revocation,
        }),
        Err(Unanswered::Absent(why)) => Ok(Revoke::NoDaemon { session, why }),
        Err(failed @ Unanswered::Failed(_)) => Err(failed.into()),
    }
}
