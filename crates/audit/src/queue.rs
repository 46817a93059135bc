//! The queue in front of the committer: numbers are given out here, in the order of `push`.
//!
//! A commit is a record of the same chain, so its number is reserved here too: behind every full group, and behind
//! what is there when the committer takes it. Bounded by bytes, because records differ in length by a factor of a
//! thousand; attempts have the tighter bound, so that what answers them still fits.

use std::collections::VecDeque;

use ledger::{Header, Sealing};
use model::{CallId, Digest, Kind, Seq, SessionId, Stamp, Stub, Ticket};

use crate::{
    health::Health,
    open::Sizes,
    seal::{clear_frame_len, sealed_frame_len},
};

/// At most this many records stand between two commits.
const GROUP_RECORDS: usize = 1024;
/// At most this many bytes: half of what a reader accepts, so that the last record of a group always fits.
const GROUP_BYTES: u64 = ledger::MAX_BATCH as u64 / 2;
/// With more than this waiting for the disk, attempts are refused: about two seconds of a slow disk.
const ATTEMPT_BYTES: u64 = 4 * 1024 * 1024;
/// With more than this waiting, the disk hangs and nothing is taken any more.
const ALL_BYTES: u64 = 32 * 1024 * 1024;
/// As long as an attempt gets: a path of 4 KiB, escaped, and what is said besides.
const ATTEMPT_ROOM: u64 = 16 * 1024;
/// Length of a commit's frame.
pub(crate) const COMMIT_BYTES: u64 = clear_frame_len(ledger::Commit::LEN) as u64;

/// What a record will say, before it has a number.
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) session: Option<SessionId>,
    pub(crate) call: Option<CallId>,
    pub(crate) refers_to: Option<Seq>,
    pub(crate) content: Content,
}

/// A body on its way to the disk.
pub(crate) enum Content {
    /// Padded plaintext, to be sealed.
    Sealed(Vec<u8>),
    /// Stored as it is.
    Clear(Vec<u8>),
    /// Stored with signatures that are made when the record's place is known.
    Unsigned(Vec<u8>),
}

impl Draft {
    /// Returns a record of the log's own, stored in clear.
    pub(crate) const fn clear(kind: Kind, body: Vec<u8>) -> Self {
        Self {
            kind,
            session: None,
            call: None,
            refers_to: None,
            content: Content::Clear(body),
        }
    }

    fn frame_len(&self) -> u64 {
        let len = match &self.content {
            Content::Sealed(plain) => sealed_frame_len(self.kind, plain.len()),
            Content::Clear(body) => clear_frame_len(body.len()),
            Content::Unsigned(body) => {
                let signatures = if self.kind == Kind::RootEndorsed {
                    128
                } else {
                    64
                };
                clear_frame_len(body.len() + signatures)
            }
        };
        u64::try_from(len).unwrap_or(u64::MAX)
    }
}

/// A record with its number, waiting.
pub(crate) struct Queued {
    pub(crate) seq: Seq,
    pub(crate) stamp: Stamp,
    pub(crate) draft: Draft,
    pub(crate) stub: Stub,
    bytes: u64,
}

impl Queued {
    /// Returns the record's header, now that its place in the chain is known.
    pub(crate) const fn header(&self, sealing: Sealing, prev: Digest) -> Header {
        Header {
            kind: self.draft.kind,
            sealing,
            seq: self.seq,
            stamp: self.stamp,
            session: self.draft.session,
            call: self.draft.call,
            refers_to: self.draft.refers_to,
            prev,
        }
    }
}

/// What is sure to fit on the disk, the reserve included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// Why there will be no more; none if there will.
    pub(crate) no_more: Option<String>,
}

/// Who goes first when the disk is full. Each leaves a part of the reserve to those behind it, so that a flood of
/// refusals leaves room for the outcomes of what is under way, and nothing takes the operator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// What is to begin.
    Attempt,
    /// What was refused, and who came and went.
    Refusal,
    /// What became of what had begun: as many as there were attempts.
    Outcome,
    /// What operators do, and what the log says of itself.
    Operator,
}

impl Rank {
    const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Attempt => Self::Attempt,
            Kind::Denied
            | Kind::DenialsCounted
            | Kind::SessionOpened
            | Kind::Connected
            | Kind::Disconnected
            | Kind::ClientLost
            | Kind::SessionEnded => Self::Refusal,
            Kind::Cleared
            | Kind::Withdrawn
            | Kind::Answered
            | Kind::Outliving
            | Kind::Waiting
            | Kind::Unresolved => Self::Outcome,
            Kind::Reconciled
            | Kind::Revoked
            | Kind::Acted
            | Kind::IncidentStep
            | Kind::EpochOpened
            | Kind::Commit
            | Kind::EpochEndorsed
            | Kind::RootEndorsed
            | Kind::EpochClosed
            | Kind::TailRepaired
            | Kind::KeyErased
            | Kind::Pruned => Self::Operator,
        }
    }

    /// Returns how much of the reserve is left to others.
    const fn leaves(self, sizes: Sizes) -> u64 {
        match self {
            Self::Attempt => sizes.reserve,
            Self::Refusal => sizes.reserve / 2,
            Self::Outcome => sizes.reserve / 4,
            Self::Operator => 0,
        }
    }
}

enum Item {
    Record(Queued),
    /// Here a commit will stand.
    Slot(Seq),
}

/// The records between two commits, with the number of the second.
pub(crate) struct Group {
    pub(crate) records: Vec<Queued>,
    pub(crate) commit_seq: Seq,
    /// Length of all frames, the commit's included.
    pub(crate) bytes: u64,
}

impl Group {
    /// Tells whether a record of this kind is among them.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.records.iter().any(|queued| queued.draft.kind == kind)
    }
}

/// Records that wait for the committer.
pub(crate) struct Queue {
    next_seq: Seq,
    items: VecDeque<Item>,
    group_limit: u64,
    group: (usize, u64),
    /// Bytes that are queued or being written.
    waiting: u64,
    room: Room,
    sizes: Sizes,
    refused: Option<String>,
    pub(crate) stopping: bool,
    /// Whether the committer looks again by itself, and soon.
    pub(crate) is_watched: bool,
}

impl Queue {
    pub(crate) fn new(next_seq: Seq, sizes: Sizes, room: Room) -> Self {
        Self {
            next_seq,
            items: VecDeque::new(),
            group_limit: group_limit(sizes),
            group: (0, 0),
            waiting: 0,
            room,
            sizes,
            refused: None,
            stopping: false,
            is_watched: false,
        }
    }

    /// Gives a record its number, or refuses it.
    pub(crate) fn push(&mut self, draft: Draft, stamp: Stamp) -> Ticket {
        let bytes = draft.frame_len();
        if let Some(why) = self.refusal(draft.kind, bytes) {
            return Ticket::refused(why);
        }
        let (records, filled) = self.group;
        if records >= GROUP_RECORDS || filled + bytes + COMMIT_BYTES > self.group_limit {
            self.close_group();
        }
        let seq = self.next();
        let (ticket, stub) = Ticket::new(seq);
        self.group.0 += 1;
        self.group.1 += bytes;
        self.waiting += bytes;
        self.items.push_back(Item::Record(Queued {
            seq,
            stamp,
            draft,
            stub,
            bytes,
        }));
        ticket
    }

    fn refusal(&self, kind: Kind, bytes: u64) -> Option<String> {
        if let Some(why) = &self.refused {
            return Some(why.clone());
        }
        if bytes + COMMIT_BYTES > self.group_limit || bytes > ledger::MAX_FRAME as u64 {
            return Some(format!(
                "a record of {bytes} bytes is longer than one may be"
            ));
        }
        let after = self.waiting + bytes + 2 * COMMIT_BYTES;
        if after > ALL_BYTES {
            return Some("the disk does not keep up, the queue is full".to_owned());
        }
        let rank = Rank::of(kind);
        if rank == Rank::Attempt && after > ATTEMPT_BYTES {
            return Some("the disk does not keep up, attempts are not taken".to_owned());
        }
        (after + rank.leaves(self.sizes) > self.room.bytes).then(|| {
            let why = self
                .room
                .no_more
                .as_deref()
                .unwrap_or("the segment is full");
            let what = if rank == Rank::Attempt {
                "only the reserve is left"
            } else {
                "the reserve is used up"
            };
            format!("{what}: {why}")
        })
    }

    fn next(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    fn close_group(&mut self) {
        if self.group.0 > 0 {
            let seq = self.next();
            self.items.push_back(Item::Slot(seq));
            self.waiting += COMMIT_BYTES;
            self.group = (0, 0);
        }
    }

    /// Tells whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Tells whether all there is to write is records for which nobody waits.
    pub(crate) fn is_patient(&self) -> bool {
        self.items.iter().all(|item| match item {
            Item::Record(queued) => is_patient(queued.draft.kind),
            Item::Slot(_) => false,
        })
    }

    /// Takes the records up to the next commit.
    pub(crate) fn take_group(&mut self) -> Option<Group> {
        if !self.items.iter().any(|item| matches!(item, Item::Slot(_))) {
            self.close_group();
        }
        let mut records = Vec::new();
        let mut bytes = COMMIT_BYTES;
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Record(queued) => {
                    bytes += queued.bytes;
                    records.push(queued);
                }
                Item::Slot(commit_seq) => {
                    return Some(Group {
                        records,
                        commit_seq,
                        bytes,
                    });
                }
            }
        }
        None
    }

    /// Notes that a group is on disk, and how much more is sure to fit.
    pub(crate) fn written(&mut self, bytes: u64, room: Room) {
        self.waiting = self.waiting.saturating_sub(bytes);
        self.room = room;
    }

    /// Takes nothing more; what waits gets no place on disk. Returns it, to be told so.
    pub(crate) fn refuse_all(&mut self, why: &str) -> Vec<Stub> {
        self.refused.get_or_insert_with(|| why.to_owned());
        self.waiting = 0;
        self.items
            .drain(..)
            .filter_map(|item| match item {
                Item::Record(queued) => Some(queued.stub),
                Item::Slot(_) => None,
            })
            .collect()
    }

    /// Takes nothing more; what waits is still written.
    pub(crate) fn close(&mut self) {
        self.refused
            .get_or_insert_with(|| "the log is closed".to_owned());
    }

    pub(crate) fn health(&self, health: &mut Health) {
        health.queued = self.items.len();
        // Short attempts may still fit where a long one was refused.
        let more = ATTEMPT_ROOM.min(self.group_limit) + 2 * COMMIT_BYTES;
        let wanted = self.waiting + more + Rank::Attempt.leaves(self.sizes);
        let full = wanted > self.room.bytes;
        health.attempts_refused = full.then(|| self.room.no_more.clone()).flatten();
    }
}

/// Tells whether nobody waits for such a record.
///
/// Nobody does for a clearance: what is true without it stays true (an attempt without an outcome is unresolved, with
/// or without the record that it was cleared), and the outcome's own sync takes it along.
pub(crate) fn is_patient(kind: Kind) -> bool {
    kind == Kind::Cleared
}

/// A group is much smaller than a segment, so that little is left unused at a segment's end.
fn group_limit(sizes: Sizes) -> u64 {
    GROUP_BYTES.min(sizes.segment.saturating_sub(sizes.reserve) / 4)
}
