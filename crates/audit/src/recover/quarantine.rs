//! Moves what was never acknowledged out of the way, and keeps it.
//!
//! A quarantine file is named by where its bytes stood and what they are, `<segment>-<offset>-<sha256>.bin`. Every such
//! file that no record tells of yet gets its record: so a crash after the cut leaves no repair untold.

use std::{collections::BTreeSet, fs::OpenOptions, io, path::Path};

use ledger::{End, SEGMENT_SIZE, TailRepaired, file_digest, segment_file};
use model::Digest;
use sys::regular;

use crate::{AuditError, ballast::Ballast};

/// Cuts the tail, and returns the repairs that are not on record yet.
pub(super) fn repair(
    dir: &Path,
    end: &End,
    recorded: &BTreeSet<(u64, u64, Digest)>,
) -> Result<Vec<TailRepaired>, AuditError> {
    if let Some(tail) = &end.tail {
        let segment = segment_file(dir, end.at.segment);
        let cut = keep(dir, end, tail.range.end).and_then(|()| {
            let file = regular::open(&segment, OpenOptions::new().write(true))?;
            // Behind the copy: swapped, a crash would lose the bytes.
            file.set_len(end.at.offset)?;
            file.sync_all()
        });
        cut.map_err(AuditError::io("repair", segment))?;
    }
    let folder = dir.join("quarantine");
    let mut repairs = unrecorded(&folder, recorded).map_err(AuditError::io("read", folder))?;
    repairs.sort_by_key(|repair| (repair.segment, repair.offset));
    Ok(repairs)
}

/// Copies the tail to quarantine.
fn keep(dir: &Path, end: &End, to: u64) -> io::Result<()> {
    let bytes = regular::read(&segment_file(dir, end.at.segment), SEGMENT_SIZE)?;
    let from = usize::try_from(end.at.offset).unwrap_or(usize::MAX);
    let to = usize::try_from(to).unwrap_or(usize::MAX).min(bytes.len());
    let tail = bytes.get(from..to).unwrap_or_default();
    let (segment, offset, digest) = (end.at.segment, end.at.offset, file_digest(tail));
    let name = format!("{segment:010}-{offset}-{digest}.bin");
    let path = dir.join("quarantine").join(name);
    match Ballast::Tail.create(dir, &path, tail) {
        // An earlier start copied these very bytes and came no further, or died in the middle of copying.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&path)?;
            Ballast::Tail.create(dir, &path, tail)
        }
        done => done,
    }
}

fn unrecorded(
    folder: &Path,
    recorded: &BTreeSet<(u64, u64, Digest)>,
) -> io::Result<Vec<TailRepaired>> {
    let mut repairs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some((segment, offset, sha256)) = named(&path) else {
            continue;
        };
        if !recorded.contains(&(segment, offset, sha256)) {
            repairs.push(TailRepaired {
                segment,
                offset,
                len: std::fs::metadata(&path)?.len(),
                sha256,
            });
        }
    }
    Ok(repairs)
}

fn named(path: &Path) -> Option<(u64, u64, Digest)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".bin")?;
    let mut parts = name.splitn(3, '-');
    let segment = parts.next()?.parse().ok()?;
    let offset = parts.next()?.parse().ok()?;
    let sha256 = parts.next()?.parse().ok()?;
    Some((segment, offset, sha256))
}
