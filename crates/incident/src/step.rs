//! The stored form of a step: one JSON file, written once and never changed.
//!
//! Readers must read it for ever: fields are only added, and a reader skips what it does not know.

use model::{Digest, Foreign, IncidentId, Operator, Stamp};
use serde::{Deserialize, Serialize};

use crate::{
    attribute::Attribute, case::Case, confirm::Confirmation, folder::EvidenceFile,
    preserve::Preserve, reconcile::Reconcile, record::Record, revoke::Revoke, terminate::Terminate,
};

/// The version of the form that this code writes.
pub(crate) const SCHEMA: &str = "lych.incident-step/v1";

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Version of this form.
    pub schema: String,
    /// Which incident.
    pub incident: IncidentId,
    /// Its number in the folder. A gap is a step that a crash cut off.
    pub number: u16,
    /// When it was complete.
    pub at: Stamp,
    /// Who took it.
    pub by: Operator,
    /// Digest of the step before it.
    pub previous: Option<Digest>,
    /// Files that belong to it and were durable before it.
    pub evidence: Vec<EvidenceFile>,
    /// What was done.
    #[serde(flatten)]
    pub body: Body,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", content = "body", rename_all = "snake_case")]
pub enum Body {
    /// All processes were looked at, and the look was kept.
    Preserve(Preserve),
    /// The run and its calls were found.
    Attribute(Box<Attribute>),
    /// Authority was taken away.
    Revoke(Revoke),
    /// A refusal was waited for.
    Confirm(Confirmation),
    /// The processes were ended.
    Terminate(Terminate),
    /// Both sides were compared.
    Reconcile(Reconcile),
    /// The outcome was written down.
    Record(Box<Record>),
    /// An operator wrote something down.
    Note {
        /// What.
        text: Foreign,
        /// The follow-up that is done by it.
        done: Option<String>,
    },
    /// An operator added a file.
    Attach {
        /// Where it came from.
        name: Foreign,
    },
    /// The incident was closed.
    Close {
        /// Why, where follow-up was left open.
        reason: Option<Foreign>,
        /// The follow-up that was left open.
        left_open: Vec<String>,
    },
}

impl Body {
    /// Returns the word in the file's name.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Preserve(_) => "preserve",
            Self::Attribute(_) => "attribute",
            Self::Revoke(_) => "revoke",
            Self::Confirm(_) => "confirm",
            Self::Terminate(_) => "terminate",
            Self::Reconcile(_) => "reconcile",
            Self::Record(_) => "record",
            Self::Note { .. } => "note",
            Self::Attach { .. } => "attach",
            Self::Close { .. } => "close",
        }
    }
}

impl Case {
    /// Finds the newest step of one kind.
    pub(crate) fn newest<T>(&self, kind: impl Fn(&Body) -> Option<&T>) -> Option<&T> {
        self.steps().rev().find_map(|step| kind(&step.body))
    }
}

impl Body {
    pub(crate) const fn preserve(&self) -> Option<&Preserve> {
        if let Self::Preserve(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) fn attribute(&self) -> Option<&Attribute> {
        if let Self::Attribute(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) const fn revoke(&self) -> Option<&Revoke> {
        if let Self::Revoke(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) const fn confirm(&self) -> Option<&Confirmation> {
        if let Self::Confirm(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) const fn terminate(&self) -> Option<&Terminate> {
        if let Self::Terminate(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) const fn reconcile(&self) -> Option<&Reconcile> {
        if let Self::Reconcile(body) = self {
            Some(body)
        } else {
            None
        }
    }

    pub(crate) fn record(&self) -> Option<&Record> {
        if let Self::Record(body) = self {
            Some(body)
        } else {
            None
        }
    }

    /// Returns what a person wrote in a step that a person can write.
    pub(crate) const fn words(&self) -> Option<&Foreign> {
        match self {
            Self::Note { text, .. } => Some(text),
            Self::Attach { name } => Some(name),
            Self::Close { reason, .. } => reason.as_ref(),
            Self::Preserve(_)
            | Self::Attribute(_)
            | Self::Revoke(_)
            | Self::Confirm(_)
            | Self::Terminate(_)
            | Self::Reconcile(_)
            | Self::Record(_) => None,
        }
    }
}

/// The words that a step's file name can have.
pub(crate) const WORDS: [&str; 10] = [
    "preserve",
    "attribute",
    "revoke",
    "confirm",
    "terminate",
    "reconcile",
    "record",
    "note",
    "attach",
    "close",
];
