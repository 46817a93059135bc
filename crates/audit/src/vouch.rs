//! Roots vouch for daemon runs, and hand over to each other.

use ledger::{EndorsedHow, EpochEndorsed, EpochOpened, Records, RootEndorsed};
use model::{EpochId, Kind, Receipt};

use crate::{
    Audit, AuditError, RootSigner,
    commit::Sign,
    writer::{Writer, lock},
};

/// What the log says about a daemon run.
struct Standing {
    public: [u8; 32],
    endorsed: bool,
}

impl Audit {
    /// Lets the log's root vouch for this daemon run and all history it stands on, up to now.
    ///
    /// # Errors
    /// It is another root, or the record could not be made durable.
    pub fn endorse(&self, root: &dyn RootSigner) -> Result<Receipt, AuditError> {
        let mut writer = lock(&self.shared.writer);
        let (epoch, public) = (self.epoch(), writer.signing.verifying_key().to_bytes());
        self.endorse_epoch(&mut writer, EndorsedHow::OwnRun, epoch, public, root)
    }

    /// Lets the log's root vouch for an earlier daemon run that was never endorsed; an operator answers for it.
    ///
    /// # Errors
    /// There is no such run, it is another root, or the record could not be made durable.
    pub fn adopt_epoch(
        &self,
        epoch: EpochId,
        root: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        let public = self.standing(epoch)?.public;
        let mut writer = lock(&self.shared.writer);
        self.endorse_epoch(&mut writer, EndorsedHow::Adopted, epoch, public, root)
    }

    /// Lets a new root take over from the present one, and vouch for this daemon run.
    ///
    /// # Errors
    /// `old` is not the present root, or a record could not be made durable.
    pub fn adopt_root(
        &self,
        old: &dyn RootSigner,
        new: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        let mut writer = lock(&self.shared.writer);
        if writer.root != old.public() {
            return Err(AuditError::NotTheRoot);
        }
        let unsigned = [old.public(), new.public()].concat();
        self.signed(&mut writer, Kind::RootEndorsed, &unsigned, &mut |message| {
            RootEndorsed {
                old: old.public(),
                new: new.public(),
                old_signature: old.sign(message),
                new_signature: new.sign(message),
            }
            .encode()
        })?;
        writer.root = new.public();
        self.shared.show(&writer);
        let (epoch, public) = (self.epoch(), writer.signing.verifying_key().to_bytes());
        self.endorse_epoch(&mut writer, EndorsedHow::OwnRun, epoch, public, new)
    }

    /// Tells whether a daemon run of this log is vouched for.
    ///
    /// # Errors
    /// There is no such run, or the log cannot be read back.
    pub fn is_endorsed(&self, epoch: EpochId) -> Result<bool, AuditError> {
        Ok(self.standing(epoch)?.endorsed)
    }

    fn standing(&self, epoch: EpochId) -> Result<Standing, AuditError> {
        let mut found: Option<Standing> = None;
        for record in Records::of(&self.dir, self.log_id()) {
            let (_, stored) = record?;
            let kind = stored.header.kind;
            if kind == Kind::EpochOpened
                && let Some(opened) = EpochOpened::decode(&stored.body)
                && opened.epoch == epoch
            {
                found = Some(Standing {
                    public: opened.public,
                    endorsed: false,
                });
            }
            if kind == Kind::EpochEndorsed
                && let Some(endorsed) = EpochEndorsed::decode(&stored.body)
                && endorsed.epoch == epoch
                && let Some(standing) = &mut found
            {
                standing.endorsed = true;
            }
        }
        found.ok_or(AuditError::NoSuchEpoch)
    }

    fn endorse_epoch(
        &self,
        writer: &mut Writer,
        how: EndorsedHow,
        epoch: EpochId,
        public: [u8; 32],
        root: &dyn RootSigner,
    ) -> Result<Receipt, AuditError> {
        if writer.root != root.public() {
            return Err(AuditError::NotTheRoot);
        }
        let mut endorsed = EpochEndorsed {
            how,
            epoch,
            public,
            root: root.public(),
            signature: [0; 64],
        };
        let body = endorsed.encode();
        let unsigned = body
            .get(..body.len().saturating_sub(64))
            .unwrap_or_default();
        self.signed(writer, Kind::EpochEndorsed, unsigned, &mut |message| {
            endorsed.signature = root.sign(message);
            endorsed.encode()
        })
    }

    /// Appends a record whose signature covers its own place in the chain.
    fn signed(
        &self,
        writer: &mut Writer,
        kind: Kind,
        unsigned: &[u8],
        sign: Sign<'_>,
    ) -> Result<Receipt, AuditError> {
        let ticket = self
            .shared
            .push_signed(writer, (kind, unsigned), sign, &*self.clock);
        Ok(ticket.wait()?)
    }
}
