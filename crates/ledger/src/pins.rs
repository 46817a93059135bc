//! Pins: what somebody noted elsewhere about this log, in any form we ever hand out.
//!
//! A copy of `HEAD`, a receipt (`log_id`, `seq`, `id`), a verify report (`log_id`, `last_seq`, `head`), or an
//! incident that holds such a report under `verify`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use model::{Digest, LogId, Seq};
use serde_json::Value;

use crate::{
    report::{PinResult, PinUse},
    scan::Record,
};

/// A pin on its way along the log.
#[derive(Debug, Clone)]
struct Pin {
    source: String,
    local: bool,
    log_id: Option<LogId>,
    seq: Option<Seq>,
    head: Option<Digest>,
    result: Option<PinResult>,
}

/// All pins of one verification.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins {
    pins: Vec<Pin>,
    by_seq: BTreeMap<Seq, Vec<usize>>,
}

impl Pins {
    /// Reads a pin from a file; one that cannot be used is kept and says so.
    pub(crate) fn add_file(&mut self, path: &Path) {
        let source = path.display().to_string();
        let read = front(path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                parse(&bytes).ok_or_else(|| "it is no pin of a known form".to_owned())
            });
        match read {
            Ok((log_id, seq, head)) => self.add(source, false, log_id, seq, head),
            Err(why) => self.pins.push(Pin {
                source,
                local: false,
                log_id: None,
                seq: None,
                head: None,
                result: Some(PinResult::Unusable(why)),
            }),
        }
    }

    /// Adds a pin.
    pub(crate) fn add(
        &mut self,
        source: String,
        local: bool,
        log_id: LogId,
        seq: Seq,
        head: Digest,
    ) {
        self.by_seq.entry(seq).or_default().push(self.pins.len());
        self.pins.push(Pin {
            source,
            local,
            log_id: Some(log_id),
            seq: Some(seq),
            head: Some(head),
            result: None,
        });
    }

    /// Compares a believed record with the pins that name its number.
    pub(crate) fn see(&mut self, log_id: LogId, record: &Record<'_>) {
        let Some(named) = self.by_seq.get(&record.header.seq) else {
            return;
        };
        for index in named {
            if let Some(pin) = self.pins.get_mut(*index)
                && pin.log_id == Some(log_id)
            {
                let same = pin.head == Some(record.id);
                pin.result = Some(if same {
                    PinResult::Confirms
                } else {
                    PinResult::Differs
                });
            }
        }
    }

    /// Returns what became of each; `complete` tells whether the log was seen up to its last commit.
    pub(crate) fn finish(self, log_id: LogId, first: Option<Seq>, complete: bool) -> Vec<PinUse> {
        let judge = |pin: Pin| PinUse {
            source: pin.source,
            local: pin.local,
            seq: pin.seq,
            result: match pin.result {
                Some(result) => result,
                None if pin.log_id != Some(log_id) => PinResult::OtherLog,
                None if pin.seq.zip(first).is_some_and(|(seq, first)| seq < first) => {
                    PinResult::Pruned
                }
                None if !complete => {
                    PinResult::Unusable("the log could not be read up to it".to_owned())
                }
                None => PinResult::ReachesFurther,
            },
        };
        self.pins.into_iter().map(judge).collect()
    }
}

/// Reads a file that a person named, which may be a pipe from another machine, up to what no pin needs.
fn front(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Longer than an incident's report on a log.
const LONGEST: u64 = 64 << 20;

fn parse(bytes: &[u8]) -> Option<(LogId, Seq, Digest)> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let pin = value.get("verify").unwrap_or(&value);
    let text = |name: &str| pin.get(name).and_then(Value::as_str);
    let number = |name: &str| pin.get(name).and_then(Value::as_u64);
    Some((
        text("log_id")?.parse().ok()?,
        number("last_seq").or_else(|| number("seq"))?,
        text("head").or_else(|| text("id"))?.parse().ok()?,
    ))
}
