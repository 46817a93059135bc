//! How much room a file system has left.

use std::{io, path::Path};

/// Room on a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What a program without privileges may still take.
    pub free: u64,
    /// All there is.
    pub all: u64,
}

/// Returns the room of the file system that `path` lies on (statvfs(3)).
///
/// # Errors
/// The path does not exist, or its file system does not tell.
pub fn room(path: &Path) -> io::Result<Room> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(Room {
        free: stat.f_bavail.saturating_mul(stat.f_frsize),
        all: stat.f_blocks.saturating_mul(stat.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_no_more_free_than_there_is() {
        let room = room(Path::new("/")).unwrap();

        assert!(room.free <= room.all && room.all > 0, "{room:?}");
        assert!(super::room(Path::new("/nowhere/at/all")).is_err());
    }
}
