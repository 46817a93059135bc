//! What `verify` found, as JSON (`lych.verify/v1`) and for people.

use std::fmt;

use model::{CallId, CallState, Digest, EpochId, Exit, Known, LogId, Seq, SessionId, Wall};
use serde::Serialize;

use crate::segment::Place;

mod show;

/// The one word about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every byte fits, and a pin from outside confirms it.
    IntactPinned,
    /// Every byte fits, and `HEAD` beside the log confirms its end.
    IntactLocalPin,
    /// Every byte fits; nothing confirms where the log ends.
    IntactUnpinned,
    /// Every acknowledged byte fits; remains of one unacknowledged write follow.
    TornTail,
    /// Something was edited or is missing.
    Tampered,
    /// A pin reaches further than the log.
    Truncated,
    /// A pin names another history.
    Forked,
    /// No judgement was possible.
    CannotJudge,
}

/// The first place where something is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstBad {
    /// Which file, below the log's folder.
    pub file: String,
    /// Which segment, if it is one.
    pub segment: Option<u64>,
    /// Which byte of it, if that can be said.
    pub offset: Option<u64>,
    /// Which record, if that can be said.
    pub seq: Option<Seq>,
    /// What is wrong.
    pub what: String,
}

impl FirstBad {
    pub(crate) fn in_segment(place: Place, seq: Option<Seq>, what: impl Into<String>) -> Self {
        Self {
            file: format!("seg/{:010}.seg", place.segment),
            segment: Some(place.segment),
            offset: Some(place.offset),
            seq,
            what: what.into(),
        }
    }

    pub(crate) fn in_file(file: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            segment: None,
            offset: None,
            seq: None,
            what: what.into(),
        }
    }
}

impl fmt::Display for FirstBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Bytes behind a commit that the writer moved to quarantine when it started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The record that tells of it.
    pub seq: Seq,
    /// When.
    pub at: Wall,
    /// The segment they stood in.
    pub segment: u64,
    /// Where they began.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Their digest; the file in `quarantine/` has it.
    pub sha256: Digest,
}

/// Segments that were given up, on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Prune {
    /// The record that tells of it.
    pub seq: Seq,
    /// When.
    pub at: Wall,
    /// The first record that was kept.
    pub first_kept: Seq,
}

/// Bytes behind the last commit: a torn write, or one that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TornTail {
    /// The segment they stand in.
    pub segment: u64,
    /// Where they begin.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// An attempt whose effect is not known, or that may still have one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenAttempt {
    /// The call.
    pub call: Option<CallId>,
    /// Its run.
    #[serde(rename = "session_id")]
    pub session: Option<SessionId>,
    /// The attempt's number.
    pub seq: Seq,
    /// When it was made.
    pub attempted_at: Wall,
    /// What it has come to.
    pub state: CallState,
}

/// A daemon run that no root vouches for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unendorsed {
    /// Which.
    pub epoch: EpochId,
    /// Its first record.
    pub first_seq: Seq,
    /// Its last record.
    pub last_seq: Seq,
    /// When it began.
    pub opened_at: Wall,
}

/// A rule of order that the records break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StructureFinding {
    /// The record that breaks it.
    pub seq: Seq,
    /// Whose it is.
    #[serde(rename = "session_id")]
    pub session: Option<SessionId>,
    /// Which call it belongs to.
    pub call: Option<CallId>,
    /// The rule.
    pub what: &'static str,
}

/// What became of one pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinUse {
    /// Where it came from.
    pub source: String,
    /// Whether it lay beside the log, where whoever edits the log can edit it too.
    pub local: bool,
    /// The record it names.
    pub seq: Option<Seq>,
    /// What it says.
    pub result: PinResult,
}

/// What a pin says about the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PinResult {
    /// The record it names is there.
    Confirms,
    /// It names a record behind the log's end.
    ReachesFurther,
    /// It names a record that was given up with its segment, on record: it says nothing about the rest.
    Pruned,
    /// It names another record at that place.
    Differs,
    /// It names another log.
    OtherLog,
    /// It could not be used.
    Unusable(String),
}

/// How much was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Checked {
    /// Records, commits included.
    pub records: u64,
    /// Commits.
    pub commits: u64,
    /// Daemon runs.
    pub epochs: u64,
    /// Key files that were compared with their digests.
    pub key_files: u64,
    /// Key files that were erased on record.
    pub erased_keys: u64,
}

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema: &'static str,
    /// The one word.
    pub verdict: Verdict,
    /// Why no judgement was possible; none if one was.
    pub why: Option<String>,
    /// Which log.
    pub log_id: Known<LogId>,
    /// The root's Ed25519 public key, which is its fingerprint.
    pub root: Known<Digest>,
    /// Whether that is still the bootstrap root, whose private key lies on the disk.
    pub root_is_bootstrap: bool,
    /// The last record before a vault took over: up to there only the bootstrap root vouched. None while none did.
    pub bootstrap_to: Option<Seq>,
    /// The first record that was believed.
    pub first_seq: Option<Seq>,
    /// The last record that was believed.
    pub last_seq: Option<Seq>,
    /// Its id.
    pub head: Option<Digest>,
    /// Its time.
    pub head_at: Option<Wall>,
    /// The first place where something is wrong.
    pub first_bad: Option<FirstBad>,
    /// Bytes behind the last commit that nobody was promised.
    pub tail: Option<TornTail>,
    /// Torn tails that were moved to quarantine.
    pub repairs: Vec<Repair>,
    /// Segments that were given up.
    pub prunes: Vec<Prune>,
    /// Attempts without a known end.
    pub open_attempts: Vec<OpenAttempt>,
    /// Daemon runs that no root vouches for.
    pub unendorsed: Vec<Unendorsed>,
    /// Broken rules of order.
    pub structure: Vec<StructureFinding>,
    /// What the pins say.
    pub pins_used: Vec<PinUse>,
    /// What was checked.
    pub checked: Checked,
    /// What nothing here shows.
    pub does_not_prove: Vec<String>,
}

impl Report {
    /// The version of the form.
    pub const SCHEMA: &'static str = "lych.verify/v1";

    /// Returns the exit code: 0 intact, 3 a negative finding, 1 no judgement.
    ///
    /// An intact log whose records break a rule of order, or with a daemon run that no root vouches for, is negative.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self.verdict {
            Verdict::Tampered | Verdict::Truncated | Verdict::Forked => Exit::Negative,
            Verdict::CannotJudge => Exit::Failed,
            Verdict::IntactPinned
            | Verdict::IntactLocalPin
            | Verdict::IntactUnpinned
            | Verdict::TornTail => {
                if self.unendorsed.is_empty() && self.structure.is_empty() {
                    Exit::Done
                } else {
                    Exit::Negative
                }
            }
        }
    }

    /// Returns the last record that a pin from outside confirms.
    #[must_use]
    pub fn confirmed_from_outside(&self) -> Option<Seq> {
        self.pins_used
            .iter()
            .filter(|pin| !pin.local && pin.result == PinResult::Confirms)
            .filter_map(|pin| pin.seq)
            .max()
    }
}
