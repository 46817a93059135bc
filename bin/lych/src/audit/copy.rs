//! Copies the log to another folder: what is there once is never overwritten by another history.
//!
//! `HEAD` is read first and written last, so a copy never claims more than it holds. A segment that is complete is
//! copied once; the growing one is copied up to now, and must begin with what was copied before. So whoever rewrites
//! the log here cannot make the copy agree. Data keys are mirrored, erasures too; they are sealed to the vault.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ledger::Head;
use model::{Clock, Exit, Explain, Fault, Home, Seq, Wall};
use serde::{Deserialize, Serialize};
use sys::{clock::SystemClock, durable};

use super::{known, refused};
use crate::ui;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// The newest copy outside, as far as this home knows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// Where it is.
    pub(crate) to: PathBuf,
    /// When it was made.
    pub(crate) at: Wall,
    /// The record it reaches to.
    pub(crate) seq: Seq,
}

/// Returns the newest copy outside; none if there never was one.
pub(crate) fn newest(home: &Home) -> Option<Copied> {
    serde_json::from_slice(&fs::read(note(home)).ok()?).ok()
}

fn note(home: &Home) -> PathBuf {
    home.audit().with_added_extension("shipped")
}

/// Copies once, or until interrupted.
pub(super) fn ship(home: &Home, dir: &Path, to: &Path, follow: bool) -> Result<Exit, Explain> {
    let to = std::path::absolute(to).map_err(|error| refused("use", to, &error))?;
    let own = dir == home.audit();
    let mut last = None;
    loop {
        let head = fs::read(dir.join("HEAD")).map_err(|error| refused("read", dir, &error))?;
        if last.as_ref() != Some(&head) {
            let seq = once(dir, &to, &head)?;
            let at = SystemClock.now().wall;
            let copied = Copied {
                to: to.clone(),
                at,
                seq,
            };
            if own {
                let text = serde_json::to_vec(&copied).unwrap_or_default();
                durable::replace(&note(home), &text)
                    .map_err(|error| refused("write", &note(home), &error))?;
            }
            ui::note(&format!("copied up to record {seq}"));
            last = Some(head);
        }
        if !follow {
            return Ok(Exit::Done);
        }
        thread::sleep(LOOK);
    }
}

fn once(dir: &Path, to: &Path, head: &[u8]) -> Result<Seq, Explain> {
    let parsed = Head::decode(head).map_err(|error| refused("use", &dir.join("HEAD"), &error))?;
    let writing = |error: io::Error| refused("write", to, &error);
    for folder in ["", "seg", "keys", "pruned"] {
        durable::private_folder(&to.join(folder)).map_err(writing)?;
    }
    if to.join("LOG").exists() && known::copied_log(to) != Some(parsed.log_id) {
        return Err(another(to, "the copy there is of another log"));
    }
    same_or_new(dir, to, Path::new("LOG")).map_err(writing)?;
    mirror(dir, to, "keys").map_err(writing)?;
    mirror(dir, to, "pruned").map_err(writing)?;
    let parts = ledger::parts(dir).map_err(|error| refused("read", dir, &error))?;
    for part in parts.iter().rev().filter(|part| **part != ledger::CARRIED) {
        segment(dir, to, *part, parts.first() == Some(part))?;
    }
    durable::replace(&to.join("HEAD"), head).map_err(writing)?;
    Ok(parsed.seq)
}

/// Copies a segment; the newest is still growing.
fn segment(dir: &Path, to: &Path, part: u64, growing: bool) -> Result<(), Explain> {
    let from = ledger::segment_file(dir, part);
    let there = ledger::segment_file(to, part);
    let before = fs::read(&there).unwrap_or_default();
    let mut now = fs::read(&from).map_err(|error| refused("read", &from, &error))?;
    if growing {
        // A page of zeros stays: with it a reader knows that the writer is not done.
        let used = now
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        now.truncate((used + 4096).min(now.len()));
    }
    let was = before
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let agrees = before
        .get(..was)
        .zip(now.get(..was))
        .is_some_and(|(before, now)| before == now);
    if !agrees {
        return Err(another(
            &there,
            "what was copied before is not what the log holds there now",
        ));
    }
    if before == now {
        return Ok(());
    }
    durable::replace(&there, &now).map_err(|error| refused("write", &there, &error))
}

fn another(there: &Path, why: &str) -> Explain {
    Explain::new(
        Exit::Negative,
        Fault::Operator,
        format!("nothing was copied over {}", there.display()),
    )
    .because(why)
    .next("keep both as evidence, and compare them with `lych audit verify --pin COPY/HEAD`")
}

fn same_or_new(dir: &Path, to: &Path, name: &Path) -> io::Result<()> {
    let (from, there) = (dir.join(name), to.join(name));
    let bytes = fs::read(from)?;
    if fs::read(&there).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    durable::replace(&there, &bytes)
}

/// Makes a folder hold what the other holds, and nothing else.
fn mirror(dir: &Path, to: &Path, folder: &str) -> io::Result<()> {
    let names = |of: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(of.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| Path::new(folder).join(entry.file_name()))
            .collect()
    };
    let wanted = names(dir);
    for name in &wanted {
        same_or_new(dir, to, name)?;
    }
    for name in names(to) {
        if !wanted.contains(&name) {
            fs::remove_file(to.join(name))?;
        }
    }
    Ok(())
}
