//! Judges a log without a key: every stored byte is hashed again, and what could not be checked is named.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::{Digest, Known, LogId, Seq};

use crate::{
    head::{Head, HeadError},
    origin::{Origin, OriginError},
    pins::Pins,
    regular,
    report::{FirstBad, PinResult, Report, TornTail, Verdict},
    scan::{Batch, End, Scan, Signatures, Step, Stop},
    segment::{SEGMENT_HEADER_LEN, SEGMENT_SIZE, segment_file},
    tail::Tail,
    walk::parts,
};

mod inspect;
mod limits;

use inspect::{Facts, Inspection};

/// What the verifier is told besides the log.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The log id that is expected: another log is a replaced one.
    pub log_id: Option<LogId>,
    /// Files that pin the log from outside.
    pub pins: Vec<PathBuf>,
    /// Without a confirming pin from outside there is no judgement.
    pub require_pin: bool,
}

/// Judges the log in `dir`. Writes nothing, takes no lock, may run while the writer does.
#[must_use]
pub fn verify(dir: &Path, options: &VerifyOptions) -> Report {
    verify_with::<()>(dir, options).report
}

/// Whoever wants to see what a verification believes, so that a log need not be read a second time.
pub trait Witness: Default {
    /// Sees the next batch; those carried over by a certificate come first.
    fn batch(&mut self, batch: &Batch<'_>);
}

impl Witness for () {
    fn batch(&mut self, _: &Batch<'_>) {}
}

/// A judgement, and what was seen on the way.
#[derive(Debug)]
pub struct Judged<W> {
    /// The judgement.
    pub report: Report,
    /// Where the log goes on; none if the reader did not get to its end.
    pub reached: Option<Reached>,
    /// Has seen every batch that was believed.
    pub witness: W,
}

/// The end of a log that was read to its end.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Where it is, and what stands behind it.
    pub end: End,
    /// The number that the next record will have.
    pub next_seq: Seq,
    /// The id that the next record will name as its `prev`.
    pub head: Digest,
}

/// Judges the log in `dir` while a witness looks on.
#[must_use]
pub fn verify_with<W: Witness>(dir: &Path, options: &VerifyOptions) -> Judged<W> {
    let first = look(dir, options, Signatures::LastOfEpoch);
    // Only the last signature of each epoch is checked, because it covers all before it. If one is wrong, a second
    // look at all of them finds the first.
    first
        .or_else(|Unsigned| look(dir, options, Signatures::All))
        .unwrap_or_else(|unsigned| Judged::without(blank(Err(unsigned.to_string()))))
}

impl<W: Witness> Judged<W> {
    fn without(report: Report) -> Self {
        Self {
            report,
            reached: None,
            witness: W::default(),
        }
    }
}

/// Asks for a look at every signature.
#[derive(Debug, thiserror::Error)]
#[error("a commit is not signed by its daemon run")]
struct Unsigned;

/// Judges once.
fn look<W: Witness>(
    dir: &Path,
    options: &VerifyOptions,
    signatures: Signatures,
) -> Result<Judged<W>, Unsigned> {
    // Before the segments: a head is written behind its commit, so one read first never runs ahead of them.
    let head = StoredHead::read(dir);
    let mut pins = Pins::default();
    for file in &options.pins {
        pins.add_file(file);
    }
    let bytes = match regular::read(&dir.join("LOG"), regular::LONGEST_SMALL) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Judged::without(without_log(dir, &error))),
    };
    let log_id = Origin::id(&bytes);
    let origin = Origin::decode(&bytes);
    let root = origin.as_ref().map(|origin| origin.root).unwrap_or([0; 32]);
    if let StoredHead::Read(head) = &head {
        pins.add("HEAD".to_owned(), true, head.log_id, head.seq, head.head);
    }
    let mut scan = Scan::new(dir, log_id, signatures);
    let mut seen = Inspection::new(dir, log_id, root, pins);
    let mut witness = W::default();
    let end = loop {
        match scan.step() {
            Ok(Step::Batch(batch)) => {
                if batch.is_carried() {
                    seen.begins_at(batch.next_seq);
                }
                seen.batch(&batch);
                witness.batch(&batch);
            }
            Ok(Step::End(end)) => break Ok(end),
            Err(Stop::Unsigned) if signatures == Signatures::LastOfEpoch => return Err(Unsigned),
            Err(stop) => break Err(stop),
        }
    };
    if let (Some(certificate), Ok(_)) = (scan.certificate(), &end) {
        seen.begins_with(certificate);
    }
    let reached = end.as_ref().ok().map(|end| Reached {
        end: end.clone(),
        next_seq: scan.next_seq(),
        head: scan.head(),
    });
    let judge = Judge {
        options,
        origin,
        log_id,
        head,
    };
    Ok(Judged {
        report: judge.report(seen, end),
        reached,
        witness,
    })
}

/// What there is of `HEAD`.
enum StoredHead {
    Absent,
    Read(Head),
    /// It is not what version 1 writes.
    Malformed(HeadError),
    /// It may be all right: nobody can tell.
    Unreadable(io::Error),
}

impl StoredHead {
    fn read(dir: &Path) -> Self {
        match regular::read(&dir.join("HEAD"), regular::LONGEST_SMALL) {
            Ok(bytes) => Head::decode(&bytes).map_or_else(Self::Malformed, Self::Read),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Err(error) => Self::Unreadable(error),
        }
    }

    fn unreadable(&self) -> Option<String> {
        match self {
            Self::Unreadable(error) => Some(format!("cannot read HEAD: {error}")),
            Self::Absent | Self::Read(_) | Self::Malformed(_) => None,
        }
    }
}

fn without_log(dir: &Path, error: &io::Error) -> Report {
    let seg = dir.join("seg");
    let why = match (error.kind(), seg.try_exists()) {
        (io::ErrorKind::NotFound, Ok(true)) if !is_unborn(dir) => {
            let mut report = blank(Err("LOG is missing".to_owned()));
            report.verdict = Verdict::Tampered;
            report.first_bad = Some(FirstBad::in_file("LOG", "LOG is missing"));
            report.why = None;
            return report;
        }
        (io::ErrorKind::NotFound, Ok(_)) => format!(
            "there is no log in {}, or its making was cut short",
            model::Foreign::new(dir.display().to_string())
        ),
        (io::ErrorKind::NotFound, Err(error)) => format!(
            "cannot read {}: {error}",
            model::Foreign::new(seg.display().to_string())
        ),
        (_, _) => format!("cannot read LOG: {error}"),
    };
    blank(Err(why))
}

/// Tells whether this is what the making of a log leaves if a crash comes before `LOG`, which is made last: no data
/// key, and at most a first segment without a record.
fn is_unborn(dir: &Path) -> bool {
    // What cannot be looked for may be there.
    let later = ["HEAD", "pruned"]
        .iter()
        .any(|name| dir.join(name).try_exists().unwrap_or(true));
    let no_keys = match std::fs::read_dir(dir.join("keys")) {
        Ok(mut keys) => keys.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if later || !no_keys {
        return false;
    }
    match parts(dir).as_deref() {
        Ok([]) => true,
        Ok([0]) => regular::read(&segment_file(dir, 0), 2 * SEGMENT_SIZE).is_ok_and(|bytes| {
            let mut records = bytes.iter().skip(SEGMENT_HEADER_LEN);
            records.all(|byte| *byte == 0)
        }),
        Ok(_) | Err(_) => false,
    }
}

fn blank(log_id: Result<LogId, String>) -> Report {
    let (log_id, why) = match log_id {
        Ok(id) => (Known::Yes(id), None),
        Err(why) => (Known::unknown(why.clone()), Some(why)),
    };
    Report {
        schema: Report::SCHEMA,
        verdict: Verdict::CannotJudge,
        root: Known::unknown("LOG was not read"),
        root_is_bootstrap: false,
        bootstrap_to: None,
        why,
        log_id,
        first_seq: None,
        last_seq: None,
        head: None,
        head_at: None,
        first_bad: None,
        tail: None,
        repairs: Vec::new(),
        prunes: Vec::new(),
        open_attempts: Vec::new(),
        unendorsed: Vec::new(),
        structure: Vec::new(),
        pins_used: Vec::new(),
        checked: Default::default(),
        does_not_prove: limits::always(),
    }
}

/// What a scan came to: a tail, a fault, or why it could not go on.
fn reached(end: Result<End, Stop>) -> (Option<Tail>, Option<FirstBad>, Option<String>) {
    match end {
        Ok(end) => (end.tail, None, None),
        Err(Stop::Bad(bad)) => (None, Some(bad), None),
        Err(stop @ (Stop::Unknown(_) | Stop::Unsigned)) => (None, None, Some(stop.to_string())),
        Err(Stop::Io { path, source }) => {
            let why = format!("cannot read {}: {source}", path.display());
            (None, None, Some(why))
        }
    }
}

struct Judge<'a> {
    options: &'a VerifyOptions,
    origin: Result<Origin, OriginError>,
    log_id: LogId,
    head: StoredHead,
}

impl Judge<'_> {
    fn report(self, seen: Inspection, end: Result<End, Stop>) -> Report {
        let mut report = blank(Ok(self.log_id));
        let head_bad = self.head_fault(&seen);
        let facts = seen.finish(end.is_ok());
        self.identity(&mut report, &facts);
        report.pins_used = facts.pins;
        let (tail, stopped, why) = reached(end);
        let further = report
            .pins_used
            .iter()
            .any(|pin| pin.result == PinResult::ReachesFurther);
        // What a pin or a later commit shows to have been acknowledged cannot be a torn write.
        let cut = tail
            .as_ref()
            .filter(|tail| further || tail.acknowledged.is_some())
            .map(|tail| tail.bad.clone());
        // Key files last: whoever only wants to go on writing can do without them.
        report.first_bad = stopped.or(cut).or(head_bad).or(facts.bad).or(facts.bad_key);
        report.why = why
            .or(facts.unreadable)
            .or_else(|| self.head.unreadable())
            .or_else(|| self.cannot(&report));
        report.tail = tail
            .filter(|_| report.first_bad.is_none())
            .map(|tail| TornTail::from(&tail));
        report.verdict = self.verdict(&report);
        if report.verdict != Verdict::CannotJudge {
            report.why = None;
        }
        self.place(&mut report);
        limits::of(&mut report, self.options.log_id.is_some());
        report
    }

    fn identity(&self, report: &mut Report, facts: &Facts) {
        report.root = match &self.origin {
            Ok(_) => Known::Yes(Digest::from_bytes(facts.root)),
            Err(why) => Known::unknown(why.to_string()),
        };
        report.root_is_bootstrap = self
            .origin
            .as_ref()
            .is_ok_and(|origin| origin.root == facts.root);
        report.bootstrap_to = facts.bootstrap_to;
        report.first_seq = facts.first;
        report.last_seq = facts.last.map(|last| last.0);
        report.head = facts.last.map(|last| last.1);
        report.head_at = facts.last.map(|last| last.2);
        report.repairs.clone_from(&facts.repairs);
        report.prunes.clone_from(&facts.prunes);
        report.open_attempts.clone_from(&facts.open_attempts);
        report.unendorsed.clone_from(&facts.unendorsed);
        report.structure.clone_from(&facts.structure);
        report.checked = facts.checked;
    }

    fn head_fault(&self, seen: &Inspection) -> Option<FirstBad> {
        let bad = |what: String| Some(FirstBad::in_file("HEAD", what));
        match &self.head {
            StoredHead::Absent | StoredHead::Unreadable(_) => None,
            StoredHead::Malformed(why) => bad(why.to_string()),
            StoredHead::Read(head) => match seen.public_of(head.epoch) {
                Some(public) => head
                    .check(&public)
                    .err()
                    .and_then(|why| bad(why.to_string())),
                // Of a daemon run behind the log's end nothing can be said but that the log does not reach there.
                None if head.seq > seen.last_seq() => None,
                None => bad("HEAD names a daemon run that the log does not hold".to_owned()),
            },
        }
    }

    /// Says why there can be no judgement, if nothing negative turns up.
    fn cannot(&self, report: &Report) -> Option<String> {
        let unusable = report.pins_used.iter().find_map(|pin| match &pin.result {
            PinResult::Unusable(why) => Some(format!("pin {}: {why}", pin.source)),
            PinResult::Confirms
            | PinResult::Pruned
            | PinResult::ReachesFurther
            | PinResult::Differs
            | PinResult::OtherLog => None,
        });
        let origin = self.origin.as_ref().err().map(ToString::to_string);
        let empty = report
            .last_seq
            .is_none()
            .then(|| "the log holds no commit".to_owned());
        let unpinned = (self.options.require_pin && report.confirmed_from_outside().is_none())
            .then(|| "no pin from outside confirms it, and one is required".to_owned());
        origin.or(empty).or(unusable).or(unpinned)
    }

    fn verdict(&self, report: &Report) -> Verdict {
        let any = |wanted: &PinResult| report.pins_used.iter().any(|pin| pin.result == *wanted);
        let other = self
            .options
            .log_id
            .is_some_and(|expected| expected != self.log_id);
        if report.first_bad.is_some() {
            Verdict::Tampered
        } else if other || any(&PinResult::Differs) || any(&PinResult::OtherLog) {
            Verdict::Forked
        } else if any(&PinResult::ReachesFurther) {
            Verdict::Truncated
        } else if report.why.is_some() {
            Verdict::CannotJudge
        } else if report.tail.is_some() {
            Verdict::TornTail
        } else if report.confirmed_from_outside().is_some() {
            Verdict::IntactPinned
        } else if any(&PinResult::Confirms) {
            Verdict::IntactLocalPin
        } else {
            Verdict::IntactUnpinned
        }
    }

    /// Names the place for the verdicts that a pin or the expected id brought about.
    fn place(&self, report: &mut Report) {
        let named = |wanted: &[PinResult]| {
            let pin = report
                .pins_used
                .iter()
                .find(|pin| wanted.contains(&pin.result))?;
            Some(FirstBad {
                seq: pin.seq,
                ..FirstBad::in_file(pin.source.clone(), pin.to_string())
            })
        };
        let place = match report.verdict {
            Verdict::Forked => named(&[PinResult::Differs, PinResult::OtherLog]).or_else(|| {
                Some(FirstBad::in_file(
                    "LOG",
                    "the log has another id than the expected one",
                ))
            }),
            Verdict::Truncated => named(&[PinResult::ReachesFurther]),
            Verdict::Tampered
            | Verdict::TornTail
            | Verdict::IntactPinned
            | Verdict::IntactLocalPin
            | Verdict::IntactUnpinned
            | Verdict::CannotJudge => return,
        };
        report.first_bad = place;
    }
}
