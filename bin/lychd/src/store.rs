//! The vault as the daemon holds it, and the bootstrap keys that serve until there is one.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use audit::{Audit, AuditError, KeyUnwrap, KeyWrap, RootSigner};
use base64::{Engine, engine::general_purpose::STANDARD};
use channels::{Credential, Plan, Seal};
use gateway::Secrets;
use model::{Denial, Home, Secret};
use serde::{Deserialize, Serialize};
use vault::Vault;
use wire::VaultState;
use zeroize::Zeroizing;

/// The root and log keys of a log that no vault has taken over yet, as they lie in a file of mode 0600.
///
/// Whoever can read the file can read the log and sign for it: `verify` names such a log by its bootstrap
/// root, and `init` ends the state.
#[derive(Serialize, Deserialize)]
struct BootstrapFile {
    schema: String,
    root_seed: Zeroizing<String>,
    log_identity: Zeroizing<String>,
    log_recipient: String,
}

/// Longest file of bootstrap keys, in bytes: three short texts.
const LARGEST_BOOTSTRAP: u64 = 16 << 10;

/// The bootstrap keys, in memory.
pub(crate) struct Bootstrap {
    root_seed: Zeroizing<[u8; 32]>,
    log_identity: Secret,
    recipient: String,
}

impl Bootstrap {
    const SCHEMA: &'static str = "lych.bootstrap/v1";

    /// Reads the keys, or makes them if the log is new.
    pub(crate) fn load_or_make(home: &Home) -> io::Result<Option<Self>> {
        let path = home.bootstrap_key();
        match sys::small_file::read(&path, LARGEST_BOOTSTRAP) {
            Ok(file) => Self::parse(&Zeroizing::new(file.content)).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if home.audit().join("LOG").try_exists()? {
                    Ok(None)
                } else {
                    Self::make(home).map(Some)
                }
            }
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: &[u8]) -> io::Result<Self> {
        let file: BootstrapFile = serde_json::from_slice(bytes)?;
        let seed = Zeroizing::new(
            STANDARD
                .decode(file.root_seed.as_bytes())
                .map_err(io::Error::other)?,
        );
        let root_seed: [u8; 32] = seed
            .as_slice()
            .try_into()
            .map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Self {
            root_seed: Zeroizing::new(root_seed),
            log_identity: Secret::new(file.log_identity.as_bytes().to_vec()),
            recipient: file.log_recipient,
        })
    }

    fn make(home: &Home) -> io::Result<Self> {
        let (log_identity, recipient) = vault::new_log_identity();
        let root_seed = vault::new_root_seed().map_err(io::Error::other)?;
        let file = BootstrapFile {
            schema: Self::SCHEMA.to_owned(),
            root_seed: Zeroizing::new(STANDARD.encode(root_seed.as_slice())),
            log_identity: Zeroizing::new(
                String::from_utf8_lossy(log_identity.expose()).into_owned(),
            ),
            log_recipient: recipient.clone(),
        };
        let bytes = Zeroizing::new(serde_json::to_vec(&file)?);
        // Durable before the log names its public half: a log whose keys are lost cannot be read.
        sys::durable::create(&home.bootstrap_key(), &bytes)?;
        Ok(Self {
            root_seed,
            log_identity,
            recipient,
        })
    }

    pub(crate) fn recipient(&self) -> &str {
        &self.recipient
    }

    /// Returns what a new vault takes over: the log's identity, so that old records stay readable.
    pub(crate) fn log_identity(&self) -> &Secret {
        &self.log_identity
    }
}

impl RootSigner for Bootstrap {
    fn public(&self) -> [u8; 32] {
        vault::root_public_of(&self.root_seed)
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        vault::root_sign_with(&self.root_seed, message)
    }
}

#[derive(Default)]
struct Held {
    vault: Option<Vault>,
    bootstrap: Option<Bootstrap>,
    exists: bool,
}

/// The vault, open or not.
pub(crate) struct Store {
    held: Mutex<Held>,
}

impl Store {
    pub(crate) fn new(home: &Home, bootstrap: Option<Bootstrap>) -> Self {
        let held = Held {
            vault: None,
            bootstrap,
            exists: Vault::exists(home),
        };
        Self {
            held: Mutex::new(held),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> VaultState {
        let held = self.lock();
        match (&held.vault, held.exists) {
            (Some(_), _) => VaultState::Unlocked,
            (None, true) => VaultState::Locked,
            (None, false) => VaultState::None,
        }
    }

    /// Takes over an open vault.
    pub(crate) fn put(&self, vault: Vault) {
        let mut held = self.lock();
        held.vault = Some(vault);
        held.exists = true;
    }

    /// Drops the open vault; its memory is wiped.
    pub(crate) fn shut(&self) {
        self.lock().vault = None;
    }

    /// Does something with the open vault.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&mut Vault) -> T) -> Option<T> {
        self.lock().vault.as_mut().map(what)
    }

    /// Does something with the bootstrap keys, if they still serve.
    pub(crate) fn with_bootstrap<T>(&self, what: impl FnOnce(&Bootstrap) -> T) -> Option<T> {
        self.lock().bootstrap.as_ref().map(what)
    }

    /// Has the vault's root vouch for this daemon run; while the log still knows only the bootstrap root, the
    /// vault's takes over first.
    pub(crate) fn endorse(&self, audit: &Audit) -> Result<(), AuditError> {
        let held = self.lock();
        let Some(vault) = &held.vault else {
            return Ok(());
        };
        let root = VaultRoot(vault);
        match &held.bootstrap {
            Some(bootstrap) if audit.root() == bootstrap.public() => {
                audit.adopt_root(bootstrap, &root)?
            }
            Some(_) | None => audit.endorse(&root)?,
        };
        Ok(())
    }

    /// Ends the bootstrap state; the file is removed once the log names the vault's root.
    pub(crate) fn end_bootstrap(&self, home: &Home) -> io::Result<()> {
        self.lock().bootstrap = None;
        match std::fs::remove_file(home.bootstrap_key()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => sys::durable::sync_folder_of(&home.bootstrap_key()),
        }
    }
}

impl KeyUnwrap for Store {
    fn unwrap(&self, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        let held = self.lock();
        if let Some(vault) = &held.vault {
            return vault.log_unwrap(file);
        }
        held.bootstrap
            .as_ref()
            .and_then(|bootstrap| vault::unwrap_with(&bootstrap.log_identity, file))
    }
}

impl Secrets for Store {
    fn credential(&self, plan: &Plan) -> Result<Option<Credential>, Denial> {
        let Some(name) = plan.secret() else {
            return Ok(None);
        };
        let held = self.lock();
        let vault = held.vault.as_ref().ok_or(Denial::Locked)?;
        let sealed = vault.find(name).ok_or(Denial::Secret)?;
        let seal = Seal {
            value: sealed.value,
            destinations: sealed.destinations,
            header: sealed.header,
        };
        plan.credential(&seal).map(Some)
    }
}

/// The vault's root, for endorsing.
struct VaultRoot<'a>(&'a Vault);

impl RootSigner for VaultRoot<'_> {
    fn public(&self) -> [u8; 32] {
        self.0.root_public()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.root_sign(message)
    }
}

/// Opens data keys with a vault that is not put into the store yet.
pub(crate) struct Unwrap<'a>(pub(crate) &'a Vault);

impl KeyUnwrap for Unwrap<'_> {
    fn unwrap(&self, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        self.0.log_unwrap(file)
    }
}

/// Wraps data keys to the log's public key, with age.
pub(crate) struct AgeWrap;

impl KeyWrap for AgeWrap {
    fn wrap(&self, recipient: &str, key: &[u8; 32]) -> io::Result<Vec<u8>> {
        vault::wrap_to(recipient, key).map_err(io::Error::other)
    }
}
