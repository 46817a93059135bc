//! Under which users a home runs: root says so, in a file of his own in a folder of his own.
//!
//! Whoever is not root can write neither, so a program of the agents' user can lead nobody to a daemon of its
//! own making, and the daemon can let nobody in whom root did not name.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use model::Users;

/// Returns the file that says so.
#[must_use]
pub fn file(folder: &Path) -> PathBuf {
    folder.join("separate-user")
}

/// Returns what the file holds.
#[must_use]
pub fn text(users: Users) -> String {
    let Users { daemon, agent } = users;
    format!("{SCHEMA}\ndaemon={daemon}\nagent={agent}\n")
}

/// Reads under which users the home in this folder runs; none if under that of its owner.
///
/// # Errors
/// `PermissionDenied` if somebody else than root could have written it; `InvalidData` if it says nothing that
/// can be understood: then nobody is to be believed.
pub fn of(folder: &Path) -> io::Result<Option<Users>> {
    let path = file(folder);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(&path);
    let mut opened = match opened {
        Ok(opened) => opened,
        // No such file, or no folder to have one.
        Err(error) if is_absent(&error) => return Ok(None),
        // A folder that nobody else may look into is nobody else's business, and has no such file for him.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    roots_alone(&opened, &path)?;
    roots_alone(&File::open(folder)?, folder)?;
    let mut said = String::new();
    opened.by_ref().take(LONGEST).read_to_string(&mut said)?;
    parse(&said).map(Some).ok_or_else(|| {
        let text = format!("{} says nothing that can be understood", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn roots_alone(opened: &File, path: &Path) -> io::Result<()> {
    let meta = opened.metadata()?;
    if meta.uid() == 0 && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    let text = format!(
        "{} is not root's alone, so what it says is not believed",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn parse(text: &str) -> Option<Users> {
    let mut lines = text.lines();
    if lines.next() != Some(SCHEMA) {
        return None;
    }
    let mut number = |name: &str| lines.next()?.strip_prefix(name)?.parse().ok();
    let users = Users {
        daemon: number("daemon=")?,
        agent: number("agent=")?,
    };
    // Root as agent could do anything, and one user for both would be no separation.
    let apart = users.daemon != users.agent && users.daemon != 0 && users.agent != 0;
    apart.then_some(users)
}

const SCHEMA: &str = "lych.separate-user/v1";

/// Three short lines.
const LONGEST: u64 = 256;

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    const TWO: Users = Users {
        daemon: 998,
        agent: 1000,
    };

    fn folder(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(file(folder.path()), text).unwrap();
        folder
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_root_wrote_is_read_and_without_it_there_is_one_user() {
        let none = tempfile::tempdir().unwrap();
        assert_eq!(of(none.path()).unwrap(), None);
        assert_eq!(of(&none.path().join("none")).unwrap(), None);

        let written = folder(&text(TWO));
        if crate::process::own_uid() == 0 {
            assert_eq!(of(written.path()).unwrap(), Some(TWO));
        } else {
            let refused = of(written.path()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn what_somebody_else_could_have_written_is_not_believed() {
        let written = folder(&text(TWO));
        let path = file(written.path());
        for (what, theirs) in [(written.path(), 0o777), (path.as_path(), 0o666)] {
            mode(written.path(), 0o755);
            mode(&path, 0o644);
            mode(what, theirs);

            let refused = of(written.path()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{what:?}");
        }
        mode(written.path(), 0o755);
        let link = folder("");
        fs::remove_file(file(link.path())).unwrap();
        std::os::unix::fs::symlink(&path, file(link.path())).unwrap();
        assert!(of(link.path()).is_err(), "a link was followed");
    }

    #[test]
    fn only_two_different_users_who_are_not_root_are_understood() {
        assert_eq!(parse(&text(TWO)), Some(TWO));
        for (daemon, agent) in [(0, 1000), (998, 0), (998, 998)] {
            assert_eq!(parse(&text(Users { daemon, agent })), None);
        }
        for said in [
            "",
            "lych.separate-user/v2\ndaemon=998\nagent=1000\n",
            "lych.separate-user/v1\ndaemon=998\n",
            "lych.separate-user/v1\nagent=1000\ndaemon=998\n",
            "lych.separate-user/v1\ndaemon=x\nagent=1000\n",
        ] {
            assert_eq!(parse(said), None, "{said}");
        }
    }
}
