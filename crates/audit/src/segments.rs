//! Segment files as the writer sees them: prepared beside, named when their header is durable, cut when full.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ledger::{SEGMENT_HEADER_LEN, SegmentHeader, segment_file};
use sys::{
    durable::{self, Reader},
    regular,
};

/// Where segment bytes go; a file, or a faulty one in tests.
pub(crate) trait Store: Send {
    /// Writes some of `bytes` at `offset` and returns how many (pwrite(2) may write fewer).
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Waits until everything written is on disk.
    fn sync(&self) -> io::Result<()>;
    /// Ends the file at `len`.
    fn cut(&self, len: u64) -> io::Result<()>;
    /// Tells whether `path` still names this file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

impl Store for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.sync_all()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        durable::is_named(self, path)
    }
}

/// The segment that is being appended to.
pub(crate) struct Segment {
    pub(crate) store: Box<dyn Store>,
    pub(crate) path: PathBuf,
    pub(crate) index: u64,
    /// Where the next frame goes.
    pub(crate) offset: u64,
    /// How long the file is.
    pub(crate) len: u64,
}

impl Segment {
    /// Opens a segment to go on at `offset`; what stands behind it must be zero.
    pub(crate) fn reopen(dir: &Path, index: u64, offset: u64, len: u64) -> io::Result<Self> {
        let path = segment_file(dir, index);
        let file = open(&path, false)?;
        // A segment that was cut when it was full, or whose preallocation was undone, is extended again.
        durable::reserve(&file, len)?;
        file.sync_all()?;
        Ok(Self {
            store: Box::new(file),
            path,
            index,
            offset,
            len,
        })
    }

    /// Appends `bytes` and waits for the disk.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        let mut at = self.offset;
        while !rest.is_empty() {
            match self.store.write_at(rest, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    at += u64::try_from(written).unwrap_or(0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.store.sync()?;
        self.offset = at;
        Ok(())
    }
}

/// Prepares the next segment's space, so that later appends need none from the disk.
pub(crate) fn prepare_spare(dir: &Path, len: u64) -> io::Result<()> {
    let path = spare(dir);
    let file = open(&path, true)?;
    if file.metadata()?.len() != len {
        file.set_len(0)?;
    }
    durable::reserve(&file, len)?;
    file.sync_all()?;
    durable::sync_folder_of(&path)
}

/// Makes the prepared space the segment with this header.
pub(crate) fn activate_spare(dir: &Path, header: &SegmentHeader, len: u64) -> io::Result<Segment> {
    let file = open(&spare(dir), true)?;
    file.write_all_at(&header.encode(), 0)?;
    // Before the name: a reader that finds a segment may rely on its header.
    file.sync_all()?;
    let path = segment_file(dir, header.index);
    std::fs::rename(spare(dir), &path)?;
    durable::sync_folder_of(&path)?;
    Ok(Segment {
        store: Box::new(file),
        path,
        index: header.index,
        offset: u64::try_from(SEGMENT_HEADER_LEN).unwrap_or(0),
        len,
    })
}

fn spare(dir: &Path) -> PathBuf {
    dir.join("seg").join("spare")
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create);
    regular::open(path, options.mode(Reader::Group.file_mode()))
}
