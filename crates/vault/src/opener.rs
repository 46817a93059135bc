//! What opens a vault: a passphrase, or a key file; and `identity.age`, which either of them locks.
//!
//! `identity.age` holds an age identity file: comment lines, then `AGE-SECRET-KEY-1…`. Under a passphrase the
//! age header itself proves that its writer knew the passphrase. Under a key file it proves nothing (anybody
//! who knows the public recipient can write one), so a comment line carries a MAC made with the key file.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use age::{DecryptError, scrypt, secrecy::SecretString, x25519};
use hmac::{Hmac, KeyInit, Mac};
use model::{Secret, hex};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    KeyFileFault, VaultError,
    keys::{read_identity, text_of},
    sealed,
};

/// What opens a vault.
pub enum Opener {
    /// A passphrase, and how hard guessing it is made when it is written.
    Passphrase(Secret, WorkFactor),
    /// A file with an age identity, readable by its owner alone.
    KeyFile(PathBuf),
}

/// The logarithm of scrypt's cost (RFC 7914, N).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkFactor(u8);

/// Which kind of opener a vault asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpensBy {
    /// A passphrase.
    Passphrase,
    /// A key file.
    KeyFile,
}

impl WorkFactor {
    /// What every real vault is written with: about a second and 128 MiB per guess. age would measure the
    /// machine instead, and a vault made on a busy one would then be cheap to guess.
    pub const STANDARD: Self = Self(17);

    /// Returns a cheap one: a second per test would be too long, and no test's passphrase is worth guessing.
    #[doc(hidden)]
    #[must_use]
    pub const fn weak_for_tests() -> Self {
        Self(2)
    }
}

impl Opener {
    /// Makes a key file if one is named that does not exist.
    pub(crate) fn prepare(&self) -> Result<(), VaultError> {
        let Self::KeyFile(path) = self else {
            return Ok(());
        };
        let text = Secret::new([text_of(&x25519::Identity::generate()).expose(), b"\n"].concat());
        match sys::durable::create(path, text.expose()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(VaultError::Io {
                doing: "create",
                path: path.clone(),
                source,
            }),
        }
    }

    /// Returns the content of `identity.age` for this identity.
    pub(crate) fn lock(&self, identity: &x25519::Identity) -> Result<Vec<u8>, VaultError> {
        let text = text_of(identity);
        match self {
            Self::Passphrase(passphrase, WorkFactor(log_n)) => {
                let mut recipient = scrypt::Recipient::new(passphrase_text(passphrase)?);
                recipient.set_work_factor(*log_n);
                seal(&recipient, &[TITLE, text.expose(), b"\n"])
            }
            Self::KeyFile(path) => {
                let key = read_key_file(path)?;
                let tag = hex(&seal_of(&key, &text)?.finalize().into_bytes());
                let lines: [&[u8]; 6] = [
                    TITLE,
                    SEALED_BY,
                    tag.as_bytes(),
                    b"\n",
                    text.expose(),
                    b"\n",
                ];
                seal(&key.to_public(), &lines)
            }
        }
    }

    /// Opens `identity.age`.
    pub(crate) fn unlock(&self, path: &Path, file: &[u8]) -> Result<x25519::Identity, VaultError> {
        let plain = match self {
            Self::Passphrase(passphrase, _) => {
                if opens_by(path, file)? == OpensBy::KeyFile {
                    return Err(VaultError::NeedsKeyFile);
                }
                let mut identity = scrypt::Identity::new(passphrase_text(passphrase)?);
                identity.set_max_work_factor(HIGHEST_WORK_FACTOR);
                sealed::open(&identity, file)
                    .map_err(|error| unlock_error(error, path, VaultError::WrongPassphrase))?
            }
            Self::KeyFile(key_path) => {
                if opens_by(path, file)? == OpensBy::Passphrase {
                    return Err(VaultError::NeedsPassphrase);
                }
                let key = read_key_file(key_path)?;
                let wrong = VaultError::WrongKeyFile(key_path.clone());
                let plain =
                    sealed::open(&key, file).map_err(|error| unlock_error(error, path, wrong))?;
                check_seal(&key, &plain).ok_or_else(|| VaultError::Substituted(path.to_owned()))?;
                plain
            }
        };
        only_identity(&plain).ok_or_else(|| VaultError::Corrupt {
            path: path.to_owned(),
            why: "it holds no age identity",
        })
    }
}

/// Says what opens this `identity.age`.
pub(crate) fn opens_by(path: &Path, file: &[u8]) -> Result<OpensBy, VaultError> {
    match sealed::is_under_passphrase(file) {
        Some(true) => Ok(OpensBy::Passphrase),
        Some(false) => Ok(OpensBy::KeyFile),
        None => Err(VaultError::Corrupt {
            path: path.to_owned(),
            why: "it is no age file",
        }),
    }
}

/// Returns the recipient of the identity in a key file.
pub(crate) fn recipient_of(key_file: &Path) -> Result<String, VaultError> {
    Ok(read_key_file(key_file)?.to_public().to_string())
}

fn seal(recipient: &dyn age::Recipient, parts: &[&[u8]]) -> Result<Vec<u8>, VaultError> {
    let plain = Zeroizing::new(parts.concat());
    sealed::seal(recipient, &plain).map_err(|_| VaultError::Encrypt)
}

fn unlock_error(error: DecryptError, path: &Path, wrong: VaultError) -> VaultError {
    let corrupt = |why| VaultError::Corrupt {
        path: path.to_owned(),
        why,
    };
    match error {
        DecryptError::NoMatchingKeys
        | DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed => wrong,
        DecryptError::ExcessiveWork { .. } => corrupt("opening it would take too long by design"),
        DecryptError::InvalidMac => corrupt("its header was changed"),
        DecryptError::InvalidHeader => corrupt("its header is not one of ours"),
        DecryptError::UnknownFormat => corrupt("it is no age file of version 1"),
        DecryptError::Io(_) => corrupt("its content was changed or cut off"),
    }
}

fn passphrase_text(passphrase: &Secret) -> Result<SecretString, VaultError> {
    match str::from_utf8(passphrase.expose()) {
        Ok(text) if !text.is_empty() => Ok(SecretString::from(text.to_owned())),
        Ok(_) | Err(_) => Err(VaultError::BadPassphrase),
    }
}

fn read_key_file(path: &Path) -> Result<x25519::Identity, VaultError> {
    let fault = |fault| VaultError::KeyFile {
        path: path.to_owned(),
        fault,
    };
    let io = |source| VaultError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    };
    // A person keeps it where he likes, and may have put a link to it here.
    let opened = sys::regular::open_through_links(path, File::options().read(true));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(fault(KeyFileFault::NotAFile));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(fault(KeyFileFault::Missing));
        }
        Err(error) => return Err(io(error)),
    };
    let meta = file.metadata().map_err(io)?;
    if meta.uid() != 0 && meta.uid() != sys::process::own_uid() {
        return Err(fault(KeyFileFault::ForeignOwner));
    }
    // A credential of systemd belongs to root and is given to the service's user by an access list, whose mask shows
    // as the group's right to read (systemd.exec(5), credentials).
    let given = meta.uid() == 0 && sys::process::own_uid() != 0;
    let others = if given { 0o037 } else { 0o077 };
    if meta.mode() & others != 0 {
        let mode = meta.mode() & 0o777;
        return Err(fault(KeyFileFault::OpenToOthers { mode }));
    }
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST_KEY_FILE));
    let limit = u64::try_from(LONGEST_KEY_FILE).unwrap_or(0);
    file.take(limit).read_to_end(&mut text).map_err(io)?;
    only_identity(&text).ok_or(fault(KeyFileFault::NotAnIdentity))
}

fn only_identity(text: &[u8]) -> Option<x25519::Identity> {
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let identity = read_identity(lines.next()?)?;
    lines.next().is_none().then_some(identity)
}

fn check_seal(key: &x25519::Identity, plain: &[u8]) -> Option<()> {
    let mut lines = plain.split(|byte| *byte == b'\n');
    let tag = lines.find_map(|line| line.strip_prefix(SEALED_BY))?;
    let tag = unhex(tag)?;
    let text = text_of(&only_identity(plain)?);
    seal_of(key, &text).ok()?.verify_slice(&tag).ok()
}

fn seal_of(key: &x25519::Identity, identity: &Secret) -> Result<Hmac<Sha256>, VaultError> {
    let mut mac = keyed(key, IDENTITY_SEAL)?;
    mac.update(identity.expose());
    Ok(mac)
}

/// Returns an HMAC under a key derived from an identity for one purpose.
pub(crate) fn keyed(
    identity: &x25519::Identity,
    purpose: &[u8],
) -> Result<Hmac<Sha256>, VaultError> {
    let mut derive = Hmac::<Sha256>::new_from_slice(text_of(identity).expose())
        .map_err(|_| VaultError::Encrypt)?;
    derive.update(purpose);
    let key = Zeroizing::new(<[u8; 32]>::from(derive.finalize().into_bytes()));
    Hmac::new_from_slice(key.as_slice()).map_err(|_| VaultError::Encrypt)
}

pub(crate) fn unhex(text: &[u8]) -> Option<[u8; 32]> {
    let digest: model::Digest = str::from_utf8(text).ok()?.parse().ok()?;
    Some(digest.to_bytes())
}

/// Above this a file is refused: a planted one could otherwise keep the daemon busy for hours.
const HIGHEST_WORK_FACTOR: u8 = 20;

/// Room for one identity and a few lines of comment.
const LONGEST_KEY_FILE: usize = 4096;

const TITLE: &[u8] = b"# Lychgate: the identity that opens vault.age\n";
const SEALED_BY: &[u8] = b"# sealed-by-key-file hmac-sha256 ";
const IDENTITY_SEAL: &[u8] = b"lychgate identity seal v1";
