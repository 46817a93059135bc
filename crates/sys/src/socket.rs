//! Unix sockets that only their owner can reach, or his group beside him, however deep their folder lies.
//!
//! The folder is opened first and judged by its descriptor. A path too long for an address (unix(7): 107 bytes)
//! is then walked through that descriptor, so that no working directory changes and nobody can exchange
//! the folder in between.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, chmodat, fstat, open, statat, unlinkat},
    io::Errno,
};

/// Whose a socket is, and who beside him reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeper {
    /// The user whose folder it must be in.
    pub uid: u32,
    /// Whether the folder's group may come in; it may never write there.
    pub group: bool,
}

impl Keeper {
    /// This process's user alone.
    #[must_use]
    pub fn ourselves() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            group: false,
        }
    }

    /// What the folder's mode may not have.
    const fn closed(self) -> Mode {
        if self.group {
            Mode::WGRP.union(Mode::RWXO)
        } else {
            Mode::RWXG.union(Mode::RWXO)
        }
    }

    fn socket_mode(self) -> Mode {
        let own = Mode::RUSR | Mode::WUSR;
        if self.group {
            own | Mode::RGRP | Mode::WGRP
        } else {
            own
        }
    }
}

/// Makes a socket at `path`, mode 0600, in a folder that must be ours and closed to others, and listens.
///
/// A socket that an ended process left there is replaced: take the lock of the home first.
///
/// # Errors
/// `PermissionDenied` if the folder is a link, is not ours or is open to others; `AlreadyExists` if something
/// that is no socket has the name; `InvalidInput` if the path cannot be an address on this system.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    bind(path, Keeper::ourselves())
}

/// The same for another keeper: with its group let in the socket has mode 0660.
///
/// # Errors
/// As [`bind_private`].
pub fn bind(path: &Path, keeper: Keeper) -> io::Result<UnixListener> {
    let (folder, name) = folder_of(path, keeper)?;
    match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(seen) if is_socket(&seen) => unlinkat(&folder, name, AtFlags::empty())?,
        Ok(_) => {
            let text = format!("{} exists and is no socket", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let listener = UnixListener::bind(address(path, &folder, name)?)?;
    // A short path was resolved anew by the kernel: it must have led into the folder that was judged.
    if !is_socket(&statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the folder of {} was exchanged", path.display()),
        ));
    }
    chmodat(&folder, name, keeper.socket_mode(), AtFlags::empty())?;
    Ok(listener)
}

/// Connects to the socket at `path`, in a folder that must be its keeper's and closed to others.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if nobody listens; `PermissionDenied` if the folder is a link, is not
/// the keeper's or is open to others, so that anybody could listen there; `WouldBlock` if the listener takes no
/// more.
pub fn connect(path: &Path, keeper: Keeper) -> io::Result<UnixStream> {
    let (folder, name) = folder_of(path, keeper)?;
    connect_now(&address(path, &folder, name)?)
}

/// connect(2) waits without an end where a listener's queue is full, as that of a stopped process is.
fn connect_now(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(UnixStream::from(socket))
}

/// Opens the folder of `path` and sees that only its owner, who must be the keeper, can put something there.
fn folder_of(path: &Path, keeper: Keeper) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let refuse = |why: &str| {
        let text = format!("{} {why}", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    let flags = FOLDER | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match open(folder, flags, Mode::empty()) {
        // With O_DIRECTORY a link is ENOTDIR on Linux, ELOOP elsewhere.
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return refuse("is not a folder, or is a symbolic link");
        }
        other => other?,
    };
    let seen = fstat(&opened)?;
    if seen.st_uid != keeper.uid {
        return refuse("belongs to another user");
    }
    if Mode::from_raw_mode(seen.st_mode).intersects(keeper.closed()) {
        return refuse(if keeper.group {
            "is open to other users (chmod 750 it)"
        } else {
            "is open to other users (chmod 700 it)"
        });
    }
    Ok((opened, name))
}

#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY;

fn is_socket(seen: &Stat) -> bool {
    FileType::from_raw_mode(seen.st_mode) == FileType::Socket
}

/// Returns the path to give to the kernel: the plain one where it fits, since that is what tools show.
fn address(path: &Path, folder: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    if path.as_os_str().len() <= LONGEST_ADDRESS {
        return Ok(path.to_owned());
    }
    if cfg!(not(target_os = "linux")) {
        let text = format!(
            "{} is longer than the {LONGEST_ADDRESS} bytes of a socket's address: use a shorter home",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let descriptor = folder.as_fd().as_raw_fd();
    Ok(Path::new(&format!("/proc/self/fd/{descriptor}")).join(name))
}

/// `sun_path` less its final zero byte (unix(7)).
#[cfg(target_os = "linux")]
const LONGEST_ADDRESS: usize = 107;
#[cfg(not(target_os = "linux"))]
const LONGEST_ADDRESS: usize = 103;

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read, Write},
        os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink},
    };

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("run");
        fs::DirBuilder::new().mode(0o700).create(&run).unwrap();
        (root, run)
    }

    fn connect(path: &Path) -> io::Result<UnixStream> {
        super::connect(path, Keeper::ourselves())
    }

    fn say_hello_through(path: &Path) -> String {
        let listener = bind_private(path).unwrap();
        let mut near = connect(path).unwrap();
        near.write_all(b"hello").unwrap();
        drop(near);
        let mut text = String::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn a_socket_is_reached_and_has_mode_0600() {
        let (_root, run) = folder();
        let path = run.join("agent.sock");

        assert_eq!(say_hello_through(&path), "hello");
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_far_deeper_than_an_address_is_no_hindrance() {
        let (_root, run) = folder();
        let deep = run.join("d".repeat(100)).join("e".repeat(100));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&deep)
            .unwrap();

        assert_eq!(say_hello_through(&deep.join("agent.sock")), "hello");
    }

    #[test]
    fn a_socket_left_behind_is_replaced_and_a_file_is_not() {
        let (_root, run) = folder();
        let path = run.join("agent.sock");
        drop(bind_private(&path).unwrap());
        assert_eq!(
            connect(&path).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );

        assert_eq!(say_hello_through(&path), "hello");

        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        let refused = bind_private(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_folder_open_to_others_is_refused_by_both_ends() {
        let (_root, run) = folder();
        let path = run.join("agent.sock");
        let _listener = bind_private(&path).unwrap();
        for mode in [0o770, 0o701, 0o777, 0o1777] {
            fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();

            for refused in [bind_private(&path).err(), connect(&path).err()] {
                let refused = refused.unwrap();
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
            }
        }
    }

    #[test]
    fn a_group_that_is_let_in_may_come_and_never_write() {
        let (_root, run) = folder();
        let path = run.join("agent.sock");
        let keeper = Keeper {
            group: true,
            ..Keeper::ourselves()
        };
        fs::set_permissions(&run, fs::Permissions::from_mode(0o750)).unwrap();

        let _listener = bind(&path, keeper).unwrap();

        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o660);
        assert!(super::connect(&path, keeper).is_ok());
        assert!(connect(&path).is_err(), "it is not ours alone");
        let other = Keeper {
            uid: keeper.uid + 1,
            ..keeper
        };
        assert!(super::connect(&path, other).is_err(), "it is not theirs");
        for mode in [0o770, 0o755, 0o751] {
            fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
            for refused in [
                bind(&path, keeper).err(),
                super::connect(&path, keeper).err(),
            ] {
                assert_eq!(
                    refused.unwrap().kind(),
                    io::ErrorKind::PermissionDenied,
                    "{mode:o}"
                );
            }
        }
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let (root, run) = folder();
        let _listener = bind_private(&run.join("agent.sock")).unwrap();
        let link = root.path().join("link");
        symlink(&run, &link).unwrap();

        let refused = connect(&link.join("agent.sock")).unwrap_err();

        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_listener_that_takes_nobody_does_not_hold_us_up() {
        let (_root, run) = folder();
        let path = run.join("agent.sock");
        let listener = bind_private(&path).unwrap();
        // A second listen(2) sets a shorter queue.
        rustix::net::listen(&listener, 0).unwrap();
        let mut waiting = Vec::new();

        let refused = loop {
            match connect(&path) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
            assert!(waiting.len() < 1000, "the queue has no end");
        };

        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn where_nobody_ever_listened_is_not_found() {
        let (_root, run) = folder();

        let missing = connect(&run.join("agent.sock")).unwrap_err();
        let no_folder = connect(&run.join("none/agent.sock")).unwrap_err();

        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(no_folder.kind(), io::ErrorKind::NotFound);
    }
}
