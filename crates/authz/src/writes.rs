//! Writes whose outcome is not known or not final: their twins are refused, unless a person lets one through.
//!
//! They outlive their call and their run. A repetition that was let through leaves the first write open:
//! what became of that one is still not known.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::{CallId, ChannelName, Digest, OperationName, SessionId};

use crate::ask::Ask;

/// What two equal writes have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Twin {
    pub(crate) channel: ChannelName,
    pub(crate) operation: Option<OperationName>,
    pub(crate) arguments: Digest,
}

impl Twin {
    fn of(ask: &Ask) -> Option<Self> {
        ask.is_write.then(|| Self {
            channel: ask.target.channel.clone(),
            operation: ask.target.operation.clone(),
            arguments: ask.arguments,
        })
    }
}

/// The open writes, and what a person said about repeating them.
#[derive(Debug, Default)]
pub(crate) struct OpenWrites {
    by_twin: HashMap<Twin, BTreeSet<CallId>>,
    /// Open writes of which one repetition may pass.
    passes: HashSet<CallId>,
    /// Open writes of which a repetition was refused, and by which run it was asked for last.
    asked: HashMap<CallId, SessionId>,
}

impl OpenWrites {
    /// Names the open write that this call would repeat, if no pass covers it.
    pub(crate) fn repeated_by(&self, ask: &Ask) -> Option<CallId> {
        let open = self.by_twin.get(&Twin::of(ask)?)?;
        open.iter()
            .find(|of| **of != ask.call && !self.passes.contains(*of))
            .copied()
    }

    /// Takes up a write that may have left; it uses up the passes that it went through on.
    pub(crate) fn add(&mut self, ask: &Ask) {
        let Some(twin) = Twin::of(ask) else { return };
        let open = self.by_twin.entry(twin).or_default();
        for of in open.iter() {
            self.passes.remove(of);
        }
        open.insert(ask.call);
    }

    /// Takes up a write that an earlier daemon left open.
    pub(crate) fn left_open(&mut self, twin: Twin, call: CallId) {
        self.by_twin.entry(twin).or_default().insert(call);
    }

    /// Closes a write: how it ended is known.
    pub(crate) fn close(&mut self, call: CallId) {
        self.by_twin.retain(|_, open| {
            open.remove(&call);
            !open.is_empty()
        });
        self.passes.remove(&call);
        self.asked.remove(&call);
    }

    /// Remembers who asked for a repetition.
    pub(crate) fn was_asked(&mut self, of: CallId, by: SessionId) {
        self.asked.insert(of, by);
    }

    /// Lets one repetition pass; false if no such write is open.
    pub(crate) fn pass_once(&mut self, of: CallId) -> bool {
        let known = self.by_twin.values().any(|open| open.contains(&of));
        if known {
            self.passes.insert(of);
            self.asked.remove(&of);
        }
        known
    }

    /// Lists the open writes of which a repetition was refused.
    pub(crate) fn asked(&self) -> Vec<(CallId, SessionId)> {
        let mut all: Vec<_> = self.asked.iter().map(|(of, by)| (*of, *by)).collect();
        all.sort_unstable();
        all
    }
}
