//! Why the log cannot be opened or written, sorted by whose fault it is.

use std::{io, path::PathBuf};

use ledger::{FirstBad, ReadError};
use model::{Exit, Explain, Fault, NotDurable, Seq, SessionId};

/// Why the log cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Another daemon writes this log.
    #[error("the log in {0} is being written by another daemon")]
    Busy(PathBuf),
    /// There is no log, and none was asked for.
    #[error("there is no log in {0}")]
    NoLog(PathBuf),
    /// There are segments or pins without the file that names the log.
    #[error("LOG is missing in {0}, but other parts of a log are there")]
    LogMissing(PathBuf),
    /// Acknowledged bytes were changed or are missing.
    #[error("the log was changed: {0}")]
    Tampered(FirstBad),
    /// `HEAD` reaches further than the log.
    #[error(
        "the log ends at record {last}, but HEAD names record {head}: acknowledged records are missing"
    )]
    Truncated {
        /// The last record there is.
        last: Seq,
        /// The record that `HEAD` names.
        head: Seq,
    },
    /// `HEAD` names another history.
    #[error("record {seq} is not the one that HEAD names: this is another history")]
    Forked {
        /// The record that differs.
        seq: Seq,
    },
    /// A later version wrote it.
    #[error("the log cannot be judged: {0}")]
    Unknown(String),
    /// The file system refused.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The key for a data key, a signature or an id could not be made.
    #[error("cannot make a key")]
    Key(#[source] io::Error),
    /// The recipient of a new log is no single word.
    #[error("the log's recipient is not one word of printable characters")]
    Recipient,
    /// The log cannot be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record could not be made durable.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
    /// The root that should vouch is not the log's root.
    #[error("the root key is not the one that this log recognises")]
    NotTheRoot,
    /// No such daemon run is in the log.
    #[error("the log has no such daemon run")]
    NoSuchEpoch,
    /// So much of the oldest segments must be kept that giving them up would gain nothing.
    #[error("{bytes} bytes of the oldest segments are still needed, more than can be carried over")]
    CarriesTooMuch {
        /// How many.
        bytes: usize,
    },
    /// What an incident refers to cannot be told, so that all must be kept.
    #[error("record {0} cannot be opened, which says what an incident refers to")]
    KeptUnknown(Seq),
    /// A run has no data key that could be destroyed.
    #[error(
        "{0} has no data key: there is no such run, its key is destroyed, or it never had one of its own"
    )]
    NoKey(SessionId),
}

impl AuditError {
    /// Returns a constructor for the file system's refusals.
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }

    /// Returns the error as a person reads it.
    #[must_use]
    pub fn explain(&self) -> Explain {
        let (exit, fault, next) = match self {
            Self::Busy(_) => (
                Exit::Refused,
                Fault::Operator,
                "stop the other daemon (`lych down`), or use its socket",
            ),
            Self::NoLog(_) => (
                Exit::Failed,
                Fault::Operator,
                "start the daemon once; it makes the log",
            ),
            Self::LogMissing(_)
            | Self::Tampered(_)
            | Self::Truncated { .. }
            | Self::Forked { .. } => (
                Exit::Negative,
                Fault::Operator,
                "run `lych audit verify`, keep the folder as evidence, and start with a new one",
            ),
            Self::Unknown(_) => (
                Exit::Failed,
                Fault::Operator,
                "use the version that wrote the log",
            ),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput => (
                Exit::Failed,
                Fault::Operator,
                "look at what stands there, and put the file back from a copy of the log",
            ),
            Self::Io { .. } => (
                Exit::Failed,
                Fault::Operator,
                "look at the folder's rights and free space",
            ),
            Self::Key(_) => (
                Exit::Failed,
                Fault::Ours,
                "try again; if it persists, please report it",
            ),
            Self::Recipient => (Exit::Failed, Fault::Ours, "please report it"),
            Self::Read(_) => (Exit::Negative, Fault::Operator, "run `lych audit verify`"),
            Self::NotDurable(_) => (
                Exit::Failed,
                Fault::Operator,
                "free space or mend the disk, then restart the daemon; nothing leaves until then",
            ),
            Self::NotTheRoot => (
                Exit::Refused,
                Fault::Operator,
                "unlock the vault that this log belongs to",
            ),
            Self::NoSuchEpoch => (
                Exit::Usage,
                Fault::Caller,
                "see the ids in `lych audit verify`",
            ),
            Self::CarriesTooMuch { .. } => (
                Exit::Refused,
                Fault::Operator,
                "nothing was given up; name more days or bytes, or close what is still open in them",
            ),
            Self::KeptUnknown(_) => (
                Exit::Refused,
                Fault::Operator,
                "nothing was given up; see the record with `lych audit show`",
            ),
            Self::NoKey(_) => (Exit::Usage, Fault::Caller, "see `lych sessions list`"),
        };
        let explained = Explain::new(exit, fault, self.to_string()).next(next);
        match std::error::Error::source(self) {
            Some(source) => explained.because(source),
            None => explained,
        }
    }
}
