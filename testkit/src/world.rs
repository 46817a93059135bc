//! One test's world: its folder, its clock, its ids and its programs.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use model::{CallId, ConnectionId, Home, SessionId};
use tempfile::TempDir;

use crate::{
    Deadline, Finished, FixedClock, Leftover, look_until,
    program::{bare, program, run, wait_for_file},
};

/// A home of its own below a short path, and everything that must not outlive the test.
///
/// Dropping it fails the test if a process is left that names the world's folder, and ends that process.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    home: Home,
    clock: Arc<FixedClock>,
    ids: AtomicU64,
}

/// The variable that marks every program of a world, also where it was started by another one.
const MARK: &str = "LYCH_TEST_WORLD";

/// How long a process that was told to end may still be seen.
const GRACE: Duration = Duration::from_secs(2);

/// A socket's path is at most 107 bytes (unix(7)); what lies below a world must not come near.
const LONGEST_BASE: usize = 40;

impl World {
    /// Makes an empty world.
    ///
    /// # Panics
    /// There is no place for temporary files.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("ly")
            // A home that is open to others is refused.
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(short_base())
            .expect("a temporary folder can be made");
        let home = Home::below(folder.path()).expect("a temporary folder's path is absolute");
        Self {
            folder,
            home,
            clock: Arc::new(FixedClock::new()),
            ids: AtomicU64::new(1),
        }
    }

    /// Returns the world's folder, mode 0700.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the home that lies directly in the folder.
    #[must_use]
    pub const fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the clock, which stands still until it is moved.
    #[must_use]
    pub fn clock(&self) -> Arc<FixedClock> {
        Arc::clone(&self.clock)
    }

    /// Writes a file below the folder and returns its path.
    ///
    /// # Panics
    /// The file system refused.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
        path
    }

    /// Returns the next run's id; the first of every world is the same.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        SessionId::from_bytes(self.next_id())
    }

    /// Returns the next call's id.
    #[must_use]
    pub fn call_id(&self) -> CallId {
        CallId::from_bytes(self.next_id())
    }

    /// Returns the next connection's id.
    #[must_use]
    pub fn connection_id(&self) -> ConnectionId {
        ConnectionId::from_bytes(self.next_id())
    }

    fn next_id(&self) -> [u8; 10] {
        let next = self.ids.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 10];
        for (to, from) in bytes.iter_mut().rev().zip(next.to_le_bytes()) {
            *to = from;
        }
        bytes
    }

    /// Returns a command that belongs to this world: bare environment, own `HOME`, standing in its folder.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = bare(program);
        command
            .env("HOME", self.folder())
            .env(MARK, self.folder())
            .current_dir(self.folder());
        command
    }

    /// Returns `lych --home … ARGS`, not yet started.
    #[must_use]
    pub fn lych<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        self.ours("lych", args)
    }

    /// Returns `lychd --home … ARGS`, not yet started.
    #[must_use]
    pub fn lychd<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        self.ours("lychd", args)
    }

    fn ours<A: AsRef<OsStr>>(&self, name: &str, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(program(name));
        command.arg("--home").arg(self.folder()).args(args);
        command
    }

    /// Runs `lych ARGS` to its end.
    ///
    /// # Panics
    /// It does not end in the usual time.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Finished {
        self.run_with(args, b"")
    }

    /// Runs `lych ARGS` to its end with `input` on its standard input.
    ///
    /// # Panics
    /// It does not end in the usual time.
    pub fn run_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Finished {
        run(&mut self.lych(args), input, Deadline::usual())
    }

    /// Runs any command of this world to its end.
    ///
    /// # Panics
    /// It does not end before the deadline.
    pub fn finish(&self, command: &mut Command, input: &[u8], deadline: Deadline) -> Finished {
        run(command, input, deadline)
    }

    /// Waits until the daemon's operator socket stands in this world.
    ///
    /// # Panics
    /// It does not before the deadline.
    pub fn wait_for_daemon(&self, deadline: Deadline) {
        wait_for_file(&self.home.operator_socket(), deadline);
    }

    /// Returns the processes that belong to this world at this moment.
    #[must_use]
    pub fn processes(&self) -> Vec<Leftover> {
        Leftover::of(self.folder())
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let left = self.settled();
        for process in &left {
            process.end(self.folder());
        }
        // A test that fails already has a better reason.
        if !left.is_empty() && !thread::panicking() {
            panic!("the test left these processes behind: {left:#?}");
        }
    }
}

impl World {
    /// Returns what is left after whatever is just ending had a moment to do so.
    fn settled(&self) -> Vec<Leftover> {
        let grace = if thread::panicking() {
            Duration::ZERO
        } else {
            GRACE
        };
        let clean = || self.processes().is_empty().then(Vec::new);
        look_until(Deadline::after(grace), clean).unwrap_or_else(|| self.processes())
    }
}

fn short_base() -> PathBuf {
    let base = env::temp_dir();
    if base.as_os_str().len() > LONGEST_BASE {
        return PathBuf::from("/tmp");
    }
    base
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        process::Stdio,
    };

    use super::*;
    use crate::Held;

    #[test]
    fn two_worlds_share_no_folder_and_give_the_same_ids() {
        let (one, two) = (World::new(), World::new());

        assert_ne!(one.folder(), two.folder());
        assert_eq!(one.call_id(), two.call_id());
        assert_ne!(one.call_id(), one.call_id());
    }

    #[test]
    fn a_world_is_private() {
        let world = World::new();

        let mode = fs::metadata(world.folder()).unwrap().permissions().mode();

        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_socket_fits_below_a_world() {
        let world = World::new();

        assert!(world.home().operator_socket().as_os_str().len() < 100);
    }

    #[test]
    fn a_program_that_is_left_behind_fails_the_test_and_is_ended() {
        let world = World::new();
        let folder = world.folder().to_owned();
        // A shell that starts a job and ends: the job is nobody's child of ours.
        let left = world.finish(
            world
                .command("sh")
                .args(["-c", "sleep 300 </dev/null >/dev/null 2>&1 &"]),
            b"",
            Deadline::usual(),
        );
        assert_eq!(left.code(), Some(0));

        let dropped = catch_unwind(AssertUnwindSafe(|| drop(world)));

        assert!(dropped.is_err(), "nobody noticed the process");
        assert_eq!(Leftover::of(&folder), []);
    }

    #[test]
    fn a_held_program_ends_with_its_handle() {
        let world = World::new();
        let held = Held::start(world.command("sleep").arg("300").stdin(Stdio::null()));
        assert_eq!(world.processes().len(), 1);

        drop(held);

        assert_eq!(world.processes(), []);
    }

    #[test]
    fn a_finished_program_tells_its_code_and_both_outputs() {
        let world = World::new();
        let mut command = world.command("sh");
        command.args(["-c", "cat; echo no >&2; exit 3"]);

        let finished = world.finish(&mut command, b"yes", Deadline::usual());

        assert_eq!(finished.code(), Some(3));
        assert_eq!(finished.stdout, "yes");
        assert_eq!(finished.stderr, "no\n");
    }
}
