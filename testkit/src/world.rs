//! One test's world: its folder, its clock, its ids and its programs.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use model::{CallId, ConnectionId, Home, SessionId, Users};
use tempfile::TempDir;

use crate::{
    Deadline, Finished, FixedClock, Leftover, User, look_until,
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
    two: Option<Two>,
}

/// The users of a world whose daemon is a user of its own.
#[derive(Debug)]
pub struct Two {
    /// The daemon's.
    pub daemon: User,
    /// Whose agents are served.
    pub agent: User,
    /// As whom `lych` is run.
    operator: Operator,
}

/// Who asks the daemon in a world whose daemon is a user of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Root, as with sudo: another user than the daemon.
    Root,
    /// The daemon's own user.
    Daemon,
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
            two: None,
        }
    }

    /// The variable that says in which mode [`of_this_run`](Self::of_this_run) makes worlds: `root` or `daemon` is
    /// who asks a daemon that is a user of its own.
    pub const MODE: &str = "LYCH_TEST_MODE";

    /// Makes a world of one user, unless this run of the tests is one for the other mode.
    ///
    /// # Panics
    /// The other mode is asked for and cannot be had.
    #[must_use]
    pub fn of_this_run() -> Self {
        let operator = match env::var(Self::MODE).as_deref() {
            Ok("root") => Operator::Root,
            Ok("daemon") => Operator::Daemon,
            Ok(_) | Err(_) => return Self::new(),
        };
        Self::separate(operator).expect("users can be made")
    }

    /// Makes a world whose daemon is a user of its own, and starts it; none where we cannot make users, or they
    /// cannot start the programs where they were built.
    ///
    /// # Panics
    /// The daemon does not start.
    #[must_use]
    pub fn separate(operator: Operator) -> Option<Self> {
        let daemon = User::make(&[])?;
        let agent = User::make(&[daemon.name()])?;
        let mut world = Self::new();
        let probe = agent.as_it(bare(program("lych")).arg("--version")).output();
        probe.ok().filter(|said| said.status.success())?;
        fs::set_permissions(world.folder(), Permissions::from_mode(0o755)).expect("our own folder");
        let up = [
            "up",
            "--system",
            "--daemon-user",
            daemon.name(),
            "--agent-user",
            agent.name(),
        ];
        drop(world.run(up).expect_code(0));
        let users = Users {
            daemon: daemon.uid(),
            agent: agent.uid(),
        };
        let theirs = world.folder().join("agent");
        fs::create_dir(&theirs).expect("a folder for the agent");
        chown(&theirs, Some(agent.uid()), Some(agent.uid())).expect("root may");
        world.home = Home::separate(
            world.folder(),
            users,
            world.folder().join(".local/state/lychgate"),
        )
        .expect("a temporary folder's path is absolute");
        world.two = Some(Two {
            daemon,
            agent,
            operator,
        });
        Some(world)
    }

    /// Returns the users of a world whose daemon is a user of its own.
    #[must_use]
    pub const fn two(&self) -> Option<&Two> {
        self.two.as_ref()
    }

    /// Returns this command as it is run by whoever runs agents here: ourselves, or the agents' user from a folder
    /// of its own.
    #[must_use]
    pub fn as_agent(&self, command: Command) -> Command {
        let Some(two) = &self.two else { return command };
        let theirs = self.folder().join("agent");
        let mut its = two.agent.as_it(&command);
        its.env("HOME", &theirs).current_dir(theirs);
        its
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
        self.as_operator(self.ours("lych", args))
    }

    /// Returns this command as it is run by whoever asks the daemon here.
    #[must_use]
    pub fn as_operator(&self, command: Command) -> Command {
        match &self.two {
            Some(two) if two.operator == Operator::Daemon => two.daemon.as_it(&command),
            Some(_) | None => command,
        }
    }

    /// Returns `lychd --home … ARGS`, not yet started.
    #[must_use]
    pub fn lychd<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let lychd = self.ours("lychd", args);
        match &self.two {
            Some(two) => two.daemon.as_it(&lychd),
            None => lychd,
        }
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
