//! The daemon's own log for its developers: never a target, an argument or a secret in it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use model::Wall;

/// At this size the file becomes the old one. Two of them are kept, so 16 MiB is the most it takes.
const ROTATE_AT: u64 = 8 << 20;

/// The log file.
#[derive(Debug)]
pub(crate) struct Notes {
    path: PathBuf,
    file: Mutex<File>,
}

impl Notes {
    /// Opens the file, or makes it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(open(path)?),
        })
    }

    /// Writes one line. A full disk must not stop the gate, so failures are not reported.
    pub(crate) fn say(&self, text: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata().is_ok_and(|meta| meta.len() > ROTATE_AT) {
            let old = self.path.with_added_extension("1");
            if std::fs::rename(&self.path, old).is_ok()
                && let Ok(fresh) = open(&self.path)
            {
                *file = fresh;
            }
        }
        let now = Wall::from(std::time::SystemTime::now());
        let _ = writeln!(file, "{now} {text}");
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    sys::regular::open(path, &mut options)
}

/// Prints a line on stderr, if anybody is there to read it.
pub(crate) fn stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
