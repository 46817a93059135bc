//! The draft in `config.toml`: read strictly, and refused with the line and a way out.
//!
//! A key that is not known is refused: a misspelled one would silently leave its default in force.
//!
//! The keys, their values and what holds where one is left out: `docs/configuration.md`.

use std::{collections::BTreeMap, fmt::Display, ops::Range, str::FromStr};

use model::{Exit, Explain, Fault, OperationName};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::policy::{
    Admission, Approve, Channel, ChannelKind, Format, HeaderText, Idempotency, Inject, Job,
    MintsCredentials, OnClientLost, Operation, Policy, Redact, ResultKept,
};
use crate::rules::{LogRules, OnLock, RunRules, Ttl};

/// Why a draft cannot become a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", at(.line))]
pub struct DraftError {
    /// The line it is about, counted from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// Why.
    pub why: Option<String>,
    /// What to do.
    pub next: String,
}

impl DraftError {
    /// Returns the error as a person reads it.
    #[must_use]
    pub fn explain(&self) -> Explain {
        // The draft is somebody's input, and is answered like a wrong command line.
        let mut explain = Explain::new(Exit::Usage, Fault::Operator, self.to_string());
        explain.why.clone_from(&self.why);
        explain.next(self.next.clone())
    }
}

fn at(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    admission: Option<Spanned<String>>,
    runs: Option<RunsDraft>,
    log: Option<LogDraft>,
    #[serde(default)]
    channel: BTreeMap<Spanned<String>, ChannelDraft>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsDraft {
    ttl: Option<Spanned<String>>,
    on_lock: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogDraft {
    keep_days: Option<Spanned<i64>>,
    keep_bytes: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelDraft {
    kind: Option<Spanned<String>>,
    base: Option<Spanned<String>>,
    secret: Option<Spanned<String>>,
    inject: Option<InjectDraft>,
    ca: Option<Spanned<String>>,
    on_client_lost: Option<Spanned<String>>,
    #[serde(default)]
    operation: Vec<OperationDraft>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InjectDraft {
    header: Option<Spanned<String>>,
    format: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationDraft {
    name: Spanned<String>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    approve: Option<Spanned<String>>,
    idempotency: Option<Spanned<Value>>,
    job: Option<JobDraft>,
    #[serde(default)]
    mints_credentials: bool,
    #[serde(default = "yes")]
    redact: bool,
    result_kept: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobDraft {
    id: Spanned<String>,
    status: Option<Spanned<String>>,
    cancel: Option<Spanned<String>>,
}

const fn yes() -> bool {
    true
}

/// Reads a draft.
pub(crate) fn parse(text: &str) -> Result<Policy, DraftError> {
    let reader = Reader { text };
    reader.refuse_ssh()?;
    let draft: Draft = toml::from_str(text).map_err(|error| reader.not_toml(&error))?;
    let admission = match &draft.admission {
        None => Admission::default(),
        Some(word) => reader.word(
            word,
            "admission",
            &[("allow", Admission::Allow), ("ask", Admission::Ask)],
        )?,
    };
    let runs = draft.runs.map(|runs| reader.runs(&runs)).transpose()?;
    let channels = draft
        .channel
        .into_iter()
        .map(|(name, channel)| reader.channel(&name, channel))
        .collect::<Result<Vec<_>, _>>()?;
    let log = draft.log.map(|log| reader.log(&log)).transpose()?;
    Ok(Policy::new(admission, (runs, log), channels))
}

/// The draft's text, for turning places in it into lines.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// Before anything else, since the other keys of an SSH channel are not known yet either.
    fn refuse_ssh(&self) -> Result<(), DraftError> {
        #[derive(Deserialize)]
        struct Kinds {
            #[serde(default)]
            channel: BTreeMap<String, Kind>,
        }
        #[derive(Deserialize)]
        struct Kind {
            kind: Option<Spanned<String>>,
        }
        let Ok(kinds) = toml::from_str::<Kinds>(self.text) else {
            return Ok(());
        };
        let mut kinds = kinds
            .channel
            .into_values()
            .filter_map(|channel| channel.kind);
        match kinds.find(|kind| kind.get_ref() == "ssh") {
            None => Ok(()),
            Some(kind) => Err(self.error(
                &kind.span(),
                "channels of the kind \"ssh\" are not available yet",
                "leave this channel out for now",
            )),
        }
    }

    fn runs(&self, draft: &RunsDraft) -> Result<RunRules, DraftError> {
        let ttl = draft.ttl.as_ref().map(|text| {
            let wrong = |why: &str| {
                let what = format!("ttl cannot be {:?}", text.get_ref());
                let mut error = self.error(
                    &text.span(),
                    &what,
                    "write a duration of at least a second, as in \"8h\"",
                );
                error.why = Some(why.to_owned());
                error
            };
            let ttl = humantime::parse_duration(text.get_ref())
                .map_err(|error| wrong(&error.to_string()))?;
            // Ends are looked for once a second, so nothing shorter could be kept.
            if ttl.as_secs() == 0 {
                return Err(wrong("it is shorter than a second"));
            }
            Ok(Ttl(ttl))
        });
        let on_lock = match &draft.on_lock {
            None => OnLock::default(),
            Some(word) => self.word(
                word,
                "on_lock",
                &[("keep", OnLock::Keep), ("end", OnLock::End)],
            )?,
        };
        Ok(RunRules {
            ttl: ttl.transpose()?,
            on_lock,
        })
    }

    fn log(&self, draft: &LogDraft) -> Result<LogRules, DraftError> {
        let at_least = |key: &str, value: &Option<Spanned<i64>>, least: u64, usual: u64| {
            let Some(value) = value else {
                return Ok(usual);
            };
            let number = u64::try_from(*value.get_ref()).unwrap_or(0);
            if number >= least {
                return Ok(number);
            }
            let mut error = self.error(
                &value.span(),
                &format!("{key} cannot be {}", value.get_ref()),
                &format!("write a number of at least {least}, or leave it out for {usual}"),
            );
            error.why = Some("the log could not be kept so short".to_owned());
            Err(error)
        };
        let usual = LogRules::default();
        Ok(LogRules {
            keep_days: at_least(
                "keep_days",
                &draft.keep_days,
                LogRules::FEWEST_DAYS,
                usual.keep_days,
            )?,
            keep_bytes: at_least(
                "keep_bytes",
                &draft.keep_bytes,
                LogRules::FEWEST_BYTES,
                usual.keep_bytes,
            )?,
        })
    }

    fn channel(&self, name: &Spanned<String>, draft: ChannelDraft) -> Result<Channel, DraftError> {
        let missing = |key: &str, example: &str| {
            let what = format!("the channel {:?} has no {key}", name.get_ref());
            self.error(
                &name.span(),
                &what,
                &format!("add the line: {key} = {example}"),
            )
        };
        let kind = draft.kind.ok_or_else(|| missing("kind", "\"http\""))?;
        let base = draft
            .base
            .ok_or_else(|| missing("base", "\"https://api.example.com\""))?;
        let inject = match (&draft.secret, draft.inject) {
            (Some(_), inject) => Some(self.inject(inject)?),
            (None, None) => None,
            (None, Some(_)) => return Err(missing("secret, and says where to put it", "\"NAME\"")),
        };
        let mut operations: Vec<Operation> = Vec::with_capacity(draft.operation.len());
        for operation in draft.operation {
            let operation = self.operation(operation, &operations, inject.as_ref())?;
            operations.push(operation);
        }
        Ok(Channel {
            name: self.value(name, "the channel's name")?,
            kind: self.word(&kind, "kind", &[("http", ChannelKind::Http)])?,
            base: self.value(&base, "base")?,
            secret: draft
                .secret
                .map(|name| self.value(&name, "secret"))
                .transpose()?,
            inject,
            ca: draft.ca.map(|ca| self.ca(&ca)).transpose()?,
            on_client_lost: match &draft.on_client_lost {
                None => OnClientLost::default(),
                Some(word) => self.word(
                    word,
                    "on_client_lost",
                    &[
                        ("finish", OnClientLost::Finish),
                        ("cancel", OnClientLost::Cancel),
                    ],
                )?,
            },
            operations,
        })
    }

    /// Without a word about it a secret goes where most APIs want it: `Authorization: Bearer …`.
    fn inject(&self, draft: Option<InjectDraft>) -> Result<Inject, DraftError> {
        let (header, format) = draft.map_or((None, None), |draft| (draft.header, draft.format));
        let header = match header {
            Some(header) => self.value(&header, "the header to inject")?,
            None => self.fixed::<HeaderText>("Authorization")?,
        };
        let format = match format {
            Some(format) => self.value(&format, "the format of the injected header")?,
            None if header.as_str().eq_ignore_ascii_case("authorization") => {
                self.fixed::<Format>("Bearer {secret}")?
            }
            None => self.fixed::<Format>("{secret}")?,
        };
        Ok(Inject { header, format })
    }

    fn operation(
        &self,
        draft: OperationDraft,
        before: &[Operation],
        inject: Option<&Inject>,
    ) -> Result<Operation, DraftError> {
        let name: OperationName = self.value(&draft.name, "the operation's name")?;
        if before.iter().any(|operation| operation.name == name) {
            return Err(self.error(
                &draft.name.span(),
                &format!("there are two operations named {name}"),
                "give each operation of a channel a name of its own",
            ));
        }
        let allow = draft.allow.iter().map(|line| self.value(line, "allow"));
        Ok(Operation {
            name,
            allow: allow.collect::<Result<_, _>>()?,
            approve: self.approve(draft.approve.as_ref())?,
            idempotency: match draft.idempotency {
                Some(value) => self.idempotency(value, inject)?,
                None => None,
            },
            job: draft.job.map(|job| self.job(&job)).transpose()?,
            mints_credentials: if draft.mints_credentials {
                MintsCredentials::Yes
            } else {
                MintsCredentials::No
            },
            redact: if draft.redact {
                Redact::Yes
            } else {
                Redact::No
            },
            result_kept: match &draft.result_kept {
                None => None,
                Some(word) => Some(self.word(
                    word,
                    "result_kept",
                    &[
                        ("remote", ResultKept::Remote),
                        ("nowhere", ResultKept::Nowhere),
                    ],
                )?),
            },
        })
    }

    fn approve(&self, word: Option<&Spanned<String>>) -> Result<Approve, DraftError> {
        let Some(word) = word else {
            return Ok(Approve::Never);
        };
        if ["session", "call", "task"].contains(&word.get_ref().as_str()) {
            return Err(self.error(
                &word.span(),
                &format!("approve = {:?} is not available yet", word.get_ref()),
                "leave the operation out until it is, or write approve = \"never\" (nobody is asked)",
            ));
        }
        self.word(word, "approve", &[("never", Approve::Never)])
    }

    fn idempotency(
        &self,
        value: Spanned<Value>,
        inject: Option<&Inject>,
    ) -> Result<Option<Idempotency>, DraftError> {
        let span = value.span();
        let wrong = |why: &str| {
            let mut error = self.error(
                &span,
                "idempotency cannot be read",
                "write \"none\", or { header = \"Idempotency-Key\", window = \"24h\" }",
            );
            error.why = Some(why.to_owned());
            error
        };
        let table = match value.into_inner() {
            Value::String(word) if word == "none" => return Ok(None),
            Value::Table(table) => table,
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_) => return Err(wrong("it is neither \"none\" nor a table")),
        };
        let text = |key: &str| match table.get(key) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) | None => Err(wrong(&format!("it has no text under the key {key:?}"))),
        };
        if let Some(key) = table
            .keys()
            .find(|key| !["header", "window"].contains(&key.as_str()))
        {
            return Err(wrong(&format!("it has an unknown key {key:?}")));
        }
        let header: HeaderText = text("header")?.parse().map_err(wrong)?;
        let injected = inject
            .is_some_and(|inject| inject.header.as_str().eq_ignore_ascii_case(header.as_str()));
        if injected {
            return Err(wrong("its header is the one that the secret goes into"));
        }
        let window = humantime::parse_duration(text("window")?)
            .map_err(|error| wrong(&format!("the window is no duration: {error}")))?;
        Ok(Some(Idempotency { header, window }))
    }

    fn job(&self, draft: &JobDraft) -> Result<Job, DraftError> {
        let path = |text: &Option<Spanned<String>>, key| match text {
            Some(text) => self.value(text, key).map(Some),
            None => Ok(None),
        };
        Ok(Job {
            id: self.value(&draft.id, "the job's id")?,
            status: path(&draft.status, "the job's status")?,
            cancel: path(&draft.cancel, "the job's cancel")?,
        })
    }

    /// The certificates themselves, not the name of a file: what is sealed cannot be exchanged afterwards.
    fn ca(&self, pem: &Spanned<String>) -> Result<String, DraftError> {
        match crate::tls::roots_from(pem.get_ref()) {
            Some(_) => Ok(pem.get_ref().clone()),
            None => Err(self.error(
                &pem.span(),
                "ca holds no certificate that can be read",
                "put the certificates in PEM form between ''' and '''",
            )),
        }
    }

    fn word<T: Copy>(
        &self,
        word: &Spanned<String>,
        key: &str,
        known: &[(&str, T)],
    ) -> Result<T, DraftError> {
        let found = known.iter().find(|(name, _)| name == word.get_ref());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.error(
                &word.span(),
                &format!("{key} = {:?} is not known", word.get_ref()),
                &format!("write {}", names.join(" or ")),
            )
        })
    }

    fn value<T>(&self, text: &Spanned<String>, key: &str) -> Result<T, DraftError>
    where
        T: FromStr<Err: Display>,
    {
        text.get_ref().parse().map_err(|why: T::Err| {
            let what = format!("{key} cannot be {:?}", text.get_ref());
            let mut error = self.error(&text.span(), &what, "correct it and try again");
            error.why = Some(why.to_string());
            error
        })
    }

    fn fixed<T: FromStr<Err = &'static str>>(&self, text: &str) -> Result<T, DraftError> {
        let ours = |why: &'static str| self.error(&(0..0), why, "please report this");
        text.parse().map_err(ours)
    }

    fn not_toml(&self, error: &toml::de::Error) -> DraftError {
        DraftError {
            line: error.span().map(|span| self.line(&span)),
            what: error.message().to_owned(),
            why: None,
            next: "correct the line; the keys are listed in the configuration's documentation"
                .to_owned(),
        }
    }

    fn error(&self, span: &Range<usize>, what: &str, next: &str) -> DraftError {
        DraftError {
            line: Some(self.line(span)),
            what: what.to_owned(),
            why: None,
            next: next.to_owned(),
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(span.start);
        before.filter(|byte| **byte == b'\n').count() + 1
    }
}
