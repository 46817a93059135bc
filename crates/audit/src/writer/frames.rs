//! Turns queued records into frames: sealed under the right key, chained, the commit signed.

use std::{io, sync::Arc};

use ed25519_dalek::Signer;
use ledger::{
    Commit, Header, KeyClear, Sealing, encode_frame, file_digest, key_commitment, key_file_of,
    signed_message, signed_part,
};
use model::{Digest, Kind, Seq, SessionId, Stamp};
use sys::durable::{self, Reader};

use super::{Writer, lock};
use crate::{
    commit::Sign,
    keyring,
    queue::{Content, Queued},
    seal,
};

impl Writer {
    /// Seals one record and returns its frame.
    pub(super) fn frame(
        &mut self,
        queued: &Queued,
        prev: Digest,
        sign: &mut Option<Sign<'_>>,
    ) -> io::Result<Vec<u8>> {
        let draft = &queued.draft;
        let mut clear = Vec::new();
        if let (Kind::SessionOpened, Some(session)) = (draft.kind, draft.session) {
            clear.extend(self.run_key(session).encode());
        }
        let keys = Arc::clone(&self.keys);
        let keys = lock(&keys);
        let run = draft.session.and_then(|session| keys.run(session));
        let sealing = match (&draft.content, run) {
            (Content::Clear(_) | Content::Unsigned(_), _) => Sealing::Clear,
            (Content::Sealed(_), Some(_)) => Sealing::Run,
            (Content::Sealed(_), None) => Sealing::Epoch,
        };
        let header = queued.header(sealing, prev);
        let body = match &draft.content {
            Content::Clear(body) => Some(body.clone()),
            Content::Unsigned(unsigned) => {
                let message = signed_message(self.log_id, &header, unsigned);
                sign.as_mut()
                    .zip(message)
                    .map(|(sign, message)| sign(&message))
            }
            Content::Sealed(plain) => {
                seal::seal(run.unwrap_or(&keys.epoch_key), &header, &clear, plain)
            }
        };
        body.and_then(|body| encode_frame(&header, &body))
            .ok_or_else(|| io::Error::other("a record could not be sealed or signed"))
    }

    /// Makes a run's data key and its file. The file is durable before the key seals anything: otherwise a crash could
    /// leave records that nobody can ever open.
    ///
    /// If that fails (a full disk takes no new file, but the segment still takes records) the run has no key of its own
    /// and is sealed under the daemon run's; its clear part is then zero.
    fn run_key(&mut self, session: SessionId) -> KeyClear {
        let made = keyring::draw().and_then(|key| {
            let file = self.wrap.wrap(&self.recipient, &key)?;
            durable::create_for(Reader::Group, &key_file_of(&self.dir, session), &file)?;
            Ok((key, file))
        });
        match made {
            Ok((key, file)) => {
                let clear = KeyClear {
                    file: file_digest(&file),
                    commitment: key_commitment(&key),
                };
                lock(&self.keys).add(session, key);
                clear
            }
            Err(_) => KeyClear::NONE,
        }
    }

    pub(super) fn commit_frame(
        &self,
        (first_seq, seq): (Seq, Seq),
        stamp: Stamp,
        prev: Digest,
        before: usize,
    ) -> io::Result<Vec<u8>> {
        let header = Header {
            kind: Kind::Commit,
            sealing: Sealing::Clear,
            seq,
            stamp,
            session: None,
            call: None,
            refers_to: None,
            prev,
        };
        let mut commit = Commit {
            epoch: self.epoch,
            first_seq,
            segment: self.segment.index,
            offset: self.segment.offset + u64::try_from(before).unwrap_or(0),
            signature: [0; 64],
        };
        let body = commit.encode();
        let message = signed_part(Kind::Commit, &body)
            .and_then(|unsigned| signed_message(self.log_id, &header, unsigned))
            .ok_or_else(|| io::Error::other("a commit has a signature"))?;
        commit.signature = self.signing.sign(&message).to_bytes();
        encode_frame(&header, &commit.encode())
            .ok_or_else(|| io::Error::other("a commit is longer than one may be"))
    }
}
