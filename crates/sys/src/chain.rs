//! Who stands behind a shim: the chain shim → … → client, and which link holds the other end of its wire.
//!
//! A process of that chain is the *holder* if it can still write into the shim's standard input: its death is the
//! client's death, while the death of a link above it leaves a working wire in the hands of a run that
//! nobody owns. Read-only, and made of what every user may see, but for the descriptors of processes of
//! other users: where those hide the answer, ownership is incomplete and says why. A daemon that is a user of
//! its own sees none of its agents' descriptors: [`reported`] takes the shim's word for who holds the wire, if
//! that process is seen above it, and keeps it apart from what was seen.
//!
//! The chain ends below a service manager and below a person's shell, since leaving either is ordinary
//! (`nohup`, a closed terminal), and with the first session leader above the holder, the top of what was
//! started together. A shell that runs a script or a `-c` command is a link like any other program.

mod boundary;
mod wire;

use std::io;

use model::{ChainLink, LinkRole, ProcessId, ProcessRef};

use crate::{
    login,
    process::Handle,
    procfs::{ProcFs, RawDescriptor},
};
use boundary::Boundary;
use wire::FarEnd;

/// The processes behind one shim, and what is known of who holds its wire.
#[derive(Debug)]
pub struct Chain {
    links: Vec<Link>,
    holder: Result<usize, Incomplete>,
    /// Whether the holder is only what the shim says.
    is_reported: bool,
}

/// One process of a chain, held so that its end is seen.
#[derive(Debug)]
pub struct Link {
    /// The process.
    pub handle: Handle,
    /// As records name it.
    pub process: ProcessRef,
}

/// Why nobody can be said to own a wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incomplete {
    /// The shim's standard input leads to no process.
    #[error("the shim's standard input is {what}, which no process holds the other end of")]
    NoWire {
        /// What it is.
        what: String,
    },
    /// The shim says that its standard input is another one than it is.
    #[error("the shim names {claimed} as its standard input and has {seen}")]
    OtherWire {
        /// The inode it named.
        claimed: u64,
        /// What it has.
        seen: String,
    },
    /// The shim's descriptors, or the list of sockets, cannot be read.
    #[error("who holds the other end cannot be read: {why}")]
    Unreadable {
        /// Why not.
        why: String,
    },
    /// No process above the shim holds the other end.
    #[error("no process above the shim holds the other end of its standard input")]
    Nobody,
    /// None that could be looked into does, and some could not be.
    #[error(
        "no readable process above the shim holds the other end of its standard input, and {pids:?} are not readable"
    )]
    NobodyReadable {
        /// Which could not be looked into.
        pids: Vec<u32>,
    },
    /// The shim does not say who does, and nobody else may look.
    #[error("the shim does not say who holds the other end of its standard input")]
    Unreported,
    /// The shim names a process that is not above it, or is another user's.
    #[error(
        "the shim says that {pid} holds the other end of its standard input, which is no process of its user above it"
    )]
    NotAbove {
        /// Which it names.
        pid: u32,
    },
    /// More than one does, so the death of one of them is no end of the wire.
    #[error("several processes hold the other end of the shim's standard input: {pids:?}")]
    Several {
        /// Which.
        pids: Vec<u32>,
    },
}

impl Chain {
    fn of(mut links: Vec<Link>, holder: Result<usize, Incomplete>, is_reported: bool) -> Self {
        let last = last_link(&links, holder.as_ref().ok().copied());
        links.truncate(last + 1);
        Self {
            links,
            holder,
            is_reported,
        }
    }

    /// Returns the links, the shim first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the link that holds the wire.
    ///
    /// # Errors
    /// Nobody can be said to hold it: such a run gets no writes.
    pub fn holder(&self) -> Result<&Link, &Incomplete> {
        let index = self.holder.as_ref()?;
        self.links.get(*index).ok_or(&Incomplete::Nobody)
    }

    /// Returns the links above the holder, whose death makes a run abandoned; none if there is no holder.
    #[must_use]
    pub fn above_holder(&self) -> &[Link] {
        let index = self.holder.as_ref().unwrap_or(&usize::MAX);
        self.links
            .get(index.saturating_add(1)..)
            .unwrap_or_default()
    }

    /// Returns the chain as records keep it.
    #[must_use]
    pub fn recorded(&self) -> Vec<ChainLink> {
        let role = |index| match &self.holder {
            Ok(holder) if *holder == index && self.is_reported => LinkRole::HolderReported,
            Ok(holder) if *holder == index => LinkRole::Holder,
            _ if index == 0 => LinkRole::Shim,
            _ => LinkRole::Above,
        };
        let links = self.links.iter().enumerate();
        links
            .map(|(index, link)| ChainLink {
                process: link.process.clone(),
                role: role(index),
            })
            .collect()
    }

    /// Gives the links away, the shim first.
    #[must_use]
    pub fn into_links(self) -> Vec<Link> {
        self.links
    }
}

/// Looks at who stands above `shim`, which says that its standard input has the inode `claimed`.
///
/// # Errors
/// The shim has ended, or its parents changed faster than they could be read.
pub fn above(shim: Handle, claimed: Option<u64>) -> io::Result<Chain> {
    let procfs = ProcFs::open()?;
    let links = climb(shim)?;
    let far_end = wire::far_end(&procfs, &links, claimed);
    let holder = far_end.and_then(|end| holder(&procfs, &links, &end));
    Ok(Chain::of(links, holder, false))
}

/// Looks at who stands above a shim of another user, which says that `holder` holds its wire.
///
/// # Errors
/// As [`above`].
pub fn reported(shim: Handle, holder: Option<&ProcessId>) -> io::Result<Chain> {
    let links = climb(shim)?;
    let holder = holder.ok_or(Incomplete::Unreported).and_then(|named| {
        let is_it = |(_, link): &(usize, &Link)| link.process.id.same(named);
        let its_own = |(_, link): &(usize, &Link)| is_of_its_user(&links, link);
        let found = links.iter().enumerate().skip(1).find(is_it).filter(its_own);
        let not_above = Incomplete::NotAbove { pid: named.pid };
        found.map(|(index, _)| index).ok_or(not_above)
    });
    Ok(Chain::of(links, holder, true))
}

/// A client belongs to the same user as its shim; what root or the daemon runs above both is nobody's client.
fn is_of_its_user(links: &[Link], link: &Link) -> bool {
    let user = |link: &Link| {
        let uid = login::effective_uid(link.handle.id().pid)?;
        // Asked afterwards: alive now, so the number was its own.
        link.handle.is_alive().ok()?.then_some(uid)
    };
    let own = links.first().and_then(user);
    own.is_some() && own == user(link)
}

/// Opens the shim's ancestors up to the service manager, which is no link.
fn climb(shim: Handle) -> io::Result<Vec<Link>> {
    let mut links = vec![link(shim)?];
    while links.len() < LONGEST_CHAIN {
        let Some(top) = links.last() else { break };
        match parent(&top.handle) {
            Ok(Some(handle)) if boundary::is_service_manager(handle.stat()) => break,
            Ok(Some(handle)) => links.push(link(handle)?),
            Ok(None) => break,
            // It ended meanwhile: whoever it started has another parent now, so look again from there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && links.len() > 1 => {
                links.pop();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(links)
}

fn link(handle: Handle) -> io::Result<Link> {
    let process = handle.describe()?.shortened(MOST_OF_A_COMMAND);
    Ok(Link { handle, process })
}

/// Opens the parent; none if it is outside of our pid namespace.
fn parent(child: &Handle) -> io::Result<Option<Handle>> {
    for _ in 0..MOST_PARENTS {
        let ppid = child.stat_now()?.ppid;
        if ppid == 0 {
            return Ok(None);
        }
        let handle = match Handle::open(ppid) {
            Ok(handle) => handle,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        // The order matters: a number read before it was opened may have changed hands; one that is still
        // the parent's afterwards has not.
        if child.stat_now()?.ppid == ppid {
            return Ok(Some(handle));
        }
    }
    let pid = child.id().pid;
    Err(io::Error::other(format!(
        "the parents of {pid} change too fast to be read"
    )))
}

/// Finds the one link above the shim that can write into its standard input.
fn holder(procfs: &ProcFs, links: &[Link], end: &FarEnd) -> Result<usize, Incomplete> {
    let above = links.iter().enumerate().skip(1);
    choose(above.map(|(index, link)| {
        Look {
            index,
            pid: link.handle.id().pid,
            holds: descriptors(procfs, &link.handle)
                .map(|all| all.iter().any(|descriptor| end.is(descriptor))),
        }
    }))
}

/// What a look at one link's descriptors showed.
struct Look {
    index: usize,
    pid: u32,
    holds: io::Result<bool>,
}

/// Says which link is the holder, if exactly one is.
fn choose(looks: impl Iterator<Item = Look>) -> Result<usize, Incomplete> {
    let (mut holders, mut unreadable) = (Vec::new(), Vec::new());
    for look in looks {
        match look.holds {
            Ok(true) => holders.push((look.index, look.pid)),
            Ok(false) => {}
            Err(_) => unreadable.push(look.pid),
        }
    }
    match *holders.as_slice() {
        // Descriptors are inherited downwards: one that another user's process above kept too would be its own,
        // and that process would not let a user's client write for it.
        [(index, _)] => Ok(index),
        [] if unreadable.is_empty() => Err(Incomplete::Nobody),
        [] => Err(Incomplete::NobodyReadable { pids: unreadable }),
        ref several => Err(Incomplete::Several {
            pids: several.iter().map(|(_, pid)| *pid).collect(),
        }),
    }
}

/// Reads the descriptors of exactly this process.
fn descriptors(procfs: &ProcFs, handle: &Handle) -> io::Result<Vec<RawDescriptor>> {
    let folder = procfs.process(handle.id().pid)?;
    // Alive after the folder was opened: the folder is its own, and stays so.
    if !handle.is_alive()? {
        return Err(io::ErrorKind::NotFound.into());
    }
    folder.descriptors()
}

/// Returns the index of the topmost link that belongs to the run.
fn last_link(links: &[Link], holder: Option<usize>) -> usize {
    let lowest = holder.unwrap_or(0);
    let above = links.iter().enumerate().skip(lowest + 1);
    let mut last = lowest;
    for (index, link) in above {
        match boundary::of(&link.handle) {
            Boundary::PersonsShell => break,
            Boundary::SessionLeader => return index,
            Boundary::None => last = index,
        }
    }
    last
}

/// Bytes of a link's command line: the longest chain of such fits into half a record.
const MOST_OF_A_COMMAND: usize = 4096;

/// Deeper trees than this are not built by clients; the chain is recorded with every run.
const LONGEST_CHAIN: usize = 32;

/// A parent changes when it dies, so this many times means that somebody plays with us.
const MOST_PARENTS: usize = 16;

#[cfg(test)]
mod tests;
