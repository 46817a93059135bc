//! The fourth step: see a call refused, on record, before anything is ended.

use std::time::Duration;

use model::{Foreign, Seq, SessionId};
use serde::{Deserialize, Serialize};
use sys::process::Handle;

use crate::{
    attribute::Attribute,
    authority::{Probed, Refusal, RefusedBy},
    case::Case,
    desk::Desk,
    error::IncidentError,
    preserve::Preserve,
    revoke::{Revoke, Revoked},
    step::Body,
    subject::{AuthorityLevel, Subject},
};

/// What is known of the revocation's effect. Only [`Refused`](Self::Refused) is ever called confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Confirmation {
    /// A call of the run was refused after the revocation.
    #[non_exhaustive]
    Refused {
        /// The record of the refusal.
        seq: Seq,
        /// Whose call it was.
        by: RefusedBy,
    },
    /// The processes use no path of ours, so nothing of ours can be seen refused.
    #[non_exhaustive]
    NoPathOfOurs {
        /// What they can still do by themselves.
        authority_left: AuthorityLevel,
        /// The secrets they hold themselves: each must be rotated.
        rotate: Vec<Foreign>,
    },
    /// There is a path of ours, and no refusal was seen.
    #[non_exhaustive]
    NotObserved {
        /// Why not.
        why: String,
    },
}

impl Confirmation {
    /// Tells whether a refusal is on record.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// An incident in which it is known whether the revocation was seen to hold.
#[derive(Debug)]
pub struct Confirmed {
    pub(crate) case: Case,
    pub(crate) preserve: Preserve,
    pub(crate) attribute: Attribute,
    pub(crate) revoke: Revoke,
    pub(crate) body: Confirmation,
}

impl Revoked {
    /// Waits at most this long until a call of the run is refused.
    ///
    /// # Errors
    /// The file system refused.
    pub fn confirm(
        mut self,
        at_most: Duration,
        desk: &mut Desk<'_>,
    ) -> Result<Confirmed, IncidentError> {
        let body = confirmation(&self.body, &self.preserve.subjects, at_most, desk);
        self.case
            .append(desk, Vec::new(), Body::Confirm(body.clone()))?;
        Ok(Confirmed {
            case: self.case,
            preserve: self.preserve,
            attribute: self.attribute,
            revoke: self.body,
            body,
        })
    }
}

impl Confirmed {
    /// Returns what is known of the revocation's effect.
    #[must_use]
    pub const fn confirmation(&self) -> &Confirmation {
        &self.body
    }
}

pub(crate) fn confirmation(
    revoke: &Revoke,
    subjects: &[Subject],
    at_most: Duration,
    desk: &mut Desk<'_>,
) -> Confirmation {
    let (session, after) = match revoke {
        Revoke::NothingOfOurs { .. } => return no_path(subjects),
        Revoke::NoDaemon { why, .. } => {
            return Confirmation::NotObserved {
                why: format!("the run was not revoked: {why}"),
            };
        }
        Revoke::Revoked {
            scope: model::Scope::Run { session },
            revocation,
            ..
        } => (*session, revocation.seq),
        Revoke::Revoked { .. } => {
            return Confirmation::NotObserved {
                why: "the revocation does not name one run".to_owned(),
            };
        }
    };
    let Some(after) = after else {
        return Confirmation::NotObserved {
            why: "the revocation holds but could not be recorded".to_owned(),
        };
    };
    // Who has ended asks for nothing any more: there is only the past to look at.
    let anybody = subjects.iter().any(may_live);
    let at_most = if anybody { at_most } else { Duration::ZERO };
    match desk.authority.refusal_after(session, after, at_most) {
        Ok(Some(Refusal { seq, by })) => Confirmation::Refused { seq, by },
        Ok(None) => probed(session, desk, &unasked(anybody, at_most)),
        Err(error) => Confirmation::NotObserved {
            why: error.to_string(),
        },
    }
}

fn unasked(anybody: bool, at_most: Duration) -> String {
    if anybody {
        format!("no call of the run came within {} s", at_most.as_secs())
    } else {
        "no process of the run is left that could ask for a call".to_owned()
    }
}

/// Where the survivor does not ask, we do: the weaker proof, and named as that.
fn probed(session: SessionId, desk: &mut Desk<'_>, unasked: &str) -> Confirmation {
    let why = match desk.authority.probe(session) {
        Ok(Probed::Refused(seq)) => {
            return Confirmation::Refused {
                seq,
                by: RefusedBy::Probe,
            };
        }
        Ok(Probed::Otherwise(why)) => why,
        Err(error) => error.to_string(),
    };
    Confirmation::NotObserved {
        why: format!("{unasked}, and our own probe was not refused: {why}"),
    }
}

fn may_live(subject: &Subject) -> bool {
    let held = Handle::reopen(&subject.process.id);
    held.is_ok_and(|handle| handle.is_alive().unwrap_or(true))
}

fn no_path(subjects: &[Subject]) -> Confirmation {
    let mut rotate: Vec<Foreign> = subjects
        .iter()
        .flat_map(|subject| subject.reach.secrets.iter().cloned())
        .collect();
    rotate.sort_unstable();
    rotate.dedup();
    Confirmation::NoPathOfOurs {
        authority_left: most(subjects),
        rotate,
    }
}

/// Returns the most that any of them can still do; unknown counts for more than nothing seen.
fn most(subjects: &[Subject]) -> AuthorityLevel {
    let weight = |level: &AuthorityLevel| match level {
        AuthorityLevel::Held => 4,
        AuthorityLevel::Reachable => 3,
        AuthorityLevel::Unknown => 2,
        AuthorityLevel::NoneSeen => 1,
        AuthorityLevel::Refused => 0,
    };
    subjects
        .iter()
        .map(|subject| subject.reach.level)
        .max_by_key(weight)
        .unwrap_or(AuthorityLevel::Unknown)
}
