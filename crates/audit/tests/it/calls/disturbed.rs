//! The one who writes and is disturbed: run by the test in a process of its own.

use std::{
    cell::Cell,
    env, fs,
    fs::OpenOptions,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use audit::{Audit, KeyWrap, Options, Retention};
use model::{Body, Clock, Entry, Journal, Kind, OutcomeBody, Receipt, SessionId, Stamp, Wall};

use super::{FOLDER, LIFE};
use crate::world::*;

/// The loader makes these calls too, in the first thread; each thread that touches the log makes so many idle ones
/// first, and only what follows is disturbed.
pub const LOADERS: [&str; 4] = ["openat", "read", "fstat", "statx"];
pub const IDLE: usize = 40;

thread_local! {
    static IDLED: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread's idle calls, once.
fn idle() {
    if IDLED.replace(true) {
        return;
    }
    for _ in 0..IDLE {
        let mut file = fs::File::open("/dev/null").unwrap();
        let _ = file.metadata();
        let _ = file.read(&mut [0]);
    }
}

/// The committer's first act in a life is to wrap a key or to ask for the time.
struct Idle<T>(T);

impl Clock for Idle<Arc<dyn Clock>> {
    fn now(&self) -> Stamp {
        idle();
        self.0.now()
    }
}

impl KeyWrap for Idle<Arc<dyn KeyWrap>> {
    fn wrap(&self, recipient: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        idle();
        self.0.wrap(recipient, key)
    }
}

#[test]
#[ignore = "a part of another test"]
fn the_one_who_is_disturbed() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    idle();
    let world = World::new();
    let options = world.options();
    let opened = Audit::open(Options {
        dir: folder.join("audit"),
        clock: Arc::new(Idle(options.clock)),
        wrap: Arc::new(Idle(options.wrap)),
        ..options
    });
    let Ok((audit, _)) = opened else {
        return;
    };
    // A log that cannot be endorsed goes on.
    drop(audit.endorse(&world.root));
    let told = Told { folder, audit };
    if env::var_os(LIFE).is_some() {
        told.live_long();
    } else {
        told.live();
    }
    drop(told.audit.close());
}

/// What the writer does, and what he says of it.
struct Told {
    folder: PathBuf,
    audit: Audit,
}

impl Told {
    fn promise(&self, entry: Entry) -> Option<Receipt> {
        let receipt = self.audit.push(entry).wait().ok()?;
        note(
            &self.folder,
            "promised",
            &serde_json::to_string(&receipt).ok()?,
        )?;
        Some(receipt)
    }

    /// A run with two attempts and their outcomes; "sends" only what was promised before.
    fn live(&self) -> SessionId {
        let session = SessionId::random().unwrap();
        self.promise(opened(session));
        for _ in 0..2 {
            let call = call_id();
            let Some(receipt) = self.promise(attempt_entry(session, call)) else {
                continue;
            };
            note(&self.folder, "sent", &receipt.seq.to_string());
            let clear = entry(
                Kind::Cleared,
                session,
                Some(call),
                Some(receipt.seq),
                Body::Empty,
            );
            drop(self.audit.push(clear));
            let body = Body::Outcome(OutcomeBody::Answered {
                status: 200,
                delivered: Some(true),
                remote_id: None,
            });
            self.promise(entry(
                Kind::Answered,
                session,
                Some(call),
                Some(receipt.seq),
                body,
            ));
        }
        session
    }

    /// More than one segment holds; a revocation, an erased key, and the first segments given up.
    fn live_long(&self) {
        let first = self.live();
        for _ in 0..3 {
            self.promise(long(first));
        }
        self.promise(ended(first, "done"));
        if self.audit.erase(first).is_ok() {
            note(&self.folder, "erased", &first.to_string());
        }
        let second = self.live();
        self.promise(revoked(second));
        let all = Retention {
            since: Wall::from_millis(u64::MAX),
            bytes: 0,
            from: None,
        };
        drop(self.audit.prune(&all));
        self.promise(ended(second, "done"));
    }
}

fn opened(session: SessionId) -> Entry {
    let body = Body::Disconnected {
        connection: model::ConnectionId::from_bytes([4; 10]),
        transport_closed_at: Wall::from_millis(1),
    };
    entry(Kind::SessionOpened, session, None, None, body)
}

fn ended(session: SessionId, why: &str) -> Entry {
    let body = Body::SessionEnded {
        why: why.to_owned(),
    };
    entry(Kind::SessionEnded, session, None, None, body)
}

/// A quarter of a small segment.
fn long(session: SessionId) -> Entry {
    let body = Body::Disconnected {
        connection: model::ConnectionId::from_bytes([4; 10]),
        transport_closed_at: Wall::from_millis(2),
    };
    let mut entry = entry(Kind::Denied, session, Some(call_id()), None, body);
    entry.body = Body::SessionEnded {
        why: "x".repeat(4_500),
    };
    entry
}

fn revoked(session: SessionId) -> Entry {
    let body = Body::Revoked {
        scope: model::Scope::Run { session },
        reason: model::Foreign::new("test"),
        by: None,
        in_flight: Vec::new(),
    };
    entry(Kind::Revoked, session, None, None, body)
}

fn note(folder: &Path, name: &str, line: &str) -> Option<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join(name))
        .ok()?;
    file.write_all(format!("{line}\n").as_bytes()).ok()
}
