//! How the daemon, the vault and the log are, in one look.

use clap::Args;
use model::{Clock, Exit, Explain, Home, Wall};
use serde_json::{Value, json};
use sys::clock::SystemClock;
use wire::operator::Request;

use crate::{
    audit::{copy, known},
    operator::{self, Operator},
    ps::words::age,
    ui,
};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Says how everything is.
pub(crate) fn run(home: &Home, args: &StatusArgs) -> Result<Exit, Explain> {
    let status = look(home)?;
    if args.json {
        ui::json(&status)?;
    } else {
        ui::data(&people(&status))?;
    }
    Ok(match status.get("daemon") {
        None | Some(Value::Null) => Exit::Unreachable,
        Some(daemon) if daemon.get("unknown").is_some() => Exit::Failed,
        Some(_) => Exit::Done,
    })
}

/// Asks the daemon, and looks at what lies in the home.
///
/// # Errors
/// The daemon answered with one. That it is not there is none.
pub(crate) fn look(home: &Home) -> Result<Value, Explain> {
    if !operator::is_operator(home, sys::process::own_uid()) {
        return Ok(from_outside(home));
    }
    let answer = Operator::connect(home).and_then(|mut operator| operator.ask(&Request::Status));
    let daemon = match answer {
        Ok(value) => value,
        Err(error) if error.exit == Exit::Unreachable => Value::Null,
        Err(error) => return Err(error),
    };
    let field = |name: &str| daemon.get(name).cloned().unwrap_or(Value::Null);
    let (own, vault, presence) = if daemon.is_null() {
        let vault = match home.vault().try_exists() {
            Ok(true) => json!("locked"),
            Ok(false) => json!("none"),
            Err(error) => json!({"unknown": error.to_string()}),
        };
        let unknown = json!({"unknown": "the daemon is not running"});
        (Value::Null, vault, unknown)
    } else {
        let own = json!({"pid": field("pid"), "version": field("version"), "started_at": field("started_at")});
        (own, field("vault"), field("presence"))
    };
    let now = SystemClock.now().wall;
    Ok(json!({
        "schema": "lych.status/v1",
        "daemon": own,
        "vault": vault,
        "mode": home.realm().word(),
        "presence": presence,
        "log": {"id": field("log_id"), "last_seq": field("last_seq"), "fault": field("log_fault"),
            "poisoned": field("log_poisoned"), "head_behind": field("log_head_behind"), "keep": field("log_keep")},
        "outside_copy": outside_copy(home, now),
        "verified": verified(home, now),
        "runs": field("runs"),
        "unresolved": field("unresolved"),
        "draft_differs": field("draft_differs"),
    }))
}

/// What a user can tell who may not ask the daemon.
fn from_outside(home: &Home) -> Value {
    let now = SystemClock.now().wall;
    let not_told = json!({"unknown": "only root asks this daemon: sudo lych status"});
    json!({
        "schema": "lych.status/v1",
        "daemon": not_told,
        "vault": not_told,
        "mode": home.realm().word(),
        "presence": not_told,
        "log": not_told,
        "outside_copy": outside_copy(home, now),
        "verified": verified(home, now),
        "runs": not_told,
        "unresolved": not_told,
        "draft_differs": not_told,
    })
}

/// The newest copy of the log elsewhere; null if there never was one.
fn outside_copy(home: &Home, now: Wall) -> Value {
    copy::newest(home).map_or(Value::Null, |copy| {
        json!({"to": copy.to, "at": copy.at, "age_ms": since(copy.at, now), "seq": copy.seq})
    })
}

/// The newest verification of this home's log; null if there never was one.
fn verified(home: &Home, now: Wall) -> Value {
    known::verified(home).map_or(Value::Null, |last| {
        json!({"at": last.at, "age_ms": since(last.at, now), "verdict": last.verdict, "last_seq": last.last_seq})
    })
}

/// How long ago; zero if the clock was put back since.
const fn since(at: Wall, now: Wall) -> u64 {
    now.millis().saturating_sub(at.millis())
}

fn people(status: &Value) -> String {
    let word = |pointer: &str| word(status, pointer);
    if status.get("daemon").is_none_or(Value::is_null) {
        return format!(
            "daemon    not running (start it with `lych up`)\nvault     {}\ncopy      {}\nverified  {}\n",
            word("/vault"),
            copied(status),
            last_verified(status),
        );
    }
    if status.pointer("/daemon/unknown").is_some() {
        return format!(
            "daemon    {}\nmode      {}\ncopy      {}\nverified  {}\n",
            word("/daemon"),
            mode(status),
            copied(status),
            last_verified(status),
        );
    }
    let mut text = format!(
        "daemon    running, pid {}, version {}, since {}\nvault     {}\nmode      {}\npresence  {}\nlog       {} records, id {}\nkept      {}\ncopy      {}\nverified  {}\nruns      {}\nopen      {} calls with an unknown outcome\n",
        word("/daemon/pid"),
        word("/daemon/version"),
        word("/daemon/started_at"),
        word("/vault"),
        mode(status),
        word("/presence"),
        word("/log/last_seq"),
        word("/log/id"),
        kept(status),
        copied(status),
        last_verified(status),
        word("/runs"),
        word("/unresolved"),
    );
    if there(status, "/log/fault") {
        let what = word("/log/fault");
        text.push_str(&format!(
            "LOG FAULT {what}: nothing new is cleared (lych doctor)\n"
        ));
    }
    if there(status, "/log/head_behind") {
        let what = word("/log/head_behind");
        text.push_str(&format!(
            "LOG HEAD  it could not be written: {what} (lych doctor)\n"
        ));
    }
    if word("/vault") == "locked" {
        text.push_str("next      lych unlock\n");
    } else if word("/vault") == "none" {
        text.push_str("next      lych init\n");
    } else if word("/draft_differs") == "true" {
        text.push_str("next      lych channels apply (the draft is not applied)\n");
    }
    text
}

/// What the mode keeps out, and what it does not.
fn mode(status: &Value) -> &'static str {
    if word(status, "/mode") == "separate_user" {
        "separate user: programs of the agents' user reach neither the vault nor its policy"
    } else {
        "same user: keeps mistakes out, not a hostile program of yours"
    }
}

/// One value of the status as a person reads it.
pub(crate) fn word(status: &Value, pointer: &str) -> String {
    match status.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => match other.get("unknown").and_then(Value::as_str) {
            Some(why) => format!("unknown: {why}"),
            None => other.to_string(),
        },
    }
}

fn there(status: &Value, pointer: &str) -> bool {
    status
        .pointer(pointer)
        .is_some_and(|value| !value.is_null())
}

fn kept(status: &Value) -> String {
    let number = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64);
    match (number("/log/keep/days"), number("/log/keep/bytes")) {
        (Some(days), Some(bytes)) => {
            let mib = bytes / (1024 * 1024);
            format!("{days} days and at most {mib} MiB; what incidents refer to stays")
        }
        _ => word(status, "/log/keep"),
    }
}

fn copied(status: &Value) -> String {
    if !there(status, "/outside_copy") {
        return "WARNING: never outside this machine (lych audit ship --to DIR)".to_owned();
    }
    format!(
        "to record {}, {} ago, in {}",
        word(status, "/outside_copy/seq"),
        ago(status, "/outside_copy/age_ms"),
        word(status, "/outside_copy/to"),
    )
}

fn last_verified(status: &Value) -> String {
    if !there(status, "/verified") {
        return "never (lych audit verify)".to_owned();
    }
    format!(
        "{} to record {}, {} ago",
        word(status, "/verified/verdict"),
        word(status, "/verified/last_seq"),
        ago(status, "/verified/age_ms"),
    )
}

/// A number of milliseconds in the status as a short age.
pub(crate) fn ago(status: &Value, pointer: &str) -> String {
    age(status.pointer(pointer).and_then(Value::as_u64).unwrap_or(0))
}
