//! What a process reads from and writes to, and what became of the other end.

use inventory::{Access, Descriptor, Holder, Process, Snapshot, Target};
use model::Known;

use crate::{EndKind, EndState, Proof, TransportEnd};

/// The direction of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
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
    match (access, way) {
        (Some(access), Way::In) => access.reads(),
        (Some(access), Way::Out) => access.writes(),
        // A socket goes both ways.
        (None, _) => true,
    }
}

fn end(snapshot: &Snapshot, open: &Descriptor, way: Way) -> End {
    let mut end = match &open.target {
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
    end
}

fn pipe(snapshot: &Snapshot, inode: u64, access: Option<Access>, way: Way) -> End {
    let mut end = End::plain(None, EndKind::Pipe, EndState::Unknown);
    let usable = access.is_some_and(|access| match way {
        Way::In => access.reads(),
        Way::Out => access.writes(),
    });
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
    let input = |process: &Process| process.descriptor(0).map(|open| open.target.clone());
    match (input(one), input(other)) {
        (Some(one), Some(other)) => {
            matches!(one, Target::Pipe { .. } | Target::Socket { .. }) && one == other
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
