//! The age format: sealing bytes for a recipient or a passphrase, and opening them.

use std::io::{Read, Write};

use age::{DecryptError, Decryptor, EncryptError, Encryptor, Identity, Recipient};
use zeroize::Zeroizing;

/// Encrypts `plain` for one recipient.
pub(crate) fn seal(recipient: &dyn Recipient, plain: &[u8]) -> Result<Vec<u8>, EncryptError> {
    seal_to(&[recipient], plain)
}

/// Encrypts `plain` for several recipients, each of whom opens it alone.
pub(crate) fn seal_to(
    recipients: &[&dyn Recipient],
    plain: &[u8],
) -> Result<Vec<u8>, EncryptError> {
    let encryptor = Encryptor::with_recipients(recipients.iter().copied())?;
    let mut out = Vec::with_capacity(plain.len() + HEADER_ROOM);
    let mut writer = encryptor.wrap_output(&mut out)?;
    writer.write_all(plain)?;
    // Without it the last chunk is missing and the file cannot be opened.
    writer.finish()?;
    Ok(out)
}

/// Decrypts `file`.
pub(crate) fn open(
    identity: &dyn Identity,
    file: &[u8],
) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
    let mut reader = Decryptor::new_buffered(file)?.decrypt(std::iter::once(identity))?;
    // The plain text is shorter than the file: the buffer never grows, so no copy is left behind.
    let mut plain = Zeroizing::new(Vec::with_capacity(file.len()));
    reader.read_to_end(&mut plain)?;
    Ok(plain)
}

/// Tells whether a passphrase opens `file`; none if it is no age file.
pub(crate) fn is_under_passphrase(file: &[u8]) -> Option<bool> {
    Decryptor::new_buffered(file)
        .ok()
        .map(|decryptor| decryptor.is_scrypt())
}

/// An age header for one recipient is about 200 bytes.
const HEADER_ROOM: usize = 512;
