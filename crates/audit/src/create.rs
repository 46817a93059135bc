//! Makes a new log: first segment, then `LOG`, whose appearance says that there is one.

use std::path::Path;

use ledger::{Origin, SEGMENT_HEADER_LEN, SEGMENT_SIZE, SegmentHeader, segment_file};
use model::{Clock, Digest};
use sys::{
    durable::{self, Reader},
    regular,
};

use crate::{
    AuditError, NewLog,
    open::Sizes,
    segments::{activate_spare, prepare_spare},
};

/// Longer than `LOG` or a key file can be.
pub(crate) const LONGEST_SMALL: u64 = 1 << 20;

/// Makes the folders of a log. Only we write there; who may read is decided where the process begins.
pub(crate) fn folders(dir: &Path) -> Result<(), AuditError> {
    for name in ["", "seg", "keys", "quarantine"] {
        let folder = dir.join(name);
        durable::folder_for(Reader::Group, &folder)
            .map_err(AuditError::io("make the folder", &folder))?;
    }
    durable::sync_folder_of(&dir.join("seg")).map_err(AuditError::io("sync the folder", dir))
}

/// Makes a new log in a folder that holds none.
pub(crate) fn new_log(
    dir: &Path,
    new: &NewLog,
    clock: &dyn Clock,
    sizes: Sizes,
) -> Result<(), AuditError> {
    clear_leftover(dir)?;
    let origin = Origin {
        root: new.bootstrap_root,
        recipient: new.recipient.clone(),
        created: clock.now().wall,
    };
    let bytes = origin.encode().ok_or(AuditError::Recipient)?;
    let header = SegmentHeader {
        log_id: Origin::id(&bytes),
        index: 0,
        first_seq: 1,
        prev: Digest::from_bytes([0; 32]),
    };
    let first = segment_file(dir, 0);
    prepare_spare(dir, sizes.segment)
        .and_then(|()| activate_spare(dir, &header, sizes.segment))
        .map_err(AuditError::io("make the segment", &first))?;
    let log = dir.join("LOG");
    // Last: without it nothing here is a log, and the next start begins anew.
    durable::replace_for(Reader::Group, &log, &bytes).map_err(AuditError::io("write", &log))
}

/// Removes what a start that died before `LOG` left: at most one segment without a record. Anything more is what is
/// left of a log whose `LOG` is gone.
fn clear_leftover(dir: &Path) -> Result<(), AuditError> {
    let missing = || AuditError::LogMissing(dir.to_owned());
    if is_there(&dir.join("HEAD"))? || is_there(&segment_file(dir, 1))? {
        return Err(missing());
    }
    let first = segment_file(dir, 0);
    if !is_there(&first)? {
        return Ok(());
    }
    let bytes = regular::read(&first, SEGMENT_SIZE).map_err(AuditError::io("read", &first))?;
    let records = bytes.get(SEGMENT_HEADER_LEN..).unwrap_or_default();
    if records.iter().any(|byte| *byte != 0) {
        return Err(missing());
    }
    std::fs::remove_file(&first).map_err(AuditError::io("remove", &first))
}

/// Tells whether there is such a file. One that cannot be looked at is not absent: a log would be begun over another.
pub(crate) fn is_there(path: &Path) -> Result<bool, AuditError> {
    path.try_exists().map_err(AuditError::io("look for", path))
}
