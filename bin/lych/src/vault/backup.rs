//! The sealed vault in one file that `tar` unpacks, and back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use model::{Exit, Explain, Fault, Home};
use serde::Deserialize;
use wire::operator::Request;

use super::tar;
use crate::{daemon, operator::Operator, pin::PinArgs, ui};

/// The two files of a backup, by the names they have at home.
const VAULT: &str = "vault.age";
const IDENTITY: &str = "identity.age";

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup.
    file: PathBuf,
    #[command(flatten)]
    opener: daemon::OpenerArgs,
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Deserialize)]
struct Copied {
    vault: String,
    identity: String,
}

/// Copies the sealed files.
pub(super) fn backup(home: &Home, file: &Path) -> Result<Exit, Explain> {
    let copied: Copied = Operator::connect(home)?.ask_for(&Request::VaultBackup)?;
    let parts = [
        (IDENTITY, decoded(&copied.identity)?),
        (VAULT, decoded(&copied.vault)?),
    ];
    let bytes = tar::pack(&parts).ok_or_else(|| unusable(file, "a part of it is too long"))?;
    sys::durable::create(file, &bytes).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Caller,
            format!("the backup could not be written to {}", file.display()),
        )
        .because(error)
        .next("name a file that does not exist yet")
    })?;
    ui::note(
        "Copied. It opens with what opens the vault today, also after that was changed; the log needs a copy of its own: `lych audit ship`.",
    );
    Ok(Exit::Done)
}

/// Puts the sealed files back.
pub(super) fn restore(home: &Home, args: &Restore) -> Result<Exit, Explain> {
    let bytes = fs::read(&args.file).map_err(|error| unusable(&args.file, &error.to_string()))?;
    let parts = tar::unpack(&bytes).ok_or_else(|| unusable(&args.file, "it is no backup"))?;
    let part = |name: &str| -> Result<String, Explain> {
        let found = parts.iter().find(|(found, _)| found == name);
        let (_, bytes) = found.ok_or_else(|| unusable(&args.file, "a part of it is missing"))?;
        Ok(STANDARD.encode(bytes))
    };
    let request = Request::VaultRestore {
        vault: part(VAULT)?,
        identity: part(IDENTITY)?,
        opener: args.opener.read(false)?,
    };
    args.pin.ask(&mut Operator::connect(home)?, &request)?;
    ui::note(
        "The vault from the backup is in place and open. What was rotated since is as it was then: rotate it again.",
    );
    Ok(Exit::Done)
}

fn decoded(text: &str) -> Result<Vec<u8>, Explain> {
    STANDARD.decode(text).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the daemon's copy cannot be read",
        )
        .because(error)
    })
}

fn unusable(file: &Path, why: &str) -> Explain {
    Explain::new(
        Exit::Failed,
        Fault::Caller,
        format!("{} cannot be used", file.display()),
    )
    .because(why)
    .next("give a file that `lych vault backup` made")
}
