//! Bytes that must not be seen: no Debug, no Display, no Serialize, no Clone, wiped on drop.

use zeroize::Zeroizing;

/// A secret value.
///
/// Built once from its bytes and never grown, so that no reallocation leaves a copy behind.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes over `bytes`; the caller keeps no copy.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the bytes. Every use is found by searching for this name.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}
