//! The bodies that are stored in clear, because verification needs them, and what their signatures cover.
//!
//! ```text
//! commit          epoch [10] | first_seq u64 | segment u64 | offset u64 | signature [64]
//! epoch_opened    epoch [10] | public key [32] | key file's SHA-256 [32] | key commitment [32]
//! epoch_endorsed  how u8 | epoch [10] | epoch's public key [32] | root [32] | signature [64]
//! root_endorsed   old root [32] | new root [32] | old's signature [64] | new's signature [64]
//! epoch_closed    nothing
//! tail_repaired   segment u64 | offset u64 | length u64 | SHA-256 [32]
//! key_erased      erased key file's SHA-256 [32]
//! pruned          segment u64 | first seq u64 | prev [32] | certificate's SHA-256 [32]
//! ```
//! A commit covers the records from `first_seq` to the one before it; its head is its `prev`, its time its header's.
//! Every signature is Ed25519 over `domain | log id | header | body without its signatures`. The header holds
//! `seq` and `prev`, so each signature vouches for the whole history before it.

use model::{Digest, EpochId, Kind, LogId, Seq};

use crate::{bytes::Fields, header::Header, keyfile::KeyClear};

/// A group of records is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Which daemon run signs.
    pub epoch: EpochId,
    /// The first record it covers; the last is the one before it.
    pub first_seq: Seq,
    /// The segment it stands in.
    pub segment: u64,
    /// Where its frame begins there.
    pub offset: u64,
    /// The epoch key's signature.
    pub signature: [u8; 64],
}

impl Commit {
    /// Length of the stored body.
    pub const LEN: usize = 98;

    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            self.epoch.to_bytes().as_slice(),
            &self.first_seq.to_be_bytes(),
            &self.segment.to_be_bytes(),
            &self.offset.to_be_bytes(),
            &self.signature,
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let commit = Self {
            epoch: EpochId::from_bytes(fields.array()?),
            first_seq: fields.u64()?,
            segment: fields.u64()?,
            offset: fields.u64()?,
            signature: fields.array()?,
        };
        fields.end().map(|()| commit)
    }
}

/// A daemon run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochOpened {
    /// Which.
    pub epoch: EpochId,
    /// The key that signs its commits; its private half exists in the daemon's memory only.
    pub public: [u8; 32],
    /// The data key for records that belong to no run of this epoch.
    pub key: KeyClear,
}

impl EpochOpened {
    /// Length of the stored body.
    pub const LEN: usize = 106;

    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            self.epoch.to_bytes().as_slice(),
            &self.public,
            &self.key.encode(),
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let opened = Self {
            epoch: EpochId::from_bytes(fields.array()?),
            public: fields.array()?,
            key: KeyClear::take(&mut fields)?,
        };
        fields.end().map(|()| opened)
    }
}

/// What an endorsement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndorsedHow {
    /// The root vouches for the run that is going on.
    OwnRun,
    /// An operator vouches for an earlier run that was never endorsed.
    Adopted,
}

/// The root vouches for a daemon run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEndorsed {
    /// On what grounds.
    pub how: EndorsedHow,
    /// Which run.
    pub epoch: EpochId,
    /// Its public key.
    pub public: [u8; 32],
    /// The root that vouches.
    pub root: [u8; 32],
    /// The root's signature.
    pub signature: [u8; 64],
}

impl EpochEndorsed {
    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let how = match self.how {
            EndorsedHow::OwnRun => 1,
            EndorsedHow::Adopted => 2,
        };
        [
            [how].as_slice(),
            &self.epoch.to_bytes(),
            &self.public,
            &self.root,
            &self.signature,
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let endorsed = Self {
            how: match fields.u8()? {
                1 => EndorsedHow::OwnRun,
                2 => EndorsedHow::Adopted,
                _ => return None,
            },
            epoch: EpochId::from_bytes(fields.array()?),
            public: fields.array()?,
            root: fields.array()?,
            signature: fields.array()?,
        };
        fields.end().map(|()| endorsed)
    }
}

/// A new root takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootEndorsed {
    /// The root so far.
    pub old: [u8; 32],
    /// The root from here on.
    pub new: [u8; 32],
    /// The old root's signature.
    pub old_signature: [u8; 64],
    /// The new root's signature.
    pub new_signature: [u8; 64],
}

impl RootEndorsed {
    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            self.old.as_slice(),
            &self.new,
            &self.old_signature,
            &self.new_signature,
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let endorsed = Self {
            old: fields.array()?,
            new: fields.array()?,
            old_signature: fields.array()?,
            new_signature: fields.array()?,
        };
        fields.end().map(|()| endorsed)
    }
}

/// Bytes behind the last commit were moved to quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailRepaired {
    /// The segment they stood in.
    pub segment: u64,
    /// Where they began.
    pub offset: u64,
    /// How many.
    pub len: u64,
    /// Their digest.
    pub sha256: Digest,
}

impl TailRepaired {
    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            self.segment.to_be_bytes().as_slice(),
            &self.offset.to_be_bytes(),
            &self.len.to_be_bytes(),
            &self.sha256.to_bytes(),
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let repaired = Self {
            segment: fields.u64()?,
            offset: fields.u64()?,
            len: fields.u64()?,
            sha256: Digest::from_bytes(fields.array()?),
        };
        fields.end().map(|()| repaired)
    }
}

/// A run's data key was destroyed on purpose; the run stands in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyErased {
    /// Digest of the key file that is gone.
    pub sha256: Digest,
}

impl KeyErased {
    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.sha256.to_bytes().to_vec()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let sha256 = body.try_into().ok().map(Digest::from_bytes)?;
        Some(Self { sha256 })
    }
}

/// The segments before a place are given up; a certificate carries over what is needed of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// The first segment that is kept.
    pub segment: u64,
    /// Its first record's number.
    pub first_seq: Seq,
    /// The id of the last record before it.
    pub prev: Digest,
    /// Digest of the certificate, `pruned/<segment>.cert`.
    pub certificate: Digest,
}

impl Pruned {
    /// Returns the stored body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            self.segment.to_be_bytes().as_slice(),
            &self.first_seq.to_be_bytes(),
            &self.prev.to_bytes(),
            &self.certificate.to_bytes(),
        ]
        .concat()
    }

    /// Reads a stored body; none if it is not one.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let pruned = Self {
            segment: fields.u64()?,
            first_seq: fields.u64()?,
            prev: Digest::from_bytes(fields.array()?),
            certificate: Digest::from_bytes(fields.array()?),
        };
        fields.end().map(|()| pruned)
    }
}

/// Returns the part of a clear body that its signatures cover; none if this kind has no signature.
#[must_use]
pub fn signed_part(kind: Kind, body: &[u8]) -> Option<&[u8]> {
    let (_, signatures) = domain(kind)?;
    let len = body.len().checked_sub(signatures * 64)?;
    body.get(..len)
}

/// Returns what is signed: never two kinds alike, never for another log, never at another place in the chain.
///
/// `unsigned` is the body without its signatures. None for a kind that carries no signature.
#[must_use]
pub fn signed_message(log: LogId, header: &Header, unsigned: &[u8]) -> Option<Vec<u8>> {
    let (domain, _) = domain(header.kind)?;
    Some([domain, &log.to_bytes(), &header.encode(), unsigned].concat())
}

/// The signing domain of a kind, and how many signatures end its body.
fn domain(kind: Kind) -> Option<(&'static [u8], usize)> {
    match kind {
        Kind::Commit => Some((b"lychgate/commit/v1\0", 1)),
        Kind::EpochEndorsed => Some((b"lychgate/epoch-endorsed/v1\0", 1)),
        Kind::RootEndorsed => Some((b"lychgate/root-endorsed/v1\0", 2)),
        Kind::EpochOpened
        | Kind::EpochClosed
        | Kind::TailRepaired
        | Kind::KeyErased
        | Kind::Pruned
        | Kind::SessionOpened
        | Kind::Connected
        | Kind::Disconnected
        | Kind::ClientLost
        | Kind::SessionEnded
        | Kind::Attempt
        | Kind::Denied
        | Kind::Cleared
        | Kind::Withdrawn
        | Kind::Answered
        | Kind::Outliving
        | Kind::Waiting
        | Kind::Unresolved
        | Kind::Reconciled
        | Kind::DenialsCounted
        | Kind::Revoked
        | Kind::Acted
        | Kind::IncidentStep => None,
    }
}
