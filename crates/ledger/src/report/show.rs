//! The report as a person reads it: the verdict first, then where, then what nobody confirms.

use std::fmt;

use super::{PinResult, PinUse, Report, Verdict};

impl Verdict {
    /// Returns the word of the JSON form.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::IntactPinned => "intact_pinned",
            Self::IntactLocalPin => "intact_local_pin",
            Self::IntactUnpinned => "intact_unpinned",
            Self::TornTail => "torn_tail",
            Self::Tampered => "tampered",
            Self::Truncated => "truncated",
            Self::Forked => "forked",
            Self::CannotJudge => "cannot_judge",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::IntactPinned => "intact, and a pin from outside confirms it",
            Self::IntactLocalPin => "intact; only the pin beside the log confirms its end",
            Self::IntactUnpinned => "intact; nothing confirms where the log ends",
            Self::TornTail => {
                "intact up to the last commit; remains of one unacknowledged write follow"
            }
            Self::Tampered => "TAMPERED: something was edited or is missing",
            Self::Truncated => "TRUNCATED: a pin reaches further than the log",
            Self::Forked => "FORKED: a pin names another history",
            Self::CannotJudge => "no judgement was possible",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "verdict   {} ({})",
            self.verdict.sentence(),
            self.verdict.word()
        )?;
        if let Some(why) = &self.why {
            writeln!(f, "because   {why}")?;
        }
        if let Some(bad) = &self.first_bad {
            writeln!(f, "first bad {bad}")?;
        }
        self.identity(f)?;
        self.pins(f)?;
        self.findings(f)?;
        writeln!(f, "does not prove")?;
        self.does_not_prove
            .iter()
            .try_for_each(|line| writeln!(f, "  - {line}"))
    }
}

impl Report {
    fn identity(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.log_id.value(), self.log_id.why()) {
            (Some(id), _) => writeln!(f, "log       {id}")?,
            (None, why) => writeln!(f, "log       unknown: {}", why.unwrap_or_default())?,
        }
        if let Some(root) = self.root.value() {
            let which = if self.root_is_bootstrap {
                " (bootstrap; no vault has taken over)"
            } else {
                ""
            };
            writeln!(f, "root      {root}{which}")?;
        }
        let Some((first, last)) = self.first_seq.zip(self.last_seq) else {
            return writeln!(f, "records   none");
        };
        let checked = self.checked;
        writeln!(
            f,
            "records   {first} to {last}: {} commits, {} daemon runs, {} key files, {} keys erased",
            checked.commits, checked.epochs, checked.key_files, checked.erased_keys
        )?;
        if let Some(last) = self.bootstrap_to {
            writeln!(f, "bootstrap up to record {last}: before a vault took over")?;
        }
        if let Some((head, at)) = self.head.zip(self.head_at) {
            writeln!(f, "head      {head} at {at}")?;
        }
        Ok(())
    }

    fn pins(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pin in &self.pins_used {
            writeln!(f, "pin       {pin}")?;
        }
        let last = self.last_seq.unwrap_or(0);
        match self.confirmed_from_outside() {
            Some(seq) if seq >= last => Ok(()),
            Some(seq) => writeln!(
                f,
                "unpinned  no pin from outside confirms records {} to {last}",
                seq + 1
            ),
            None => writeln!(f, "unpinned  no pin from outside confirms any record"),
        }
    }

    fn findings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tail) = self.tail {
            writeln!(
                f,
                "tail      {} unacknowledged bytes at {} of segment {}; the daemon moves them to quarantine",
                tail.bytes, tail.offset, tail.segment
            )?;
        }
        for repair in &self.repairs {
            writeln!(
                f,
                "repaired  {}: {} unacknowledged bytes at {} of segment {} were moved to quarantine (record {})",
                repair.at, repair.bytes, repair.offset, repair.segment, repair.seq
            )?;
        }
        for prune in &self.prunes {
            writeln!(
                f,
                "pruned    {}: the segments before record {} were given up (record {})",
                prune.at, prune.first_kept, prune.seq
            )?;
        }
        for epoch in &self.unendorsed {
            writeln!(
                f,
                "UNENDORSED {}: records {} to {}, from {}; adopt it with `lych audit adopt {}`",
                epoch.epoch, epoch.first_seq, epoch.last_seq, epoch.opened_at, epoch.epoch
            )?;
        }
        for broken in &self.structure {
            writeln!(f, "BROKEN RULE record {}: {}", broken.seq, broken.what)?;
        }
        for open in &self.open_attempts {
            write!(f, "open      record {}", open.seq)?;
            if let Some(call) = open.call {
                write!(f, ", {call}")?;
            }
            writeln!(f, ": {} since {}", open.state, open.attempted_at)?;
        }
        Ok(())
    }
}

impl fmt::Display for PinUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        match (&self.result, self.seq) {
            (PinResult::Confirms, Some(seq)) => write!(f, "confirms everything up to record {seq}"),
            (PinResult::Confirms, None) => write!(f, "confirms the log's identity"),
            (PinResult::ReachesFurther, Some(seq)) => {
                write!(f, "names record {seq}, which is not there")
            }
            (PinResult::ReachesFurther, None) => write!(f, "reaches further than the log"),
            (PinResult::Pruned, _) => write!(f, "names a record that was pruned, on record"),
            (PinResult::Differs, Some(seq)) => write!(f, "names another record {seq}"),
            (PinResult::Differs, None) => write!(f, "names another history"),
            (PinResult::OtherLog, _) => write!(f, "names another log"),
            (PinResult::Unusable(why), _) => write!(f, "could not be used: {why}"),
        }
    }
}
