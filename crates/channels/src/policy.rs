//! The policy: which channels there are and what each allows, in the canonical form that the vault seals.
//!
//! Canonical JSON: fields in the order of the types below, channels by name, no white space. What does not
//! read back to the same bytes is not ours. A later version adds fields and raises `version`: version 2 added
//! `runs`, version 3 `mints_credentials`, `redact` and private destinations, version 4 `log`. A policy is written as
//! the lowest version that can hold it.

use std::{fmt, str::FromStr, time::Duration};

use model::{ChannelName, Destination, Digest, OperationName, SecretName};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    draft::{self, DraftError},
    pattern::{Allow, JobPath},
    rules::{LogRules, RunRules},
    window,
};

/// Everything an agent may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    version: u64,
    admission: Admission,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runs: Option<RunRules>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogRules>,
    channels: Vec<Channel>,
}

/// Whether a new run may start by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// It may.
    Allow,
    /// A person is asked.
    #[default]
    Ask,
}

/// One way to touch an outside system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    pub(crate) name: ChannelName,
    pub(crate) kind: ChannelKind,
    pub(crate) base: Destination,
    pub(crate) secret: Option<SecretName>,
    pub(crate) inject: Option<Inject>,
    pub(crate) ca: Option<String>,
    pub(crate) on_client_lost: OnClientLost,
    pub(crate) operations: Vec<Operation>,
}

/// What a channel speaks. SSH comes with its own fields, and is until then refused when the draft is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChannelKind {
    Http,
}

/// Where the secret goes into a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    pub(crate) header: HeaderText,
    pub(crate) format: Format,
}

/// What becomes of running calls when their client is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnClientLost {
    /// They get their bounded time.
    #[default]
    Finish,
    /// They are cut off; their outcome is then not known.
    Cancel,
}

/// Methods and paths that belong together, with the answers to what bounds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub(crate) name: OperationName,
    pub(crate) allow: Vec<Allow>,
    pub(crate) approve: Approve,
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) job: Option<Job>,
    pub(crate) result_kept: Option<ResultKept>,
    /// Whether it may be called although it hands out credentials of the remote side.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) mints_credentials: MintsCredentials,
    /// Whether the secret is taken out of an answer that repeats it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) redact: Redact,
}

/// Whether an operation may hand out credentials of the remote side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MintsCredentials {
    #[default]
    No,
    Yes,
}

/// Whether the secret is taken out of an answer that repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Redact {
    #[default]
    Yes,
    No,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// When a person is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Approve {
    Never,
}

/// How the remote side recognises a repeated write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    pub(crate) header: HeaderText,
    #[serde(with = "window")]
    pub(crate) window: Duration,
}

/// How work that outlives a call is found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// A JSON pointer (RFC 6901) to the job's id in the answer.
    pub(crate) id: Pointer,
    pub(crate) status: Option<JobPath>,
    pub(crate) cancel: Option<JobPath>,
}

/// Where the final result is found if the answer could not be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKept {
    /// The remote side keeps it.
    Remote,
    /// Nobody does.
    Nowhere,
}

/// A header's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct HeaderText(String);

/// The value of an injected header, with `{secret}` once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Format(String);

/// A JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Pointer(String);

/// Why stored bytes are no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A later version wrote it.
    #[error("the applied policy has version {0}, and this program knows {VERSION}")]
    Newer(u64),
    /// It is not what any version wrote.
    #[error("the applied policy is damaged")]
    Corrupt,
}

impl Policy {
    /// Reads a draft.
    ///
    /// # Errors
    /// It is no draft; the error names the line and what to do.
    pub fn parse_draft(text: &str) -> Result<Self, DraftError> {
        draft::parse(text)
    }

    /// Returns the policy that allows nothing, for a vault that holds none yet.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            version: FIRST_VERSION,
            admission: Admission::Ask,
            runs: None,
            log: None,
            channels: Vec::new(),
        }
    }

    pub(crate) fn new(
        admission: Admission,
        (runs, log): (Option<RunRules>, Option<LogRules>),
        mut channels: Vec<Channel>,
    ) -> Self {
        channels.sort_by(|a, b| a.name.cmp(&b.name));
        let mut policy = Self {
            version: FIRST_VERSION,
            admission,
            runs,
            log,
            channels,
        };
        policy.version = policy.lowest_version();
        policy
    }

    /// The lowest version that can hold it.
    fn lowest_version(&self) -> u64 {
        let of_version_3 = |operation: &Operation| {
            !is_default(&operation.mints_credentials) || !is_default(&operation.redact)
        };
        if self.log.is_some() {
            return VERSION;
        }
        let third = self.channels.iter().any(|channel| {
            channel.base.may_be_private() || channel.operations.iter().any(of_version_3)
        });
        match (third, &self.runs) {
            (true, _) => WITH_PRIVATE,
            (false, Some(_)) => WITH_RUNS,
            (false, None) => FIRST_VERSION,
        }
    }

    /// Returns the canonical bytes.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        // Strings, numbers and lists: there is nothing in it that JSON cannot carry.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads canonical bytes.
    ///
    /// # Errors
    /// A later version wrote them, or they are damaged.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, PolicyError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let found: Version = serde_json::from_slice(bytes).map_err(|_| PolicyError::Corrupt)?;
        if !(FIRST_VERSION..=VERSION).contains(&found.version) {
            return Err(PolicyError::Newer(found.version));
        }
        let policy: Self = serde_json::from_slice(bytes).map_err(|_| PolicyError::Corrupt)?;
        if policy.version == policy.lowest_version() && policy.canonical() == bytes {
            Ok(policy)
        } else {
            Err(PolicyError::Corrupt)
        }
    }

    /// Returns the digest of the canonical bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(Sha256::digest(self.canonical()).into())
    }

    /// Tells whether a new run waits for a person.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// Returns what bounds every run.
    #[must_use]
    pub fn runs(&self) -> RunRules {
        self.runs.unwrap_or_default()
    }

    /// Returns how much of the log is kept.
    #[must_use]
    pub fn log(&self) -> LogRules {
        self.log.unwrap_or_default()
    }

    /// Returns the channels by name.
    #[must_use]
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Finds a channel.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels
            .iter()
            .find(|channel| channel.name.as_str() == name)
    }
}

impl Channel {
    /// Returns its name.
    #[must_use]
    pub const fn name(&self) -> &ChannelName {
        &self.name
    }

    /// Returns the word for what it speaks.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.kind {
            ChannelKind::Http => "http",
        }
    }

    /// Returns where it leads.
    #[must_use]
    pub const fn base(&self) -> &Destination {
        &self.base
    }

    /// Returns the secret it uses.
    #[must_use]
    pub const fn secret(&self) -> Option<&SecretName> {
        self.secret.as_ref()
    }

    /// Returns the header that the secret goes into.
    #[must_use]
    pub fn inject_header(&self) -> Option<&str> {
        self.inject.as_ref().map(|inject| inject.header.as_str())
    }

    /// Returns what becomes of running calls when their client is lost.
    #[must_use]
    pub const fn on_client_lost(&self) -> OnClientLost {
        self.on_client_lost
    }

    /// Returns what it allows.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

impl Operation {
    /// Returns its name.
    #[must_use]
    pub const fn name(&self) -> &OperationName {
        &self.name
    }

    /// Returns its methods and path patterns.
    #[must_use]
    pub fn allow(&self) -> &[Allow] {
        &self.allow
    }

    /// Returns the header by which the remote side recognises a repeated write, if it does.
    #[must_use]
    pub fn idempotency_header(&self) -> Option<&str> {
        self.idempotency
            .as_ref()
            .map(|idempotency| idempotency.header.as_str())
    }

    /// Returns how its jobs are found again.
    #[must_use]
    pub const fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Returns where the final result is found.
    #[must_use]
    pub const fn result_kept(&self) -> Option<ResultKept> {
        self.result_kept
    }
}

impl Idempotency {
    /// Returns for how long the remote side remembers a key.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }
}

impl Job {
    /// Returns how a job is looked up.
    #[must_use]
    pub const fn status(&self) -> Option<&JobPath> {
        self.status.as_ref()
    }

    /// Returns how a job is cancelled.
    #[must_use]
    pub const fn cancel(&self) -> Option<&JobPath> {
        self.cancel.as_ref()
    }
}

impl Format {
    /// Returns what stands before and behind the secret.
    pub(crate) fn around(&self) -> (&str, &str) {
        self.0.split_once(SECRET).unwrap_or((&self.0, ""))
    }
}

macro_rules! checked_text {
    ($name:ident, $why:literal, $check:expr) => {
        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, &'static str> {
                let check: fn(&str) -> bool = $check;
                if check(&text) {
                    Ok(Self(text))
                } else {
                    Err($why)
                }
            }
        }

        impl FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, &'static str> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_text!(
    HeaderText,
    "it is no header name, or one that frames the message or names its host",
    |text| {
        let known = http::HeaderName::from_bytes(text.as_bytes());
        text.len() <= 64 && known.is_ok_and(|name| !crate::plan::frames(name.as_str()))
    }
);
checked_text!(
    Format,
    "it must hold {secret} exactly once, and only printable ASCII",
    |text| {
        let printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        let bare = text.trim() == text && text.len() <= 256;
        printable && bare && text.matches(SECRET).count() == 1
    }
);
checked_text!(
    Pointer,
    "it is no JSON pointer, as in \"/result/0\"",
    |text| text.starts_with('/') && text.len() <= 256 && !text.contains(char::is_control)
);

const FIRST_VERSION: u64 = 1;
const WITH_RUNS: u64 = 2;
const WITH_PRIVATE: u64 = 3;
const VERSION: u64 = 4;
const SECRET: &str = "{secret}";
