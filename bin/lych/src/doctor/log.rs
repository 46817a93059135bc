//! The log: whether it can be written, whether it is what was written, and whether it is anywhere else.

use ledger::{Report, Unendorsed, Verdict, VerifyOptions, verify};
use model::{Home, Seq};
use serde_json::Value;

use super::Finding;
use crate::status::{ago, word};

/// A copy that is older than this would lose a day's work with the machine.
const OLD_COPY_MS: u64 = 24 * 60 * 60 * 1000;

/// Looks at the log.
pub(super) fn look(home: &Home, status: &Value) -> Vec<Finding> {
    let mut found = writing(home, status);
    if home.audit().join("LOG").exists() {
        let report = verify(&home.audit(), &VerifyOptions::default());
        found.extend(judged(&report, status));
        found.extend(outside(status));
    }
    found
}

fn writing(home: &Home, status: &Value) -> Vec<Finding> {
    let there = |pointer: &str| {
        let value = status.pointer(pointer);
        value.is_some_and(|value| !value.is_null())
    };
    let mut found = Vec::new();
    if there("/log/fault") {
        let poisoned = status.pointer("/log/poisoned") == Some(&Value::Bool(true));
        let why = word(status, "/log/fault");
        found.push(if poisoned {
            Finding::fault(
                "log",
                format!("nothing can be recorded any more: {why}"),
                "mend the disk or put the folder back, then `lych down` and `lych up`; no call gets out until then",
            )
        } else {
            Finding::fault(
                "log",
                format!("calls are refused: {why}"),
                format!(
                    "free 32 MB where {} lies; calls are taken again by themselves",
                    home.audit().display()
                ),
            )
        });
    }
    if there("/log/head_behind") {
        found.push(Finding::warning(
            "log",
            format!("HEAD cannot be written: {}", word(status, "/log/head_behind")),
            "free some space; until then a cut-off end of the log would not be noticed without a pin from outside",
        ));
    }
    found
}

fn judged(report: &Report, status: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    match report.verdict {
        Verdict::Tampered | Verdict::Truncated | Verdict::Forked => {
            let place = report.first_bad.as_ref().map(ToString::to_string);
            found.push(Finding::fault(
                "log",
                format!(
                    "it is not what was written: {}",
                    place.unwrap_or_else(|| "a pin names what is not there".to_owned())
                ),
                "keep the folder as evidence, and look at `lych audit verify`",
            ));
        }
        Verdict::CannotJudge => {
            let why = report.why.as_deref().unwrap_or("it is not known why");
            found.push(Finding::fault(
                "log",
                format!("it cannot be judged: {why}"),
                "lych audit verify",
            ));
        }
        Verdict::IntactPinned
        | Verdict::IntactLocalPin
        | Verdict::IntactUnpinned
        | Verdict::TornTail => {}
    }
    if !report.structure.is_empty() {
        found.push(Finding::fault(
            "log",
            format!("{} records break a rule of order", report.structure.len()),
            "lych audit verify",
        ));
    }
    found.extend(unendorsed(report, status));
    found
}

/// The present run of the daemon is vouched for when the vault is opened; an earlier one needs a person.
fn unendorsed(report: &Report, status: &Value) -> Vec<Finding> {
    let running = status.get("daemon").is_some_and(|daemon| !daemon.is_null());
    let present = |one: &Unendorsed| running && Some(one.last_seq) == report.last_seq;
    let each = report.unendorsed.iter().map(|one| {
        let (first, last): (Seq, Seq) = (one.first_seq, one.last_seq);
        let next = if present(one) {
            "lych unlock".to_owned()
        } else {
            format!("lych audit adopt {}, if you know of it", one.epoch)
        };
        Finding::warning(
            "log",
            format!("nobody vouches for records {first} to {last}: the vault was never open then"),
            next,
        )
    });
    each.collect()
}

fn outside(status: &Value) -> Option<Finding> {
    let next =
        "lych audit ship --to DIR --follow, to a disk that this machine's user cannot change";
    let Some(age) = status
        .pointer("/outside_copy/age_ms")
        .and_then(Value::as_u64)
    else {
        let what = "there never was a copy of it outside: what is lost here is lost";
        return Some(Finding::warning("log", what, next));
    };
    (age > OLD_COPY_MS).then(|| {
        let what = format!(
            "the newest copy outside is {} old",
            ago(status, "/outside_copy/age_ms")
        );
        Finding::warning("log", what, next)
    })
}
