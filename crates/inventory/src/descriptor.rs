//! One open descriptor: what it is and how it was opened.

use model::Foreign;
use serde::{Deserialize, Serialize};
use sys::procfs::RawDescriptor;

/// One open descriptor of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Its number.
    pub fd: u32,
    /// How it was opened; absent for sockets and the kernel's anonymous files, which know no one-way opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether it is closed when its process starts another program; seen by a closer look only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_on_exec: Option<bool>,
    /// Whether its process holds a lock on the file through it; seen by a closer look only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// When its timer goes off, if it is one that was set; seen by a closer look only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_in_ms: Option<u64>,
    /// Which named pipe it is open on, if it is on one that a process was seen to have for its input or output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_pipe: Option<NamedPipe>,
    /// What it is open on.
    #[serde(flatten)]
    pub target: Target,
}

/// A named pipe, whatever names it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedPipe {
    /// The file system it is in.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// How a descriptor was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// For reading.
    #[serde(rename = "r")]
    Read,
    /// For writing.
    #[serde(rename = "w")]
    Write,
    /// For both.
    #[serde(rename = "rw")]
    ReadWrite,
    /// For neither (`O_PATH`).
    #[serde(rename = "-")]
    Neither,
}

/// What a descriptor is open on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// An anonymous pipe.
    Pipe {
        /// What both its ends share.
        inode: u64,
    },
    /// A socket of any family.
    Socket {
        /// Its own number; the other end has another.
        inode: u64,
    },
    /// `/dev/null`.
    Null,
    /// A terminal.
    Terminal {
        /// Its path.
        path: Foreign,
    },
    /// Anything with a path: a file, a folder, a device, a named pipe.
    File {
        /// Its path as the kernel shows it.
        path: Foreign,
        /// Whether the name is gone while the file is still open.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deleted: bool,
    },
    /// A file of the kernel's own (epoll, timer, event counter).
    Kernel {
        /// What the kernel calls it.
        name: Foreign,
    },
}

impl Access {
    /// Tells whether something can be read through it.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Tells whether something can be written through it.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }

    /// Returns the letters that lsof(8) and JSON use.
    #[must_use]
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Write => "w",
            Self::ReadWrite => "rw",
            Self::Neither => "-",
        }
    }
}

impl From<sys::procfs::Access> for Access {
    fn from(access: sys::procfs::Access) -> Self {
        match access {
            sys::procfs::Access::Read => Self::Read,
            sys::procfs::Access::Write => Self::Write,
            sys::procfs::Access::ReadWrite => Self::ReadWrite,
            sys::procfs::Access::Neither => Self::Neither,
        }
    }
}

impl From<sys::procfs::NamedPipe> for NamedPipe {
    fn from(pipe: sys::procfs::NamedPipe) -> Self {
        Self {
            device: pipe.device,
            inode: pipe.inode,
        }
    }
}

impl From<RawDescriptor> for Descriptor {
    fn from(raw: RawDescriptor) -> Self {
        Self {
            fd: raw.fd,
            access: raw.access.map(Access::from),
            close_on_exec: None,
            locked: false,
            wakes_in_ms: None,
            named_pipe: None,
            target: target(&raw.target),
        }
    }
}

fn target(text: &[u8]) -> Target {
    if let Some(inode) = numbered(text, b"pipe:[") {
        return Target::Pipe { inode };
    }
    if let Some(inode) = numbered(text, b"socket:[") {
        return Target::Socket { inode };
    }
    if text == b"/dev/null" {
        return Target::Null;
    }
    if [&b"/dev/pts/"[..], b"/dev/tty", b"/dev/console"]
        .iter()
        .any(|start| text.starts_with(start))
    {
        return Target::Terminal {
            path: Foreign::from_bytes(text),
        };
    }
    if text.starts_with(b"/") {
        // A file may really be named so; then it is shown as deleted, and its path as without the ending.
        let gone = text.strip_suffix(b" (deleted)");
        return Target::File {
            path: Foreign::from_bytes(gone.unwrap_or(text)),
            deleted: gone.is_some(),
        };
    }
    Target::Kernel {
        name: Foreign::from_bytes(text),
    }
}

/// Returns the number between `start` and the closing bracket.
pub(crate) fn numbered(text: &[u8], start: &[u8]) -> Option<u64> {
    let number = text.strip_prefix(start)?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_text_says_what_a_descriptor_is_open_on() {
        for (text, expected) in [
            ("pipe:[17]", Target::Pipe { inode: 17 }),
            ("socket:[18]", Target::Socket { inode: 18 }),
            ("/dev/null", Target::Null),
            (
                "/dev/pts/3",
                Target::Terminal {
                    path: "/dev/pts/3".into(),
                },
            ),
            (
                "/tmp/x (deleted)",
                Target::File {
                    path: "/tmp/x".into(),
                    deleted: true,
                },
            ),
            (
                "anon_inode:[eventpoll]",
                Target::Kernel {
                    name: "anon_inode:[eventpoll]".into(),
                },
            ),
        ] {
            assert_eq!(target(text.as_bytes()), expected);
        }
    }

    #[test]
    fn a_file_that_is_named_like_a_pipe_is_no_pipe() {
        let named = target(b"/tmp/pipe:[17]");

        assert!(matches!(named, Target::File { .. }));
    }
}
