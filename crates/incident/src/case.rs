//! One incident as its folder holds it, open for one more step or for reading.

use std::{fs, io, path::PathBuf};

use model::{Clock, Foreign, Home, IncidentId, Operator, Stamp, Wall};
use serde::Serialize;
use sys::lock::Lock;

use crate::{
    authority::Authority,
    desk::Desk,
    error::IncidentError,
    folder::{self, Anchor, EvidenceFile, Stored},
    step::{Body, SCHEMA, Step},
};

/// An incident. One that is open for writing holds the folder's lock.
#[derive(Debug)]
pub struct Case {
    id: IncidentId,
    folder: PathBuf,
    lock: Option<Lock>,
    steps: Vec<Stored>,
    cut_off: Vec<u16>,
    next: u16,
}

impl Case {
    /// Reads an incident, also while somebody works on it.
    ///
    /// # Errors
    /// There is none, or its folder is damaged.
    pub fn read(home: &Home, id: IncidentId) -> Result<Self, IncidentError> {
        let folder = folder::path_of(home, id);
        if !folder.is_dir() {
            return Err(IncidentError::NoSuch(id));
        }
        let contents = folder::read(&folder)?;
        Ok(Self {
            id,
            folder,
            lock: None,
            steps: contents.steps,
            cut_off: contents.cut_off,
            next: contents.next,
        })
    }

    /// Opens an incident for one more step.
    ///
    /// # Errors
    /// There is none, somebody works on it, or its folder is damaged.
    pub fn open(home: &Home, id: IncidentId) -> Result<Self, IncidentError> {
        let folder = folder::path_of(home, id);
        if !folder.is_dir() {
            return Err(IncidentError::NoSuch(id));
        }
        let lock = lock(&folder, id)?;
        // Read under the lock: what was read before it may have grown.
        let mut case = Self::read(home, id)?;
        case.lock = Some(lock);
        Ok(case)
    }

    /// Makes the folder of a new incident.
    pub(crate) fn create(home: &Home) -> Result<Self, IncidentError> {
        let all = home.incidents();
        let id = IncidentId::random().map_err(IncidentError::storage(&all))?;
        let folder = folder::path_of(home, id);
        sys::durable::private_folder(&all).map_err(IncidentError::storage(&all))?;
        sys::durable::private_folder(&folder).map_err(IncidentError::storage(&folder))?;
        sys::durable::sync_folder_of(&folder).map_err(IncidentError::storage(&folder))?;
        let lock = lock(&folder, id)?;
        Ok(Self {
            id,
            folder,
            lock: Some(lock),
            steps: Vec::new(),
            cut_off: Vec::new(),
            next: 1,
        })
    }

    /// Returns which incident it is.
    #[must_use]
    pub const fn id(&self) -> IncidentId {
        self.id
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns its steps in order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.steps.iter().map(|stored| &stored.step)
    }

    /// Returns the numbers that a crash left without a readable step.
    #[must_use]
    pub fn cut_off(&self) -> &[u16] {
        &self.cut_off
    }

    pub(crate) fn stored(&self) -> &[Stored] {
        &self.steps
    }

    /// Tells whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.steps()
            .any(|step| matches!(step.body, Body::Close { .. }))
    }

    /// Writes down what an operator found, and the follow-up that is done by it.
    ///
    /// # Errors
    /// It is closed, there is no such follow-up, or the file system refused.
    pub fn note(
        &mut self,
        text: &str,
        done: Option<String>,
        desk: &mut Desk<'_>,
    ) -> Result<(), IncidentError> {
        self.refuse_closed()?;
        let items = self.follow_up();
        if let Some(wanted) = &done
            && !items.iter().any(|item| item.id == *wanted)
        {
            return Err(IncidentError::NoSuchFollowUp {
                id: self.id,
                follow_up: wanted.clone(),
            });
        }
        let text = Foreign::new(text);
        self.append(desk, Vec::new(), Body::Note { text, done })
    }

    /// Adds a file, as it is.
    ///
    /// # Errors
    /// It is closed, or the file system refused.
    pub fn attach(
        &mut self,
        name: &str,
        bytes: &[u8],
        desk: &mut Desk<'_>,
    ) -> Result<(), IncidentError> {
        self.refuse_closed()?;
        // The name is not ours: only harmless characters of it go into a path.
        let safe: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || ".-_".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(80)
            .collect();
        let file = self.keep(&format!("attached-{safe}"), bytes)?;
        let name = Foreign::new(name);
        self.append(desk, vec![file], Body::Attach { name })
    }

    /// Closes the incident.
    ///
    /// # Errors
    /// It is closed already, has no record, or has open follow-up and no reason to leave it so.
    pub fn close(
        &mut self,
        accept_open: Option<&str>,
        desk: &mut Desk<'_>,
    ) -> Result<(), IncidentError> {
        self.refuse_closed()?;
        let open: Vec<String> = self
            .follow_up()
            .into_iter()
            .filter(|item| item.is_open())
            .map(|item| item.id)
            .collect();
        if accept_open.is_none() {
            if self.latest_record().is_none() {
                return Err(IncidentError::NotRecorded(self.id));
            }
            if !open.is_empty() {
                return Err(IncidentError::OpenFollowUp {
                    id: self.id,
                    open: open.len(),
                });
            }
        }
        let body = Body::Close {
            reason: accept_open.map(Foreign::new),
            left_open: open,
        };
        self.append(desk, Vec::new(), body)
    }

    fn refuse_closed(&self) -> Result<(), IncidentError> {
        if self.is_closed() {
            return Err(IncidentError::Closed(self.id));
        }
        Ok(())
    }

    /// Writes a file that belongs to the next step, and makes it durable.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<EvidenceFile, IncidentError> {
        let file = format!("{:02}-{name}", self.next);
        folder::write(&self.folder, &file, bytes)?;
        Ok(EvidenceFile {
            file,
            sha256: folder::digest(bytes),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        })
    }

    /// Writes the next step, makes it durable, and anchors it where a daemon runs.
    pub(crate) fn append(
        &mut self,
        desk: &mut Desk<'_>,
        evidence: Vec<EvidenceFile>,
        body: Body,
    ) -> Result<(), IncidentError> {
        let file = folder::step_file(self.next, body.word());
        let step = self.step(desk.clock.now(), desk.operator.clone(), evidence, body);
        let bytes = folder::to_json(&step)?;
        folder::write(&self.folder, &file, &bytes)?;
        self.next = self.next.saturating_add(1);
        self.steps.push(Stored {
            file,
            sha256: folder::digest(&bytes),
            anchor: None,
            step,
        });
        self.anchor_all(desk.authority, desk.clock)
    }

    fn step(&self, at: Stamp, by: Operator, evidence: Vec<EvidenceFile>, body: Body) -> Step {
        Step {
            schema: SCHEMA.to_owned(),
            incident: self.id,
            number: self.next,
            at,
            by,
            previous: self.steps.last().map(|last| last.sha256),
            evidence,
            body,
        }
    }

    /// Anchors every step that is not yet; all but the newest are late. Without a daemon they wait.
    fn anchor_all(
        &mut self,
        authority: &mut dyn Authority,
        clock: &dyn Clock,
    ) -> Result<(), IncidentError> {
        let last = self.steps.len().saturating_sub(1);
        for (index, stored) in self.steps.iter_mut().enumerate() {
            if stored.anchor.is_some() {
                continue;
            }
            let late = index != last;
            let word = stored.file.strip_suffix(".json").unwrap_or(&stored.file);
            let Ok(seq) = authority.anchor(self.id, word, stored.sha256, late) else {
                return Ok(());
            };
            let anchor = Anchor {
                sha256: stored.sha256,
                seq,
                late,
                at: clock.now().wall,
            };
            write_anchor(&self.folder, &stored.file, &anchor)?;
            stored.anchor = Some(anchor);
        }
        Ok(())
    }

    pub(crate) fn opened_at(&self) -> Option<Wall> {
        self.steps().next().map(|step| step.at.wall)
    }
}

/// Not `create`: a torn anchor of an earlier crash is replaced.
fn write_anchor<T: Serialize>(
    folder: &std::path::Path,
    step_file: &str,
    anchor: &T,
) -> Result<(), IncidentError> {
    let path = folder.join(folder::anchor_file(step_file));
    let bytes = folder::to_json(anchor)?;
    sys::durable::replace(&path, &bytes).map_err(IncidentError::storage(path))
}

fn lock(folder: &std::path::Path, id: IncidentId) -> Result<Lock, IncidentError> {
    let path = folder.join("lock");
    sys::lock::try_lock(&path).map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            IncidentError::Busy(id)
        } else {
            IncidentError::storage(path)(error)
        }
    })
}

/// Returns the ids of all incidents, oldest folder first by name.
///
/// # Errors
/// The folder of incidents cannot be read; that there is none means that there are no incidents.
pub fn list(home: &Home) -> Result<Vec<IncidentId>, IncidentError> {
    let all = home.incidents();
    let entries = match fs::read_dir(&all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IncidentError::storage(all)(error)),
    };
    let mut ids: Vec<IncidentId> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}
