//! What the log can say: the kinds of record and their sealed bodies.
//!
//! A record is a clear header (sequence number, times, kind, run, call, reference) and a sealed body.
//! The header holds nothing that identifies a target or a person, so that order and structure can be
//! checked without a key. Bodies are JSON inside the cipher: whoever opens one with the plain `age` tool
//! and a ChaCha20-Poly1305 implementation can read it, and unknown fields are skipped by older readers.

use serde::{Deserialize, Serialize};

use crate::{
    Act, CallId, ChainLink, ChannelName, ConnectionId, Digest, Foreign, IncidentId, RequestKey,
    SecretName, SessionId, Target, Unsettled, Wall, Withdrawal, process::Operator,
};

/// A record's place in the log, counted from 1.
pub type Seq = u64;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)*) => {
        /// The kind of a record, in the clear header.
        ///
        /// The number is stored and never given out again; a reader that meets an unknown one cannot judge.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name = $code,)* }

        impl Kind {
            /// Returns the kind that is stored under `code`.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// Returns the number that is stored.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the word that people and JSON read.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A daemon run begins; clear body: its signing key.
    EpochOpened = 1, "epoch_opened";
    /// A group of records is complete; clear body: head, count, signature.
    Commit = 2, "commit";
    /// The vault's root vouches for a daemon run; clear body.
    EpochEndorsed = 3, "epoch_endorsed";
    /// A new root takes over from the bootstrap root, signed by both; clear body.
    RootEndorsed = 4, "root_endorsed";
    /// The daemon closed the log in order; clear body, empty.
    EpochClosed = 5, "epoch_closed";
    /// Bytes behind the last commit were moved to quarantine; clear body.
    TailRepaired = 6, "tail_repaired";
    /// A data key was destroyed on purpose; clear body.
    KeyErased = 7, "key_erased";
    /// The oldest segments were given up; clear body: where the log begins now, and what was carried over.
    Pruned = 8, "pruned";

    /// A run begins; its data key's file digest stands in the clear part.
    SessionOpened = 16, "session_opened";
    /// A shim or a wrapped server joined its run.
    Connected = 17, "connected";
    /// A connection ended, with what is known of its client.
    Disconnected = 18, "disconnected";
    /// A client, or a process above it, was found dead or stuck.
    ClientLost = 19, "client_lost";
    /// A run ended in the ordinary way.
    SessionEnded = 20, "session_ended";

    /// Somebody asked for an action.
    Attempt = 32, "attempt";
    /// We refused it.
    Denied = 33, "denied";
    /// Its bytes may leave from here on.
    Cleared = 34, "cleared";
    /// Provably nothing left.
    Withdrawn = 35, "withdrawn";
    /// An answer came.
    Answered = 36, "answered";
    /// It started something that outlives it.
    Outliving = 37, "outliving";
    /// It is blocked and may go on later.
    Waiting = 38, "waiting";
    /// Whether it had an effect is not known.
    Unresolved = 39, "unresolved";
    /// An operator found out what became of it.
    Reconciled = 40, "reconciled";
    /// Many equal denials, counted.
    DenialsCounted = 41, "denials_counted";

    /// Authority was taken away.
    Revoked = 48, "revoked";
    /// An operator did something to the vault, the policy or the daemon.
    Acted = 49, "acted";
    /// A step of an incident was preserved; its digest is anchored here.
    IncidentStep = 50, "incident_step";
}

impl Kind {
    /// Tells whether this kind is an outcome: it closes the attempt it refers to.
    #[must_use]
    pub const fn closes_attempt(self) -> bool {
        matches!(
            self,
            Self::Denied
                | Self::Withdrawn
                | Self::Answered
                | Self::Outliving
                | Self::Waiting
                | Self::Unresolved
        )
    }

    /// Tells whether the body of this kind is stored in clear, because verification needs it.
    #[must_use]
    pub const fn body_is_clear(self) -> bool {
        self.code() < 16
    }
}

/// One record on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Whose it is; none for the daemon's and the operator's own records.
    pub session: Option<SessionId>,
    /// Which call it belongs to.
    pub call: Option<CallId>,
    /// The record it answers: an outcome's attempt.
    pub refers_to: Option<Seq>,
    /// What is sealed.
    pub body: Body,
}

/// The sealed part of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Body {
    /// Nothing but the header.
    Empty,
    /// A run begins.
    SessionOpened {
        /// Shim → … → client, as seen at admission.
        chain: Vec<ChainLink>,
        /// Whether every link of the chain and the holder were established.
        ownership_complete: bool,
        /// Why it was admitted.
        admission: String,
        /// How many operating-system user ids stand behind it.
        uid: u32,
    },
    /// A shim or a wrapped server joined its run.
    Connected {
        /// Which connection.
        connection: ConnectionId,
        /// Its chain.
        chain: Vec<ChainLink>,
    },
    /// A connection ended.
    Disconnected {
        /// Which connection.
        connection: ConnectionId,
        /// When its transport closed.
        transport_closed_at: Wall,
    },
    /// A client, or a process above it, was found dead or stuck.
    ClientLost(Lost),
    /// A run ended in the ordinary way.
    SessionEnded {
        /// What ended it.
        why: String,
    },
    /// Somebody asked for an action.
    Attempt {
        /// What it acts on.
        target: Target,
        /// Over which connection it came.
        connection: ConnectionId,
        /// Digest of method, path, query, headers and body.
        arguments: Digest,
        /// The id it carries to the remote side; none for a read.
        key: Option<RequestKey>,
        /// Whether it can change anything outside.
        is_write: bool,
        /// The account or endpoint class: the sealed destination.
        destination: Foreign,
        /// Whether we asked, to see the gate refuse; nothing of it was ever to leave.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        probe: bool,
    },
    /// We refused it.
    Denied {
        /// Why.
        why: Denial,
    },
    /// A result, or the knowledge that there is none.
    Outcome(OutcomeBody),
    /// An operator found out what became of a call.
    Reconciled {
        /// Whether the effect is confirmed there.
        happened: bool,
        /// What shows it.
        evidence: String,
        /// Who says so.
        by: Operator,
    },
    /// Many equal denials.
    DenialsCounted {
        /// Why each was refused.
        why: Denial,
        /// How many since the last such record.
        count: u64,
    },
    /// Authority was taken away.
    Revoked {
        /// From what.
        scope: Scope,
        /// The operator's reason.
        reason: Foreign,
        /// Who did it; none if the daemon did (a client was lost).
        by: Option<Operator>,
        /// Calls whose bytes may already have left.
        in_flight: Vec<CallId>,
    },
    /// An operator act.
    Acted {
        /// Which.
        act: Act,
        /// Who.
        by: Operator,
    },
    /// A step of an incident was preserved.
    IncidentStep {
        /// Which incident.
        incident: IncidentId,
        /// Which step, as in its file name.
        step: String,
        /// Digest of the step's file.
        sha256: Digest,
        /// Whether it was anchored after the fact.
        late: bool,
        /// The first record that the incident refers to: from there on nothing is given up by itself.
        #[serde(default)]
        from: Option<Seq>,
    },
}

/// How a call ended, or that nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutcomeBody {
    /// Provably nothing left.
    Withdrawn {
        /// What proves it.
        proof: Withdrawal,
    },
    /// An answer came.
    Answered {
        /// The HTTP status, or the exit status of a command.
        status: u16,
        /// Whether the agent could be told: none while that is not known yet.
        delivered: Option<bool>,
        /// The remote side's own id for what was done.
        remote_id: Option<Foreign>,
    },
    /// It started something that outlives it.
    Outliving {
        /// The remote job, as the remote side names it.
        job: Foreign,
    },
    /// It is blocked and may go on later.
    Waiting {
        /// On what.
        on: String,
    },
    /// Whether it had an effect is not known.
    Unresolved {
        /// Why not.
        why: Unsettled,
    },
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Denial {
    /// The run's, channel's or secret's authority was taken away.
    Revoked {
        /// What was closed: `run`, `channel` or `secret`.
        scope: String,
        /// The record that closed it, if it could be recorded.
        seq: Option<Seq>,
    },
    /// The vault is locked.
    Locked,
    /// The run waits for admission.
    Pending,
    /// The run's client is gone.
    ClientLost,
    /// Nobody knows who asks, so nothing may be changed outside.
    OwnershipIncomplete,
    /// There is no such channel in the applied policy.
    UnknownChannel,
    /// No operation of the channel allows this method and path.
    NotAllowed,
    /// The call names a header, path or host that the channel does not leave to the agent.
    NotYours {
        /// What it tried to choose.
        what: String,
    },
    /// The same write is still open.
    Repeat {
        /// The open call.
        of: CallId,
    },
    /// Too many calls are in flight.
    Busy,
    /// The log cannot be written, so nothing may leave.
    NotRecorded,
    /// The secret is not sealed for this destination, or is missing.
    Secret,
    /// The call itself is not well formed.
    Malformed {
        /// What is wrong with it.
        what: String,
    },
}

impl Denial {
    /// Returns the code that the agent and scripts read.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Revoked { .. } => "revoked",
            Self::Locked => "locked",
            Self::Pending => "pending",
            Self::ClientLost => "client_lost",
            Self::Repeat { .. } => "repeat",
            Self::Busy => "busy",
            Self::NotRecorded => "not_recorded",
            Self::Malformed { .. } => "malformed",
            Self::OwnershipIncomplete
            | Self::UnknownChannel
            | Self::NotAllowed
            | Self::NotYours { .. }
            | Self::Secret => "denied",
        }
    }
}

/// What "lost" rests on: three different facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostBasis {
    /// The transport closed: a hint.
    TransportClosed,
    /// The process that holds the wire exited: a fact.
    HolderExited,
    /// A process above the holder exited while the holder lives: the run is abandoned.
    AncestorExited,
    /// The client does not run or does not read.
    ClientStuck,
}

/// That a client was lost, when, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The fact it rests on.
    pub basis: LostBasis,
    /// Not before this time.
    pub not_before: Wall,
    /// Not after this time; equal to `not_before` where the kernel told it as it happened.
    pub not_after: Wall,
    /// Which process.
    pub process: Option<crate::ProcessRef>,
}

/// What a revocation covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Scope {
    /// One run.
    Run {
        /// Which.
        session: SessionId,
    },
    /// Every use of one channel.
    Channel {
        /// Which.
        channel: ChannelName,
    },
    /// Every use of one secret.
    Secret {
        /// Which.
        secret: SecretName,
    },
    /// Everything: the vault was locked.
    All,
}

impl Scope {
    /// Returns the word for it in refusals.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Channel { .. } => "channel",
            Self::Secret { .. } => "secret",
            Self::All => "vault",
        }
    }
}
