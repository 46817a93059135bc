//! A policy in words, and what a new one changes: what a person agrees to at `channels apply`.

use crate::policy::{
    Admission, Channel, MintsCredentials, OnClientLost, Operation, Policy, Redact, ResultKept,
};

impl Policy {
    /// Says what the policy allows, one fact per line.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines = vec![match self.admission() {
            Admission::Allow => "a new run may start by itself".to_owned(),
            Admission::Ask => "a new run waits until a person allows it".to_owned(),
        }];
        lines.extend(self.runs().describe());
        lines.extend(self.log.map(|log| log.describe()));
        for channel in self.channels() {
            describe_channel(channel, &mut lines);
        }
        lines
    }

    /// Says what changes from `old` to this policy: lines with `+` come, lines with `-` go.
    #[must_use]
    pub fn diff(&self, old: Option<&Self>) -> Vec<String> {
        let before = old.map(Self::describe).unwrap_or_default();
        let after = self.describe();
        let gone = before
            .iter()
            .filter(|line| !after.contains(line))
            .map(|line| format!("- {line}"));
        let new = after
            .iter()
            .filter(|line| !before.contains(line))
            .map(|line| format!("+ {line}"));
        gone.chain(new).collect()
    }
}

fn describe_channel(channel: &Channel, lines: &mut Vec<String>) {
    let name = &channel.name;
    let mut say = |what: String| lines.push(format!("channel {name}: {what}"));
    say(format!("calls {}", channel.base));
    if channel.base.may_be_private() {
        say("may lead into a private network".to_owned());
    }
    match (&channel.secret, &channel.inject) {
        (Some(secret), Some(inject)) => say(format!(
            "sends the secret {secret} in the header {} as {:?}",
            inject.header,
            inject.format.as_str()
        )),
        (Some(_) | None, Some(_) | None) => say("sends no secret".to_owned()),
    }
    if let Some(ca) = &channel.ca {
        say(format!(
            "believes only certificates signed by its own {} authorities ({})",
            ca.matches("-----BEGIN CERTIFICATE-----").count(),
            crate::plan::short_digest(ca.as_bytes())
        ));
    }
    say(match channel.on_client_lost {
        OnClientLost::Finish => "running calls may finish when their client is lost".to_owned(),
        OnClientLost::Cancel => "running calls are cut off when their client is lost".to_owned(),
    });
    if channel
        .operations
        .iter()
        .all(|operation| operation.allow.is_empty())
    {
        say("allows nothing".to_owned());
    }
    for operation in &channel.operations {
        describe_operation(name.as_str(), operation, lines);
    }
}

fn describe_operation(channel: &str, operation: &Operation, lines: &mut Vec<String>) {
    let mut say = |what: String| {
        lines.push(format!(
            "channel {channel}, operation {}: {what}",
            operation.name
        ));
    };
    for allow in &operation.allow {
        say(format!("allows {allow} without asking"));
    }
    if operation.mints_credentials == MintsCredentials::Yes {
        say("may hand out credentials of the other side, and the agent gets them".to_owned());
    }
    if operation.redact == Redact::No {
        say("an answer that repeats the secret hands it to the agent".to_owned());
    }
    say(match &operation.idempotency {
        Some(known) => format!(
            "a repeated write is recognised by the header {} for {}",
            known.header,
            humantime::format_duration(known.window)
        ),
        None => "a repeated write is not recognised by the other side".to_owned(),
    });
    if let Some(job) = &operation.job {
        let or_none = |path: Option<&crate::JobPath>| {
            path.map_or_else(|| "not bounded".to_owned(), ToString::to_string)
        };
        say(format!(
            "its job is named at {} of the answer; looked up by {}, cancelled by {}",
            job.id,
            or_none(job.status()),
            or_none(job.cancel())
        ));
    }
    say(match operation.result_kept {
        Some(ResultKept::Remote) => "the other side keeps the result".to_owned(),
        Some(ResultKept::Nowhere) => "nobody keeps a result that could not be delivered".to_owned(),
        None => "where an undelivered result is kept: not bounded".to_owned(),
    });
}
