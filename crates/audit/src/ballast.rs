//! Space that is held free for what a start on a full disk must write: the daemon run's key file, and a torn tail.
//!
//! Each file is written into the space that is held for it, which is already as long as needed, and renamed: no other program can
//! be faster, as it could if space were merely given back first.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use sys::{
    durable::{self, Reader},
    regular,
};

/// A wrapped data key is under 300 bytes.
const KEY_BYTES: u64 = 4096;
/// Each start on a full disk uses up one.
const KEYS: usize = 8;
/// What one unacknowledged write can leave behind.
const TAIL_BYTES: u64 = ledger::MAX_BATCH as u64;

/// Beside the log; nothing in it is a part of it.
const FOLDER: &str = "held";

/// What is held free.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ballast {
    /// A key file.
    Key,
    /// A file in quarantine.
    Tail,
}

impl Ballast {
    fn files(self, dir: &Path) -> Vec<PathBuf> {
        let names: Vec<String> = match self {
            Self::Key => (0..KEYS).map(|number| format!("key-{number:02}")).collect(),
            Self::Tail => vec!["tail".to_owned()],
        };
        let folder = dir.join(FOLDER);
        names.into_iter().map(|name| folder.join(name)).collect()
    }

    const fn len(self) -> u64 {
        match self {
            Self::Key => KEY_BYTES,
            Self::Tail => TAIL_BYTES,
        }
    }

    /// Holds the space again. If it cannot be had, the disk is full now, and a start on it may fail.
    pub(crate) fn hold(self, dir: &Path) -> io::Result<()> {
        durable::private_folder(&dir.join(FOLDER))?;
        let files = self.files(dir);
        files.iter().try_for_each(|path| self.hold_one(path))
    }

    fn hold_one(self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == self.len()) {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = regular::open(path, options.mode(Reader::Group.file_mode()))?;
        // Not synced: after a power cut it is held again.
        let reserved = durable::reserve(&file, self.len());
        if reserved.is_err() {
            // A part of the space holds nothing free.
            drop(fs::remove_file(path));
        }
        reserved
    }

    /// Makes a durable file; on a full disk the held space becomes that file.
    pub(crate) fn create(self, dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        match durable::create_for(Reader::Group, path, bytes) {
            Err(error) if is_full(&error) => {
                // What was begun under this name was acknowledged to nobody.
                drop(fs::remove_file(path));
                self.spend(dir, path, bytes)
            }
            done => done,
        }
    }

    fn spend(self, dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if len > self.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // No `create`: what is not there holds nothing.
        let held = self.files(dir).into_iter().find_map(|path| {
            let file = regular::open(&path, OpenOptions::new().write(true)).ok()?;
            Some((path, file))
        });
        let (held, mut file) = held.ok_or(io::ErrorKind::StorageFull)?;
        file.write_all(bytes)?;
        file.set_len(len)?;
        // Before the name, as for every file that a record relies on.
        file.sync_all()?;
        fs::rename(&held, path)?;
        durable::sync_folder_of(path)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn folder() -> TempDir {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("keys")).unwrap();
        folder
    }

    #[test]
    fn held_space_becomes_the_file_and_is_held_again() {
        let folder = folder();
        let dir = folder.path();
        Ballast::Key.hold(dir).unwrap();
        let held = || fs::read_dir(dir.join("held")).unwrap().count();
        let all = held();
        let path = dir.join("keys/e-1.age");

        Ballast::Key.spend(dir, &path, b"a key").unwrap();
        let without = held();
        Ballast::Key.hold(dir).unwrap();

        assert_eq!(fs::read(&path).unwrap(), b"a key");
        assert_eq!((without, held()), (all - 1, all));
    }

    #[test]
    fn without_held_space_a_full_disk_stays_an_error() {
        let folder = folder();
        let dir = folder.path();

        let missing = Ballast::Key.spend(dir, &dir.join("keys/e-1.age"), b"a key");
        let long = Ballast::Key.spend(dir, &dir.join("keys/e-2.age"), &[0; 5000]);

        assert!(missing.is_err() && long.is_err());
        assert_eq!(fs::read_dir(dir.join("keys")).unwrap().count(), 0);
    }
}
