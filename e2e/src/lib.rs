//! What the end-to-end tests and the measurements share: a real log, with keys that need no vault.

#![expect(
    clippy::expect_used,
    reason = "a test or a measurement that cannot begin has nothing to tell"
)]

use std::{io, path::Path, sync::Arc};

use audit::{Audit, KeyWrap, NewLog, Options, RootSigner, Sizes};
use ed25519_dalek::{Signer, SigningKey};
use sys::clock::SystemClock;

/// Wraps nothing: key files are written once a run, and are not what is looked at.
struct NoWrap;

impl KeyWrap for NoWrap {
    fn wrap(&self, _: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        Ok(key.to_vec())
    }
}

struct Root(SigningKey);

impl RootSigner for Root {
    fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// Makes a log in `dir` and opens it for writing, endorsed by a root of its own.
///
/// # Panics
/// The file system refused.
#[must_use]
pub fn new_log(dir: &Path) -> Audit {
    let root = Root(SigningKey::from_bytes(&[1; 32]));
    let options = Options {
        dir: dir.to_owned(),
        clock: Arc::new(SystemClock),
        wrap: Arc::new(NoWrap),
        new_log: Some(NewLog {
            bootstrap_root: root.public(),
            recipient: "age1nobody".to_owned(),
        }),
        sizes: Sizes::default(),
    };
    let (audit, _) = Audit::open(options).expect("a new log");
    audit.endorse(&root).expect("a root that vouches");
    audit
}
