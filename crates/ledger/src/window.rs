//! A segment's bytes as a reader sees them: a part of the file, moved along as the reader goes on.
//!
//! It is as small as the batches allow, so that what was just read is still in the processor's cache when it is
//! hashed, and never larger than [`LONGEST`]: that is all the memory a verifier needs for a log of any length.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, path::Path};

use crate::{bytes::sha256, regular, segment::SEGMENT_SIZE};

/// How much is read at first. Smaller, the calls to the kernel cost more than the cache saves.
const USUAL: usize = 256 * 1024;
/// More than the longest batch and the two longest frames behind it.
const LONGEST: usize = 2 * 1024 * 1024;

/// A part of a segment.
///
/// Ranges into [`Window::data`] are relative to `base`. What stands behind the window is read when it is asked for.
#[derive(Debug)]
pub(crate) struct Window {
    file: File,
    /// Of which only the first `filled` bytes are the file's.
    buffer: Vec<u8>,
    filled: usize,
    /// Where `data` begins in the file.
    pub(crate) base: usize,
    /// Whether the file ends with `data`.
    ended: bool,
    /// How much it may hold.
    size: usize,
}

impl Window {
    /// Opens a segment at `base`.
    pub(crate) fn open(path: &Path, base: usize) -> io::Result<Self> {
        let file = regular::open(path)?;
        if file.metadata()?.len() > SEGMENT_SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Self::of(file, base)
    }

    fn of(file: File, base: usize) -> io::Result<Self> {
        let mut window = Self {
            file,
            buffer: Vec::new(),
            filled: 0,
            base,
            ended: false,
            size: USUAL,
        };
        window.fill()?;
        Ok(window)
    }

    /// Returns the bytes it holds.
    pub(crate) fn data(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Moves on to `at`, or holds more from there, if there is more to be had.
    pub(crate) fn slide(&mut self, at: usize) -> io::Result<bool> {
        let gone = at.saturating_sub(self.base).min(self.filled);
        if self.ended || (gone == 0 && self.size >= LONGEST) {
            return Ok(false);
        }
        if gone == 0 {
            self.size = (self.size * 2).min(LONGEST);
        }
        self.buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        self.base += gone;
        self.fill()?;
        Ok(true)
    }

    fn fill(&mut self) -> io::Result<()> {
        // One byte more than there is: reading nothing shows the end.
        let there = self.len()?.saturating_sub(self.base) + 1;
        let room = there.clamp(self.filled, self.size.max(self.filled));
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        while let Some(rest) = self.buffer.get_mut(self.filled..room)
            && !rest.is_empty()
        {
            match self.file.read_at(rest, wide(self.base + self.filled)) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the same place again; true if a writer has changed it meanwhile.
    pub(crate) fn refresh(&mut self, at: usize) -> io::Result<bool> {
        let behind = self.data().get(at.saturating_sub(self.base)..);
        let before = behind.unwrap_or_default().to_vec();
        (self.base, self.filled, self.ended) = (at, 0, false);
        self.fill()?;
        Ok(!self.data().starts_with(&before))
    }

    /// Gives the bytes in a range of the file, piece by piece. Pieces overlap by [`OVERLAP`], so that what is shorter
    /// than that is whole in one of them.
    pub(crate) fn pieces(
        &self,
        range: Range<usize>,
        mut see: impl FnMut(usize, &[u8]),
    ) -> io::Result<()> {
        let mut piece = Self::of(self.file.try_clone()?, range.start)?;
        loop {
            let wanted = range.end.saturating_sub(piece.base).min(piece.filled);
            see(piece.base, piece.data().get(..wanted).unwrap_or_default());
            let next = piece.base + piece.filled.saturating_sub(OVERLAP);
            if wanted < piece.filled || !piece.slide(next)? {
                return Ok(());
            }
        }
    }

    /// Returns where the zeros begin that end the file: `at`, if there is nothing else from there on.
    pub(crate) fn used(&self, at: usize) -> io::Result<usize> {
        let mut used = at;
        self.pieces(at..usize::MAX, |base, piece| {
            let len = used_of(piece);
            if len > 0 {
                used = base + len;
            }
        })?;
        Ok(used)
    }

    /// Returns the file's length now.
    pub(crate) fn len(&self) -> io::Result<usize> {
        let len = self.file.metadata()?.len();
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// Returns what tells whether anything behind `at` has changed: where the zeros begin, and a digest up to there.
    pub(crate) fn fingerprint(&self, at: usize) -> io::Result<(usize, [u8; 32])> {
        let used = self.used(at)?;
        let mut all = [0; 32];
        self.pieces(at..used, |_, piece| all = sha256(&[&all, piece]))?;
        Ok((used, all))
    }
}

/// How much of a piece comes again in the next.
pub(crate) const OVERLAP: usize = 512;

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns how many bytes stand in front of the zeros at the end.
fn used_of(data: &[u8]) -> usize {
    let mut end = data.len();
    for chunk in data.rchunks(ZEROS.len()) {
        if ZEROS.get(..chunk.len()) != Some(chunk) {
            let last = chunk.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            return end - chunk.len() + last + 1;
        }
        end -= chunk.len();
    }
    0
}

const ZEROS: [u8; 1024] = [0; 1024];
