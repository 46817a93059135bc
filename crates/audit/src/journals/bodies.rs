//! Bodies of records as they stand in the log, for whoever takes the whole of it elsewhere.

use std::ops::ControlFlow;

use ledger::{CARRIED, Header, Sealing, Stored, Walked, parts, walk};
use model::{Body, Digest, Kind, Known, Seq};

use super::{Keys, Opener};
use crate::{Audit, AuditError, KeyUnwrap};

/// Sealed bytes that are opened for one answer: what comes out of it is several times as long as JSON.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

impl Audit {
    /// Opens the sealed bodies from the record `from` on, at most `most` of them. `unwrap` is given while the vault is
    /// unlocked.
    ///
    /// One pass from the log's beginning: the key of a body is named by a record before it.
    ///
    /// # Errors
    /// The log cannot be read back.
    pub fn bodies(
        &self,
        from: Seq,
        most: usize,
        unwrap: Option<&dyn KeyUnwrap>,
    ) -> Result<Vec<(Seq, Known<Body>)>, AuditError> {
        let (keys, sealed) = self.sealed((most, PAGE_BYTES), |header| header.seq >= from)?;
        let opener = Opener::new(self, &keys, unwrap);
        let opened = sealed.iter().map(|stored| {
            let seq = stored.header.seq;
            (seq, opener.body(stored))
        });
        Ok(opened.collect())
    }

    /// Returns the first record that any anchored incident refers to; none if none refers to one.
    ///
    /// # Errors
    /// The log cannot be read back, or what an incident refers to cannot be told: then all of it must be kept.
    pub fn kept_from(&self, unwrap: Option<&dyn KeyUnwrap>) -> Result<Option<Seq>, AuditError> {
        let (keys, sealed) = self.sealed((usize::MAX, usize::MAX), |header| {
            header.kind == Kind::IncidentStep
        })?;
        let opener = Opener::new(self, &keys, unwrap);
        let mut least: Option<Seq> = None;
        for stored in &sealed {
            match opener.body(stored) {
                Known::Yes(Body::IncidentStep { from, .. }) => {
                    least = [least, from].into_iter().flatten().min();
                }
                Known::Yes(_) | Known::Unknown { .. } => {
                    return Err(AuditError::KeptUnknown(stored.header.seq));
                }
            }
        }
        Ok(least)
    }

    /// Returns the sealed records that are wanted, as many as fit, with the keys that records before them name.
    fn sealed(
        &self,
        (most, most_bytes): (usize, usize),
        wants: impl Fn(&Header) -> bool,
    ) -> Result<(Keys, Vec<Stored>), AuditError> {
        super::is_there(self)?;
        let unreadable = AuditError::io("read the segments in", &self.dir);
        let mut parts = parts(&self.dir).map_err(unreadable)?;
        parts.reverse();
        // The certificate stands for what is older than every segment.
        parts.sort_by_key(|part| *part != CARRIED);
        let last = self.head().map_or(0, |head| head.seq);
        let (mut keys, mut found, mut bytes) = (Keys::default(), Vec::new(), 0);
        let is_full = |count: usize, bytes: usize| count >= most || bytes >= most_bytes;
        for part in parts {
            if is_full(found.len(), bytes) {
                break;
            }
            let walked = walk(&self.dir, part, last, |record| {
                keys.note(&record.header, record.body);
                if record.header.sealing != Sealing::Clear && wants(&record.header) {
                    bytes += record.body.len();
                    found.push(stored(record));
                }
                if is_full(found.len(), bytes) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            walked.map_err(AuditError::io("read the segments in", &self.dir))?;
        }
        Ok((keys, found))
    }
}

fn stored(record: &Walked<'_>) -> Stored {
    Stored {
        place: record.place,
        header: record.header,
        body: record.body.to_vec(),
        // Opening asks for no id.
        id: Digest::from_bytes([0; 32]),
    }
}
