//! Copies the log to another folder: what is there once is never overwritten by another history.
//!
//! `HEAD` is read first and written last, so a copy never claims more than it holds. A segment that is complete is
//! copied once; the growing one is copied up to now, and must begin with what was copied before: compared at the first
//! look and when it is complete, between them only what is new is read and appended. So whoever rewrites the log here
//! cannot make the copy agree. Data keys, which are sealed to the vault, are copied, and destroyed there too
//! when their destruction is on record.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use ledger::Head;
use model::{Clock, Exit, Explain, Fault, Home, Kind, Seq, Wall};
use serde::{Deserialize, Serialize};
use sys::{clock::SystemClock, durable, regular, small_file};

use super::{Place, known, refused};
use crate::ui;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_secs(2);

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
    serde_json::from_slice(&read(&note(home)).ok()?).ok()
}

fn note(home: &Home) -> PathBuf {
    home.known("shipped")
}

/// Copies once, or until interrupted.
pub(super) fn ship(home: &Home, place: &Place, to: &Path, follow: bool) -> Result<Exit, Explain> {
    let mut copy = Copy::of(place.of(home), to)?;
    let mut troubled = None;
    loop {
        match copy.update() {
            Ok(None) => {}
            Ok(Some(seq)) => {
                if place.is_own() {
                    note_down(home, &copy.to, seq)?;
                }
                ui::note(&format!("copied up to record {seq}"));
                troubled = None;
            }
            // A disk that is away for a while comes back; another history does not become the same again.
            Err(error) if follow && error.exit == Exit::Failed => {
                if troubled.as_ref() != Some(&error.what) {
                    ui::explain(&error);
                    troubled = Some(error.what);
                }
            }
            Err(error) => return Err(error),
        }
        if !follow {
            return Ok(Exit::Done);
        }
        thread::sleep(LOOK);
    }
}

fn note_down(home: &Home, to: &Path, seq: Seq) -> Result<(), Explain> {
    let copied = Copied {
        to: to.to_owned(),
        at: SystemClock.now().wall,
        seq,
    };
    let text = serde_json::to_vec(&copied).unwrap_or_default();
    known::keep(&note(home), &text).map_err(|error| refused("write", &note(home), &error))
}

/// A copy that is kept up to date.
struct Copy {
    dir: PathBuf,
    to: PathBuf,
    /// The `HEAD` that was copied last.
    head: Option<Vec<u8>>,
    /// Complete segments that were compared since we began: the program does not read a gigabyte every few seconds.
    done: BTreeSet<u64>,
    /// The growing segment, and how much of it was compared and copied.
    growing: Option<(u64, usize)>,
}

impl Copy {
    fn of(dir: PathBuf, to: &Path) -> Result<Self, Explain> {
        let to = std::path::absolute(to).map_err(|error| refused("use", to, &error))?;
        // A copy inside the log would be lost with it, and would become a part of it.
        if to.starts_with(&dir) || dir.starts_with(&to) {
            let what = format!("{} is no place apart from the log", to.display());
            return Err(Explain::new(Exit::Usage, Fault::Caller, what)
                .because(format!("the log lies in {}", dir.display()))
                .next("name a folder on another disk or machine"));
        }
        Ok(Self {
            dir,
            to,
            head: None,
            done: BTreeSet::new(),
            growing: None,
        })
    }

    /// Copies what is new, and returns the record that the copy reaches to; none if nothing is new.
    fn update(&mut self) -> Result<Option<Seq>, Explain> {
        let path = self.dir.join("HEAD");
        let head = read(&path).map_err(|error| refused("read", &path, &error))?;
        if self.head.as_ref() == Some(&head) {
            return Ok(None);
        }
        let seq = self.once(&head)?;
        self.head = Some(head);
        Ok(Some(seq))
    }

    fn once(&mut self, head: &[u8]) -> Result<Seq, Explain> {
        let (dir, to) = (&self.dir, &self.to);
        let parsed =
            Head::decode(head).map_err(|error| refused("use", &dir.join("HEAD"), &error))?;
        let writing = |error: io::Error| refused("write", to, &error);
        for folder in ["", "seg", "keys", "pruned"] {
            durable::private_folder(&to.join(folder)).map_err(writing)?;
        }
        if let Ok(log) = read(&to.join("LOG"))
            && ledger::Origin::id(&log) != parsed.log_id
        {
            return Err(another(to, "the copy there is of another log"));
        }
        once_for_all(dir, to, Path::new("LOG"))?;
        keep_up(dir, to, "keys")?;
        keep_up(dir, to, "pruned")?;
        let parts = ledger::parts(dir).map_err(|error| refused("read", dir, &error))?;
        for part in parts.iter().rev().filter(|part| **part != ledger::CARRIED) {
            let growing = parts.first() == Some(part);
            if growing {
                // Whatever goes wrong: the next look compares all of it.
                let copied = match self.growing.take() {
                    Some((known, copied)) if known == *part => append(dir, to, *part, copied)?,
                    Some(_) | None => segment(dir, to, *part, true)?,
                };
                self.growing = Some((*part, copied));
            } else if self.done.insert(*part) {
                segment(dir, to, *part, false)?;
            }
        }
        forget_erased(dir, to)?;
        durable::replace(&to.join("HEAD"), head).map_err(writing)?;
        Ok(parsed.seq)
    }
}

/// Appends to the copy of the growing segment what stands behind the bytes that were copied, and returns how many are
/// copied now.
fn append(dir: &Path, to: &Path, part: u64, copied: usize) -> Result<usize, Explain> {
    let (from, there) = (
        ledger::segment_file(dir, part),
        ledger::segment_file(to, part),
    );
    let new = regular::open(&from, File::options().read(true))
        .and_then(|file| behind(&file, copied))
        .map_err(|error| refused("read", &from, &error))?;
    let now = copied + used(&new);
    let write = || {
        let copy = regular::open(&there, File::options().write(true))?;
        copy.write_all_at(new.get(..used(&new)).unwrap_or_default(), wide(copied))?;
        copy.set_len(wide(now + ZEROS))?;
        copy.sync_all()
    };
    write().map_err(|error| refused("write", &there, &error))?;
    Ok(now)
}

/// Returns the bytes from a place on, up to zeros that no record is as long as.
fn behind(file: &File, at: usize) -> io::Result<Vec<u8>> {
    let mut new = Vec::new();
    loop {
        let before = new.len();
        let mut rest = file;
        rest.seek(SeekFrom::Start(wide(at + before)))?;
        rest.take(wide(ledger::MAX_FRAME)).read_to_end(&mut new)?;
        if new.iter().skip(before).all(|byte| *byte == 0) {
            return Ok(new);
        }
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Copies a segment, and returns how many bytes of it are used; the newest is still growing.
fn segment(dir: &Path, to: &Path, part: u64, growing: bool) -> Result<usize, Explain> {
    let from = ledger::segment_file(dir, part);
    let there = ledger::segment_file(to, part);
    let before = match read(&there) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(refused("read", &there, &error)),
    };
    let mut now = read(&from).map_err(|error| refused("read", &from, &error))?;
    if growing {
        now.truncate((used(&now) + ZEROS).min(now.len()));
    }
    let was = used(&before);
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
    if before != now {
        durable::replace(&there, &now).map_err(|error| refused("write", &there, &error))?;
    }
    Ok(used(&now))
}

/// They stay behind a segment that still grows: with them a reader knows that the writer is not done.
const ZEROS: usize = 4096;

/// How far a segment is written: zeros follow.
fn used(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1)
}

/// Reads a file of a log or of its copy.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    small_file::read(path, LONGEST).map(|file| file.content)
}

/// More than any file of a log takes.
const LONGEST: u64 = 32 << 20;

fn another(there: &Path, why: &str) -> Explain {
    Explain::new(
        Exit::Negative,
        Fault::Operator,
        format!("nothing was copied over {}", there.display()),
    )
    .because(why)
    .next("keep both as evidence, and compare them with `lych audit verify --pin COPY/HEAD`")
}

/// Copies a file that never changes. One that did change here is not copied over what it was.
fn once_for_all(dir: &Path, to: &Path, name: &Path) -> Result<(), Explain> {
    let (from, there) = (dir.join(name), to.join(name));
    let bytes = read(&from).map_err(|error| refused("read", &from, &error))?;
    match read(&there) {
        Ok(before) if before == bytes => Ok(()),
        Ok(_) => Err(another(
            &there,
            "this file never changes, and it is another one now",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            durable::replace(&there, &bytes).map_err(|error| refused("write", &there, &error))
        }
        Err(error) => Err(refused("read", &there, &error)),
    }
}

/// Copies what a folder holds. What is missing there stays in the copy: that it is missing may be the damage.
fn keep_up(dir: &Path, to: &Path, folder: &str) -> Result<(), Explain> {
    let names = names(dir, folder).map_err(|error| refused("read", dir, &error))?;
    names
        .iter()
        .try_for_each(|name| once_for_all(dir, to, name))
}

fn names(of: &Path, folder: &str) -> io::Result<BTreeSet<PathBuf>> {
    let entries = match fs::read_dir(of.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        // Not those on their way to their name.
        if !name.to_string_lossy().ends_with(".tmp") {
            found.insert(Path::new(folder).join(name));
        }
    }
    Ok(found)
}

/// Destroys in the copy the data keys whose destruction is on record. Any other key that is gone here stays there.
fn forget_erased(dir: &Path, to: &Path) -> Result<(), Explain> {
    let reading = |error: &dyn std::fmt::Display| refused("read", dir, &error.to_string());
    let here = names(dir, "keys").map_err(|error| reading(&error))?;
    let there = names(to, "keys").map_err(|error| refused("read", to, &error))?;
    if there.is_subset(&here) {
        return Ok(());
    }
    for record in ledger::Records::open(dir).map_err(|error| reading(&error))? {
        let (_, stored) = record.map_err(|error| reading(&error))?;
        if stored.header.kind == Kind::KeyErased
            && let Some(session) = stored.header.session
        {
            let key = ledger::key_file_of(to, session);
            match fs::remove_file(&key) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(refused("remove", &key, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}
