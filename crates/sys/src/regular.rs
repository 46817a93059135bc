//! Opens what should be a regular file, and nothing that stands in its place.
//!
//! Opening a named pipe waits for whoever is at its other end, and a device may be read without an end. So nothing is
//! waited for, and what was opened is judged by its descriptor before a byte of it is used.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use model::NotAFile;

/// Opens a file of ours; a symbolic link at its very name is none.
///
/// # Errors
/// `InvalidInput` if something else than a regular file stands there; anything else is the file system's.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    opened(path, options, libc::O_NOFOLLOW)
}

/// Opens a file that a person named or keeps, who may have put a link there.
///
/// # Errors
/// As [`open`], but for the link.
pub fn open_through_links(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    opened(path, options, 0)
}

fn opened(path: &Path, options: &mut OpenOptions, links: i32) -> io::Result<File> {
    let file = options
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | links)
        .open(path)
        .map_err(|error| said_of(path, error))?;
    match NotAFile::of(file.metadata()?.file_type()) {
        None => Ok(file),
        Some(what) => Err(what.into()),
    }
}

/// Reads a file of ours that has at most `limit` bytes.
///
/// # Errors
/// As [`open`]; `FileTooLarge` if it has more.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    bounded(open(path, OpenOptions::new().read(true))?, limit)
}

/// Reads at most `limit` bytes. A file's size can change while it is read, so the reading itself is bounded.
pub(crate) fn bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {limit} bytes"),
        ));
    }
    Ok(content)
}

/// Tells what stands in a file's place, where that is why it could not be opened: a socket, a pipe that nobody reads,
/// a folder and a link each have an error of their own (open(2): ENXIO, EISDIR, ELOOP).
fn said_of(path: &Path, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return error;
    }
    let there = std::fs::symlink_metadata(path).ok();
    let what = there.and_then(|meta| NotAFile::of(meta.file_type()));
    what.map_or(error, io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    /// Everything that can stand in a file's place, and what is said of it.
    fn planted(folder: &Path) -> Vec<(std::path::PathBuf, &'static str)> {
        let at = |name: &str| folder.join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        symlink("/dev/zero", at("link")).unwrap();
        drop(UnixListener::bind(at("socket")).unwrap());
        vec![
            (at("pipe"), "a named pipe"),
            (at("folder"), "a folder"),
            (at("link"), "a symbolic link"),
            (at("socket"), "a socket"),
        ]
    }

    #[test]
    fn what_is_no_file_is_named_however_it_is_opened_and_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let ways: [fn() -> OpenOptions; 4] = [
            || File::options().read(true).clone(),
            || File::options().write(true).clone(),
            || File::options().append(true).create(true).clone(),
            || File::options().read(true).write(true).create(true).clone(),
        ];

        for (path, named) in planted(folder.path()) {
            for way in ways {
                let error = open(&path, &mut way()).unwrap_err();

                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
                assert!(error.to_string().starts_with(named), "{error}");
            }
        }
    }

    #[test]
    fn a_link_may_lead_to_a_file_where_a_person_may_have_put_one_and_to_no_device() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, b"12").unwrap();
        symlink(&file, &link).unwrap();

        let followed = open_through_links(&link, File::options().read(true));
        let device = open_through_links(Path::new("/dev/zero"), File::options().read(true));

        assert_eq!(bounded(followed.unwrap(), 2).unwrap(), b"12");
        assert!(device.unwrap_err().to_string().starts_with("a device"));
        assert_eq!(
            read(&file, 1).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let folder = tempfile::tempdir().unwrap();

        let error = read(&folder.path().join("none"), 9).unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
