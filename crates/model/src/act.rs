//! What an operator does, as the log keeps it.

use serde::{Deserialize, Serialize};

use crate::{CallId, Digest, EpochId, IncidentId, SecretName, SessionId, Wall, process::Presence};

/// What an operator did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// The daemon started, and by what.
    Started {
        /// `operator`, `agent` or `service`.
        by: String,
    },
    /// The vault was made.
    Init,
    /// The vault was unlocked.
    Unlock,
    /// An unlock was refused.
    UnlockRefused,
    /// The vault was locked.
    Lock,
    /// A secret was added.
    SecretAdded {
        /// Its name.
        secret: SecretName,
        /// Where it may go.
        destinations: Vec<String>,
    },
    /// A secret's value was replaced.
    SecretRotated {
        /// Its name.
        secret: SecretName,
    },
    /// A secret was removed.
    SecretRemoved {
        /// Its name.
        secret: SecretName,
    },
    /// A policy became effective.
    Applied {
        /// Digest of the canonical policy.
        policy: Digest,
    },
    /// The vault file was written.
    VaultWritten {
        /// Its generation.
        generation: u64,
        /// Digest of the file.
        sha256: Digest,
    },
    /// A run that waited was admitted.
    RunAllowed {
        /// Which run.
        session: SessionId,
        /// The remembered shape that admitted it; none if a person looked at this very run.
        by_shape: Option<Digest>,
    },
    /// Runs whose chain has this shape are admitted from now on.
    ShapeRemembered {
        /// Digest of the shape.
        shape: Digest,
    },
    /// Runs of this shape wait again.
    ShapeForgotten {
        /// Digest of the shape.
        shape: Digest,
    },
    /// One repetition of an open write was let through.
    RepeatAllowed {
        /// The open write.
        call: CallId,
    },
    /// How presence is established was decided.
    PresenceChosen {
        /// `pin` or `none`.
        rule: Presence,
    },
    /// A wrong PIN was given, or one was given too soon after wrong ones.
    PresenceRefused,
    /// An incident was to be closed.
    IncidentClosed {
        /// Which.
        incident: IncidentId,
    },
    /// Processes were to be killed that had not ended when they were asked to.
    ForceKill,
    /// The data key of a run was to be destroyed.
    RunErased {
        /// Which run.
        session: SessionId,
    },
    /// A daemon run that nobody had endorsed was adopted.
    EpochAdopted {
        /// Which daemon run.
        epoch: EpochId,
    },
    /// The oldest segments were to be given up.
    LogPruned {
        /// Records at or after this time are kept.
        since: Wall,
    },
    /// The vault was put under another passphrase or key file.
    OpenerChanged,
    /// A further key opens the vault's file from now on, for the day when nothing else does; none if none does.
    RecoveryChosen {
        /// Its age recipient.
        recipient: Option<String>,
    },
    /// The daemon opens the vault by itself from now on, or no longer.
    MachineChosen {
        /// The age recipient of the machine's key.
        recipient: Option<String>,
    },
    /// The vault was opened by the machine's key, at the daemon's start.
    UnlockedByMachine,
    /// The sealed files of the vault were copied for a backup.
    VaultBackedUp {
        /// Digest of the copied `vault.age`.
        sha256: Digest,
    },
    /// The vault was to be replaced by one from a backup.
    VaultRestored {
        /// The generation it had there.
        generation: u64,
    },
    /// The daemon was told to stop.
    Stop,
}
