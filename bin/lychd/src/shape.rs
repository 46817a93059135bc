//! The shape of a chain: which programs stand behind a shim, by their content and never only by their name.
//!
//! From the holder to the top of the chain, each process gives the SHA-256 of the file it runs. For an
//! interpreter that says nothing yet, so it also gives every file that its command line names, and the words
//! before the first of them, options included. One that runs code from its command line (`-c`) gives every
//! word of it. An interpreter that runs anything else (a module by name, its input) has no shape and cannot
//! be remembered.
//!
//! What a shape cannot see: libraries and modules that a program loads by itself, its environment, a script
//! that was exchanged after it was started. It keeps a strange parent out, not a hostile program of the user.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    sync::{Mutex, PoisonError},
};

use model::{ChainLink, Digest, Foreign, LinkRole};
use sha2::{Digest as _, Sha256};
use sys::process::Handle;

/// A chain's shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Its digest.
    pub(crate) digest: Digest,
    /// What a person reads, one line per program.
    pub(crate) what: Vec<String>,
}

/// Digests of files that were read before: an interpreter of a hundred megabytes is not read for each run.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<HashMap<FileState, Digest>>);

/// A file and the state in which it was read; any write changes its `ctime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileState {
    dev: u64,
    ino: u64,
    size: u64,
    changed: (i64, i64),
}

/// Programs that run what their command line names. A shell is one, and so is what hands on to another.
const INTERPRETERS: &[&str] = &[
    "ash", "bash", "bun", "busybox", "dash", "deno", "dotnet", "electron", "env", "fish", "java",
    "ksh", "lua", "node", "nodejs", "perl", "php", "pypy", "pypy3", "python", "ruby", "sh", "tsx",
    "uv", "zsh",
];

/// Files read at most for one digest of a shape; more is no interpreter's command line.
const MOST_FILES: usize = 64;

/// Looks at the processes of a recorded chain as they are now. Waits for the disk.
///
/// # Errors
/// One of them is gone, cannot be read, or runs something that cannot be bound.
pub(crate) fn of(chain: &[ChainLink], digests: &Digests) -> io::Result<Shape> {
    let mut sum = Sha256::new();
    let mut what = Vec::new();
    sum.update(b"lychgate/shape/v1\0");
    let mut holders = 0;
    for link in chain.iter().filter(|link| link.role != LinkRole::Shim) {
        holders += usize::from(link.role.is_holder());
        let program = program(link, digests)?;
        sum.update([u8::from(link.role.is_holder())]);
        for part in &program.parts {
            sum.update((part.len() as u64).to_be_bytes());
            sum.update(part);
        }
        sum.update(b"\0next\0");
        what.push(program.what);
    }
    if holders != 1 {
        return Err(io::Error::other("nobody was seen to hold its wire"));
    }
    Ok(Shape {
        digest: Digest::from_bytes(sum.finalize().into()),
        what,
    })
}

struct Program {
    parts: Vec<Vec<u8>>,
    what: String,
}

fn program(link: &ChainLink, digests: &Digests) -> io::Result<Program> {
    let handle = Handle::reopen(&link.process.id)?;
    let folder = format!("/proc/{}", handle.id().pid);
    let folder = Path::new(&folder);
    let exe = digests.of(&File::open(folder.join("exe"))?)?;
    let path = std::fs::read_link(folder.join("exe"))?;
    let name = path.file_name().unwrap_or_default().to_owned();
    let command = std::fs::read(folder.join("cmdline"))?;
    let cwd = folder.join("cwd");
    let mut program = Program {
        parts: vec![exe.to_bytes().to_vec()],
        what: format!("{} ({})", shown(path.as_os_str()), short(exe)),
    };
    if interprets(&name) {
        bind(&mut program, &command, &cwd, digests)?;
    }
    // Asked last: what was read belongs to this very process only if it is still there.
    if handle.is_alive()? {
        Ok(program)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Tells whether a program's name, version digits left out, is that of an interpreter.
fn interprets(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&name.as_ref()) || INTERPRETERS.contains(&bare)
}

/// Adds what an interpreter runs: each file its command line names, and the words before the first.
fn bind(program: &mut Program, command: &[u8], cwd: &Path, digests: &Digests) -> io::Result<()> {
    let words: Vec<&[u8]> = sys::process::split_command_line(command).skip(1).collect();
    let mut files = 0;
    for word in &words {
        match named_file(word, cwd) {
            Some((path, file)) => {
                files += 1;
                if files > MOST_FILES {
                    return Err(io::Error::other("its command line names too many files"));
                }
                let digest = digests.of(&file)?;
                program.parts.push(digest.to_bytes().to_vec());
                let text = format!(" {} ({})", shown(&path), short(digest));
                program.what.push_str(&text);
            }
            // Behind the script stand its own arguments, which differ from run to run.
            None if files > 0 => {}
            None => program.parts.push([b"word ", *word].concat()),
        }
    }
    if files == 0 && runs_code(&words) {
        program.what.push_str(" code of its command line");
    } else if files == 0 {
        let why = format!("{} runs no file that can be read", program.what);
        return Err(io::Error::other(why));
    }
    Ok(())
}

/// Tells whether code stands on the command line: `-c` or `-e`, alone or at the end of a cluster, and a word
/// behind it.
fn runs_code(words: &[&[u8]]) -> bool {
    let takes_code = |word: &[u8]| {
        let short = word.starts_with(b"-") && !word.starts_with(b"--");
        word == b"--eval" || (short && (word.ends_with(b"c") || word.ends_with(b"e")))
    };
    words
        .windows(2)
        .any(|pair| matches!(pair, [option, code] if takes_code(option) && !code.starts_with(b"-")))
}

/// Opens the regular file that a word of a command line names, also behind `--option=`.
fn named_file(word: &[u8], cwd: &Path) -> Option<(std::ffi::OsString, File)> {
    let behind = word.iter().position(|byte| *byte == b'=');
    let text = match behind {
        Some(at) if word.starts_with(b"-") => word.get(at.saturating_add(1)..)?,
        Some(_) | None => word,
    };
    let text = OsStr::from_bytes(text);
    // Asked before it is opened: opening a pipe would wait for its writer.
    let path = cwd.join(text);
    if text.is_empty() || !std::fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    Some((text.to_owned(), File::open(path).ok()?))
}

impl Digests {
    fn of(&self, file: &File) -> io::Result<Digest> {
        let state = state(file)?;
        if let Some(known) = self.lock().get(&state) {
            return Ok(*known);
        }
        let mut sum = Sha256::new();
        let mut chunk = vec![0; 64 << 10];
        let mut reader = file;
        loop {
            let count = reader.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            sum.update(chunk.get(..count).unwrap_or_default());
        }
        let digest = Digest::from_bytes(sum.finalize().into());
        // Kept only if nobody wrote while it was read.
        if self::state(file)? != state {
            return Err(io::Error::other("a program was changed while it was read"));
        }
        self.lock().insert(state, digest);
        Ok(digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<FileState, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(file: &File) -> io::Result<FileState> {
    let meta = file.metadata()?;
    Ok(FileState {
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.size(),
        changed: (meta.ctime(), meta.ctime_nsec()),
    })
}

fn shown(path: &OsStr) -> String {
    Foreign::from_bytes(path.as_bytes()).to_string()
}

fn short(digest: Digest) -> String {
    digest.to_string().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// A running program that waits for its input's end.
    struct Running(Child);

    impl Running {
        fn start(program: &Path, args: &[&str]) -> Self {
            let child = Command::new(program)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // The kernel lets the parent go on a moment before the command line is in place (execve(2)).
            let line = format!("/proc/{}/cmdline", child.id());
            while fs::read(&line).is_ok_and(|line| line.is_empty()) {
                std::thread::yield_now();
            }
            Self(child)
        }

        fn link(&self, role: LinkRole) -> ChainLink {
            let process = Handle::open(self.0.id()).unwrap().describe().unwrap();
            ChainLink { process, role }
        }

        fn shape(&self) -> io::Result<Digest> {
            of(&[self.link(LinkRole::Holder)], &Digests::default()).map(|shape| shape.digest)
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            drop(self.0.wait());
        }
    }

    fn script(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    const WAITS: &str = "read line\n";

    #[test]
    fn an_interpreter_is_known_by_its_script_and_not_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let one = script(folder.path(), "one", WAITS);
        let same = script(folder.path(), "same", WAITS);
        let other = script(folder.path(), "other", "read line # other\n");
        let sh = Path::new("/bin/sh");

        let shape = |args: &[&str]| Running::start(sh, args).shape().unwrap();

        assert_eq!(shape(&[&one]), shape(&[&same, "its", "arguments"]));
        assert_ne!(shape(&[&one]), shape(&[&other]));
        assert_ne!(shape(&[&one]), shape(&["-e", &one]), "options count");
    }

    #[test]
    fn an_interpreter_of_its_input_has_no_shape() {
        for args in [&[][..], &["-e"], &["-s", "word"]] {
            let running = Running::start(Path::new("/bin/sh"), args);

            assert!(running.shape().is_err(), "{args:?}");
        }
    }

    #[test]
    fn code_on_the_command_line_is_known_by_every_word() {
        let shape = |code: &str| {
            Running::start(Path::new("/bin/sh"), &["-c", code, "name"])
                .shape()
                .unwrap()
        };

        assert_eq!(shape("read line; true"), shape("read line; true"));
        assert_ne!(shape("read line; true"), shape("read line; false"));
    }

    #[test]
    fn a_program_under_a_known_name_with_other_content_has_another_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("client");
        fs::copy("/bin/cat", &path).unwrap();
        let first = Running::start(&path, &[]).shape().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes.push(0);
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let mode = fs::metadata("/bin/cat").unwrap().permissions();
        fs::set_permissions(&path, mode).unwrap();

        let second = Running::start(&path, &[]).shape().unwrap();

        assert_ne!(first, second);
    }

    #[test]
    fn the_same_client_below_another_parent_has_another_shape() {
        let cat = Running::start(Path::new("/bin/cat"), &[]);
        let tee = Running::start(Path::new("/usr/bin/tee"), &[]);
        let alone = vec![cat.link(LinkRole::Holder)];
        let below = vec![cat.link(LinkRole::Holder), tee.link(LinkRole::Above)];
        let digests = Digests::default();

        let alone = of(&alone, &digests).unwrap().digest;

        assert_ne!(alone, of(&below, &digests).unwrap().digest);
    }

    #[test]
    fn a_chain_without_a_holder_has_no_shape() {
        let cat = Running::start(Path::new("/bin/cat"), &[]);

        assert!(of(&[cat.link(LinkRole::Above)], &Digests::default()).is_err());
    }
}
