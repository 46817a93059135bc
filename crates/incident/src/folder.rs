//! The files of one incident: how they are named, written and read.
//!
//! ```text
//! incidents/<id>/01-snapshot.json          evidence of step 1, durable before the step
//!                01-preserve.json          the step
//!                01-preserve.anchor.json   that the log has its digest, and where
//!                lock                      held by the one who works on it
//! ```
//!
//! No file is ever written twice. A crash leaves files whose number has no readable step: that number is cut
//! off and is not used again. A step names its predecessor by digest, so a changed step is found by the next.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use model::{Digest, Home, IncidentId, Seq, Wall};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use crate::{
    error::IncidentError,
    step::{SCHEMA, Step, WORDS},
};

/// A file that belongs to a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile {
    /// Its name in the folder.
    pub file: String,
    /// Its digest.
    pub sha256: Digest,
    /// Its length.
    pub bytes: u64,
}

/// That the log has the digest of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The digest that the log has.
    pub sha256: Digest,
    /// The record that has it.
    pub seq: Seq,
    /// Whether it was recorded after the fact.
    pub late: bool,
    /// When it was.
    pub at: Wall,
}

/// A step as it was read from its file.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) file: String,
    pub(crate) sha256: Digest,
    pub(crate) anchor: Option<Anchor>,
    pub(crate) step: Step,
}

/// Everything that a folder holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) steps: Vec<Stored>,
    pub(crate) cut_off: Vec<u16>,
    pub(crate) next: u16,
}

pub(crate) fn path_of(home: &Home, id: IncidentId) -> PathBuf {
    home.incidents().join(id.to_string())
}

pub(crate) fn step_file(number: u16, word: &str) -> String {
    format!("{number:02}-{word}.json")
}

pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// Writes a new file of the folder and makes it durable.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), IncidentError> {
    let path = folder.join(name);
    sys::durable::create(&path, bytes).map_err(IncidentError::storage(path))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, IncidentError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(IncidentError::Form)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads all steps of a folder and checks that each names the one before it.
pub(crate) fn read(folder: &Path) -> Result<Contents, IncidentError> {
    let mut contents = Contents {
        next: 1,
        ..Contents::default()
    };
    for (number, files) in by_number(folder)? {
        contents.next = number.saturating_add(1);
        match read_step(folder, &files)? {
            Some(stored) => {
                follows(folder, contents.steps.last(), &stored)?;
                contents.steps.push(stored);
            }
            None => contents.cut_off.push(number),
        }
    }
    Ok(contents)
}

fn by_number(folder: &Path) -> Result<BTreeMap<u16, Vec<String>>, IncidentError> {
    let mut found: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let names = fs::read_dir(folder).map_err(IncidentError::storage(folder))?;
    for entry in names {
        let name = entry.map_err(IncidentError::storage(folder))?.file_name();
        let Some(name) = name.to_str() else { continue };
        let number = name
            .split_once('-')
            .and_then(|(digits, _)| digits.parse().ok());
        if let Some(number) = number {
            found.entry(number).or_default().push(name.to_owned());
        }
    }
    Ok(found)
}

/// Returns the step among the files of one number; none if a crash left no readable one.
fn read_step(folder: &Path, files: &[String]) -> Result<Option<Stored>, IncidentError> {
    let is_step = |file: &&String| {
        let word = file
            .split_once('-')
            .and_then(|(_, rest)| rest.strip_suffix(".json"));
        word.is_some_and(|word| WORDS.contains(&word))
    };
    let Some(file) = files.iter().find(is_step) else {
        return Ok(None);
    };
    let path = folder.join(file);
    let bytes = sys::regular::read(&path, LONGEST_STEP).map_err(IncidentError::storage(&path))?;
    let Ok(step) = serde_json::from_slice::<Step>(&bytes) else {
        // A torn write is no JSON; a form of a later version is, and must not pass for a torn one.
        return match serde_json::from_slice::<serde_json::Value>(&bytes) {
            Ok(_) => Err(damaged(path, "its form is not one that this version reads")),
            Err(_) => Ok(None),
        };
    };
    if step.schema != SCHEMA {
        return Err(damaged(path, "its form is not one that this version reads"));
    }
    let sha256 = digest(&bytes);
    let anchor = read_anchor(folder, file)?;
    if anchor
        .as_ref()
        .is_some_and(|anchor| anchor.sha256 != sha256)
    {
        return Err(damaged(path, "its digest is not the one that was anchored"));
    }
    Ok(Some(Stored {
        file: file.clone(),
        sha256,
        anchor,
        step,
    }))
}

/// A step holds what was seen of a whole machine.
const LONGEST_STEP: u64 = 256 << 20;

fn follows(folder: &Path, before: Option<&Stored>, stored: &Stored) -> Result<(), IncidentError> {
    if stored.step.previous == before.map(|before| before.sha256) {
        return Ok(());
    }
    let path = folder.join(before.map_or(&stored.file, |before| &before.file));
    Err(damaged(path, "the step after it names another digest"))
}

fn damaged(path: PathBuf, why: &str) -> IncidentError {
    IncidentError::Damaged {
        path,
        why: why.to_owned(),
    }
}

pub(crate) fn anchor_file(step_file: &str) -> String {
    let word = step_file.strip_suffix(".json").unwrap_or(step_file);
    format!("{word}.anchor.json")
}

/// A torn anchor says nothing: the step is then anchored again.
fn read_anchor(folder: &Path, step_file: &str) -> Result<Option<Anchor>, IncidentError> {
    let path = folder.join(anchor_file(step_file));
    match sys::regular::read(&path, LONGEST_STEP) {
        Ok(bytes) => Ok(parse(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IncidentError::storage(path)(error)),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
