//! What became of one process, over all attempts to end it.

use model::{Known, ProcessId, ProcessRef, Wall};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supervise::{End, EndRecord, HowEnded, Remains};

use crate::{
    case::Case,
    terminate::{NotSignalled, Terminate},
};

/// What became of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// The last signal it got; none if it got none.
    pub signal: Option<String>,
    /// What came of it, in one word.
    pub result: String,
    /// The same in words, where one word is not enough.
    pub why: Option<String>,
    /// How it ended: `{"code"}` or `{"signal"}`; none while it has not.
    pub exit: Option<Known<Value>>,
    /// What it means that it was killed.
    pub forced: Option<String>,
    /// When that was seen.
    pub at: Option<Wall>,
}

/// Returns all processes that were to be ended, the children found on the way included.
pub(crate) fn processes(case: &Case) -> Vec<ProcessRef> {
    let mut found: Vec<ProcessRef> = Vec::new();
    for step in case.steps() {
        let preserved = step
            .body
            .preserve()
            .into_iter()
            .flat_map(|body| &body.subjects);
        let ended = step
            .body
            .terminate()
            .into_iter()
            .flat_map(|body| &body.ended);
        let preserved = preserved.map(|subject| &subject.process);
        let more = preserved.chain(ended.map(|record| &record.process));
        for process in more {
            if !found.iter().any(|known| known.id.same(&process.id)) {
                found.push(process.clone());
            }
        }
    }
    found
}

impl Fate {
    /// Returns what became of a process; none if nothing was done to it yet.
    #[must_use]
    pub fn of(case: &Case, process: &ProcessId) -> Option<Self> {
        let mut fate: Option<Self> = None;
        for step in case.steps() {
            if let Some(next) = step
                .body
                .terminate()
                .and_then(|body| Self::in_step(body, process))
            {
                fate = Some(next.after(fate));
            }
            // What remained may have ended by itself since.
            let later = step.body.reconcile().filter(|body| body.says_gone(process));
            if let Some(fate) = fate
                .as_mut()
                .filter(|fate| fate.result != GONE && later.is_some())
            {
                fate.result = GONE.to_owned();
                fate.why = Some("it ended later".to_owned());
                fate.exit = Some(Known::unknown("it ended when nobody looked"));
                fate.at = Some(step.at.wall);
            }
        }
        fate
    }

    fn in_step(body: &Terminate, process: &ProcessId) -> Option<Self> {
        let ended = body.ended.iter().find(|one| one.process.id.same(process));
        let other = || {
            let mut all = body.not_signalled.iter();
            all.find(|one| one.process.id.same(process))
        };
        ended
            .map(Self::of_record)
            .or_else(|| other().map(Self::of_other))
    }

    /// A signal that an earlier attempt sent is still the last one if this attempt sent none.
    fn after(mut self, before: Option<Self>) -> Self {
        if let Some(before) = before {
            self.signal = self.signal.or(before.signal);
            self.forced = self.forced.or(before.forced);
            if before.result == GONE {
                self.exit = before.exit;
                self.at = before.at;
                self.why = before.why;
            }
        }
        self
    }

    fn of_record(record: &EndRecord) -> Self {
        let (result, why, exit, at) = match &record.end {
            End::Gone { at, how } => (GONE, None, Some(how.clone().map(exit)), Some(*at)),
            End::Remains { at, why, .. } => {
                let (word, text) = words(why);
                let refused = record.signals.iter().find_map(|sent| match &sent.delivery {
                    supervise::Delivery::Refused { why, .. } => Some(why.clone()),
                    supervise::Delivery::Taken | supervise::Delivery::AlreadyGone => None,
                });
                (word, refused.or(Some(text)), None, Some(*at))
            }
            End::Unclear { why } => ("unclear", Some(why.clone()), None, None),
        };
        Self {
            signal: record
                .signals
                .last()
                .map(|sent| sent.signal.name().to_owned()),
            result: result.to_owned(),
            why,
            exit,
            forced: record.forced.as_ref().map(|forced| forced.note.clone()),
            at,
        }
    }

    fn of_other(other: &NotSignalled) -> Self {
        let exit = other
            .gone
            .then(|| Known::unknown("it had ended before a signal was sent"));
        Self {
            signal: None,
            result: if other.gone { GONE } else { "not_signalled" }.to_owned(),
            why: (!other.gone).then(|| other.why.clone()),
            exit,
            forced: None,
            at: Some(other.at),
        }
    }
}

const GONE: &str = "gone";

fn exit(how: HowEnded) -> Value {
    match how {
        HowEnded::Exit { code } => json!({ "code": code }),
        HowEnded::Signal { signal, .. } => json!({ "signal": signal }),
    }
}

/// Returns the word for scripts and the sentence for people.
fn words(remains: &Remains) -> (&'static str, String) {
    let pids = |children: &[ProcessId]| {
        let pids: Vec<String> = children.iter().map(|id| id.pid.to_string()).collect();
        pids.join(", ")
    };
    match remains {
        Remains::NotSignalled => ("not_signalled", "no signal reached it".to_owned()),
        Remains::Stopped => (
            "stopped",
            "it is stopped; the signal waits until it goes on".to_owned(),
        ),
        Remains::Uninterruptible => (
            "uninterruptible",
            "it waits in the kernel (state D) and cannot be interrupted".to_owned(),
        ),
        Remains::IgnoresTerm => ("ignores_term", "it ignores SIGTERM".to_owned()),
        Remains::BlocksTerm => ("blocks_term", "it blocks SIGTERM".to_owned()),
        Remains::HeldByChild { children } => (
            "held_by_child",
            format!("it waits for its children {}", pids(children)),
        ),
        Remains::ShuttingDown => (
            "shutting_down",
            "it has taken the signal and is still shutting down".to_owned(),
        ),
        Remains::NotKnown { why } => ("remains", why.clone()),
    }
}
