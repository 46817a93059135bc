//! Further keys to the vault, and its way back from a backup.
//!
//! `vault.age` is encrypted to the main identity and, where they were named, to two more: a *recovery* key that lies far
//! away, and the key that a *machine* gives its service. Each opens the file with the plain `age` tool. To open it for
//! use, the main identity is needed, because the MAC hangs on it: the machine finds it in `machine.age`, sealed as
//! `identity.age` is under a key file. A machine whose recipient the vault no longer names opens nothing.

use std::{fs, io, path::Path};

use age::x25519;
use model::Home;

use crate::{
    Opener, Vault, VaultError,
    opener::recipient_of,
    vault::{read, read_identity, replace},
};

/// The two sealed files of a vault, as they lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// `vault.age`.
    pub vault: Vec<u8>,
    /// `identity.age`.
    pub identity: Vec<u8>,
}

impl Backup {
    /// Copies the files; the vault may be shut.
    ///
    /// # Errors
    /// One is missing or cannot be read.
    pub fn of(home: &Home) -> Result<Self, VaultError> {
        Ok(Self {
            identity: read_identity(home)?,
            vault: read(&home.vault())?,
        })
    }

    /// Opens the vault that was backed up, without putting it in place.
    ///
    /// # Errors
    /// It is damaged, not ours, or the opener is not the one it was backed up under.
    pub fn open(&self, home: &Home, opener: &Opener) -> Result<Vault, VaultError> {
        let identity = opener.unlock(&home.identity(), &self.identity)?;
        Vault::of(home, &self.vault, identity)
    }

    /// Puts the opened vault in place of the present one, as a later generation than `above`: so the log goes on to
    /// tell which is the newest. The files that were there are kept as `….prev`.
    ///
    /// # Errors
    /// The file system refused.
    pub fn put_in_place(
        &self,
        home: &Home,
        mut vault: Vault,
        above: u64,
    ) -> Result<Vault, VaultError> {
        let path = home.identity();
        match read(&path) {
            Ok(old) if old == self.identity => {}
            Ok(old) => {
                replace(&path.with_added_extension("prev"), &old)?;
                replace(&path, &self.identity)?;
            }
            Err(VaultError::Missing(_)) => replace(&path, &self.identity)?,
            Err(error) => return Err(error),
        }
        vault.write_above(above)?;
        Ok(vault)
    }
}

impl Vault {
    /// Names the key that opens the file when nothing else does, or none.
    ///
    /// # Errors
    /// It is no X25519 recipient, or the vault could not be written.
    pub fn set_recovery(&mut self, recipient: Option<&str>) -> Result<(), VaultError> {
        let recovery = recipient.map(canonical).transpose()?;
        self.change_recipients(|recipients| recipients.recovery = recovery)
    }

    /// Lets the key in this file open the vault by itself from now on; it is what the service manager hands over.
    ///
    /// # Errors
    /// The key file cannot be used, or the vault could not be written.
    pub fn enrol_machine(&mut self, home: &Home, key_file: &Path) -> Result<String, VaultError> {
        let recipient = recipient_of(key_file)?;
        let sealed = Opener::KeyFile(key_file.to_owned()).lock(self.identity())?;
        replace(&home.machine_identity(), &sealed)?;
        // Behind the file: a recipient without it would open nothing, a file without a recipient is refused.
        let machine = Some(recipient.clone());
        self.change_recipients(|recipients| recipients.machine = machine)?;
        Ok(recipient)
    }

    /// Takes that back; a copy of the file that somebody kept opens nothing any more.
    ///
    /// # Errors
    /// The vault could not be written, or the file not be removed.
    pub fn forget_machine(&mut self, home: &Home) -> Result<(), VaultError> {
        self.change_recipients(|recipients| recipients.machine = None)?;
        let path = home.machine_identity();
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(VaultError::Io {
                doing: "remove",
                path,
                source,
            }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Opens the vault with the machine's key.
    ///
    /// # Errors
    /// There is no `machine.age`, it is not under this key, the vault does not name this machine, or as
    /// [`Vault::open`].
    pub fn open_by_machine(home: &Home, key_file: &Path) -> Result<Self, VaultError> {
        let path = home.machine_identity();
        let identity = Opener::KeyFile(key_file.to_owned()).unlock(&path, &read(&path)?)?;
        let vault = Self::of(home, &read(&home.vault())?, identity)?;
        let named = vault.recipients().machine.as_deref();
        if named == Some(recipient_of(key_file)?.as_str()) {
            Ok(vault)
        } else {
            Err(VaultError::NotItsMachine)
        }
    }
}

fn canonical(text: &str) -> Result<String, VaultError> {
    let recipient: x25519::Recipient = text
        .trim()
        .parse()
        .map_err(|_| VaultError::NotAnAgeKey("recipient"))?;
    Ok(recipient.to_string())
}
