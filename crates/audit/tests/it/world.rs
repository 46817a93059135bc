//! A log in a temporary folder, with a clock and keys of the test's own.

use std::{
    io,
    ops::Range,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use audit::{Audit, AuditError, KeyUnwrap, KeyWrap, NewLog, Options, Recovered, RootSigner, Sizes};
use ed25519_dalek::{Signer, SigningKey};
use ledger::VerifyOptions;
use model::{
    Body, CallId, Clock, ConnectionId, Digest, Entry, Foreign, Journal, Kind, OutcomeBody, Receipt,
    RequestKey, Scope, Seq, SessionId, Stamp, Target, Wall,
};
use tempfile::TempDir;
use zeroize::Zeroizing;

/// What no stored byte may show.
pub const CANARY: &str = "canary-7d1f-in-a-path";

/// Wraps by XOR: enough to see what is stored and that the right file is opened.
pub struct Xor;

impl KeyWrap for Xor {
    fn wrap(&self, recipient: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        let mut file = recipient.as_bytes().to_vec();
        file.extend(key.iter().map(|byte| byte ^ 0x5a));
        Ok(file)
    }
}

impl KeyUnwrap for Xor {
    fn unwrap(&self, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        let key = file.strip_prefix(RECIPIENT.as_bytes())?;
        let mut out = Zeroizing::new([0; 32]);
        for (to, from) in out.iter_mut().zip(key) {
            *to = from ^ 0x5a;
        }
        Some(out)
    }
}

const RECIPIENT: &str = "age1test";

/// A clock that goes on by a millisecond each time it is asked.
pub struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Stamp {
        let tick = self.0.fetch_add(1, Ordering::Relaxed);
        Stamp {
            wall: Wall::from_millis(1_764_400_000_000 + tick),
            boot_ms: tick,
        }
    }
}

/// A root whose key is one repeated byte.
pub struct Root(SigningKey);

impl Root {
    pub fn new(byte: u8) -> Self {
        Self(SigningKey::from_bytes(&[byte; 32]))
    }
}

impl RootSigner for Root {
    fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// A place for one log.
pub struct World {
    pub folder: TempDir,
    pub root: Root,
    pub sizes: Sizes,
    clock: Arc<Ticks>,
}

impl World {
    /// Segments are small, so that few records fill several and every byte can be tried.
    pub fn new() -> Self {
        Self::of(Sizes {
            segment: 24 * 1024,
            reserve: 4 * 1024,
        })
    }

    pub fn of(sizes: Sizes) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            root: Root::new(1),
            sizes,
            clock: Arc::new(Ticks(AtomicU64::new(0))),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    pub fn options(&self) -> Options {
        Options {
            dir: self.dir(),
            clock: self.clock.clone(),
            wrap: Arc::new(Xor),
            new_log: Some(NewLog {
                bootstrap_root: self.root.public(),
                recipient: RECIPIENT.to_owned(),
            }),
            sizes: self.sizes,
        }
    }

    pub fn try_open(&self) -> Result<(Audit, Recovered), AuditError> {
        self.try_open_at(&self.dir())
    }

    pub fn try_open_at(&self, dir: &Path) -> Result<(Audit, Recovered), AuditError> {
        Audit::open(Options {
            dir: dir.to_owned(),
            ..self.options()
        })
    }

    /// Opens the log and has its daemon run endorsed, as the daemon does.
    pub fn open(&self) -> (Audit, Recovered) {
        let (audit, recovered) = self.try_open().unwrap();
        audit.endorse(&self.root).unwrap();
        (audit, recovered)
    }
}

impl World {
    /// Writes a log with one answered and one open call, closed in order.
    pub fn write_small_log(&self) {
        let (audit, _) = self.open();
        let session = open_run(&audit);
        let call = attempt(&audit, session);
        clear(&audit, session, call);
        answer(&audit, session, call);
        let open = attempt(&audit, session);
        clear(&audit, session, open);
        audit.close().unwrap();
    }

    /// Writes a log of several segments, closed in order.
    pub fn write_long_log(&self) {
        let (audit, _) = self.open();
        let session = open_run(&audit);
        for _ in 0..60 {
            let call = attempt(&audit, session);
            clear(&audit, session, call);
            answer(&audit, session, call);
        }
        audit.close().unwrap();
        assert!(self.segments() > 2);
    }

    /// Opens the log once more, writes one run, and closes it in order.
    pub fn append_one_run(&self) {
        let (audit, _) = self.open();
        open_run(&audit);
        audit.close().unwrap();
    }

    /// Every file of the log.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.dir()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    files.push(path)
                }
            }
        }
        files.sort();
        files
    }

    pub fn name_of(&self, file: &Path) -> String {
        file.strip_prefix(self.dir()).unwrap().display().to_string()
    }

    pub fn segments(&self) -> usize {
        let names = self
            .files()
            .into_iter()
            .filter(|file| file.extension().is_some_and(|ext| ext == "seg"));
        names.count()
    }

    /// The number of the first segment there is.
    pub fn first_segment(&self) -> usize {
        (0..)
            .find(|index| self.dir().join(format!("seg/{index:010}.seg")).exists())
            .unwrap()
    }

    pub fn last_segment(&self) -> PathBuf {
        self.dir()
            .join(format!("seg/{:010}.seg", self.segments() - 1))
    }

    /// How many bytes of the last segment hold records.
    pub fn used_of_last_segment(&self) -> usize {
        let bytes = std::fs::read(self.last_segment()).unwrap();
        frames(&bytes).last().unwrap().end
    }

    /// Puts bytes behind the last commit, as a torn write would.
    pub fn overwrite_tail(&self, bytes: &[u8]) {
        let at = self.used_of_last_segment();
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.last_segment())
            .unwrap();
        file.write_all_at(bytes, u64::try_from(at).unwrap())
            .unwrap();
    }

    pub fn flip(&self, name: &str, at: usize) {
        let file = self.dir().join(name);
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.get_mut(at).unwrap() ^= 0x10;
        std::fs::write(&file, bytes).unwrap();
    }

    /// Copies the log as it is at this moment, file by file: `HEAD` first, because it must not be newer than the rest.
    pub fn copy(&self, name: &str) -> PathBuf {
        let to = self.folder.path().join(name);
        for folder in ["", "seg", "keys", "quarantine"] {
            std::fs::create_dir_all(to.join(folder)).unwrap();
            private(&to.join(folder));
        }
        for file in self.files() {
            let _ = std::fs::copy(&file, to.join(self.name_of(&file)));
        }
        to
    }
}

pub fn private(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
}

/// The frames of a segment's bytes.
pub fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = 96;
    while let Some(prefix) = bytes.get(at..at + 4) {
        let len = u32::from_be_bytes(prefix.try_into().unwrap()) as usize;
        if len == 0 {
            break;
        }
        frames.push(at..at + 4 + len);
        at += 4 + len;
    }
    frames
}

pub fn pinned(pin: &Path) -> VerifyOptions {
    VerifyOptions {
        pins: vec![pin.to_owned()],
        ..VerifyOptions::default()
    }
}

pub fn call_id() -> CallId {
    CallId::random().unwrap()
}

pub fn entry(
    kind: Kind,
    session: SessionId,
    call: Option<CallId>,
    refers_to: Option<Seq>,
    body: Body,
) -> Entry {
    Entry {
        kind,
        session: Some(session),
        call,
        refers_to,
        body,
    }
}

pub fn open_run(audit: &Audit) -> SessionId {
    let session = SessionId::random().unwrap();
    let body = Body::SessionOpened {
        chain: Vec::new(),
        ownership_complete: true,
        admission: "allow".to_owned(),
        uid: 1000,
    };
    durable(audit, entry(Kind::SessionOpened, session, None, None, body));
    session
}

pub fn durable(audit: &Audit, entry: Entry) -> Receipt {
    audit.push(entry).wait().unwrap()
}

pub fn attempt_entry(session: SessionId, call: CallId) -> Entry {
    let body = Body::Attempt {
        target: Target {
            channel: "builds".parse().unwrap(),
            operation: Some("force".parse().unwrap()),
            method: Foreign::new("POST"),
            path: Foreign::new(format!("/{CANARY}")),
        },
        connection: ConnectionId::from_bytes([4; 10]),
        arguments: Digest::from_bytes([8; 32]),
        key: Some(RequestKey("key-1".to_owned())),
        is_write: true,
        destination: Foreign::new("https://ci.example.com"),
        probe: false,
    };
    entry(Kind::Attempt, session, Some(call), None, body)
}

pub fn attempt(audit: &Audit, session: SessionId) -> (CallId, Seq) {
    let call = CallId::random().unwrap();
    let receipt = durable(audit, attempt_entry(session, call));
    (call, receipt.seq)
}

pub fn clear(audit: &Audit, session: SessionId, (call, seq): (CallId, Seq)) {
    durable(
        audit,
        entry(Kind::Cleared, session, Some(call), Some(seq), Body::Empty),
    );
}

pub fn answer(audit: &Audit, session: SessionId, (call, seq): (CallId, Seq)) {
    let body = Body::Outcome(OutcomeBody::Answered {
        status: 201,
        delivered: Some(true),
        remote_id: Some(Foreign::new("job 17")),
    });
    durable(
        audit,
        entry(Kind::Answered, session, Some(call), Some(seq), body),
    );
}

pub fn revoke(audit: &Audit, session: SessionId) -> Receipt {
    let body = Body::Revoked {
        scope: Scope::Run { session },
        reason: Foreign::new("test"),
        by: None,
        in_flight: Vec::new(),
    };
    durable(audit, entry(Kind::Revoked, session, None, None, body))
}

/// How many bytes this thread has read so far, from proc(5), where there is one.
pub fn read_by_this_thread() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    let rchar = io.lines().find_map(|line| line.strip_prefix("rchar: "))?;
    rchar.parse().ok()
}
