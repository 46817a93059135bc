//! What a judgement is made from: values only, nothing is read here.

use std::collections::BTreeMap;

use clients::{Expected, Launched, Note};
use inventory::Snapshot;
use model::{LaunchRecord, SessionId, SessionState, Wall};

/// What a judgement is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The look.
    pub snapshot: &'a Snapshot,
    /// The servers that clients are configured to start.
    pub expected: &'a [Expected],
    /// What clients wrote into their own logs about the servers they started.
    pub launched: &'a [Launched],
    /// The configurations that could not be used.
    pub notes: &'a [Note],
    /// Who held which wire, as the daemon wrote it down.
    pub launches: &'a [LaunchRecord],
    /// What the log's clear headers say about runs.
    pub log: &'a LogFacts,
}

/// What the log's clear headers say about runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// Whether the log was read at all; if not, nothing follows from a run's absence.
    pub read: bool,
    /// The runs in it.
    pub sessions: BTreeMap<SessionId, SessionFact>,
}

/// What the log says about one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFact {
    /// The state that its records lead to.
    pub state: SessionState,
    /// When it came into that state.
    pub since: Option<Wall>,
}
