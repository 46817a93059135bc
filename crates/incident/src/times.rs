//! Three times that stay three: client lost, last known action began, authority revoked.

use model::{CallState, Known, Lost, LostBasis, Wall};
use serde::{Deserialize, Serialize};

use crate::{
    attribute::Attribute,
    authority::{CallFact, Revocation},
    subject::Subject,
};

/// Where a call lies between the loss of the client and the revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Surely asked for while the client was there.
    BeforeLoss,
    /// Asked for when nobody may have been there to ask, and nothing forbade it.
    Uncertain,
    /// Asked for after the revocation: refused, or something is wrong.
    AfterRevocation,
}

impl Window {
    /// Returns the word that people read.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::BeforeLoss => "before the loss",
            Self::Uncertain => "uncertain window",
            Self::AfterRevocation => "after the revocation",
        }
    }
}

/// When a client was lost, as JSON shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClientLost {
    /// The kernel told it as it happened.
    At {
        /// When.
        at: Wall,
        /// On which fact it rests.
        source: String,
    },
    /// It was found out later.
    Between {
        /// Not before.
        not_before: Wall,
        /// Not after.
        not_after: Wall,
        /// On which fact it rests.
        source: String,
    },
}

impl ClientLost {
    pub(crate) fn new(not_before: Wall, not_after: Wall, source: &str) -> Self {
        let source = source.to_owned();
        if not_before == not_after {
            Self::At {
                at: not_before,
                source,
            }
        } else {
            Self::Between {
                not_before,
                not_after,
                source,
            }
        }
    }

    /// Returns the earliest time at which it can have been.
    #[must_use]
    pub const fn not_before(&self) -> Wall {
        match self {
            Self::At { at, .. } => *at,
            Self::Between { not_before, .. } => *not_before,
        }
    }
}

impl From<&Lost> for ClientLost {
    fn from(lost: &Lost) -> Self {
        Self::new(lost.not_before, lost.not_after, basis(lost.basis))
    }
}

const fn basis(basis: LostBasis) -> &'static str {
    match basis {
        LostBasis::TransportClosed => "transport_closed",
        LostBasis::HolderExited => "holder_exited",
        LostBasis::AncestorExited => "ancestor_exited",
        LostBasis::ClientStuck => "client_stuck",
    }
}

/// Returns when the client was lost: by the run's record, else by what the snapshot shows.
pub(crate) fn client_lost(
    subject: Option<&Subject>,
    attribute: Option<&Attribute>,
) -> Known<Option<ClientLost>> {
    let seen = || {
        let Some(subject) = subject else {
            return Known::unknown("no process of this run was found");
        };
        let seen = subject.client_lost.clone();
        seen.map(|seen| {
            Some(ClientLost::new(
                seen.not_before,
                seen.not_after,
                &seen.source,
            ))
        })
    };
    match attribute.map(|attribute| &attribute.run) {
        Some(Known::Yes(Some(run))) => match &run.lost {
            Known::Yes(Some(lost)) => Known::Yes(Some(lost.into())),
            // The run has no loss on record: what the snapshot shows may be newer.
            Known::Yes(None) if seen().value().is_none() => Known::Yes(None),
            Known::Yes(None) | Known::Unknown { .. } => seen(),
        },
        Some(Known::Yes(None) | Known::Unknown { .. }) | None => seen(),
    }
}

/// Classes one call. Its place in the log decides against the revocation, its time against the loss.
#[must_use]
pub fn window(
    call: &CallFact,
    lost: Option<&ClientLost>,
    revocation: Option<&Revocation>,
) -> Window {
    let after = revocation.is_some_and(|revocation| match revocation.seq {
        Some(seq) => call.seq > seq,
        None => call.attempted_at >= revocation.at,
    });
    if after {
        Window::AfterRevocation
    } else if lost.is_some_and(|lost| call.attempted_at < lost.not_before()) {
        Window::BeforeLoss
    } else {
        Window::Uncertain
    }
}

/// Returns when the newest action that may have reached the outside began.
pub(crate) fn last_action(calls: &[CallFact]) -> Option<Wall> {
    calls.iter().filter_map(|call| call.cleared_at).max()
}

/// Returns when the newest action that is known to have succeeded was answered.
pub(crate) fn last_success(calls: &[CallFact]) -> Option<Wall> {
    let succeeded = |call: &&CallFact| {
        let good = matches!(call.status, Some(Known::Yes(status)) if status < 400);
        call.state == CallState::Answered && good
    };
    let times = calls.iter().filter(succeeded);
    times.filter_map(|call| call.settled_at).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{call, operator, wall};

    fn revoked(seq: Option<u64>) -> Revocation {
        Revocation {
            seq,
            at: wall(200),
            in_flight: Vec::new(),
            by: operator(),
        }
    }

    fn lost(from: u64, to: u64) -> ClientLost {
        ClientLost::new(wall(from), wall(to), "holder_exited")
    }

    #[test]
    fn a_call_is_classed_by_the_earliest_loss_and_by_the_place_of_the_revocation() {
        let lost = lost(100, 110);
        let revoked = revoked(Some(50));
        for (second, seq, expected) in [
            (99, 10, Window::BeforeLoss),
            (100, 11, Window::Uncertain),
            (105, 12, Window::Uncertain),
            (150, 49, Window::Uncertain),
            (201, 51, Window::AfterRevocation),
            // The wall clock was set back: the log's order decides.
            (90, 52, Window::AfterRevocation),
        ] {
            let call = call(1, CallState::Answered, second, seq);

            assert_eq!(window(&call, Some(&lost), Some(&revoked)), expected);
        }
    }

    #[test]
    fn without_a_known_loss_no_call_is_surely_before_it() {
        let call = call(1, CallState::Answered, 1, 1);

        assert_eq!(window(&call, None, None), Window::Uncertain);
    }

    #[test]
    fn without_a_record_of_the_revocation_its_time_decides() {
        let call = call(1, CallState::Denied, 201, 7);

        let found = window(&call, None, Some(&revoked(None)));

        assert_eq!(found, Window::AfterRevocation);
    }

    #[test]
    fn a_loss_that_was_not_seen_as_it_happened_has_bounds() {
        let seen = serde_json::to_value(lost(1, 1)).unwrap();
        let found = serde_json::to_value(lost(1, 2)).unwrap();

        assert!(seen.get("at").is_some() && seen.get("not_before").is_none());
        assert!(found.get("not_before").is_some() && found.get("at").is_none());
    }

    #[test]
    fn a_refused_call_is_no_action_and_an_error_no_success() {
        let mut failed = call(2, CallState::Answered, 30, 3);
        failed.status = Some(Known::Yes(500));
        let calls = [
            call(1, CallState::Answered, 10, 1),
            failed,
            call(3, CallState::Denied, 40, 4),
        ];

        assert_eq!(last_action(&calls), Some(wall(30)));
        assert_eq!(last_success(&calls), Some(wall(11)));
    }
}
