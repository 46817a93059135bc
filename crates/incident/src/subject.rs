//! One suspicious process, as the verdict hands it over and the incident keeps it.

use model::{ChainLink, Foreign, Known, LinkRole, ProcessRef, SessionId, Wall};
use serde::{Deserialize, Serialize};
use supervise::Standing;

/// A process that an incident is about. The full finding and the full snapshot lie beside it as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The finding that it belongs to.
    pub finding: String,
    /// What the verdict says, as in `OS_ORPHAN`.
    pub verdict: String,
    /// How sure it is: `proven`, `inferred`, `suspected` or `unknown`.
    pub confidence: String,
    /// The process.
    pub process: ProcessRef,
    /// When it was seen; for one that had ended, when that was found.
    pub observed_at: Wall,
    /// When it started.
    pub started_at: Known<Wall>,
    /// Where it stood when it was seen; not known of one that had ended.
    pub place: Known<Place>,
    /// The configured server that it matches.
    pub server: Option<Foreign>,
    /// The client that it belongs or belonged to.
    pub client: Known<Named>,
    /// When its client was lost, as far as the snapshot shows.
    pub client_lost: Known<LostSeen>,
    /// The run that a launch record or its environment names: a hint.
    pub session_hint: Option<SessionId>,
    /// What it can still reach.
    pub reach: Reach,
    /// Whether it may be ended.
    #[serde(with = "standing")]
    pub standing: Standing,
}

/// A process as people name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its number.
    pub pid: u32,
    /// Its command line, redacted.
    pub command: Vec<Foreign>,
    /// Whether its part in this is only what a shim said of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reported: bool,
}

impl From<&ProcessRef> for Named {
    fn from(process: &ProcessRef) -> Self {
        Self {
            pid: process.id.pid,
            command: process.command.clone(),
            reported: false,
        }
    }
}

impl From<&ChainLink> for Named {
    fn from(link: &ChainLink) -> Self {
        Self {
            reported: link.role == LinkRole::HolderReported,
            ..Self::from(&link.process)
        }
    }
}

/// Where a process stood when it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its parent.
    pub ppid: u32,
    /// Its process group.
    pub pgid: u32,
    /// Its session.
    pub sid: u32,
    /// Its state letters, as ps(1) shows them.
    pub stat: String,
}

/// Bounds for the time at which a client was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostSeen {
    /// Not before.
    pub not_before: Wall,
    /// Not after.
    pub not_after: Wall,
    /// What shows it.
    pub source: String,
}

/// What a process holds or can reach by itself. Names only, never a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// How far.
    pub level: AuthorityLevel,
    /// Why that is said.
    pub because: Vec<Foreign>,
    /// Secrets that it holds itself: names of variables and of key files. Each must be rotated.
    pub secrets: Vec<Foreign>,
    /// Sockets and connections through which it can reach a secret or a service.
    pub paths: Vec<Foreign>,
}

/// How much authority is left in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorityLevel {
    /// A call over its path was refused.
    Refused,
    /// It holds a secret itself.
    Held,
    /// It can reach one.
    Reachable,
    /// None was seen, which does not mean that there is none.
    NoneSeen,
    /// It could not be looked at.
    Unknown,
}

impl AuthorityLevel {
    /// Returns the word that commands and JSON use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Held => "held",
            Self::Reachable => "reachable",
            Self::NoneSeen => "none_seen",
            Self::Unknown => "unknown",
        }
    }
}

mod standing {
    //! The stored word of a standing; a word that is not known must not read as one that may be ended.

    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use supervise::Standing;

    pub(super) fn serialize<S: Serializer>(value: &Standing, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match value {
            Standing::Endable => "endable",
            Standing::Live => "live",
            Standing::Managed => "managed",
            Standing::Shared => "shared",
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Standing, D::Error> {
        match String::deserialize(from)?.as_str() {
            "endable" => Ok(Standing::Endable),
            "live" => Ok(Standing::Live),
            "managed" => Ok(Standing::Managed),
            "shared" => Ok(Standing::Shared),
            word => Err(D::Error::custom(format!("no standing is called {word}"))),
        }
    }
}
