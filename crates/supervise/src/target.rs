//! A process that may be signalled: held by its pidfd, found to be the one that the evidence describes.

use std::{collections::BTreeSet, fs, io, os::unix::fs::MetadataExt};

use model::{ExeId, ProcessId, ProcessRef};
use rustix::process::Signal as Number;
use sys::process::Handle;

use crate::record::{Delivery, Signal};

/// What is known of a process before it may be signalled.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The process as it was preserved.
    pub process: ProcessRef,
    /// What the verdict on it says.
    pub standing: Standing,
}

/// What a verdict means for ending a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is left over, or a person has decided so.
    Endable,
    /// A living client uses it.
    Live,
    /// A service manager runs it.
    Managed,
    /// Several clients share it.
    Shared,
}

/// Why a process is no target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotATarget {
    /// It has ended, also if its number belongs to another process now.
    #[error("process {0} has ended")]
    Gone(u32),
    /// It runs another program than the evidence says.
    #[error("process {0} runs another program than when it was looked at")]
    Changed(u32),
    /// A living client uses it.
    #[error("process {0} is in use by a living client")]
    Live(u32),
    /// A service manager runs it, and would start it again.
    #[error("process {0} is run by a service manager: stop it there")]
    Managed(u32),
    /// Several clients share it.
    #[error("process {0} is shared by several clients")]
    Shared(u32),
    /// It is the first process of the machine or of this container.
    #[error("process 1 is never signalled")]
    First,
    /// It is this program.
    #[error("process {0} is this program itself")]
    Ourselves(u32),
    /// This program was started by it.
    #[error("process {0} started this program")]
    OurAncestor(u32),
    /// It is a thread of the kernel.
    #[error("process {0} is a thread of the kernel")]
    Kernel(u32),
    /// The kernel does not let it be looked at.
    #[error("process {pid} cannot be held")]
    Unreadable {
        /// Which.
        pid: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl NotATarget {
    /// Tells whether it is no target because it has ended.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

/// A process that may be signalled.
#[derive(Debug)]
pub struct Target {
    handle: Handle,
    process: ProcessRef,
    parent: Option<ProcessId>,
}

impl Target {
    /// Takes hold of the process that the evidence describes.
    ///
    /// # Errors
    /// It has ended, is another one, or is one that is never signalled.
    pub fn verify(evidence: &Evidence) -> Result<Self, NotATarget> {
        let pid = evidence.process.id.pid;
        match evidence.standing {
            Standing::Endable => {}
            Standing::Live => return Err(NotATarget::Live(pid)),
            Standing::Managed => return Err(NotATarget::Managed(pid)),
            Standing::Shared => return Err(NotATarget::Shared(pid)),
        }
        refuse_our_own(pid)?;
        let handle = Handle::reopen(&evidence.process.id).map_err(|source| unheld(pid, source))?;
        if handle.stat().is_kernel_thread() {
            return Err(NotATarget::Kernel(pid));
        }
        let parent = Handle::open(handle.stat().ppid).ok();
        let target = Self {
            parent: parent.map(|parent| parent.id().clone()),
            process: evidence.process.clone(),
            handle,
        };
        target.verify_program()?;
        Ok(target)
    }

    /// Returns which process it is.
    #[must_use]
    pub const fn process(&self) -> &ProcessRef {
        &self.process
    }

    /// Returns its parent as it was when it was verified, if it could be held.
    #[must_use]
    pub const fn parent(&self) -> Option<&ProcessId> {
        self.parent.as_ref()
    }

    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sends one signal, after looking once more that the process is still what was preserved.
    pub(crate) fn send(&self, signal: Signal) -> Delivery {
        match self.verify_program() {
            Ok(()) => {}
            Err(NotATarget::Gone(_)) => return Delivery::AlreadyGone,
            Err(other) => {
                return Delivery::Refused {
                    errno: None,
                    why: other.to_string(),
                };
            }
        }
        let number = match signal {
            Signal::Term => Number::TERM,
            Signal::Kill => Number::KILL,
        };
        match send(&self.handle, number) {
            Ok(()) => Delivery::Taken,
            // The pidfd names its process for ever: a later holder of the number gets nothing.
            Err(rustix::io::Errno::SRCH) => Delivery::AlreadyGone,
            Err(errno) => Delivery::refused(&errno.into()),
        }
    }

    /// A process keeps its identity through execve(2): what it runs now must be what was preserved.
    fn verify_program(&self) -> Result<(), NotATarget> {
        let pid = self.process.id.pid;
        let now = fs::metadata(format!("/proc/{pid}/exe")).ok();
        let now = now.map(|file| ExeId {
            dev: file.dev(),
            ino: file.ino(),
        });
        // Only after the look: what was read of a process that still lives is its own.
        match self.handle.is_alive() {
            Ok(true) => {}
            Ok(false) => return Err(NotATarget::Gone(pid)),
            Err(source) => return Err(NotATarget::Unreadable { pid, source }),
        }
        match (self.process.exe_id, now) {
            (Some(then), Some(now)) if then != now => Err(NotATarget::Changed(pid)),
            _ => Ok(()),
        }
    }
}

fn unheld(pid: u32, source: io::Error) -> NotATarget {
    if source.kind() == io::ErrorKind::NotFound {
        NotATarget::Gone(pid)
    } else {
        NotATarget::Unreadable { pid, source }
    }
}

fn refuse_our_own(pid: u32) -> Result<(), NotATarget> {
    let ourselves = std::process::id();
    if pid == 1 {
        Err(NotATarget::First)
    } else if pid == ourselves {
        Err(NotATarget::Ourselves(pid))
    } else if ancestors(ourselves).contains(&pid) {
        Err(NotATarget::OurAncestor(pid))
    } else {
        Ok(())
    }
}

/// Returns the numbers of all processes above `pid`, as far up as they can be seen.
fn ancestors(pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut below = pid;
    while let Ok(handle) = Handle::open(below) {
        below = handle.stat().ppid;
        // A cycle cannot be, except in numbers that change hands while they are read.
        if below == 0 || !found.insert(below) {
            break;
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn send(handle: &Handle, number: Number) -> rustix::io::Result<()> {
    rustix::process::pidfd_send_signal(handle, number)
}

/// Without a descriptor that holds the process, a signal could meet a later holder of its number.
#[cfg(not(target_os = "linux"))]
fn send(_: &Handle, _: Number) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOTSUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(pid: u32, standing: Standing) -> Evidence {
        Evidence {
            process: Handle::open(pid).unwrap().describe().unwrap(),
            standing,
        }
    }

    #[test]
    fn this_program_and_what_started_it_are_no_targets() {
        let own = std::process::id();
        let parent = Handle::open(own).unwrap().stat().ppid;

        let ourselves = Target::verify(&evidence(own, Standing::Endable)).unwrap_err();
        let above = Target::verify(&evidence(parent, Standing::Endable)).unwrap_err();

        assert!(matches!(ourselves, NotATarget::Ourselves(_)));
        assert!(matches!(
            above,
            NotATarget::OurAncestor(_) | NotATarget::First
        ));
    }

    #[test]
    fn the_first_process_is_no_target() {
        let refused = Target::verify(&evidence(1, Standing::Endable)).unwrap_err();

        assert!(matches!(refused, NotATarget::First));
    }
}
