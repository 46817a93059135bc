//! What can go wrong with a vault, each with its cause and what to do about it.

use std::{io, path::PathBuf};

use model::{Exit, Explain, Fault, SecretName};

/// Why a vault could not be made, opened or changed. None of them holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// There is no vault yet.
    #[error("there is no vault at {0}")]
    Missing(PathBuf),
    /// The vault is there, and the identity that opens it is not.
    #[error("the vault's identity {0} is missing")]
    MissingIdentity(PathBuf),
    /// There is one already, or the remains of one.
    #[error("there is a vault at {0} already")]
    Exists(PathBuf),
    /// The passphrase does not open `identity.age`.
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    /// The key file does not open `identity.age`.
    #[error("the key file {0} does not belong to this vault")]
    WrongKeyFile(PathBuf),
    /// A key file was given for a vault that a passphrase opens.
    #[error("this vault is opened by a passphrase, not by a key file")]
    NeedsPassphrase,
    /// A passphrase was given for a vault that a key file opens.
    #[error("this vault is opened by a key file, not by a passphrase")]
    NeedsKeyFile,
    /// The passphrase cannot be used.
    #[error("the passphrase is empty or not UTF-8")]
    BadPassphrase,
    /// The key file cannot be used.
    #[error("the key file {path} {fault}")]
    KeyFile {
        /// Which.
        path: PathBuf,
        /// Why.
        fault: KeyFileFault,
    },
    /// A file is damaged.
    #[error("{path} is damaged: {why}")]
    Corrupt {
        /// Which.
        path: PathBuf,
        /// What shows it.
        why: &'static str,
    },
    /// A file was written by a later version.
    #[error("{path} has format version {version}, and this program knows 1")]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// A file can be decrypted but was not written by whoever holds its keys.
    #[error("{0} was put there by somebody who does not hold its keys")]
    Substituted(PathBuf),
    /// The vault is older than, or another than, what was written last.
    #[error("the vault is not the one that was written last")]
    RolledBack {
        /// The generation of the file.
        found: u64,
        /// The generation on record.
        recorded: u64,
    },
    /// The file changed since this program opened or wrote it.
    #[error("{0} changed on disk while it was open")]
    ChangedOnDisk(PathBuf),
    /// The name is taken.
    #[error("there is a secret named {0} already")]
    SecretExists(SecretName),
    /// The name is unknown.
    #[error("there is no secret named {0}")]
    NoSuchSecret(SecretName),
    /// A secret must be sealed for somewhere.
    #[error("a secret needs at least one destination")]
    NoDestination,
    /// The value is empty, too long, or cannot stand in a header.
    #[error("the value cannot be sent in a header")]
    BadValue,
    /// The header is none, or is one that frames the message.
    #[error("a secret cannot be put into the header {0:?}")]
    BadHeader(String),
    /// A text is no age recipient or identity.
    #[error("the text is no age X25519 {0}")]
    NotAnAgeKey(&'static str),
    /// The file system refused.
    #[error("failed to {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel has no randomness.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
    /// The key in a service's credential is not the one that the vault names.
    #[error("the vault does not name this machine's key")]
    NotItsMachine,
    /// The vault could not be encoded or encrypted.
    #[error("the vault could not be encrypted")]
    Encrypt,
}

/// Why a key file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileFault {
    /// It does not exist.
    #[error("does not exist")]
    Missing,
    /// It is no regular file.
    #[error("is no regular file")]
    NotAFile,
    /// It belongs to somebody else than us or root.
    #[error("belongs to another user")]
    ForeignOwner,
    /// Its group or others may read it.
    #[error("can be read by other users (mode {mode:03o})")]
    OpenToOthers {
        /// Its permission bits.
        mode: u32,
    },
    /// It holds no age identity, or more than one.
    #[error("does not hold exactly one age identity (AGE-SECRET-KEY-1…)")]
    NotAnIdentity,
}

impl VaultError {
    /// Returns the error as a person reads it: what, why, what to do next.
    #[must_use]
    pub fn explain(&self) -> Explain {
        let (exit, fault) = self.class();
        let mut explain = Explain::new(exit, fault, self.to_string());
        explain.why = self.why();
        explain.next = Some(self.next());
        explain
    }

    const fn class(&self) -> (Exit, Fault) {
        match self {
            Self::WrongPassphrase | Self::WrongKeyFile(_) => (Exit::Refused, Fault::Caller),
            Self::BadPassphrase
            | Self::NeedsPassphrase
            | Self::NeedsKeyFile
            | Self::KeyFile { .. }
            | Self::Exists(_)
            | Self::SecretExists(_)
            | Self::NoSuchSecret(_)
            | Self::NoDestination
            | Self::BadValue
            | Self::NotAnAgeKey(_)
            | Self::BadHeader(_) => (Exit::Failed, Fault::Caller),
            Self::Missing(_)
            | Self::MissingIdentity(_)
            | Self::Corrupt { .. }
            | Self::Newer { .. }
            | Self::Substituted(_)
            | Self::RolledBack { .. }
            | Self::ChangedOnDisk(_)
            | Self::NotItsMachine
            | Self::Io { .. }
            | Self::NoRandomness => (Exit::Failed, Fault::Operator),
            Self::Encrypt => (Exit::Failed, Fault::Ours),
        }
    }

    fn why(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => Some(source.to_string()),
            Self::Substituted(_) => Some(
                "it decrypts, but its seal was not made with the secret key: anybody can encrypt to a public one"
                    .to_owned(),
            ),
            Self::RolledBack { found, recorded } => Some(format!(
                "the file is generation {found}; the log says that generation {recorded} was written"
            )),
            Self::ChangedOnDisk(_) => Some("another program wrote it, or a copy was restored".to_owned()),
            Self::BadHeader(_) => Some(
                "it is no header name, or one that frames the message or names its host".to_owned(),
            ),
            Self::BadValue => Some(
                "a header value is 1 to 16384 bytes of text without control characters".to_owned(),
            ),
            Self::Exists(_) => Some("a second one would make the first unreadable".to_owned()),
            Self::Missing(_)
            | Self::MissingIdentity(_)
            | Self::WrongPassphrase
            | Self::WrongKeyFile(_)
            | Self::NeedsPassphrase
            | Self::NeedsKeyFile
            | Self::BadPassphrase
            | Self::KeyFile { .. }
            | Self::Corrupt { .. }
            | Self::Newer { .. }
            | Self::SecretExists(_)
            | Self::NoSuchSecret(_)
            | Self::NoDestination
            | Self::NotAnAgeKey(_)
            | Self::NotItsMachine
            | Self::NoRandomness
            | Self::Encrypt => None,
        }
    }

    fn next(&self) -> String {
        match self {
            Self::Missing(path) => match path.with_added_extension("prev") {
                prev if prev.exists() => format!(
                    "the generation before it is still there: copy {} to {}",
                    prev.display(),
                    path.display()
                ),
                _ => "make one with `lych init`, or put a backup in its place".to_owned(),
            },
            Self::MissingIdentity(_) => {
                "put it back from a backup; without it nobody can open the vault".to_owned()
            }
            Self::Exists(_) => "use it, or move its files away first".to_owned(),
            Self::WrongPassphrase => "try again; without the passphrase only a recovery key helps".to_owned(),
            Self::WrongKeyFile(_) => "give the file that `lych init --key-file` made for this vault".to_owned(),
            Self::NeedsPassphrase => "run it without --key-file".to_owned(),
            Self::NeedsKeyFile => "run it with --key-file FILE".to_owned(),
            Self::BadPassphrase => "give one line of text".to_owned(),
            Self::KeyFile { path, fault } => key_file_next(path, *fault),
            Self::Corrupt { path, .. } => format!(
                "keep the file for inspection, then restore a backup or {}.prev",
                path.display()
            ),
            Self::Newer { .. } => "install the version of Lychgate that wrote it, or a later one".to_owned(),
            Self::Substituted(_) => {
                "keep the file, find out who can write to its folder, then restore a backup".to_owned()
            }
            Self::RolledBack { .. } => {
                "put the newest vault back; secrets rotated since this one was written are still the old ones in it"
                    .to_owned()
            }
            Self::ChangedOnDisk(_) => "lock and unlock, then try again".to_owned(),
            Self::SecretExists(name) => format!("rotate it with `lych vault rotate {name}`"),
            Self::NoSuchSecret(_) => "see `lych vault list`".to_owned(),
            Self::NoDestination => "say where it may go: --for https://api.example.com".to_owned(),
            Self::BadValue => "give the bare value, without line breaks".to_owned(),
            Self::BadHeader(_) => "name the header the API expects, as in --header X-Api-Key".to_owned(),
            Self::NotAnAgeKey(_) => "check that the whole line was copied".to_owned(),
            Self::Io { .. } => "see to the file system, then try again".to_owned(),
            Self::NotItsMachine => {
                "name it with `lych vault recipients --machine FILE`, if this machine is meant".to_owned()
            }
            Self::NoRandomness => "try again once the system has started up".to_owned(),
            Self::Encrypt => "please report this".to_owned(),
        }
    }
}

fn key_file_next(path: &std::path::Path, fault: KeyFileFault) -> String {
    match fault {
        KeyFileFault::Missing => "check the path".to_owned(),
        KeyFileFault::NotAFile => "name a regular file".to_owned(),
        KeyFileFault::ForeignOwner => "use a file of your own".to_owned(),
        KeyFileFault::OpenToOthers { .. } => format!(
            "chmod 600 {}, and think about who may have read it",
            path.display()
        ),
        KeyFileFault::NotAnIdentity => {
            "give a file made by `lych init --key-file` or by age-keygen".to_owned()
        }
    }
}
