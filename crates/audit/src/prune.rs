//! Gives up the oldest segments, on record, and carries over what the rest still needs of them.
//!
//! ```text
//! judge the log ──► write the certificate ──► commit the record ──► unlink, oldest first
//! ```
//! A crash before the record leaves a certificate that nothing refers to; one behind it leaves files that the next
//! start removes. Unlinked before the record, the segments would be missing like stolen ones. The log is judged first,
//! because what is carried over is believed from then on without its chain.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::ControlFlow,
    path::Path,
};

use ledger::{
    CARRIED, Calls, Certificate, Header, Place, Pruned, SEGMENT_SIZE, SegmentHeader, Sessions,
    VerifyOptions, Walked, encode_frame, key_file_of, parts, segment_file, verify, walk,
};
use model::{CallId, CallState, Kind, Receipt, Seq, SessionId, SessionState, Wall};
use sys::{
    durable::{self, Reader},
    regular,
};

use crate::{Audit, AuditError, queue::Draft, recover::refuse, writer::lock};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Records at or after this time are kept.
    pub since: Wall,
    /// Older segments are also given up if the log is longer than this.
    pub bytes: u64,
    /// Records from this one on are kept in any case: an incident refers to them.
    pub from: Option<Seq>,
}

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    /// The record that says so.
    pub receipt: Receipt,
    /// The first record that was kept.
    pub first_kept: Seq,
    /// How many segments are gone.
    pub segments: usize,
}

impl Audit {
    /// Gives up whole segments that need not be kept; none if there is none.
    ///
    /// # Errors
    /// The log is not what was written, the record could not be made durable, or the file system refused.
    pub fn prune(&self, retention: &Retention) -> Result<Option<GivenUp>, AuditError> {
        let report = verify(&self.dir, &VerifyOptions::default());
        refuse(&report)?;
        let Some(cut) = cut(&self.dir, retention).map_err(self.unreadable())? else {
            return Ok(None);
        };
        let carried = Carried::of(self, cut.index).map_err(self.unreadable())?;
        let certificate = Certificate::new(
            self.log_id(),
            (cut.index, cut.first_seq, cut.prev),
            &carried.frames,
        );
        if !certificate.is_readable() {
            return Err(AuditError::CarriesTooMuch {
                bytes: certificate.bytes().len(),
            });
        }
        let path = Certificate::path(&self.dir, cut.index);
        path.parent()
            .map_or(Ok(()), |folder| durable::folder_for(Reader::Group, folder))
            .and_then(|()| durable::replace_for(Reader::Group, &path, certificate.bytes()))
            .map_err(AuditError::io("write", &path))?;
        let draft = Draft::clear(Kind::Pruned, certificate.named().encode());
        let receipt = self.shared.push(draft, &*self.clock).wait()?;
        let segments = remove_before(&self.dir, cut.index).map_err(self.unreadable())?;
        // Who asks between these two is told that a record is gone, and right when he asks again.
        lock(&self.unsettled)
            .follow(&self.dir)
            .map_err(self.unreadable())?;
        for session in carried.forgotten {
            lock(&self.keys).forget(session);
            let key = key_file_of(&self.dir, session);
            remove(&key).map_err(AuditError::io("remove", key))?;
        }
        Ok(Some(GivenUp {
            receipt,
            first_kept: cut.first_seq,
            segments,
        }))
    }

    /// Tells whether there is anything that need not be kept; looks at no more than where segments begin.
    ///
    /// # Errors
    /// The segments cannot be read.
    pub fn could_prune(&self, retention: &Retention) -> Result<bool, AuditError> {
        let cut = cut(&self.dir, retention).map_err(self.unreadable())?;
        Ok(cut.is_some())
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> AuditError {
        AuditError::io("read or change the segments in", &self.dir)
    }
}

/// Finishes what a crash cut short: removes the segments that are given up on record.
pub(crate) fn finish(dir: &Path, pruned: Option<Pruned>) -> Result<(), AuditError> {
    let Some(pruned) = pruned else {
        return Ok(());
    };
    let certificate =
        regular::read(&Certificate::path(dir, pruned.segment), SEGMENT_SIZE).unwrap_or_default();
    if ledger::file_digest(&certificate) != pruned.certificate {
        // Without it the kept segments could not be judged any more.
        return Ok(());
    }
    remove_before(dir, pruned.segment)
        .map(drop)
        .map_err(AuditError::io("remove segments from", dir))
}

/// Returns the header of the first segment to be kept; none if that is the first there is.
fn cut(dir: &Path, retention: &Retention) -> io::Result<Option<SegmentHeader>> {
    let mut segments: Vec<u64> = parts(dir)?
        .into_iter()
        .filter(|part| *part != CARRIED)
        .collect();
    segments.reverse();
    let mut bytes = 0;
    for index in &segments {
        bytes += std::fs::metadata(segment_file(dir, *index))?.len();
    }
    let mut found = None;
    for pair in segments.windows(2) {
        let [index, next] = pair else { break };
        let Some((header, at)) = begins(dir, *next)? else {
            break;
        };
        let wanted = retention.from.is_some_and(|from| from < header.first_seq);
        if wanted || (at > retention.since && bytes <= retention.bytes) {
            break;
        }
        bytes -= std::fs::metadata(segment_file(dir, *index))?.len();
        found = Some(header);
    }
    Ok(found)
}

/// Returns a segment's header and the time of its first record.
fn begins(dir: &Path, index: u64) -> io::Result<Option<(SegmentHeader, Wall)>> {
    let mut bytes = Vec::new();
    let front = regular::open(
        &segment_file(dir, index),
        std::fs::File::options().read(true),
    )?;
    let len = u64::try_from(ledger::SEGMENT_HEADER_LEN).unwrap_or(0);
    io::Read::read_to_end(&mut io::Read::take(front, len), &mut bytes)?;
    let mut first = None;
    walk(dir, index, Seq::MAX, |record| {
        first = Some(record.header.stamp.wall);
        ControlFlow::Break(())
    })?;
    Ok(SegmentHeader::decode(&bytes).zip(first))
}

/// What is carried over from the segments before a place.
struct Carried {
    frames: Vec<u8>,
    /// Runs of which nothing is left: their keys have nothing more to open.
    forgotten: Vec<SessionId>,
}

/// The runs and calls whose records are still needed.
#[derive(Default)]
struct Needed {
    runs: BTreeSet<SessionId>,
    calls: BTreeSet<CallId>,
}

impl Carried {
    fn of(audit: &Audit, cut: u64) -> io::Result<Self> {
        let last = audit.head().map_or(0, |head| head.seq);
        let mut parts = parts(&audit.dir)?;
        parts.reverse();
        // The certificate stands for what is older than every segment.
        let carried = parts.iter().position(|part| *part == CARRIED);
        if let Some(at) = carried {
            parts.remove(at);
            parts.insert(0, CARRIED);
        }
        let (old, kept): (Vec<u64>, Vec<u64>) = parts
            .into_iter()
            .partition(|part| *part == CARRIED || *part < cut);
        let mut past = Past::default();
        for part in &old {
            each(audit, *part, last, |record| {
                past.apply(&record.header, record.place)
            })?;
        }
        let mut needed = past.open();
        for part in &kept {
            each(audit, *part, last, |record| needed.by(&record.header))?;
        }
        needed.runs.extend(past.runs_of(&needed.calls));
        let mut frames = Vec::new();
        for part in &old {
            each(audit, *part, last, |record| {
                if needed.has(&record.header) {
                    frames.extend(encode_frame(&record.header, record.body).unwrap_or_default());
                }
            })?;
        }
        let all = past.sessions.in_order();
        let forgotten = all
            .into_iter()
            .map(|(session, _)| session)
            .filter(|session| !needed.runs.contains(session))
            .collect();
        Ok(Self { frames, forgotten })
    }
}

fn each(audit: &Audit, part: u64, last: Seq, mut see: impl FnMut(&Walked<'_>)) -> io::Result<()> {
    walk(&audit.dir, part, last, |record| {
        see(record);
        ControlFlow::Continue(())
    })
}

#[derive(Default)]
struct Past {
    calls: Calls,
    sessions: Sessions,
    session_of: BTreeMap<CallId, SessionId>,
}

impl Past {
    fn apply(&mut self, header: &Header, place: Place) {
        self.calls.apply(header, place);
        self.sessions.apply(header, place);
        if let (Some(call), Some(session)) = (header.call, header.session) {
            self.session_of.insert(call, session);
        }
    }

    /// What had not come to its end.
    fn open(&self) -> Needed {
        let runs = self.sessions.in_order();
        let calls = self.calls.in_order();
        Needed {
            runs: runs
                .into_iter()
                // A revocation is kept for ever, and with it the key that opens its reason.
                .filter(|(_, run)| run.state() != SessionState::Ended)
                .map(|(session, _)| session)
                .collect(),
            calls: calls
                .into_iter()
                .filter(|(_, call)| call.state.is_open() || call.state == CallState::Attempted)
                .map(|(call, _)| call)
                .collect(),
        }
    }

    fn runs_of(&self, calls: &BTreeSet<CallId>) -> BTreeSet<SessionId> {
        calls
            .iter()
            .filter_map(|call| self.session_of.get(call).copied())
            .collect()
    }
}

impl Needed {
    /// A record that is kept needs what stands before it of its run and call.
    fn by(&mut self, header: &Header) {
        self.runs.extend(header.session);
        self.calls.extend(header.call);
    }

    fn has(&self, header: &Header) -> bool {
        let always = matches!(
            header.kind,
            Kind::EpochOpened
                | Kind::EpochEndorsed
                | Kind::RootEndorsed
                | Kind::TailRepaired
                | Kind::Revoked
                | Kind::Acted
                | Kind::IncidentStep
        );
        match (header.call, header.session) {
            _ if always => true,
            (Some(call), _) => self.calls.contains(&call),
            (None, Some(session)) => self.runs.contains(&session),
            (None, None) => false,
        }
    }
}

/// Unlinks the segments below `index`, the oldest first, then the certificates that stood for less.
fn remove_before(dir: &Path, index: u64) -> io::Result<usize> {
    let mut old: Vec<u64> = parts(dir)?
        .into_iter()
        .filter(|part| *part < index)
        .collect();
    old.reverse();
    for part in &old {
        remove(&segment_file(dir, *part))?;
    }
    durable::sync_folder_of(&segment_file(dir, index))?;
    let folder = dir.join("pruned");
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if number.is_some_and(|number| number < index) {
            remove(&path)?;
        }
    }
    durable::sync_folder_of(&folder.join("x"))?;
    Ok(old.len())
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
