//! Opening one segment after the other, each chained to the one before.

use std::io;

use model::Digest;

use super::{Scan, Stop, batch::Accepted, blame::prev_of};
use crate::{
    bytes::sha256,
    certificate::{Certificate, numbers},
    report::FirstBad,
    segment::{Place, SEGMENT_HEADER_LEN, SEGMENT_SIZE, SegmentHeader, segment_file},
    window::Window,
};

/// How a log begins.
pub(super) enum First {
    /// There is no segment.
    None,
    /// With its first segment.
    Segment,
    /// With a certificate for the segments that were given up.
    Carried,
}

impl Scan {
    /// Opens the first segment there is.
    pub(super) fn load_first(&mut self) -> Result<First, Stop> {
        let lowest = self.segments()?.into_iter().min();
        let Some(lowest) = lowest else {
            return Ok(First::None);
        };
        if lowest == 0 {
            self.open(0, Digest::from_bytes([0; 32]))?;
            return Ok(First::Segment);
        }
        let found = Certificate::find(&self.dir, self.log_id, lowest)?;
        // Without one they are simply missing, which the end of the scan says.
        let Some(certificate) = found else {
            return Ok(First::None);
        };
        self.begin_at(certificate)?;
        Ok(First::Carried)
    }

    fn segments(&self) -> Result<Vec<u64>, Stop> {
        let path = self.dir.join("seg");
        numbers(&path, ".seg").map_err(|source| Stop::Io { path, source })
    }

    /// Tells whether there is such a segment. One that cannot be looked at is not absent.
    fn is_there(&self, index: u64) -> Result<bool, Stop> {
        let path = segment_file(&self.dir, index);
        path.try_exists()
            .map_err(|source| Stop::Io { path, source })
    }

    fn begin_at(&mut self, certificate: Certificate) -> Result<(), Stop> {
        let bad = |what: &str| Stop::Bad(FirstBad::in_file(certificate.name(), what));
        self.frames = certificate
            .frames()
            .map(|range| Accepted::carried(certificate.bytes(), range))
            .collect::<Option<_>>()
            .ok_or_else(|| bad("it carries something that is no record"))?;
        self.epoch = Some(
            self.frames
                .iter()
                .rev()
                .find_map(|frame| frame.opens(certificate.bytes()))
                .ok_or_else(|| bad("it carries no daemon run"))?,
        );
        let (index, prev) = (certificate.segment, certificate.prev);
        if !self.is_there(index)? {
            return Err(Stop::Bad(FirstBad::in_file(
                format!("seg/{index:010}.seg"),
                "the segment is missing",
            )));
        }
        self.next_seq = certificate.first_seq;
        self.certificate = Some(certificate);
        self.open(index, prev)
    }

    pub(super) fn load_next(&mut self) -> Result<(), Stop> {
        self.open(self.index + 1, self.head)
    }

    fn open(&mut self, index: u64, prev: Digest) -> Result<(), Stop> {
        self.index = index;
        self.load(index, 0)?;
        let header = SegmentHeader {
            log_id: self.log_id,
            index,
            first_seq: self.next_seq,
            prev,
        };
        let front = self.data();
        let stored = front.get(..SEGMENT_HEADER_LEN).unwrap_or_default();
        if stored != header.encode() {
            return Err(self.wrong_header(&header, stored));
        }
        self.head = header.id();
        self.offset = SEGMENT_HEADER_LEN;
        Ok(())
    }

    /// The stored header is not the expected one: it was changed, unless the first record was chained to it.
    fn wrong_header(&self, expected: &SegmentHeader, stored: &[u8]) -> Stop {
        let data = self.data();
        let first = data.get(SEGMENT_HEADER_LEN..).unwrap_or_default();
        let chained = prev_of(first) == Some(Digest::from_bytes(sha256(&[stored])));
        let place = Place {
            segment: self.index,
            offset: 0,
        };
        match SegmentHeader::decode(stored) {
            None if chained => Stop::Unknown(format!(
                "segment {} was written by a version that this program does not know",
                self.index
            )),
            Some(found) if chained && found.log_id != expected.log_id => {
                Stop::Bad(FirstBad::in_file(
                    "LOG",
                    "LOG is not the file that the segments were chained to",
                ))
            }
            None | Some(_) => Stop::Bad(FirstBad::in_segment(
                place,
                Some(expected.first_seq),
                "the segment's header does not continue the log",
            )),
        }
    }

    /// Opens a segment as it is now, at `base`.
    pub(super) fn load(&mut self, index: u64, base: usize) -> Result<(), Stop> {
        // Asked before reading: if the next segment is there already, this one is complete.
        self.sealed = self.is_there(index + 1)?;
        let path = segment_file(&self.dir, index);
        let window = Window::open(&path, base).map_err(|source| {
            if source.kind() != io::ErrorKind::FileTooLarge {
                return Stop::Io { path, source };
            }
            let place = Place {
                segment: index,
                offset: SEGMENT_SIZE,
            };
            Stop::Bad(FirstBad::in_segment(
                place,
                None,
                "the file is longer than a segment can be",
            ))
        })?;
        self.window = Some(window);
        Ok(())
    }

    /// Reads the segment again if the next one has appeared since; true if it did.
    pub(super) fn reload_if_followed(&mut self) -> Result<bool, Stop> {
        if !self.is_there(self.index + 1)? {
            return Ok(false);
        }
        self.load(self.index, self.offset)?;
        Ok(true)
    }

    /// The last segment of the scan must be the last there is.
    pub(super) fn nothing_missing(&self) -> Result<(), Stop> {
        let highest = self.segments()?.into_iter().max();
        let missing = if self.window.is_none() {
            0
        } else {
            self.index + 1
        };
        // One more may have been made since: then it is not missing, only newer than this look.
        if highest.is_none_or(|highest| highest < missing) || self.is_there(missing)? {
            return Ok(());
        }
        let file = format!("seg/{missing:010}.seg");
        Err(Stop::Bad(FirstBad::in_file(file, "the segment is missing")))
    }
}
