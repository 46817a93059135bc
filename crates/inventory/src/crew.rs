//! Threads that look at processes, of which one that gets stuck does not hold up the look.
//!
//! Some reads wait for a lock of the process that is looked at: its memory map's, or that of a program it is
//! just starting (proc_pid_cmdline(5), proc_pid_environ(5)). A process on a dead network mount keeps such a
//! lock for as long as the mount is dead, and whoever waits for it cannot be called back. So the thread that
//! waits is left where it is: others go on with the rest, and it ends when the kernel lets it, at the latest
//! with this program. Whom a thread still waits for is kept, so that a later look does not lose another one.

use std::{
    collections::BTreeMap,
    io,
    panic::resume_unwind,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Whether what lies in a process's memory is read: only that can keep the reader waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Read,
    /// It did not answer before.
    Left,
}

impl Memory {
    /// Reads what lies in memory, or says that it did not answer.
    pub(crate) fn read<T>(self, read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Read => read(),
            Self::Left => Err(no_answer()),
        }
    }
}

/// Looks at every process, in the order of `pids`: at those that do not answer once more, not into their memory.
pub(crate) fn looks<R: Send + 'static>(
    pids: Vec<u32>,
    look: impl Fn(u32, Memory) -> io::Result<R> + Send + Sync + 'static,
) -> impl Iterator<Item = (u32, io::Result<R>)> {
    let look = Arc::new(look);
    let first = Arc::clone(&look);
    let seen = each(pids.clone(), move |pid| match waiting_for(pid) {
        0 => first(pid, Memory::Read),
        1 => first(pid, Memory::Left),
        _ => Err(no_answer()),
    });
    let silent: Vec<u32> = pids
        .iter()
        .zip(&seen)
        .filter_map(|(pid, seen)| seen.is_none().then_some(*pid))
        .collect();
    let mut again = each(silent, move |pid| look(pid, Memory::Left)).into_iter();
    let mut answer = move |seen: Option<io::Result<R>>| {
        seen.or_else(|| again.next().flatten())
            .unwrap_or_else(|| Err(no_answer()))
    };
    pids.into_iter()
        .zip(seen)
        .map(move |(pid, seen)| (pid, answer(seen)))
}

/// Says why there is nothing of a process whose read did not end.
pub(crate) fn no_answer() -> io::Error {
    let why = format!("the kernel did not answer within {} s", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Returns how many threads still wait for an answer about this process.
fn waiting_for(pid: u32) -> usize {
    lock(&STUCK).get(&pid).copied().unwrap_or(0)
}

/// Does `work` for every process, in the order of `pids`; none where it did not end.
fn each<R: Send + 'static>(
    pids: Vec<u32>,
    work: impl Fn(u32) -> R + Send + Sync + 'static,
) -> Vec<Option<R>> {
    let count = pids.len();
    let task = Arc::new(Task {
        done: Mutex::new((0..count).map(|_| None).collect()),
        next: AtomicUsize::new(0),
        pids,
        work,
    });
    let mut crew = Crew::new();
    // A third thread gains nothing: the kernel's own locks are what they wait for.
    let wanted = if count < WORTH_A_THREAD { 1 } else { 2 };
    for _ in 0..wanted.min(count) {
        crew.hire(&task);
    }
    if crew.members.is_empty() {
        // Where no thread can be started, all is read here, and nothing can be given up.
        task.go_on(&Post::default());
    }
    crew.see_through(&task);
    std::mem::take(&mut *lock(&task.done))
}

/// What is to be done, and how far it is.
struct Task<R, W> {
    pids: Vec<u32>,
    next: AtomicUsize,
    work: W,
    done: Mutex<Vec<Option<R>>>,
}

impl<R, W: Fn(u32) -> R> Task<R, W> {
    /// Takes one process after the other, until there is none left or this thread has been given up.
    fn go_on(&self, post: &Post) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(pid) = self.pids.get(at).copied() else {
                return;
            };
            post.begin(pid);
            let result = (self.work)(pid);
            // Of what is brought too late there is no place any more.
            if let Some(place) = lock(&self.done).get_mut(at) {
                *place = Some(result);
            }
            if post.end() {
                return;
            }
        }
    }

    fn is_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.pids.len()
    }
}

/// Where one thread is.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    /// What it looks at.
    pid: Option<u32>,
    /// How many it has begun: two looks at one process are told apart by it.
    begun: usize,
    given_up: bool,
    over: bool,
}

/// Where one thread is, told by it and seen by the one that waits.
#[derive(Debug, Default)]
struct Post(Mutex<At>);

impl Post {
    fn begin(&self, pid: u32) {
        let mut at = lock(&self.0);
        at.pid = Some(pid);
        at.begun += 1;
    }

    /// Tells whether it has been given up meanwhile.
    fn end(&self) -> bool {
        let mut at = lock(&self.0);
        if let Some(pid) = at.pid.take().filter(|_| at.given_up) {
            forget(pid);
        }
        at.given_up
    }

    /// Gives it up, and keeps whom it waits for.
    fn give_up(&self) {
        let mut at = lock(&self.0);
        at.given_up = true;
        if let Some(pid) = at.pid {
            *lock(&STUCK).entry(pid).or_default() += 1;
        }
    }
}

/// Says that a thread is over, also if it panicked.
struct Leaving(Arc<Post>, Sender<()>);

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.0.0).over = true;
        // Nobody waits any more for one that was given up.
        let _ = self.1.send(());
    }
}

struct Member {
    post: Arc<Post>,
    thread: JoinHandle<()>,
    /// How many it had begun when it was last seen to move, and when that was.
    seen: (usize, Instant),
    replaced: bool,
}

impl Member {
    /// Returns for how long it has not moved; none if it is over.
    fn still_for(&mut self, now: Instant) -> Option<Duration> {
        let at = *lock(&self.post.0);
        if at.begun != self.seen.0 {
            self.seen = (at.begun, now);
        }
        (!at.over).then(|| now.saturating_duration_since(self.seen.1))
    }
}

/// The threads, and where they say that they are over.
struct Crew {
    members: Vec<Member>,
    over: Receiver<()>,
    tell: Sender<()>,
}

impl Crew {
    fn new() -> Self {
        let (tell, over) = channel();
        Self {
            members: Vec::with_capacity(2),
            over,
            tell,
        }
    }

    fn hire<R, W>(&mut self, task: &Arc<Task<R, W>>)
    where
        R: Send + 'static,
        W: Fn(u32) -> R + Send + Sync + 'static,
    {
        let post = Arc::new(Post::default());
        let leaving = Leaving(Arc::clone(&post), self.tell.clone());
        let task = Arc::clone(task);
        let started = thread::Builder::new().spawn(move || {
            let leaving = leaving;
            task.go_on(&leaving.0);
        });
        if let Ok(thread) = started {
            self.members.push(Member {
                post,
                thread,
                seen: (0, Instant::now()),
                replaced: false,
            });
        }
    }

    /// Waits until all are over, or those that are not have been waited for long enough.
    fn see_through<R, W>(mut self, task: &Arc<Task<R, W>>)
    where
        R: Send + 'static,
        W: Fn(u32) -> R + Send + Sync + 'static,
    {
        loop {
            let now = Instant::now();
            let still: Vec<Duration> = self
                .members
                .iter_mut()
                .filter_map(|one| one.still_for(now))
                .collect();
            if still.iter().all(|still| *still >= PATIENCE) {
                break;
            }
            self.replace(now, task);
            let _ = self.over.recv_timeout(GLANCE);
        }
        for one in self.members {
            if lock(&one.post.0).over {
                one.thread
                    .join()
                    .unwrap_or_else(|panic| resume_unwind(panic));
            } else {
                one.post.give_up();
            }
        }
    }

    /// Has another go on for each that does not move.
    fn replace<R, W>(&mut self, now: Instant, task: &Arc<Task<R, W>>)
    where
        R: Send + 'static,
        W: Fn(u32) -> R + Send + Sync + 'static,
    {
        let mut wanted = 0;
        for one in &mut self.members {
            if !one.replaced && one.still_for(now).is_some_and(|still| still >= STILL) {
                one.replaced = true;
                wanted += 1;
            }
        }
        for _ in 0..wanted {
            if task.is_left() && self.members.len() < MOST {
                self.hire(task);
            }
        }
    }
}

fn forget(pid: u32) {
    let mut stuck = lock(&STUCK);
    match stuck.get_mut(&pid) {
        Some(count) if *count > 1 => *count -= 1,
        Some(_) | None => drop(stuck.remove(&pid)),
    }
}

/// No lock is held over anything that could panic half way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whom threads of this program still wait for, and how many for each.
static STUCK: Mutex<BTreeMap<u32, usize>> = Mutex::new(BTreeMap::new());

/// Fewer are read before another thread has started.
const WORTH_A_THREAD: usize = 64;

/// How often it is seen whether all still move.
const GLANCE: Duration = Duration::from_millis(50);

/// After so long another thread goes on with the rest. Longer, and a stuck one holds up the look; shorter, and a
/// busy machine has many threads for nothing.
const STILL: Duration = Duration::from_millis(250);

/// After so long nobody waits any more. A machine with more to do than processors makes a thread wait for tenths
/// of a second; what takes longer than this has its reason in the kernel.
const PATIENCE: Duration = Duration::from_secs(1);

/// With so many stuck ones at once the mount is the matter, and what is left is said not to be read.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    /// Opens once; whoever passes before waits.
    #[derive(Clone, Default)]
    struct Door(Arc<(Mutex<bool>, Condvar)>);

    impl Door {
        fn pass(&self) {
            let (open, opened) = &*self.0;
            drop(opened.wait_while(lock(open), |open| !*open).unwrap());
        }

        fn open(&self) {
            *lock(&self.0.0) = true;
            self.0.1.notify_all();
        }
    }

    #[test]
    fn everything_is_done_once_and_in_order() {
        let doubled = each((0..1000).collect(), |pid| pid * 2);

        let expected: Vec<Option<u32>> = (0..1000).map(|pid| Some(pid * 2)).collect();
        assert_eq!(doubled, expected);
        assert!(each(Vec::new(), |pid| pid).is_empty());
    }

    #[test]
    fn those_that_get_stuck_are_named_and_the_rest_is_done_in_time() {
        let door = Door::default();
        let inside = door.clone();
        let stuck = [900_010, 900_020, 900_030];
        let began = Instant::now();

        let done = each((900_000..900_200).collect(), move |pid| {
            if stuck.contains(&pid) {
                inside.pass();
            }
            pid
        });

        assert!(began.elapsed() < PATIENCE * 4, "{:?}", began.elapsed());
        for (pid, result) in (900_000..).zip(done) {
            assert_eq!(result.is_none(), stuck.contains(&pid), "{pid}");
            assert_eq!(waiting_for(pid), usize::from(stuck.contains(&pid)));
        }

        door.open();
        while stuck.iter().any(|pid| waiting_for(*pid) > 0) {
            thread::yield_now();
        }
    }
}
