//! An open vault: what it holds can be used and changed; every change is on disk before it counts.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use age::x25519;
use model::{Destination, Digest, Home, Secret, SecretName, Wall};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::{
    VaultError,
    content::{Content, Entry, Recipients, sha256},
    keys,
    opener::{self, Opener, OpensBy},
    sealed,
};

/// An open vault. It has no text form of any kind; dropping it wipes what it holds.
pub struct Vault {
    path: PathBuf,
    identity_path: PathBuf,
    identity: x25519::Identity,
    content: Content,
    sha256: Digest,
}

/// What a new vault begins with: the log's root and the identity its data keys are wrapped to.
pub struct Seed {
    /// The seed of the Ed25519 root.
    pub root_seed: Zeroizing<[u8; 32]>,
    /// The age identity of the log, as text.
    pub log_identity: Secret,
}

/// A secret that is to be sealed.
pub struct NewSecret {
    /// Its name.
    pub name: SecretName,
    /// Its value.
    pub value: Secret,
    /// Where it may go.
    pub destinations: Vec<Destination>,
    /// The header it may go into; `Authorization` if none is named.
    pub header: Option<String>,
}

/// A secret as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretListing {
    /// Its name.
    pub name: SecretName,
    /// Where it may go.
    pub destinations: Vec<Destination>,
    /// The header it may go into.
    pub header: String,
    /// When it was added.
    pub created_at: Wall,
    /// When its value was last replaced.
    pub rotated_at: Option<Wall>,
}

/// A secret with the seal that says where it may go.
pub struct SealedSecret<'a> {
    /// The value.
    pub value: &'a Secret,
    /// Where it may go.
    pub destinations: &'a [Destination],
    /// The header it may go into; names of headers know no case.
    pub header: &'a str,
}

impl Vault {
    /// Tells whether there is a vault. One that cannot be looked at is there: opening it says what is wrong.
    #[must_use]
    pub fn exists(home: &Home) -> bool {
        is_there(&home.vault()).unwrap_or(true)
    }

    /// Says what opens the vault, without opening it.
    ///
    /// # Errors
    /// There is none, or its `identity.age` is damaged.
    pub fn opens_by(home: &Home) -> Result<OpensBy, VaultError> {
        let path = home.identity();
        opener::opens_by(&path, &read_identity(home)?)
    }

    /// Makes a vault; a key file that does not exist is made too.
    ///
    /// # Errors
    /// There is one already, the opener cannot be used, or the file system refused.
    pub fn create(home: &Home, opener: &Opener, seed: Seed) -> Result<Self, VaultError> {
        let path = home.vault();
        // Without `vault.age` an `identity.age` alone is the rest of a creation that did not get to its end.
        if is_there(&path)? || is_there(&previous(&path))? {
            return Err(VaultError::Exists(path));
        }
        let log_identity = keys::read_identity(seed.log_identity.expose())
            .ok_or(VaultError::NotAnAgeKey("identity"))?;
        let content = Content {
            generation: 1,
            root_seed: Arc::new(seed.root_seed),
            log_identity: Arc::new(log_identity),
            secrets: std::collections::BTreeMap::new(),
            policy: None,
            recipients: Recipients::default(),
        };
        opener.prepare()?;
        let identity = x25519::Identity::generate();
        let identity_path = home.identity();
        replace(&identity_path, &opener.lock(&identity)?)?;
        let file = encrypt(&content, &identity)?;
        replace(&path, &file)?;
        Ok(Self {
            path,
            identity_path,
            identity,
            content,
            sha256: sha256(&file),
        })
    }

    /// Opens the vault.
    ///
    /// # Errors
    /// It is missing, damaged, newer than this program or not ours; or the opener does not open it.
    pub fn open(home: &Home, opener: &Opener) -> Result<Self, VaultError> {
        let file = read(&home.vault())?;
        let identity = opener.unlock(&home.identity(), &read_identity(home)?)?;
        Self::of(home, &file, identity)
    }

    /// Takes a vault's file apart; nothing of it is written.
    pub(crate) fn of(
        home: &Home,
        file: &[u8],
        identity: x25519::Identity,
    ) -> Result<Self, VaultError> {
        let path = home.vault();
        let plain = sealed::open(&identity, file).map_err(|error| not_opened(&error, &path))?;
        let content = Content::from_plain(&plain, &identity, &path)?;
        Ok(Self {
            path,
            identity_path: home.identity(),
            identity,
            content,
            sha256: sha256(file),
        })
    }

    /// Compares the vault with what is on record as written last. To be called before anything is used.
    ///
    /// A newer generation is good: its record may have been lost in a crash, while its MAC was checked.
    ///
    /// # Errors
    /// It is older, or another file of the same generation.
    pub fn not_older_than(&self, generation: u64, sha256: Digest) -> Result<(), VaultError> {
        let found = self.content.generation;
        if found > generation || (found == generation && self.sha256 == sha256) {
            return Ok(());
        }
        Err(VaultError::RolledBack {
            found,
            recorded: generation,
        })
    }

    /// Adds a secret.
    ///
    /// # Errors
    /// The name is taken, a part of it cannot be used, or the vault could not be written; nothing changed.
    pub fn add(&mut self, new: NewSecret, now: Wall) -> Result<(), VaultError> {
        if self.content.secrets.contains_key(&new.name) {
            return Err(VaultError::SecretExists(new.name));
        }
        if new.destinations.is_empty() {
            return Err(VaultError::NoDestination);
        }
        check_value(&new.value)?;
        let entry = Entry {
            value: new.value,
            destinations: new.destinations,
            header: header_name(new.header)?,
            created_at: now,
            rotated_at: None,
        };
        self.change(|content| {
            content.secrets.insert(new.name, Arc::new(entry));
        })
    }

    /// Replaces a secret's value; where it may go stays.
    ///
    /// # Errors
    /// There is no such secret, the value cannot be used, or the vault could not be written.
    pub fn rotate(
        &mut self,
        name: &SecretName,
        value: Secret,
        now: Wall,
    ) -> Result<(), VaultError> {
        check_value(&value)?;
        let old = self.entry(name)?;
        let entry = Entry {
            value,
            destinations: old.destinations.clone(),
            header: old.header.clone(),
            created_at: old.created_at,
            rotated_at: Some(now),
        };
        self.change(|content| {
            content.secrets.insert(name.clone(), Arc::new(entry));
        })
    }

    /// Removes a secret. The generation before still holds it, as `vault.age.prev` and in backups: only the
    /// other side can make the value worthless.
    ///
    /// # Errors
    /// There is no such secret, or the vault could not be written.
    pub fn remove(&mut self, name: &SecretName) -> Result<(), VaultError> {
        self.entry(name)?;
        self.change(|content| {
            content.secrets.remove(name);
        })
    }

    /// Lists the secrets, never their values.
    #[must_use]
    pub fn list(&self) -> Vec<SecretListing> {
        let listing = |(name, entry): (&SecretName, &Arc<Entry>)| SecretListing {
            name: name.clone(),
            destinations: entry.destinations.clone(),
            header: entry.header.clone(),
            created_at: entry.created_at,
            rotated_at: entry.rotated_at,
        };
        self.content.secrets.iter().map(listing).collect()
    }

    /// Finds a secret.
    #[must_use]
    pub fn find(&self, name: &SecretName) -> Option<SealedSecret<'_>> {
        let entry = self.content.secrets.get(name)?;
        Some(SealedSecret {
            value: &entry.value,
            destinations: &entry.destinations,
            header: &entry.header,
        })
    }

    /// Returns the applied policy, as it was given.
    #[must_use]
    pub fn policy(&self) -> Option<&[u8]> {
        self.content.policy.as_ref().map(|bytes| bytes.as_slice())
    }

    /// Seals a policy into the vault.
    ///
    /// # Errors
    /// The vault could not be written; the old policy stays.
    pub fn set_policy(&mut self, policy: Vec<u8>) -> Result<(), VaultError> {
        self.change(|content| content.policy = Some(Arc::new(policy)))
    }

    /// Returns the public half of the log's root.
    #[must_use]
    pub fn root_public(&self) -> [u8; 32] {
        keys::root_public_of(&self.content.root_seed)
    }

    /// Signs with the log's root.
    #[must_use]
    pub fn root_sign(&self, message: &[u8]) -> [u8; 64] {
        keys::root_sign_with(&self.content.root_seed, message)
    }

    /// Returns the recipient that the log's data keys are wrapped to.
    #[must_use]
    pub fn log_recipient(&self) -> String {
        self.content.log_identity.to_public().to_string()
    }

    /// Unwraps one of the log's data keys; none if the file is not for this log, or is damaged.
    #[must_use]
    pub fn log_unwrap(&self, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        keys::unwrap(&self.content.log_identity, file)
    }

    /// Returns how many times the vault has been written.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.content.generation
    }

    /// Returns the digest of the file, which the log takes note of.
    #[must_use]
    pub const fn sha256(&self) -> Digest {
        self.sha256
    }

    /// Puts the vault under another passphrase or key file. The vault itself stays as it is, so whoever kept
    /// both the old `identity.age` and the old passphrase still opens it.
    ///
    /// # Errors
    /// The opener cannot be used, or the file system refused; the old one is still good.
    pub fn change_opener(&self, opener: &Opener) -> Result<(), VaultError> {
        opener.prepare()?;
        replace(&self.identity_path, &opener.lock(&self.identity)?)
    }

    pub(crate) const fn identity(&self) -> &x25519::Identity {
        &self.identity
    }

    pub(crate) const fn recipients(&self) -> &Recipients {
        &self.content.recipients
    }

    pub(crate) fn change_recipients(
        &mut self,
        edit: impl FnOnce(&mut Recipients),
    ) -> Result<(), VaultError> {
        self.change(|content| edit(&mut content.recipients))
    }

    /// Writes this vault as a later generation than `above`, in place of whatever is there; the file that was there is
    /// kept as the generation before.
    pub(crate) fn write_above(&mut self, above: u64) -> Result<(), VaultError> {
        let mut next = self.content.next();
        next.generation = above.max(self.content.generation) + 1;
        let file = encrypt(&next, &self.identity)?;
        match read(&self.path) {
            Ok(old) => replace(&previous(&self.path), &old)?,
            Err(VaultError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
        replace(&self.path, &file)?;
        self.sha256 = sha256(&file);
        self.content = next;
        Ok(())
    }

    fn entry(&self, name: &SecretName) -> Result<&Entry, VaultError> {
        self.content
            .secrets
            .get(name)
            .map(AsRef::as_ref)
            .ok_or_else(|| VaultError::NoSuchSecret(name.clone()))
    }

    /// Writes the next generation, then takes it over.
    fn change(&mut self, edit: impl FnOnce(&mut Content)) -> Result<(), VaultError> {
        let mut next = self.content.next();
        edit(&mut next);
        let file = encrypt(&next, &self.identity)?;
        let old = read(&self.path)?;
        if sha256(&old) != self.sha256 {
            return Err(VaultError::ChangedOnDisk(self.path.clone()));
        }
        // A crash after this line leaves the old generation under both names, and one after the next the new
        // and the old: there is always a whole one under the right name.
        replace(&previous(&self.path), &old)?;
        replace(&self.path, &file)?;
        self.sha256 = sha256(&file);
        self.content = next;
        Ok(())
    }
}

fn previous(path: &Path) -> PathBuf {
    path.with_added_extension("prev")
}

fn encrypt(content: &Content, identity: &x25519::Identity) -> Result<Vec<u8>, VaultError> {
    let plain = content.to_plain(identity)?;
    let main = identity.to_public();
    let others = content.recipients.all()?;
    let mut all: Vec<&dyn age::Recipient> = vec![&main];
    all.extend(others.iter().map(|other| other as &dyn age::Recipient));
    sealed::seal_to(&all, &plain).map_err(|_| VaultError::Encrypt)
}

fn not_opened(error: &age::DecryptError, path: &Path) -> VaultError {
    let why = match error {
        age::DecryptError::NoMatchingKeys => {
            "it is encrypted for another identity than that in identity.age, or its header was changed"
        }
        age::DecryptError::DecryptionFailed
        | age::DecryptError::ExcessiveWork { .. }
        | age::DecryptError::InvalidHeader
        | age::DecryptError::InvalidMac
        | age::DecryptError::Io(_)
        | age::DecryptError::KeyDecryptionFailed
        | age::DecryptError::UnknownFormat => "it is no age file, or was changed or cut off",
    };
    VaultError::Corrupt {
        path: path.to_owned(),
        why,
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, VaultError> {
    let path = path.to_owned();
    match sys::regular::read(&path, LARGEST_FILE) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(VaultError::Missing(path)),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(VaultError::Corrupt {
            path,
            why: "it is larger than any vault",
        }),
        Err(source) => Err(VaultError::Io {
            doing: "read",
            path,
            source,
        }),
    }
}

/// Tells whether there is such a file. One that cannot be looked at is not absent: another would be put over it.
fn is_there(path: &Path) -> Result<bool, VaultError> {
    path.try_exists().map_err(|source| VaultError::Io {
        doing: "look for",
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn read_identity(home: &Home) -> Result<Vec<u8>, VaultError> {
    let path = home.identity();
    if !is_there(&path)? && is_there(&home.vault())? {
        return Err(VaultError::MissingIdentity(path));
    }
    read(&path)
}

pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), VaultError> {
    sys::durable::replace(path, bytes).map_err(|source| VaultError::Io {
        doing: "write",
        path: path.to_owned(),
        source,
    })
}

fn check_value(value: &Secret) -> Result<(), VaultError> {
    let value = value.expose();
    let printable = value.iter().all(|byte| (0x20..0x7f).contains(byte));
    let ends_bare = value.trim_ascii().len() == value.len();
    if printable && ends_bare && (1..=LONGEST_VALUE).contains(&value.len()) {
        Ok(())
    } else {
        Err(VaultError::BadValue)
    }
}

fn header_name(name: Option<String>) -> Result<String, VaultError> {
    let name = name.unwrap_or_else(|| "Authorization".to_owned());
    // RFC 9110, section 5.6.2.
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let lower = name.to_ascii_lowercase();
    let frames = FRAMING.contains(&lower.as_str()) || lower.starts_with("proxy-");
    if frames || !(1..=64).contains(&name.len()) || !name.bytes().all(token) {
        return Err(VaultError::BadHeader(name));
    }
    Ok(name)
}

/// Headers that say where a message goes and where it ends.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Servers commonly refuse header lines beyond 8 to 16 KiB.
const LONGEST_VALUE: usize = 16 * 1024;

/// Some thousand secrets of the longest kind; a planted file must not fill the memory.
const LARGEST_FILE: u64 = 64 << 20;
