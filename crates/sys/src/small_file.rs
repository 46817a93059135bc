//! Reads a file that somebody else wrote, without letting it hang or fill us.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::Path,
};

use crate::regular;

/// What a file says, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    /// Its content.
    pub content: Vec<u8>,
    /// The user it belongs to.
    pub owner_uid: u32,
}

/// Reads the regular file at `path` if it has at most `limit` bytes.
///
/// # Errors
/// `NotFound` if there is none; `InvalidInput` if it is no regular file (opening a named pipe would wait for
/// its writer); `FileTooLarge` if it has more; anything else is the file system's.
pub fn read(path: &Path, limit: u64) -> io::Result<SmallFile> {
    let (file, meta) = open(path)?;
    let content = regular::bounded(file, limit)?;
    Ok(SmallFile {
        content,
        owner_uid: meta.uid(),
    })
}

/// Reads the last `limit` bytes of the regular file at `path`, however long it is: it grows meanwhile, and its first
/// line there is cut.
///
/// # Errors
/// As [`read`], but for the size.
pub fn read_end(path: &Path, limit: u64) -> io::Result<SmallFile> {
    let (mut file, meta) = open(path)?;
    file.seek(SeekFrom::Start(meta.len().saturating_sub(limit)))?;
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(SmallFile {
        content,
        owner_uid: meta.uid(),
    })
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = regular::open_through_links(path, OpenOptions::new().read(true))?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_pipe_without_a_writer_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();

        assert_eq!(
            read(&path, 9).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[test]
    fn one_byte_over_the_limit_is_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"123456").unwrap();

        assert_eq!(read_end(&path, 2).unwrap().content, b"56");
        assert_eq!(read_end(&path, 9).unwrap().content, b"123456");
        assert_eq!(read(&path, 6).unwrap().content, b"123456");
        assert_eq!(
            read(&path, 5).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }
}
