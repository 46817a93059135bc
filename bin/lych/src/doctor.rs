//! Looks for what is wrong, or will be, and says what to do about each.
//!
//! It works without a daemon: that the daemon does not start is one of the things it is asked about.

mod log;
mod place;

use clap::Args;
use model::{Exit, Explain, Home};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    status::{self, word},
    ui,
};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// Something does not work, or evidence was changed.
    Fault,
    /// Something works less well than it could, or will not for long.
    Warning,
}

/// One thing, and what to do about it.
#[derive(Debug, Serialize)]
struct Finding {
    about: &'static str,
    level: Level,
    what: String,
    next: String,
}

impl Finding {
    fn fault(about: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            about,
            level: Level::Fault,
            what: what.into(),
            next: next.into(),
        }
    }

    fn warning(about: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            ..Self::fault(about, what, next)
        }
    }
}

/// Looks at everything; the code is 3 if something is a fault.
pub(crate) fn run(home: &Home, args: &DoctorArgs) -> Result<Exit, Explain> {
    let status = status::look(home)?;
    let mut found = daemon(&status);
    found.extend(place::look(home));
    found.extend(log::look(home, &status));
    found.extend(vault(&status));
    found.extend(authority(&status));
    found.sort_by_key(|finding| finding.level != Level::Fault);
    if args.json {
        ui::json(&json!({"schema": "lych.doctor/v1", "findings": found}))?;
    } else {
        ui::data(&people(&found))?;
    }
    Ok(if found.iter().any(|one| one.level == Level::Fault) {
        Exit::Negative
    } else {
        Exit::Done
    })
}

fn people(found: &[Finding]) -> String {
    if found.is_empty() {
        return "nothing to mend\n".to_owned();
    }
    let lines = found.iter().map(|finding| {
        let level = match finding.level {
            Level::Fault => "FAULT  ",
            Level::Warning => "warning",
        };
        format!(
            "{level}  {}: {}\n         do: {}\n",
            finding.about, finding.what, finding.next
        )
    });
    lines.collect()
}

fn daemon(status: &Value) -> Vec<Finding> {
    if status.pointer("/daemon/unknown").is_some() {
        return vec![Finding::warning(
            "daemon",
            "how it, its vault and its policy are is told to root alone",
            "sudo lych doctor",
        )];
    }
    if status.get("daemon").is_some_and(|daemon| !daemon.is_null()) {
        return Vec::new();
    }
    vec![Finding::warning(
        "daemon",
        "it is not running: no call gets out, and none is recorded",
        "lych up; if it does not stay up, the last lines of lychd.log say why",
    )]
}

fn vault(status: &Value) -> Vec<Finding> {
    match word(status, "/vault").as_str() {
        "none" => vec![Finding::warning(
            "vault",
            "there is none, so nothing vouches for the log but a key that lies beside it",
            "lych init",
        )],
        "locked" => vec![Finding::warning(
            "vault",
            "it is locked: every call is refused, and nobody vouches for this run of the daemon",
            "lych unlock",
        )],
        _ => Vec::new(),
    }
}

fn authority(status: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    if word(status, "/presence") == "none" {
        found.push(Finding::warning(
            "presence",
            "nothing asks before an act that widens what agents may do",
            "lych vault presence --new-pin",
        ));
    }
    if word(status, "/draft_differs") == "true" {
        found.push(Finding::warning(
            "channels",
            "config.toml differs from what is in force",
            "lych channels apply --dry-run",
        ));
    }
    if status.get("unresolved").and_then(Value::as_u64) > Some(0) {
        found.push(Finding::warning(
            "calls",
            format!(
                "{} have an outcome that nobody knows",
                word(status, "/unresolved")
            ),
            "lych reconcile list",
        ));
    }
    found
}
