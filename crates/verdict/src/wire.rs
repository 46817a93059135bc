//! What a process reads from and writes to, and what became of the other end.

use inventory::{Access, Descriptor, Holder, NamedPipe, Process, Snapshot, Target};
use model::Known;

use crate::{EndKind, EndState, Proof, TransportEnd};

/// The direction of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

impl Way {
    const fn is_open_to(self, access: Access) -> bool {
        match self {
            Self::In => access.reads(),
            Self::Out => access.writes(),
        }
    }
}

/// One end of a wire as a process holds it.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// Which descriptor; none if there is none, or it could not be read.
    pub(crate) fd: Option<u32>,
    /// What is told of it. The holders are all that hold the other end, the process's own kin included.
    pub(crate) seen: TransportEnd,
    /// What lies on this side, to find out who shares it.
    pub(crate) target: Option<Target>,
    /// Which named pipe it is. That is no wire: whoever may open it can do so at any time.
    pub(crate) named_pipe: Option<NamedPipe>,
}

impl End {
    fn plain(fd: Option<u32>, kind: EndKind, state: EndState) -> Self {
        Self {
            fd,
            seen: TransportEnd {
                kind,
                state,
                proof: None,
                unread_bytes: None,
                holders: Vec::new(),
            },
            target: None,
            named_pipe: None,
        }
    }

    /// Tells whether it can be a client's wire.
    pub(crate) const fn is_wire(&self) -> bool {
        matches!(self.seen.kind, EndKind::Pipe | EndKind::Socketpair)
    }
}

/// Returns the end of a process in one direction at its usual place.
pub(crate) fn usual(snapshot: &Snapshot, process: &Process, way: Way) -> End {
    if let Some(why) = process.descriptors.why() {
        let mut end = End::plain(None, EndKind::None, EndState::Unknown);
        end.seen.unread_bytes = Some(Known::unknown(why));
        return end;
    }
    let fd = match way {
        Way::In => 0,
        Way::Out => 1,
    };
    process.descriptor(fd).map_or_else(
        || End::plain(None, EndKind::None, EndState::Eof),
        |open| end(snapshot, open, way),
    )
}

/// Returns the end that a server has moved away from 0 and 1, if one looks like that.
pub(crate) fn moved(
    snapshot: &Snapshot,
    process: &Process,
    way: Way,
    is_kin: impl Fn(u32) -> bool,
) -> Option<End> {
    process
        .open()
        .filter(|open| open.fd > 2)
        .map(|open| end(snapshot, open, way))
        .filter(|end| end.is_wire() && goes(process, end, way))
        .find(|end| !end.seen.holders.iter().any(|holder| is_kin(holder.pid)))
}

fn goes(process: &Process, end: &End, way: Way) -> bool {
    let access = end
        .fd
        .and_then(|fd| process.descriptor(fd))
        .and_then(|open| open.access);
    // A socket goes both ways.
    access.is_none_or(|access| way.is_open_to(access))
}

fn end(snapshot: &Snapshot, open: &Descriptor, way: Way) -> End {
    let mut end = match &open.target {
        Target::File { .. } if open.named_pipe.is_some() => named_pipe(snapshot, open, way),
        Target::Pipe { inode } => pipe(snapshot, *inode, open.access, way),
        Target::Socket { inode } => socket(snapshot, *inode, way),
        Target::Null => End::plain(None, EndKind::Null, EndState::Eof),
        // Its device goes with whoever held the other end (pts(4)).
        Target::Terminal { path } if path.raw().ends_with(" (deleted)") => {
            End::plain(None, EndKind::Tty, EndState::Eof)
        }
        Target::Terminal { .. } => End::plain(None, EndKind::Tty, EndState::Open),
        Target::File { .. } | Target::Kernel { .. } => {
            End::plain(None, EndKind::File, EndState::Open)
        }
    };
    end.fd = Some(open.fd);
    end.target = Some(open.target.clone());
    end.named_pipe = open.named_pipe;
    end
}

fn pipe(snapshot: &Snapshot, inode: u64, access: Option<Access>, way: Way) -> End {
    let mut end = End::plain(None, EndKind::Pipe, EndState::Unknown);
    let usable = access.is_some_and(|access| way.is_open_to(access));
    let Some(pipe) = snapshot.pipe(inode).filter(|_| usable) else {
        return end;
    };
    end.seen.holders = match way {
        Way::In => pipe.writers().cloned().collect(),
        Way::Out => pipe.readers().cloned().collect(),
    };
    let asked = match way {
        Way::In => {
            end.seen.unread_bytes = Some(pipe.unread_bytes.clone());
            pipe.hung_up.value().copied()
        }
        // Asking a write end would mean holding one, and hiding the end of the pipe from its reader. What waits
        // in it is known if its reader was asked.
        Way::Out => {
            end.seen.unread_bytes = pipe.unread_bytes.value().copied().map(Known::Yes);
            None
        }
    };
    // Asked last: it goes through all processes, and few pipes have no holder.
    let all_seen = || snapshot.all_holders_seen();
    (end.seen.state, end.seen.proof) = match (asked, end.seen.holders.is_empty()) {
        (Some(true), _) => (EndState::Eof, Some(Proof::PipeHup)),
        (Some(false), false) | (None, false) => (EndState::Open, Some(Proof::HolderScan)),
        (Some(false), true) => (EndState::Open, Some(Proof::PipeHup)),
        (None, true) if all_seen() => (EndState::Eof, Some(Proof::HolderScan)),
        (None, true) => (EndState::Unknown, None),
    };
    end
}

/// Only those that are seen to hold the other end tell of it; that there is none takes all processes.
fn named_pipe(snapshot: &Snapshot, open: &Descriptor, way: Way) -> End {
    let mut end = End::plain(None, EndKind::File, EndState::Unknown);
    let usable = open.access.is_some_and(|access| way.is_open_to(access));
    let Some(pipe) = open.named_pipe.filter(|_| usable) else {
        return end;
    };
    let other = match way {
        Way::In => Way::Out,
        Way::Out => Way::In,
    };
    let holders = snapshot.named_pipe(pipe);
    end.seen.holders = holders
        .filter(|holder| other.is_open_to(holder.access))
        .collect();
    (end.seen.state, end.seen.proof) = if !end.seen.holders.is_empty() {
        (EndState::Open, Some(Proof::HolderScan))
    } else if snapshot.all_holders_seen() {
        (EndState::Eof, Some(Proof::HolderScan))
    } else {
        (EndState::Unknown, None)
    };
    end
}

fn socket(snapshot: &Snapshot, inode: u64, way: Way) -> End {
    let Some(socket) = snapshot.socket(inode) else {
        // Of another family, or of another network namespace.
        return End::plain(None, EndKind::Socket, EndState::Unknown);
    };
    let peer = socket.peer.filter(|peer| *peer != 0);
    let other = peer.and_then(|peer| snapshot.socket(peer));
    let nameless = socket.name.is_none() && other.is_none_or(|other| other.name.is_none());
    let kind = if nameless && socket.peer.is_some() {
        EndKind::Socketpair
    } else {
        EndKind::Socket
    };
    let mut end = End::plain(None, kind, EndState::Unknown);
    end.seen.unread_bytes = match way {
        Way::In => Some(Known::Yes(socket.unread_bytes)),
        Way::Out => other.map(|other| Known::Yes(other.unread_bytes)),
    };
    end.seen.holders = other.map(|other| other.holders.clone()).unwrap_or_default();
    let closed = match way {
        Way::In => socket.no_more_input,
        Way::Out => socket.no_more_output,
    };
    (end.seen.state, end.seen.proof) = match (socket.peer, closed) {
        (Some(0), _) | (Some(_), true) => (EndState::Eof, Some(Proof::UnixDiag)),
        (Some(_), false) => (EndState::Open, Some(Proof::UnixDiag)),
        (None, _) => (EndState::Unknown, None),
    };
    end
}

/// Tells whether two processes read from the same end: one has then started the other and waits for it.
pub(crate) fn share_input(one: &Process, other: &Process) -> bool {
    match (one.descriptor(0), other.descriptor(0)) {
        (Some(one), Some(other)) if one.named_pipe.is_some() => one.named_pipe == other.named_pipe,
        (Some(one), Some(other)) => {
            matches!(one.target, Target::Pipe { .. } | Target::Socket { .. })
                && one.target == other.target
        }
        (_, _) => false,
    }
}

/// Tells whether two processes have the input or the output in common, as a wire.
pub(crate) fn share_ends(one: &Process, other: &Process) -> bool {
    let output = |process: &Process| process.descriptor(1).map(|open| open.target.clone());
    let is_wire = |end: &Target| matches!(end, Target::Pipe { .. } | Target::Socket { .. });
    let output_shared = output(one).filter(is_wire).is_some() && output(one) == output(other);
    share_input(one, other) || output_shared
}

/// Returns the holders that are not kin.
pub(crate) fn strangers(end: &TransportEnd, is_kin: impl Fn(u32) -> bool) -> Vec<&Holder> {
    let strangers = end.holders.iter().filter(|holder| !is_kin(holder.pid));
    strangers.collect()
}
