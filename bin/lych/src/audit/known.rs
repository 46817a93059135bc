//! What this user knows about the log besides the log: the id seen first, and the pins in incidents.
//!
//! The remembered id lies among the user's files, so it stops a mix-up and not a program of the same user.

use std::{
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use ledger::Report;
use model::{Clock, Exit, Explain, Fault, Home, IncidentId, LogId, Seq, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sys::clock::SystemClock;

use super::copy;

fn file(home: &Home) -> PathBuf {
    home.known("id")
}

/// Returns the id of the log that was seen here first.
pub(super) fn log(home: &Home) -> Option<LogId> {
    let text = copy::read(&file(home)).ok()?;
    String::from_utf8(text).ok()?.trim().parse().ok()
}

/// Remembers a log's id; if that cannot be written, the next verification is the first again.
pub(super) fn remember(home: &Home, id: LogId) {
    drop(keep(&file(home), format!("{id}\n").as_bytes()));
}

/// The newest verification of this home's log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Verified {
    /// When.
    pub(crate) at: Wall,
    /// What came out.
    pub(crate) verdict: Value,
    /// The last record that was checked.
    pub(crate) last_seq: Option<Seq>,
}

fn verified_file(home: &Home) -> PathBuf {
    home.known("verified")
}

/// Returns the newest verification; none if there never was one.
pub(crate) fn verified(home: &Home) -> Option<Verified> {
    serde_json::from_slice(&copy::read(&verified_file(home)).ok()?).ok()
}

/// Remembers that the log was verified. Where that cannot be written, as on a machine that never saw us, the
/// verification counts all the same.
pub(super) fn note_verified(home: &Home, report: &Report) {
    let verified = Verified {
        at: SystemClock.now().wall,
        verdict: serde_json::to_value(report.verdict).unwrap_or_default(),
        last_seq: report.last_seq,
    };
    if let Ok(text) = serde_json::to_vec(&verified)
        && home.audit().exists()
    {
        drop(keep(&verified_file(home), &text));
    }
}

/// Writes what this user knows, in a folder of his own.
pub(super) fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    sys::durable::replace(path, bytes)
}

/// Returns the file of an incident that holds a verification's result.
pub(super) fn pin_of(home: &Home, incident: IncidentId) -> Result<PathBuf, Explain> {
    let folder = home.incidents().join(incident.to_string());
    reports(&folder).into_iter().next_back().ok_or_else(|| {
        Explain::new(
            Exit::Usage,
            Fault::Caller,
            format!("incident {incident} holds no verification"),
        )
        .because(format!("there is no verify.json in {}", folder.display()))
        .next("lych incident list")
    })
}

/// Every verification's result in an incident, the oldest first.
fn reports(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            let is = |ending: &str| entry.file_name().to_string_lossy().ends_with(ending);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && is("verify.json") => found.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// Returns the first record that any incident of this log refers to: from there on nothing is given up.
///
/// # Errors
/// An incident cannot be read: then nobody knows what it refers to.
pub(super) fn oldest_of_incidents(home: &Home) -> Result<Option<Seq>, Explain> {
    let mut oldest: Option<Seq> = None;
    for id in incident::list(home)? {
        if let Some(seq) = oldest_of(home, id)? {
            oldest = Some(oldest.map_or(seq, |known| known.min(seq)));
        }
    }
    Ok(oldest)
}

/// Returns the first record that an incident refers to.
///
/// # Errors
/// It cannot be read.
pub(crate) fn oldest_of(home: &Home, id: IncidentId) -> Result<Option<Seq>, Explain> {
    let mut oldest = None;
    let case = incident::Case::read(home, id)?;
    let shown = serde_json::to_value(incident::View::of(&case)).unwrap_or_default();
    least(&shown, &mut oldest);
    Ok(oldest)
}

/// Every `seq` in what an incident shows names a record, but for those of a report on the whole log.
fn least(value: &Value, oldest: &mut Option<Seq>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let seq = (name == "seq" || name.ends_with("_seq"))
                    .then(|| field.as_u64())
                    .flatten();
                if let Some(seq) = seq {
                    *oldest = Some(oldest.map_or(seq, |known| known.min(seq)));
                } else if name != "verify" {
                    least(field, oldest);
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|each| least(each, oldest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
