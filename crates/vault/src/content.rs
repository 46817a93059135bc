//! What `vault.age` holds, and its plain text: one line with the MAC, then JSON.
//!
//! Values lie behind `Arc`: a changed content is a new one that shares every value with the old, so the old
//! is still whole if the new cannot be written, and no value is ever copied for that.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use age::x25519;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::Mac;
use model::{Destination, Digest, Secret, SecretName, Wall, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{
    VaultError,
    keys::{read_identity, text_of},
    opener::{keyed, unhex},
};

pub(crate) struct Content {
    pub(crate) generation: u64,
    pub(crate) root_seed: Arc<Zeroizing<[u8; 32]>>,
    pub(crate) log_identity: Arc<x25519::Identity>,
    pub(crate) secrets: BTreeMap<SecretName, Arc<Entry>>,
    pub(crate) policy: Option<Arc<Vec<u8>>>,
    pub(crate) recipients: Recipients,
}

/// Who opens `vault.age` besides the main identity: age recipients, which are no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipients {
    /// A key that lies far away, for the day when nothing else opens the vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recovery: Option<String>,
    /// The key that this machine gives its service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
}

impl Recipients {
    /// Returns those there are, as age has them.
    pub(crate) fn all(&self) -> Result<Vec<x25519::Recipient>, VaultError> {
        let named = [&self.recovery, &self.machine].into_iter().flatten();
        named
            .map(|text| {
                text.parse()
                    .map_err(|_| VaultError::NotAnAgeKey("recipient"))
            })
            .collect()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One secret with where it may go.
pub(crate) struct Entry {
    pub(crate) value: Secret,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) header: String,
    pub(crate) created_at: Wall,
    pub(crate) rotated_at: Option<Wall>,
}

/// The JSON. Secret text is borrowed: base64 and age identities need no unescaping, so parsing copies none.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    version: u64,
    generation: u64,
    #[serde(borrow)]
    root_seed: &'a str,
    #[serde(borrow)]
    log_identity: &'a str,
    #[serde(borrow)]
    secrets: Vec<StoredSecret<'a>>,
    #[serde(borrow)]
    policy: Option<StoredPolicy<'a>>,
    #[serde(default, skip_serializing_if = "Recipients::is_empty")]
    recipients: Recipients,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSecret<'a> {
    name: SecretName,
    value: &'a str,
    destinations: Vec<Destination>,
    header: String,
    created_at: Wall,
    rotated_at: Option<Wall>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPolicy<'a> {
    sha256: Digest,
    bytes: &'a str,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl Content {
    /// Returns the next generation, which shares every value with this one.
    pub(crate) fn next(&self) -> Self {
        Self {
            generation: self.generation + 1,
            root_seed: Arc::clone(&self.root_seed),
            log_identity: Arc::clone(&self.log_identity),
            secrets: self.secrets.clone(),
            policy: self.policy.clone(),
            recipients: self.recipients.clone(),
        }
    }

    /// Returns the plain text of the file.
    pub(crate) fn to_plain(
        &self,
        identity: &x25519::Identity,
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let encoded: Vec<(&SecretName, &Entry, Zeroizing<String>)> = self
            .secrets
            .iter()
            .map(|(name, entry)| {
                let value = Zeroizing::new(BASE64.encode(entry.value.expose()));
                (name, entry.as_ref(), value)
            })
            .collect();
        let root_seed = Zeroizing::new(BASE64.encode(self.root_seed.as_slice()));
        let log_identity = text_of(&self.log_identity);
        let policy = self
            .policy
            .as_ref()
            .map(|bytes| BASE64.encode(bytes.as_slice()));
        let stored = Stored {
            version: VERSION,
            generation: self.generation,
            root_seed: &root_seed,
            log_identity: str::from_utf8(log_identity.expose()).map_err(|_| VaultError::Encrypt)?,
            secrets: encoded
                .iter()
                .map(|(name, entry, value)| stored_secret(name, entry, value))
                .collect(),
            policy: self
                .policy
                .as_ref()
                .zip(policy.as_deref())
                .map(|(raw, bytes)| {
                    let sha256 = sha256(raw);
                    StoredPolicy { sha256, bytes }
                }),
            recipients: self.recipients.clone(),
        };
        frame(&stored, identity)
    }

    /// Reads the plain text of the file, its MAC first.
    pub(crate) fn from_plain(
        plain: &[u8],
        identity: &x25519::Identity,
        path: &Path,
    ) -> Result<Self, VaultError> {
        let corrupt = |why| VaultError::Corrupt {
            path: path.to_owned(),
            why,
        };
        let substituted = || VaultError::Substituted(path.to_owned());
        let json = unframe(plain, identity).ok_or_else(substituted)?;
        let Version { version } =
            serde_json::from_slice(json).map_err(|_| corrupt("it names no version"))?;
        if version != VERSION {
            let path = path.to_owned();
            return Err(VaultError::Newer { path, version });
        }
        let stored: Stored<'_> =
            serde_json::from_slice(json).map_err(|_| corrupt("its content is not of version 1"))?;
        stored
            .read()
            .ok_or_else(|| corrupt("one of its values cannot be decoded"))
    }
}

impl Stored<'_> {
    fn read(self) -> Option<Content> {
        let seed = Zeroizing::new(decode(self.root_seed)?);
        let mut secrets = BTreeMap::new();
        for secret in self.secrets {
            let entry = Entry {
                value: Secret::new(decode(secret.value)?),
                destinations: secret.destinations,
                header: secret.header,
                created_at: secret.created_at,
                rotated_at: secret.rotated_at,
            };
            secrets.insert(secret.name, Arc::new(entry));
        }
        let policy = match self.policy {
            None => None,
            Some(policy) => {
                let bytes = decode(policy.bytes)?;
                if sha256(&bytes) != policy.sha256 {
                    return None;
                }
                Some(Arc::new(bytes))
            }
        };
        let root_seed = Zeroizing::new(<[u8; 32]>::try_from(seed.as_slice()).ok()?);
        Some(Content {
            generation: self.generation,
            root_seed: Arc::new(root_seed),
            log_identity: Arc::new(read_identity(self.log_identity.as_bytes())?),
            secrets,
            policy,
            recipients: self.recipients,
        })
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

fn stored_secret<'a>(name: &SecretName, entry: &Entry, value: &'a str) -> StoredSecret<'a> {
    StoredSecret {
        name: name.clone(),
        value,
        destinations: entry.destinations.clone(),
        header: entry.header.clone(),
        created_at: entry.created_at,
        rotated_at: entry.rotated_at,
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    // As long as base64 says, so that the buffer never moves and leaves a copy behind.
    let mut bytes = Vec::with_capacity(text.len());
    BASE64.decode_vec(text, &mut bytes).ok()?;
    Some(bytes)
}

fn frame(
    stored: &Stored<'_>,
    identity: &x25519::Identity,
) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let mut json = Zeroizing::new(Vec::with_capacity(room_for(stored)));
    serde_json::to_writer(&mut *json, stored).map_err(|_| VaultError::Encrypt)?;
    frame_json(&json, identity)
}

pub(crate) fn frame_json(
    json: &[u8],
    identity: &x25519::Identity,
) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let mut mac = keyed(identity, VAULT_MAC)?;
    mac.update(json);
    let tag = hex(&mac.finalize().into_bytes());
    let parts = [MAC_LINE, tag.as_bytes(), b"\n", json, b"\n"];
    Ok(Zeroizing::new(parts.concat()))
}

fn unframe<'a>(plain: &'a [u8], identity: &x25519::Identity) -> Option<&'a [u8]> {
    let rest = plain.strip_prefix(MAC_LINE)?.strip_suffix(b"\n")?;
    let (tag, json) = rest.split_at_checked(64)?;
    let json = json.strip_prefix(b"\n")?;
    let mut mac = keyed(identity, VAULT_MAC).ok()?;
    mac.update(json);
    mac.verify_slice(&unhex(tag)?).ok()?;
    Some(json)
}

/// At least as long as the JSON: a buffer that grew would leave secrets behind in its old place.
fn room_for(stored: &Stored<'_>) -> usize {
    let fixed = 1024
        + stored
            .policy
            .as_ref()
            .map_or(0, |policy| policy.bytes.len());
    let secret = |secret: &StoredSecret<'_>| {
        let destinations: usize = secret
            .destinations
            .iter()
            .map(|d| d.to_string().len() + 4)
            .sum();
        secret.value.len() + destinations + secret.header.len() + 512
    };
    fixed + stored.secrets.iter().map(secret).sum::<usize>()
}

const VERSION: u64 = 1;
const MAC_LINE: &[u8] = b"hmac-sha256 ";
const VAULT_MAC: &[u8] = b"lychgate vault mac v1";
