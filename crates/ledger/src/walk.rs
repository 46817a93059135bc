//! Walks one segment by its frames' lengths alone: for lists, which are read from the log's end.
//!
//! No hash is checked here, which makes it several times as fast as a scan. A list gains nothing from hashes: what it
//! shows of a record comes out of the sealed body, whose cipher authenticates the header too. Whether the log is what
//! was written is `verify`'s question.

use std::{io, ops::ControlFlow, path::Path};

use model::Seq;

use crate::{
    certificate::{Certificate, numbers},
    header::{FRAME_PREFIX, HEADER_LEN, Header},
    regular,
    scan::frame_at,
    segment::{CARRIED, Place, SEGMENT_HEADER_LEN, segment_file},
};

/// More than any part of a log takes.
const LONGEST: u64 = 32 << 20;

/// One record that was walked by.
#[derive(Debug, Clone, Copy)]
pub struct Walked<'a> {
    /// Where its frame stands.
    pub place: Place,
    /// Its clear header.
    pub header: Header,
    /// Its stored body.
    pub body: &'a [u8],
}

/// Returns the numbers of the parts a log has now, the newest first: its segments, then, if the oldest were given up,
/// the certificate that took their place, as [`CARRIED`].
///
/// # Errors
/// The folder cannot be read.
pub fn parts(dir: &Path) -> io::Result<Vec<u64>> {
    let mut all = numbers(&dir.join("seg"), ".seg")?;
    all.sort_unstable_by(|a, b| b.cmp(a));
    if all.last().is_some_and(|lowest| *lowest > 0) {
        all.push(CARRIED);
    }
    Ok(all)
}

/// Calls `see` for the records of one part up to the number `last`, in their order.
///
/// A part that was given up meanwhile has no records.
///
/// # Errors
/// The file cannot be read.
pub fn walk(
    dir: &Path,
    part: u64,
    last: Seq,
    mut see: impl FnMut(&Walked<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let path = if part == CARRIED {
        match numbers(&dir.join("pruned"), ".cert")?.into_iter().min() {
            Some(first) => Certificate::path(dir, first),
            None => return Ok(()),
        }
    } else {
        segment_file(dir, part)
    };
    let data = match regular::read(&path, LONGEST + 1) {
        Ok(data) if u64::try_from(data.len()).is_ok_and(|len| len > LONGEST) => {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // A certificate's front is as long as a segment's header.
    let mut at = SEGMENT_HEADER_LEN;
    while let Some(range) = frame_at(&data, at) {
        at = range.end;
        let frame = data.get(range.clone()).unwrap_or_default();
        let Ok(header) = Header::decode(frame.get(FRAME_PREFIX..).unwrap_or_default()) else {
            break;
        };
        if header.seq > last {
            break;
        }
        let offset = u64::try_from(range.start).unwrap_or(u64::MAX);
        let record = Walked {
            place: Place {
                segment: part,
                offset,
            },
            header,
            body: frame.get(FRAME_PREFIX + HEADER_LEN..).unwrap_or_default(),
        };
        if see(&record).is_break() {
            break;
        }
    }
    Ok(())
}
