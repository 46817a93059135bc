//! Bodies of records as they stand in the log, for whoever takes the whole of it elsewhere.

use std::ops::ControlFlow;

use ledger::{CARRIED, Sealing, Stored, parts, walk};
use model::{Body, Digest, Known, Seq};

use super::{Index, Opener};
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
        let (index, sealed) = self.sealed(from, most)?;
        let opener = Opener::new(self, &index, unwrap);
        let opened = sealed.iter().map(|stored| {
            let seq = stored.header.seq;
            (seq, opener.body(stored))
        });
        Ok(opened.collect())
    }

    fn sealed(&self, from: Seq, most: usize) -> Result<(Index, Vec<Stored>), AuditError> {
        let unreadable = AuditError::io("read the segments in", &self.dir);
        let mut parts = parts(&self.dir).map_err(unreadable)?;
        parts.reverse();
        // The certificate stands for what is older than every segment.
        parts.sort_by_key(|part| *part != CARRIED);
        let last = self.head().map_or(0, |head| head.seq);
        let (mut index, mut found, mut bytes) = (Index::default(), Vec::new(), 0);
        let full = |found: &Vec<Stored>, bytes| found.len() >= most || bytes >= PAGE_BYTES;
        for part in parts {
            if full(&found, bytes) {
                break;
            }
            let walked = walk(&self.dir, part, last, |record| {
                index.note_key(&record.header, record.body);
                if record.header.seq >= from && record.header.sealing != Sealing::Clear {
                    bytes += record.body.len();
                    found.push(Stored {
                        place: record.place,
                        header: record.header,
                        body: record.body.to_vec(),
                        // Opening asks for no id.
                        id: Digest::from_bytes([0; 32]),
                    });
                }
                if full(&found, bytes) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            walked.map_err(AuditError::io("read the segments in", &self.dir))?;
        }
        Ok((index, found))
    }
}
