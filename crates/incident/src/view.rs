//! The JSON that others build on: `incident show --json` and `contain --json`.

use model::{Foreign, Known, Operator, Seq, Wall};
use serde::Serialize;
use serde_json::Value;

use crate::{
    authority::RefusedBy,
    case::Case,
    confirm::Confirmation,
    folder::{EvidenceFile, Stored},
    follow_up::FollowUp,
    preserve::Opening,
    record::State,
    row::{Row, preserved, rows},
    step::Body,
};

/// An incident as its steps tell it now.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// Version of this form.
    pub schema: &'static str,
    /// Which incident.
    pub id: model::IncidentId,
    /// Its state.
    pub state: State,
    /// When it was opened.
    pub opened_at: Known<Wall>,
    /// Why it was opened.
    pub reason: Option<Foreign>,
    /// What is known of the revocation's effect; none before that was looked for.
    pub confirmation: Option<ConfirmationView>,
    /// What is missing for `contained`.
    pub missing: Vec<String>,
    /// The steps in order.
    pub steps: Vec<StepView>,
    /// Numbers of steps that a crash cut off.
    pub cut_off: Vec<u16>,
    /// What `audit verify` said.
    pub verify: Known<Value>,
    /// What is to be done.
    pub follow_up: Vec<FollowUp>,
    /// One row per process.
    pub rows: Vec<Row>,
}

/// What is known of the revocation's effect.
#[derive(Debug, Clone, Serialize)]
pub struct ConfirmationView {
    /// `refused`, `no_path_of_ours` or `not_observed`.
    pub kind: &'static str,
    /// Whose call was refused.
    pub by: Option<RefusedBy>,
    /// The record of the refusal.
    pub seq: Option<Seq>,
    /// Why none was seen.
    pub why: Option<String>,
}

/// One step.
#[derive(Debug, Clone, Serialize)]
pub struct StepView {
    /// Its number.
    pub number: u16,
    /// Its word.
    pub step: &'static str,
    /// When it was complete.
    pub at: Wall,
    /// Who took it.
    pub by: Operator,
    /// Its file.
    pub file: String,
    /// The file's digest.
    pub sha256: model::Digest,
    /// Where the log has that digest; none if it has not.
    pub anchored: Option<Anchored>,
    /// Files that belong to it.
    pub evidence: Vec<EvidenceFile>,
    /// What was noted.
    pub note: Option<Foreign>,
}

/// Where the log has a step's digest.
#[derive(Debug, Clone, Serialize)]
pub struct Anchored {
    /// Which record.
    pub seq: Seq,
    /// Whether it was recorded after the fact.
    pub late: bool,
}

impl View {
    /// The version of the form.
    pub const SCHEMA: &'static str = "lych.incident/v1";

    /// Returns the incident as its steps tell it now.
    #[must_use]
    pub fn of(case: &Case) -> Self {
        let follow_up = case.follow_up();
        let record = case.latest_record();
        let verify = record.map(|record| record.verify.clone());
        let opened = case.opened_at();
        Self {
            schema: Self::SCHEMA,
            id: case.id(),
            state: state(case),
            opened_at: opened.map_or_else(|| Known::unknown("no step is complete"), Known::Yes),
            reason: preserved(case).and_then(|body| body.reason.clone()),
            confirmation: confirmation(case),
            missing: record
                .map(|record| record.missing.clone())
                .unwrap_or_default(),
            steps: case.stored().iter().map(StepView::from).collect(),
            cut_off: case.cut_off().to_vec(),
            verify: verify.unwrap_or_else(|| Known::unknown("there is no record yet")),
            rows: rows(case, &follow_up),
            follow_up,
        }
    }
}

fn state(case: &Case) -> State {
    if case.is_closed() {
        return State::Closed;
    }
    // Work that was taken up again is open until it has a record of its own.
    let newest = case
        .steps()
        .rev()
        .find(|step| !matches!(step.body, Body::Note { .. } | Body::Attach { .. }));
    match newest.map(|step| &step.body) {
        Some(Body::Record(record)) => record.state,
        Some(Body::Preserve(_) | Body::Attribute(_)) if is_draft(case) => State::Draft,
        Some(_) | None => State::Open,
    }
}

fn is_draft(case: &Case) -> bool {
    preserved(case).is_some_and(|body| body.opening == Opening::Draft)
}

fn confirmation(case: &Case) -> Option<ConfirmationView> {
    let newest = case.newest(Body::confirm)?;
    Some(match newest {
        Confirmation::Refused { seq, by } => ConfirmationView {
            kind: "refused",
            by: Some(*by),
            seq: Some(*seq),
            why: None,
        },
        Confirmation::NoPathOfOurs { authority_left, .. } => ConfirmationView {
            kind: "no_path_of_ours",
            by: None,
            seq: None,
            why: Some(format!(
                "no run of ours is known to own it; authority left: {}",
                authority_left.word()
            )),
        },
        Confirmation::NotObserved { why } => ConfirmationView {
            kind: "not_observed",
            by: None,
            seq: None,
            why: Some(why.clone()),
        },
    })
}

impl From<&Stored> for StepView {
    fn from(stored: &Stored) -> Self {
        let step = &stored.step;
        Self {
            number: step.number,
            step: step.body.word(),
            at: step.at.wall,
            by: step.by.clone(),
            file: stored.file.clone(),
            sha256: stored.sha256,
            anchored: stored.anchor.as_ref().map(|anchor| Anchored {
                seq: anchor.seq,
                late: anchor.late,
            }),
            evidence: step.evidence.clone(),
            note: step.body.words().cloned(),
        }
    }
}
