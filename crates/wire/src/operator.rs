//! The operator's verbs; none of them exists on the agent's socket.

use model::{
    CallId, Digest, EpochId, Explain, IncidentId, Presence, Scope, SecretName, Seq, SessionId, Wall,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The first line of an operator: which versions it speaks, and how a person's presence was established.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorHello {
    /// Lowest version it speaks.
    pub min: u16,
    /// Highest version it speaks.
    pub max: u16,
    /// Version of the product.
    pub version: String,
    /// What the command could establish; the daemon lowers it, never raises it.
    pub presence: Presence,
}

/// A secret on its way from a person to the vault: no Debug, wiped on drop.
///
/// It can be serialised because this is the one form in which it crosses the operator's socket.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes over base64 text of the secret bytes.
    #[must_use]
    pub fn new(base64: String) -> Self {
        Self(Zeroizing::new(base64))
    }

    /// Returns the base64 text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// What opens the vault.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// A passphrase.
    Passphrase(SecretText),
    /// A key file, by its absolute path; the daemon reads it.
    KeyFile(String),
}

/// What the warden does by itself, and only with a person behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum WardenAct {
    /// Close an incident.
    IncidentClose {
        /// Which.
        incident: IncidentId,
    },
    /// Kill what did not end when it was asked to.
    ForceKill,
}

/// One request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    /// How are you.
    Status,
    /// Make the vault.
    Init {
        /// What will open it.
        opener: Opener,
        /// The PIN that acts which widen authority need from then on; none if nothing shall ask.
        #[serde(default)]
        pin: Option<SecretText>,
    },
    /// Open the vault.
    Unlock {
        /// What opens it; none asks for an installation's own way.
        opener: Opener,
    },
    /// Show that a person is there, for what is asked next over this connection.
    Present {
        /// The PIN.
        pin: SecretText,
    },
    /// Choose how presence is established.
    PresenceChoose {
        /// The new PIN; none if nothing shall ask.
        pin: Option<SecretText>,
    },
    /// List what waits for a person, and the shapes that no longer wait.
    Pending,
    /// Admit a run.
    Allow {
        /// Which.
        session: SessionId,
        /// Whether runs of the same shape are admitted from now on.
        remember: bool,
    },
    /// Let runs of a remembered shape wait again.
    Forget {
        /// The shape's id.
        shape: String,
    },
    /// Let one repetition of an open write pass.
    AllowRepeat {
        /// The open write.
        call: CallId,
    },
    /// Shut the vault.
    Lock,
    /// End the daemon.
    Stop,
    /// Add a secret.
    VaultAdd {
        /// Its name.
        name: SecretName,
        /// Its value.
        value: SecretText,
        /// Where it may go.
        destinations: Vec<String>,
        /// In which header.
        header: Option<String>,
    },
    /// Replace a secret's value.
    VaultRotate {
        /// Its name.
        name: SecretName,
        /// Its new value.
        value: SecretText,
    },
    /// Remove a secret.
    VaultRemove {
        /// Its name.
        name: SecretName,
    },
    /// List secrets, without values.
    VaultList,
    /// List the channels of the applied policy.
    ChannelsList,
    /// Make the draft effective.
    ChannelsApply {
        /// Only show what would change.
        dry_run: bool,
    },
    /// List runs.
    SessionsList,
    /// Show one run.
    SessionShow {
        /// Which.
        id: SessionId,
    },
    /// Take authority away.
    Revoke {
        /// From what.
        scope: Scope,
        /// Why.
        reason: String,
    },
    /// See whether the gate refuses what a run asks for, without anything that could leave.
    Probe {
        /// Which run.
        session: SessionId,
    },
    /// List calls.
    ActivityList {
        /// Of this run only.
        session: Option<SessionId>,
        /// Not before this time.
        since: Option<Wall>,
        /// Only those whose outcome is not known.
        open_only: bool,
        /// At most so many, the newest; none for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<usize>,
    },
    /// Show one call.
    ActivityShow {
        /// Which.
        call: CallId,
    },
    /// Say what became of a call.
    Resolve {
        /// Which.
        call: CallId,
        /// Whether the effect is confirmed at the remote side.
        happened: bool,
        /// What shows it.
        evidence: String,
    },
    /// Anchor a step of an incident in the log.
    IncidentStep {
        /// Which incident.
        incident: IncidentId,
        /// Which step.
        step: String,
        /// Digest of the step's file.
        sha256: Digest,
        /// Whether this comes after the fact.
        late: bool,
        /// The first record that the incident refers to.
        #[serde(default)]
        from: Option<Seq>,
    },
    /// Let a person stand behind an act that is not the daemon's own, and put that on record.
    StandBehind {
        /// Which.
        act: WardenAct,
    },
    /// Put the vault under another opener.
    VaultOpener {
        /// What will open it.
        opener: Opener,
    },
    /// Name the key that opens the vault's file when nothing else does; none for none.
    VaultRecovery {
        /// Its age recipient.
        recipient: Option<String>,
    },
    /// Let the daemon open the vault by itself, with the key in this file; none takes that back.
    VaultMachine {
        /// The key file, by its absolute path; the daemon reads it.
        key_file: Option<String>,
    },
    /// Copy the sealed files of the vault.
    VaultBackup,
    /// Put a vault from a backup in place of the present one.
    VaultRestore {
        /// `vault.age`, as base64.
        vault: String,
        /// `identity.age`, as base64.
        identity: String,
        /// What opens it.
        opener: Opener,
    },
    /// Open the sealed bodies of the log, some at a time.
    AuditBodies {
        /// The first record that is wanted.
        from: Seq,
        /// How many at most.
        most: usize,
    },
    /// Destroy a run's data key.
    AuditErase {
        /// Which run.
        session: SessionId,
    },
    /// Vouch for an earlier daemon run.
    AuditAdopt {
        /// Which.
        epoch: EpochId,
    },
    /// Give up the oldest segments of the log.
    AuditPrune {
        /// Keep what is younger than so many days.
        days: Option<u64>,
        /// Give up older segments if the log is longer than so many bytes.
        bytes: Option<u64>,
        /// Keep everything from this record on.
        from: Option<Seq>,
    },
}

impl Request {
    /// Tells whether something stands in it that only the daemon may see, or that opens the vault.
    #[must_use]
    pub const fn carries_secret(&self) -> bool {
        match self {
            Self::Init { .. }
            | Self::Unlock { .. }
            | Self::Present { .. }
            | Self::PresenceChoose { .. }
            | Self::VaultAdd { .. }
            | Self::VaultRotate { .. }
            | Self::VaultOpener { .. }
            | Self::VaultRestore { .. } => true,
            Self::Status
            | Self::Pending
            | Self::Allow { .. }
            | Self::Forget { .. }
            | Self::AllowRepeat { .. }
            | Self::Lock
            | Self::Stop
            | Self::VaultRemove { .. }
            | Self::VaultList
            | Self::VaultRecovery { .. }
            | Self::VaultMachine { .. }
            | Self::VaultBackup
            | Self::ChannelsList
            | Self::ChannelsApply { .. }
            | Self::SessionsList
            | Self::SessionShow { .. }
            | Self::Probe { .. }
            | Self::Revoke { .. }
            | Self::ActivityList { .. }
            | Self::ActivityShow { .. }
            | Self::Resolve { .. }
            | Self::IncidentStep { .. }
            | Self::AuditBodies { .. }
            | Self::StandBehind { .. }
            | Self::AuditErase { .. }
            | Self::AuditAdopt { .. }
            | Self::AuditPrune { .. } => false,
        }
    }
}

/// What the refusal of an act says that needs a PIN which was not given.
pub const PIN_NEEDED: &str = "a PIN is needed for this";

/// One answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done; the value depends on the verb.
    Done(serde_json::Value),
    /// It was not.
    Failed(Explain),
}

/// What a revocation answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Revoked {
    /// The record; none if it holds but could not be recorded.
    pub seq: Option<u64>,
    /// When.
    pub at: Wall,
    /// Calls whose bytes may already have left.
    pub in_flight: Vec<CallId>,
    /// Who did it.
    pub by: model::Operator,
}
