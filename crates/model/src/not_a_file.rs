//! What stands where a regular file belongs.

use std::{fs::FileType, io, os::unix::fs::FileTypeExt};

/// What stands in a file's place: opened, it could wait for somebody or be read without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} stands there instead of the file; move it away")]
pub struct NotAFile(&'static str);

impl NotAFile {
    /// Returns what this is; none if it is a regular file.
    #[must_use]
    pub fn of(kind: FileType) -> Option<Self> {
        let what = if kind.is_file() {
            return None;
        } else if kind.is_fifo() {
            "a named pipe"
        } else if kind.is_socket() {
            "a socket"
        } else if kind.is_dir() {
            "a folder"
        } else if kind.is_symlink() {
            "a symbolic link"
        } else {
            "a device"
        };
        Some(Self(what))
    }
}

impl From<NotAFile> for io::Error {
    fn from(what: NotAFile) -> Self {
        Self::new(io::ErrorKind::InvalidInput, what)
    }
}
