//! The folders of the home: whose they are, who may look in, and how much room is left.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use model::Home;

use super::Finding;

/// One segment of the log and the one prepared behind it, rounded up: with less, the next one cannot be prepared.
const LITTLE: u64 = 64 << 20;

/// Looks at the folders.
pub(super) fn look(home: &Home) -> Vec<Finding> {
    let owner = home.realm().daemon(sys::process::own_uid());
    let private = home.private_folders().into_iter();
    let shared = home.shared_folders().into_iter();
    let mut found: Vec<Finding> = private
        .filter_map(|path| folder(&path, owner, 0o077))
        .chain(shared.filter_map(|path| folder(&path, owner, 0o027)))
        .collect();
    found.extend(room(home));
    found.extend(keys(home));
    found
}

/// `closed` are the rights that nobody else may have.
fn folder(path: &Path, owner: u32, closed: u32) -> Option<Finding> {
    let shown = path.display();
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        // It is made by the next start.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            let what = format!("{shown} cannot be looked at: {error}");
            return Some(Finding::fault("home", what, "look at its rights"));
        }
    };
    if !meta.is_dir() {
        let what = format!("{shown} is no folder, or a link to one");
        return Some(Finding::fault("home", what, "put a real folder there"));
    }
    if meta.uid() != owner {
        let what = format!("{shown} belongs to uid {}", meta.uid());
        return Some(Finding::fault("home", what, "run as the user who owns it"));
    }
    (meta.permissions().mode() & closed != 0).then(|| {
        let what = format!("{shown} is open to other users, so the daemon does not start");
        let mode = 0o777 & !closed;
        Finding::fault("home", what, format!("chmod {mode:o} {shown}"))
    })
}

fn room(home: &Home) -> Option<Finding> {
    let audit = home.audit();
    let room = sys::disk::room(&audit).ok()?;
    (room.free < LITTLE).then(|| {
        let what = format!(
            "{} MB are free where the log lies ({})",
            room.free >> 20,
            audit.display()
        );
        Finding::warning(
            "disk",
            what,
            "free some, or `lych audit prune`; on a full disk calls are refused",
        )
    })
}

/// The two files that open everything.
fn keys(home: &Home) -> Vec<Finding> {
    let (vault, identity) = (home.vault().exists(), home.identity().exists());
    let mut found = Vec::new();
    if vault && !identity {
        found.push(Finding::fault(
            "vault",
            format!(
                "{} is missing: nothing opens the vault",
                home.identity().display()
            ),
            "lych vault restore FILE, from a backup",
        ));
    }
    if !vault && home.vault().with_added_extension("prev").exists() {
        found.push(Finding::fault(
            "vault",
            format!("{} is missing, the generation before it is there", home.vault().display()),
            "lych vault restore FILE, from a backup; docs/vault-format.md tells how to use the generation before",
        ));
    }
    if vault && home.bootstrap_key().exists() {
        found.push(Finding::warning(
            "vault",
            "the key that vouched for the log before there was a vault still lies beside it",
            "lych unlock, which hands the log over to the vault and removes it",
        ));
    }
    found
}
