//! What the vault seals beside secrets: the policy, how presence is established, and the remembered shapes.
//!
//! All three widen or narrow what may be done, so none may lie where an agent can write. Before the vault
//! is open nobody knows any of them: every act that widens authority waits for that, and unlocking itself
//! is checked against the rule that it uncovers, before anything takes effect.
//!
//! The form is JSON with a `schema`. A vault of before holds the bare policy: presence is then `none`.

use channels::{Policy, PolicyError};
use model::{Digest, Presence, Wall};
use serde::{Deserialize, Serialize};

use crate::pin::PinHash;

/// Everything that is sealed beside the secrets.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) policy: Policy,
    /// The PIN; none if nothing asks.
    pub(crate) pin: Option<PinHash>,
    pub(crate) trusted: Vec<Trusted>,
}

/// A shape whose runs are admitted without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    /// Digest of the shape.
    pub(crate) shape: Digest,
    /// What a person reads: the programs of the chain.
    pub(crate) what: Vec<String>,
    /// Since when.
    pub(crate) since: Wall,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: String,
    pin: Option<PinHash>,
    trusted: Vec<Trusted>,
    /// The canonical text of the policy, unchanged: its digest is on record.
    policy: String,
}

impl Sealed {
    const SCHEMA: &'static str = "lych.sealed/v1";

    /// What a new vault holds.
    pub(crate) const fn nothing() -> Self {
        Self {
            policy: Policy::nothing(),
            pin: None,
            trusted: Vec::new(),
        }
    }

    /// Reads what was sealed.
    ///
    /// # Errors
    /// A later version wrote it, or it is damaged.
    pub(crate) fn from_bytes(bytes: Option<&[u8]>) -> Result<Self, PolicyError> {
        let Some(bytes) = bytes else {
            return Ok(Self::nothing());
        };
        let Ok(stored) = serde_json::from_slice::<Stored>(bytes) else {
            let policy = Policy::from_canonical(bytes)?;
            return Ok(Self {
                policy,
                ..Self::nothing()
            });
        };
        if stored.schema != Self::SCHEMA {
            return Err(PolicyError::Corrupt);
        }
        Ok(Self {
            policy: Policy::from_canonical(stored.policy.as_bytes())?,
            pin: stored.pin,
            trusted: stored.trusted,
        })
    }

    /// Returns the bytes to seal.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let stored = Stored {
            schema: Self::SCHEMA.to_owned(),
            pin: self.pin.clone(),
            trusted: self.trusted.clone(),
            policy: String::from_utf8_lossy(&self.policy.canonical()).into_owned(),
        };
        // Text, numbers and lists: there is nothing in it that JSON cannot carry.
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Returns how presence is established.
    pub(crate) const fn presence(&self) -> Presence {
        match self.pin {
            Some(_) => Presence::Pin,
            None => Presence::None,
        }
    }

    /// Tells whether runs of this shape are admitted without asking.
    pub(crate) fn trusts(&self, shape: Digest) -> bool {
        self.trusted.iter().any(|known| known.shape == shape)
    }
}

impl Trusted {
    /// Returns the id that people type: short, and unique among a handful.
    pub(crate) fn id(&self) -> String {
        let hex: String = self.shape.to_string().chars().take(16).collect();
        format!("t-{hex}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy::parse_draft("admission = \"allow\"\n").unwrap()
    }

    #[test]
    fn what_was_sealed_reads_back() {
        let sealed = Sealed {
            policy: policy(),
            pin: None,
            trusted: vec![Trusted {
                shape: Digest::from_bytes([7; 32]),
                what: vec!["node".to_owned()],
                since: Wall::from_millis(1),
            }],
        };

        let again = Sealed::from_bytes(Some(&sealed.to_bytes())).unwrap();

        assert_eq!(again.policy, sealed.policy);
        assert!(again.trusts(Digest::from_bytes([7; 32])));
        assert!(!again.trusts(Digest::from_bytes([8; 32])));
    }

    #[test]
    fn a_bare_policy_of_before_is_read_with_presence_none() {
        let sealed = Sealed::from_bytes(Some(&policy().canonical())).unwrap();

        assert_eq!(sealed.policy, policy());
        assert_eq!(sealed.presence(), Presence::None);
    }

    #[test]
    fn a_later_form_is_no_policy() {
        let text = r#"{"schema":"lych.sealed/v9","pin":null,"trusted":[],"policy":""}"#;

        assert!(Sealed::from_bytes(Some(text.as_bytes())).is_err());
    }
}
