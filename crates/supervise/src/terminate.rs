//! TERM, wait, look again, and only with a reason KILL.

use std::{io, time::Duration};

use model::{Clock, Known, ProcessId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::{clock::boot_millis, process::Handle};

use crate::{
    holdup,
    plan::Plan,
    record::{Delivery, End, EndRecord, Forced, HowEnded, Origin, Remains, Sent, Signal},
    target::Target,
};

/// Finds the children that processes of the plan have now.
pub trait Family {
    /// Returns the children that are not in the plan yet.
    ///
    /// They are ended like the rest, so whoever returns them has preserved what they are.
    fn new_children(&mut self, of: &[ProcessId]) -> Vec<Target>;
}

/// Looks for no children: for a plan of processes that are known to have none.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Family for Alone {
    fn new_children(&mut self, _of: &[ProcessId]) -> Vec<Target> {
        Vec::new()
    }
}

/// Ends the targets, in the given order and each by itself, and returns what came of every one.
///
/// Returns as soon as all have ended, otherwise after the plan's grace (twice the wait if it forces).
pub fn terminate(
    targets: Vec<Target>,
    plan: &Plan,
    family: &mut dyn Family,
    clock: &dyn Clock,
) -> Vec<EndRecord> {
    let mut ending = Ending {
        subjects: Vec::new(),
        family,
        clock,
    };
    ending.add(targets, Origin::Planned);
    // A child that is born now would otherwise lose its parent, and with it the sign that it belongs here.
    ending.look_for_children();
    ending.term_and_wait(plan);
    if let Some(force) = &plan.force {
        ending.look_for_children();
        ending.term_newcomers();
        ending.kill_and_wait(force.reason());
    }
    ending.finish()
}

struct Subject {
    target: Target,
    origin: Origin,
    signals: Vec<Sent>,
    gone: Option<End>,
    forced: Option<Forced>,
}

struct Ending<'a> {
    subjects: Vec<Subject>,
    family: &'a mut dyn Family,
    clock: &'a dyn Clock,
}

impl Ending<'_> {
    fn add(&mut self, targets: Vec<Target>, origin: Origin) {
        for target in targets {
            let id = &target.process().id;
            let known = |subject: &Subject| subject.target.process().id.same(id);
            if !self.subjects.iter().any(known) {
                self.subjects.push(Subject {
                    target,
                    origin,
                    signals: Vec::new(),
                    gone: None,
                    forced: None,
                });
            }
        }
    }

    fn look_for_children(&mut self) {
        let ids: Vec<ProcessId> = self
            .subjects
            .iter()
            .map(|subject| subject.target.process().id.clone())
            .collect();
        let children = self.family.new_children(&ids);
        self.add(children, Origin::NewChild);
    }

    fn term_and_wait(&mut self, plan: &Plan) {
        let deadline = after(plan.grace);
        loop {
            self.signal_those_without(Signal::Term);
            if !self.wait(deadline, plan.look_every) || boot_millis() >= deadline {
                return;
            }
            self.look_for_children();
        }
    }

    /// A child that is found only now has not been asked to end yet, and is asked before it is killed.
    fn term_newcomers(&mut self) {
        if self
            .subjects
            .iter()
            .any(|subject| subject.signals.is_empty())
        {
            self.signal_those_without(Signal::Term);
            self.wait(after(Plan::AFTER_KILL), Plan::AFTER_KILL);
        }
    }

    fn kill_and_wait(&mut self, reason: &str) {
        self.signal_those_without(Signal::Kill);
        let killed = |subject: &&mut Subject| {
            let kill = |sent: &Sent| sent.signal == Signal::Kill;
            subject
                .signals
                .iter()
                .any(|s| kill(s) && s.delivery == Delivery::Taken)
        };
        for subject in self.subjects.iter_mut().filter(killed) {
            subject.forced = Some(Forced::because(reason));
        }
        let deadline = after(Plan::AFTER_KILL);
        while self.wait(deadline, Plan::AFTER_KILL) && boot_millis() < deadline {}
    }

    /// Signals every living subject that did not get this signal yet.
    fn signal_those_without(&mut self, signal: Signal) {
        for subject in &mut self.subjects {
            let had = subject.signals.iter().any(|sent| sent.signal == signal);
            if subject.gone.is_some() || had {
                continue;
            }
            let delivery = subject.target.send(signal);
            subject.signals.push(Sent {
                signal,
                at: self.clock.now().wall,
                delivery,
            });
        }
    }

    /// Waits for ends until the deadline, at most `pause`; tells whether anybody is still there.
    fn wait(&mut self, deadline: u64, pause: Duration) -> bool {
        let left = Duration::from_millis(deadline.saturating_sub(boot_millis()));
        let living: Vec<&Target> = self
            .subjects
            .iter()
            .filter(|subject| subject.gone.is_none())
            .map(|subject| &subject.target)
            .collect();
        if living.is_empty() {
            return false;
        }
        if poll_all(&living, PollFlags::IN, left.min(pause)).is_err() {
            // They are asked one by one below; without the pause this would be a busy loop.
            std::thread::sleep(left.min(pause));
        }
        let now = self.clock.now().wall;
        for subject in self.subjects.iter_mut().filter(|s| s.gone.is_none()) {
            if let Ok(false) = subject.target.handle().is_alive() {
                let how = Known::unknown("not asked yet");
                subject.gone = Some(End::Gone { at: now, how });
            }
        }
        self.subjects.iter().any(|subject| subject.gone.is_none())
    }

    fn finish(self) -> Vec<EndRecord> {
        self.wait_until_collected();
        let ends: Vec<End> = self.subjects.iter().map(|one| self.end_of(one)).collect();
        self.subjects
            .into_iter()
            .zip(ends)
            .map(|(subject, end)| EndRecord {
                process: subject.target.process().clone(),
                parent: subject.target.parent().cloned(),
                origin: subject.origin,
                signals: subject.signals,
                end,
                forced: subject.forced,
            })
            .collect()
    }

    /// The kernel tells how a process ended only once its parent has collected it, which is a moment later.
    fn wait_until_collected(&self) {
        let deadline = after(COLLECTED_WITHIN);
        for subject in self.subjects.iter().filter(|s| s.gone.is_some()) {
            let left = Duration::from_millis(deadline.saturating_sub(boot_millis()));
            // Without any flag poll(2) waits for POLLHUP alone, which a pidfd gives when it is collected.
            drop(poll_all(&[&subject.target], PollFlags::empty(), left));
        }
    }

    fn end_of(&self, subject: &Subject) -> End {
        let handle = subject.target.handle();
        if let Some(End::Gone { at, .. }) = subject.gone {
            return End::Gone {
                at,
                how: how(handle),
            };
        }
        if let Err(error) = handle.is_alive() {
            return End::Unclear {
                why: error.to_string(),
            };
        }
        let stat = handle.stat_now().ok().map(|stat| stat.state.letter());
        End::Remains {
            at: self.clock.now().wall,
            stat,
            why: self.holdup(subject, stat),
        }
    }

    fn holdup(&self, subject: &Subject, stat: Option<char>) -> Remains {
        let pid = subject.target.process().id.pid;
        let is_child = |other: &&Subject| {
            let stat = other.target.handle().stat_now();
            other.gone.is_none() && stat.is_ok_and(|stat| stat.ppid == pid)
        };
        let children = self.subjects.iter().filter(is_child);
        let children = children.map(|child| child.target.process().id.clone());
        holdup::of(pid, stat, &subject.signals, children.collect())
    }
}

fn how(handle: &Handle) -> Known<HowEnded> {
    let known = handle.exit_status().map(Into::into);
    let is_zombie = handle.stat_now().is_ok_and(|stat| stat.state.is_dead());
    if known.value().is_none() && is_zombie {
        return Known::unknown("its parent has not collected it");
    }
    known
}

/// How long a parent may take to collect a child before the exit result is given up on.
const COLLECTED_WITHIN: Duration = Duration::from_millis(300);

fn after(wait: Duration) -> u64 {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    boot_millis().saturating_add(wait)
}

fn poll_all(targets: &[&Target], flags: PollFlags, at_most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    let mut fds: Vec<PollFd<'_>> = targets
        .iter()
        .map(|target| PollFd::new(target.handle(), flags))
        .collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
