//! A second writer of the format, which also writes what must not be.

use std::{fs, path::PathBuf};

use ed25519_dalek::{Signer, SigningKey};
use ledger::{
    Certificate, Commit, EndorsedHow, EpochEndorsed, EpochOpened, Head, Header, KeyClear,
    KeyErased, Origin, Report, RootEndorsed, Sealing, SegmentHeader, VerifyOptions, encode_frame,
    file_digest, frame_id, key_file_of, segment_file, signed_message, signed_part, verify,
};
use model::{CallId, Digest, EpochId, Kind, LogId, Seq, SessionId, Stamp, Wall};
use tempfile::TempDir;

pub const RUN: SessionId = SessionId::from_bytes([1; 10]);
pub const CALL: CallId = CallId::from_bytes([2; 10]);

/// A log under construction, with all keys that belong to it.
pub struct Forge {
    folder: TempDir,
    pub log_id: LogId,
    pub root: SigningKey,
    pub signing: SigningKey,
    pub epoch: EpochId,
    /// Segments that are complete.
    full: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    head: Digest,
    next: Seq,
    first: Seq,
}

/// What a record says besides its kind.
#[derive(Default, Clone)]
pub struct Says {
    pub session: Option<SessionId>,
    pub call: Option<CallId>,
    pub refers_to: Option<Seq>,
    pub body: Vec<u8>,
}

impl Forge {
    pub fn new() -> Self {
        Self::with_log(|text| text)
    }

    /// Begins a log whose `LOG` is changed by `edit` before anything is chained to it.
    pub fn with_log(edit: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        let folder = TempDir::new().unwrap();
        let root = SigningKey::from_bytes(&[7; 32]);
        let origin = Origin {
            root: root.verifying_key().to_bytes(),
            recipient: "age1forged".to_owned(),
            created: Wall::from_millis(1),
        };
        let log = edit(origin.encode().unwrap());
        for sub in ["seg", "keys"] {
            fs::create_dir(folder.path().join(sub)).unwrap();
        }
        fs::write(folder.path().join("LOG"), &log).unwrap();
        let header = SegmentHeader {
            log_id: Origin::id(&log),
            index: 0,
            first_seq: 1,
            prev: Digest::from_bytes([0; 32]),
        };
        Self {
            log_id: Origin::id(&log),
            folder,
            root,
            signing: SigningKey::from_bytes(&[8; 32]),
            epoch: EpochId::from_bytes([3; 10]),
            full: Vec::new(),
            bytes: header.encode(),
            head: header.id(),
            next: 1,
            first: 1,
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn next(&self) -> Seq {
        self.next
    }

    /// The id of the record before the present segment's header.
    pub fn last(&self) -> Digest {
        SegmentHeader::decode(&self.bytes).unwrap().prev
    }

    fn index(&self) -> u64 {
        u64::try_from(self.full.len()).unwrap()
    }

    /// Goes on in a new segment.
    pub fn next_segment(&mut self) {
        let header = SegmentHeader {
            log_id: self.log_id,
            index: self.index() + 1,
            first_seq: self.next,
            prev: self.head,
        };
        self.full
            .push(std::mem::replace(&mut self.bytes, header.encode()));
        self.head = header.id();
    }

    /// Gives up the segments before the present one: the certificate is written, its record appended, and the number of
    /// the first kept segment returned. The caller removes what is given up, or does not.
    pub fn prune(&mut self, carried: &[u8]) -> Certificate {
        let SegmentHeader {
            index,
            first_seq,
            prev,
            ..
        } = SegmentHeader::decode(&self.bytes).unwrap();
        let certificate = Certificate::new(self.log_id, (index, first_seq, prev), carried);
        let path = Certificate::path(self.folder.path(), index);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, certificate.bytes()).unwrap();
        self.record(
            Kind::Pruned,
            Says {
                body: certificate.named().encode(),
                ..Says::default()
            },
        );
        certificate
    }

    /// Returns the stored frames with these numbers, in the first segment.
    pub fn frames_of_first(&self, wanted: &[Seq]) -> Vec<u8> {
        let bytes = self.full.first().unwrap_or(&self.bytes);
        let mut at = 96;
        let mut found = Vec::new();
        for seq in 1.. {
            let Some(prefix) = bytes.get(at..at + 4) else {
                return found;
            };
            let len = 4 + u32::from_be_bytes(prefix.try_into().unwrap()) as usize;
            if wanted.contains(&seq) {
                found.extend(bytes.get(at..at + len).unwrap());
            }
            at += len;
        }
        found
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Changes the segment's header, and chains what follows to the changed one.
    pub fn edit_segment_header(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        edit(&mut self.bytes);
        self.head = file_digest(&self.bytes);
    }

    fn header(&self, kind: Kind, says: &Says) -> Header {
        Header {
            kind,
            sealing: if kind.body_is_clear() {
                Sealing::Clear
            } else {
                Sealing::Epoch
            },
            seq: self.next,
            stamp: Stamp {
                wall: Wall::from_millis(self.next),
                boot_ms: self.next,
            },
            session: says.session,
            call: says.call,
            refers_to: says.refers_to,
            prev: self.head,
        }
    }

    fn append(&mut self, frame: &[u8]) -> Seq {
        self.bytes.extend(frame);
        self.head = frame_id(frame);
        self.next += 1;
        self.next - 1
    }

    /// Appends a record and returns its number.
    pub fn record(&mut self, kind: Kind, says: Says) -> Seq {
        let frame = encode_frame(&self.header(kind, &says), &says.body).unwrap();
        self.append(&frame)
    }

    /// Appends a record whose stored bytes are changed by `edit` before they are chained.
    pub fn edited_record(&mut self, kind: Kind, edit: impl FnOnce(&mut [u8])) {
        let mut frame = encode_frame(&self.header(kind, &Says::default()), b"").unwrap();
        edit(&mut frame);
        self.append(&frame);
    }

    /// Appends a commit that is what it should be.
    pub fn commit(&mut self) -> Seq {
        let key = self.signing.clone();
        self.commit_by(&key, |commit| commit)
    }

    /// Appends a commit with changed fields, signed by `key`.
    pub fn commit_by(&mut self, key: &SigningKey, change: impl FnOnce(Commit) -> Commit) -> Seq {
        let header = self.header(Kind::Commit, &Says::default());
        let mut commit = change(Commit {
            epoch: self.epoch,
            first_seq: self.first,
            segment: self.index(),
            offset: u64::try_from(self.bytes.len()).unwrap(),
            signature: [0; 64],
        });
        let body = commit.encode();
        let unsigned = signed_part(header.kind, &body).unwrap();
        let message = signed_message(self.log_id, &header, unsigned).unwrap();
        commit.signature = key.sign(&message).to_bytes();
        let frame = encode_frame(&header, &commit.encode()).unwrap();
        let seq = self.append(&frame);
        self.first = self.next;
        seq
    }

    /// Opens a daemon run under the forge's present key and id.
    pub fn open_epoch(&mut self) {
        let key = self.key_file(self.epoch);
        let opened = EpochOpened {
            epoch: self.epoch,
            public: self.signing.verifying_key().to_bytes(),
            key,
        };
        self.record(
            Kind::EpochOpened,
            Says {
                body: opened.encode(),
                ..Says::default()
            },
        );
    }

    fn key_file(&self, id: impl std::fmt::Display) -> KeyClear {
        let file = format!("the key of {id}");
        fs::write(key_file_of(self.folder.path(), id), &file).unwrap();
        KeyClear {
            file: file_digest(file.as_bytes()),
            commitment: Digest::from_bytes([0; 32]),
        }
    }

    pub fn open_run(&mut self) {
        let clear = self.key_file(RUN);
        let body = [clear.encode().as_slice(), b"sealed"].concat();
        self.record(
            Kind::SessionOpened,
            Says {
                session: Some(RUN),
                body,
                ..Says::default()
            },
        );
    }

    pub fn erase_run(&mut self) {
        let path = key_file_of(self.folder.path(), RUN);
        let erased = KeyErased {
            sha256: file_digest(&fs::read(&path).unwrap()),
        };
        self.record(
            Kind::KeyErased,
            Says {
                session: Some(RUN),
                body: erased.encode(),
                ..Says::default()
            },
        );
        fs::remove_file(path).unwrap();
    }

    /// Appends a record of `RUN` and `CALL`.
    pub fn of_call(&mut self, kind: Kind, refers_to: Option<Seq>) -> Seq {
        self.record(
            kind,
            Says {
                session: Some(RUN),
                call: Some(CALL),
                refers_to,
                body: b"sealed".to_vec(),
            },
        )
    }

    /// Appends an endorsement of `epoch` by `root`.
    pub fn endorse(&mut self, root: &SigningKey, how: EndorsedHow, epoch: EpochId) {
        let mut endorsed = EpochEndorsed {
            how,
            epoch,
            public: self.signing.verifying_key().to_bytes(),
            root: root.verifying_key().to_bytes(),
            signature: [0; 64],
        };
        let header = self.header(Kind::EpochEndorsed, &Says::default());
        let body = endorsed.encode();
        let unsigned = signed_part(header.kind, &body).unwrap();
        let message = signed_message(self.log_id, &header, unsigned).unwrap();
        endorsed.signature = root.sign(&message).to_bytes();
        self.record(
            Kind::EpochEndorsed,
            Says {
                body: endorsed.encode(),
                ..Says::default()
            },
        );
    }

    /// Appends the hand-over from `old` to `new`, signed by these two keys.
    pub fn hand_over(&mut self, (old, new): (&SigningKey, &SigningKey), signers: [&SigningKey; 2]) {
        let mut endorsed = RootEndorsed {
            old: old.verifying_key().to_bytes(),
            new: new.verifying_key().to_bytes(),
            old_signature: [0; 64],
            new_signature: [0; 64],
        };
        let header = self.header(Kind::RootEndorsed, &Says::default());
        let body = endorsed.encode();
        let unsigned = signed_part(header.kind, &body).unwrap();
        let message = signed_message(self.log_id, &header, unsigned).unwrap();
        endorsed.old_signature = signers[0].sign(&message).to_bytes();
        endorsed.new_signature = signers[1].sign(&message).to_bytes();
        let body = endorsed.encode();
        self.record(
            Kind::RootEndorsed,
            Says {
                body,
                ..Says::default()
            },
        );
    }

    /// Begins a log as ours begins: a daemon run, endorsed.
    pub fn begun() -> Self {
        let mut forge = Self::new();
        forge.open_epoch();
        forge.commit();
        let root = forge.root.clone();
        forge.endorse(&root, EndorsedHow::OwnRun, forge.epoch);
        forge.commit();
        forge
    }

    /// Writes what there is to the disk.
    pub fn write(&self) {
        for (index, bytes) in (0..).zip(&self.full) {
            fs::write(segment_file(self.folder.path(), index), bytes).unwrap();
        }
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len() + 4096, 0);
        fs::write(segment_file(self.folder.path(), self.index()), bytes).unwrap();
    }

    /// Writes a `HEAD` that names the last record.
    pub fn pin(&self) {
        let place = (self.next - 1, self.head, Wall::from_millis(9));
        let head = Head::signed(self.log_id, place, self.epoch, |message| {
            self.signing.sign(message).to_bytes()
        });
        fs::write(self.folder.path().join("HEAD"), head.encode()).unwrap();
    }

    /// Writes everything and has it judged.
    pub fn judge(&self) -> Report {
        self.write();
        self.pin();
        verify(self.folder.path(), &VerifyOptions::default())
    }
}
