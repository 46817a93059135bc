//! Gathers, batch by batch, what the report needs beyond the chain itself.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use model::{Digest, EpochId, Kind, LogId, Seq, SessionId, Wall};

use crate::{
    bytes::sha256,
    certificate::Certificate,
    clear::{
        EndorsedHow, EpochEndorsed, EpochOpened, KeyErased, Pruned, RootEndorsed, TailRepaired,
        signed_message, signed_part,
    },
    head::signature_is_by,
    keyfile::{KeyClear, key_file_of},
    pins::Pins,
    regular,
    report::{Checked, FirstBad, OpenAttempt, PinUse, Prune, Repair, StructureFinding, Unendorsed},
    scan::{Batch, Record},
    structure::Structure,
};

#[derive(Debug)]
struct EpochSeen {
    id: EpochId,
    public: [u8; 32],
    opened_at: Wall,
    first_seq: Seq,
    last_seq: Seq,
    endorsed: bool,
}

/// What has been seen of a log so far.
#[derive(Debug)]
pub(super) struct Inspection {
    dir: PathBuf,
    log_id: LogId,
    root: [u8; 32],
    /// The last record before a vault took over from the bootstrap root.
    bootstrap_to: Option<Seq>,
    pins: Pins,
    structure: Structure,
    epochs: Vec<EpochSeen>,
    /// Key files that are not there, until their erasure turns up.
    absent: BTreeMap<SessionId, FirstBad>,
    bad: Option<FirstBad>,
    bad_key: Option<FirstBad>,
    unreadable: Option<String>,
    repairs: Vec<Repair>,
    /// The records that give up segments, with what they name.
    prunes: Vec<(Prune, Pruned)>,
    checked: Checked,
    first: Option<Seq>,
    last: Option<(Seq, Digest, Wall)>,
}

/// What the whole log came to.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) root: [u8; 32],
    pub(super) bootstrap_to: Option<Seq>,
    pub(super) first: Option<Seq>,
    pub(super) last: Option<(Seq, Digest, Wall)>,
    pub(super) bad: Option<FirstBad>,
    pub(super) bad_key: Option<FirstBad>,
    pub(super) unreadable: Option<String>,
    pub(super) repairs: Vec<Repair>,
    pub(super) prunes: Vec<Prune>,
    pub(super) open_attempts: Vec<OpenAttempt>,
    pub(super) unendorsed: Vec<Unendorsed>,
    pub(super) structure: Vec<StructureFinding>,
    pub(super) pins: Vec<PinUse>,
    pub(super) checked: Checked,
}

impl Inspection {
    pub(super) fn new(dir: &Path, log_id: LogId, root: [u8; 32], pins: Pins) -> Self {
        Self {
            dir: dir.to_owned(),
            log_id,
            root,
            bootstrap_to: None,
            pins,
            structure: Structure::default(),
            epochs: Vec::new(),
            absent: BTreeMap::new(),
            bad: None,
            bad_key: None,
            unreadable: None,
            repairs: Vec::new(),
            prunes: Vec::new(),
            checked: Checked::default(),
            first: None,
            last: None,
        }
    }

    /// Takes the records of a believed batch into account.
    pub(super) fn batch(&mut self, batch: &Batch<'_>) {
        for record in batch.records() {
            self.structure.apply(&record.header);
            self.pins.see(self.log_id, &record);
            if !batch.is_carried() {
                self.checked.records += 1;
                self.first.get_or_insert(record.header.seq);
                self.last = Some((record.header.seq, record.id, record.header.stamp.wall));
            }
            if self.clear_body(&record).is_none() {
                self.blame(&record, "the record's clear part is malformed");
            }
        }
        if let (Some(epoch), Some(last)) = (self.epochs.last_mut(), self.last) {
            epoch.last_seq = last.0;
        }
    }

    /// Returns the public key of a daemon run.
    pub(super) fn public_of(&self, epoch: EpochId) -> Option<[u8; 32]> {
        let seen = self.epochs.iter().rfind(|seen| seen.id == epoch);
        seen.map(|seen| seen.public)
    }

    /// Returns the last believed record's number.
    pub(super) fn last_seq(&self) -> Seq {
        self.last.map_or(0, |last| last.0)
    }

    fn clear_body(&mut self, record: &Record<'_>) -> Option<()> {
        match record.header.kind {
            Kind::EpochOpened => self.epoch_opened(record, EpochOpened::decode(record.body)?),
            Kind::Commit => self.checked.commits += 1,
            Kind::EpochEndorsed => self.endorsed(record, EpochEndorsed::decode(record.body)?),
            Kind::RootEndorsed => self.root_endorsed(record, RootEndorsed::decode(record.body)?),
            Kind::EpochClosed => return record.body.is_empty().then_some(()),
            Kind::TailRepaired => self.repaired(record, TailRepaired::decode(record.body)?),
            Kind::KeyErased => self.erased(record, KeyErased::decode(record.body)?)?,
            Kind::Pruned => self.pruned(record, Pruned::decode(record.body)?),
            Kind::SessionOpened => {
                let (key, _) = KeyClear::split(record.body)?;
                let session = record.header.session?;
                if key == KeyClear::NONE {
                    return Some(());
                }
                self.key_file(record, session.to_string(), key.file, Some(session));
            }
            Kind::Connected
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
            | Kind::IncidentStep => {}
        }
        Some(())
    }

    fn epoch_opened(&mut self, record: &Record<'_>, opened: EpochOpened) {
        self.checked.epochs += 1;
        self.key_file(record, opened.epoch.to_string(), opened.key.file, None);
        self.epochs.push(EpochSeen {
            id: opened.epoch,
            public: opened.public,
            opened_at: record.header.stamp.wall,
            first_seq: record.header.seq,
            last_seq: record.header.seq,
            endorsed: false,
        });
    }

    fn endorsed(&mut self, record: &Record<'_>, says: EpochEndorsed) {
        let signed = says.root == self.root && self.signed(record, &says.root, &says.signature);
        let current = self.epochs.last().map(|epoch| epoch.id);
        let own = says.how == EndorsedHow::Adopted || current == Some(says.epoch);
        let epoch = self
            .epochs
            .iter_mut()
            .rfind(|epoch| epoch.id == says.epoch && epoch.public == says.public);
        match epoch {
            Some(epoch) if signed && own => epoch.endorsed = true,
            _ => self.blame(
                record,
                "an endorsement is not the root's word for that daemon run",
            ),
        }
    }

    fn root_endorsed(&mut self, record: &Record<'_>, says: RootEndorsed) {
        let both = says.old == self.root
            && self.signed(record, &says.old, &says.old_signature)
            && self.signed(record, &says.new, &says.new_signature);
        if both {
            self.root = says.new;
            let before = record.header.seq.saturating_sub(1);
            self.bootstrap_to.get_or_insert(before);
        } else {
            self.blame(record, "the new root is not signed by both roots");
        }
    }

    fn signed(&self, record: &Record<'_>, public: &[u8; 32], signature: &[u8; 64]) -> bool {
        signed_part(record.header.kind, record.body)
            .and_then(|part| signed_message(self.log_id, &record.header, part))
            .is_some_and(|message| signature_is_by(public, &message, signature))
    }

    fn repaired(&mut self, record: &Record<'_>, says: TailRepaired) {
        self.repairs.push(Repair {
            seq: record.header.seq,
            at: record.header.stamp.wall,
            segment: says.segment,
            offset: says.offset,
            bytes: says.len,
            sha256: says.sha256,
        });
    }

    fn pruned(&mut self, record: &Record<'_>, says: Pruned) {
        let prune = Prune {
            seq: record.header.seq,
            at: record.header.stamp.wall,
            first_kept: says.first_seq,
        };
        self.prunes.push((prune, says));
    }

    /// A log that begins with a certificate must say itself that it does.
    pub(super) fn begins_with(&mut self, certificate: &Certificate) {
        let named = certificate.named();
        if !self.prunes.iter().any(|(_, says)| *says == named) {
            let what = "segments are missing, and no record vouches for this certificate";
            self.bad
                .get_or_insert_with(|| FirstBad::in_file(certificate.name(), what));
        }
    }

    /// What stands before the first kept record was given up.
    pub(super) const fn begins_at(&mut self, seq: Seq) {
        self.structure.begins_at = seq;
    }

    fn erased(&mut self, record: &Record<'_>, _says: KeyErased) -> Option<()> {
        self.absent.remove(&record.header.session?);
        self.checked.erased_keys += 1;
        Some(())
    }

    /// Compares a key file with the digest that the chain holds.
    fn key_file(
        &mut self,
        record: &Record<'_>,
        name: String,
        digest: Digest,
        session: Option<SessionId>,
    ) {
        let bad = |what: &str| FirstBad {
            file: format!("keys/{name}.age"),
            segment: None,
            offset: None,
            seq: Some(record.header.seq),
            what: what.to_owned(),
        };
        match (
            regular::read(&key_file_of(&self.dir, &name), regular::LONGEST_SMALL),
            session,
        ) {
            (Ok(bytes), _) if sha256(&[&bytes]) == digest.to_bytes() => {
                self.checked.key_files += 1;
            }
            (Ok(_), _) => {
                let changed = bad("the key file is not the one on record");
                self.bad_key.get_or_insert(changed);
            }
            (Err(error), Some(session)) if error.kind() == io::ErrorKind::NotFound => {
                let missing = bad("the key file is missing, and no erasure is on record");
                self.absent.insert(session, missing);
            }
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
                let missing = bad("the key file is missing");
                self.bad_key.get_or_insert(missing);
            }
            (Err(error), _) => {
                self.unreadable = Some(format!("cannot read keys/{name}.age: {error}"));
            }
        }
    }

    fn blame(&mut self, record: &Record<'_>, what: &str) {
        let seq = Some(record.header.seq);
        self.bad
            .get_or_insert_with(|| FirstBad::in_segment(record.place, seq, what));
    }

    /// Ends the inspection; `complete` tells whether the log was seen up to its last commit.
    pub(super) fn finish(mut self, complete: bool) -> Facts {
        let absent = self.absent.into_values().min_by_key(|bad| bad.seq);
        let (structure, open_attempts) = self.structure.finish();
        self.epochs.retain(|epoch| !epoch.endorsed);
        Facts {
            root: self.root,
            bootstrap_to: self.bootstrap_to,
            first: self.first,
            last: self.last,
            bad: self.bad,
            bad_key: self.bad_key.or(absent),
            unreadable: self.unreadable,
            repairs: self.repairs,
            prunes: self.prunes.into_iter().map(|(prune, _)| prune).collect(),
            open_attempts,
            unendorsed: self
                .epochs
                .iter()
                .map(|epoch| Unendorsed {
                    epoch: epoch.id,
                    first_seq: epoch.first_seq,
                    last_seq: epoch.last_seq,
                    opened_at: epoch.opened_at,
                })
                .collect(),
            structure,
            pins: self.pins.finish(self.log_id, self.first, complete),
            checked: self.checked,
        }
    }
}
