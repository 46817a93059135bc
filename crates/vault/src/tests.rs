//! The vault as its callers see it.

mod formats;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use model::{Home, Secret, SecretName, Wall};
use tempfile::TempDir;

use crate::{
    KeyFileFault, NewSecret, Opener, OpensBy, Seed, Vault, VaultError, WorkFactor, keys,
    new_log_identity, new_root_seed, root_public_of, sealed, unwrap_with, wrap_to,
};

const CANARY: &str = "canary-Zx81-value";

struct Place {
    folder: TempDir,
    home: Home,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::below(folder.path()).unwrap();
    Place { folder, home }
}

impl Place {
    fn key_file(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn by_key(&self) -> Opener {
        Opener::KeyFile(self.key_file())
    }

    fn made(&self, opener: &Opener) -> Vault {
        match Vault::create(&self.home, opener, seed()) {
            Ok(vault) => vault,
            Err(error) => panic!("{error}"),
        }
    }

    fn refusal(&self, opener: &Opener) -> VaultError {
        match Vault::open(&self.home, opener) {
            Ok(_) => panic!("it opened"),
            Err(error) => error,
        }
    }

    fn opened(&self, opener: &Opener) -> Vault {
        match Vault::open(&self.home, opener) {
            Ok(vault) => vault,
            Err(error) => panic!("{error}"),
        }
    }
}

fn by_passphrase(text: &str) -> Opener {
    let passphrase = Secret::new(text.as_bytes().to_vec());
    Opener::Passphrase(passphrase, WorkFactor::weak_for_tests())
}

fn seed() -> Seed {
    Seed {
        root_seed: new_root_seed().unwrap(),
        log_identity: new_log_identity().0,
    }
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

fn value(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

fn token(value: &str) -> NewSecret {
    NewSecret {
        name: name("token"),
        value: Secret::new(value.as_bytes().to_vec()),
        destinations: vec!["https://api.example.com/v2".parse().unwrap()],
        header: None,
    }
}

fn at(millis: u64) -> Wall {
    Wall::from_millis(millis)
}

#[test]
fn what_was_put_in_is_found_after_opening_again() {
    for passphrase in [true, false] {
        let place = place();
        let opener = if passphrase {
            by_passphrase("correct horse")
        } else {
            place.by_key()
        };
        let mut vault = place.made(&opener);
        vault.add(token(CANARY), at(1)).unwrap();
        vault.set_policy(b"{\"a\":1}".to_vec()).unwrap();
        let (root, recipient) = (vault.root_public(), vault.log_recipient());
        let (generation, sha256) = (vault.generation(), vault.sha256());
        drop(vault);

        let vault = place.opened(&opener);

        let found = vault.find(&name("token")).unwrap();
        assert_eq!(found.value.expose(), CANARY.as_bytes());
        assert_eq!(found.header, "Authorization");
        assert_eq!(
            found.destinations[0].to_string(),
            "https://api.example.com/v2"
        );
        assert_eq!(vault.policy(), Some(&b"{\"a\":1}"[..]));
        assert_eq!(
            (vault.root_public(), vault.log_recipient()),
            (root, recipient)
        );
        assert_eq!((vault.generation(), vault.sha256()), (generation, sha256));
        assert_eq!(generation, 3);
    }
}

#[test]
fn a_rotated_secret_keeps_its_seal_and_a_removed_one_is_gone() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    vault.add(token("old"), at(1)).unwrap();

    vault.rotate(&name("token"), value("new"), at(2)).unwrap();

    let listing = &vault.list()[0];
    assert_eq!(
        (listing.created_at, listing.rotated_at),
        (at(1), Some(at(2)))
    );
    assert_eq!(
        listing.destinations[0].to_string(),
        "https://api.example.com/v2"
    );
    assert_eq!(vault.find(&name("token")).unwrap().value.expose(), b"new");
    vault.remove(&name("token")).unwrap();
    assert!(place.opened(&place.by_key()).find(&name("token")).is_none());
    assert!(matches!(
        vault.remove(&name("token")),
        Err(VaultError::NoSuchSecret(_))
    ));
}

#[test]
fn a_secret_without_a_place_to_go_is_not_taken() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    vault.add(token("x"), at(1)).unwrap();

    let with = |edit: fn(&mut NewSecret)| {
        let mut new = token("x");
        new.name = name("other");
        edit(&mut new);
        new
    };

    assert!(matches!(
        vault.add(token("x"), at(1)),
        Err(VaultError::SecretExists(_))
    ));
    let none = with(|new| new.destinations.clear());
    assert!(matches!(
        vault.add(none, at(1)),
        Err(VaultError::NoDestination)
    ));
    for header in [
        "Host",
        "content-length",
        "Proxy-Authorization",
        "X Y",
        "",
        "X:\n",
    ] {
        let mut new = with(|_| {});
        new.header = Some(header.to_owned());
        assert!(
            matches!(vault.add(new, at(1)), Err(VaultError::BadHeader(_))),
            "{header}"
        );
    }
    for bad in ["", "a\n", "a\r\nX: y", " a", "a\u{e9}"] {
        let mut new = with(|_| {});
        new.value = value(bad);
        assert!(
            matches!(vault.add(new, at(1)), Err(VaultError::BadValue)),
            "{bad:?}"
        );
    }
    assert_eq!(vault.generation(), 2);
}

#[test]
fn the_wrong_opener_is_told_from_a_damaged_vault() {
    let place = place();
    drop(place.made(&by_passphrase("right")));
    drop(Opener::prepare(&place.by_key()));

    assert!(matches!(
        place.refusal(&by_passphrase("wrong")),
        VaultError::WrongPassphrase
    ));
    assert!(matches!(
        place.refusal(&by_passphrase("")),
        VaultError::BadPassphrase
    ));
    assert!(matches!(
        place.refusal(&place.by_key()),
        VaultError::NeedsPassphrase
    ));
    assert_eq!(Vault::opens_by(&place.home).ok(), Some(OpensBy::Passphrase));
    fs::write(place.home.identity(), b"not age").unwrap();
    assert!(matches!(
        place.refusal(&by_passphrase("right")),
        VaultError::Corrupt { .. }
    ));
    fs::remove_file(place.home.identity()).unwrap();
    assert!(matches!(
        place.refusal(&by_passphrase("right")),
        VaultError::MissingIdentity(_)
    ));
    fs::remove_file(place.home.vault()).unwrap();
    assert!(matches!(
        place.refusal(&by_passphrase("right")),
        VaultError::Missing(_)
    ));
}

#[test]
fn a_key_file_that_others_can_read_or_that_is_another_is_refused() {
    let place = place();
    drop(place.made(&place.by_key()));
    let other = Opener::KeyFile(place.folder.path().join("other"));
    drop(other.prepare());
    let chmod = |mode| fs::set_permissions(place.key_file(), fs::Permissions::from_mode(mode));
    let fault = |error| {
        let VaultError::KeyFile { fault, .. } = error else {
            panic!("{error}")
        };
        fault
    };

    let made = fs::metadata(place.key_file()).unwrap().permissions().mode();
    assert_eq!(made & 0o777, 0o600);
    assert!(matches!(
        place.refusal(&by_passphrase("x")),
        VaultError::NeedsKeyFile
    ));
    assert!(matches!(place.refusal(&other), VaultError::WrongKeyFile(_)));
    chmod(0o640).unwrap();
    let open = fault(place.refusal(&place.by_key()));
    assert_eq!(open, KeyFileFault::OpenToOthers { mode: 0o640 });
    chmod(0o400).unwrap();
    drop(place.opened(&place.by_key()));
    let missing = Opener::KeyFile(place.folder.path().join("none"));
    assert_eq!(fault(place.refusal(&missing)), KeyFileFault::Missing);
    let folder = Opener::KeyFile(place.folder.path().to_owned());
    assert_eq!(fault(place.refusal(&folder)), KeyFileFault::NotAFile);
    chmod(0o600).unwrap();
    fs::write(place.key_file(), b"AGE-SECRET-KEY-1NOPE\n").unwrap();
    assert_eq!(
        fault(place.refusal(&place.by_key())),
        KeyFileFault::NotAnIdentity
    );
}

#[test]
fn a_vault_written_by_somebody_who_knows_only_the_recipient_is_refused() {
    let (ours, theirs) = (place(), place());
    drop(ours.made(&ours.by_key()));
    drop(theirs.made(&theirs.by_key()));
    let identity = identity_of(&ours);
    let stranger = identity_of(&theirs);
    let plain = sealed::open(&stranger, &fs::read(theirs.home.vault()).unwrap()).unwrap();

    let forged = sealed::seal(&identity.to_public(), &plain).unwrap();
    fs::write(ours.home.vault(), forged).unwrap();

    assert!(matches!(
        ours.refusal(&ours.by_key()),
        VaultError::Substituted(_)
    ));
    fs::copy(theirs.home.vault(), ours.home.vault()).unwrap();
    assert!(matches!(
        ours.refusal(&ours.by_key()),
        VaultError::Corrupt { .. }
    ));
}

#[test]
fn an_identity_written_by_somebody_who_knows_only_the_key_files_recipient_is_refused() {
    let (ours, theirs) = (place(), place());
    drop(ours.made(&ours.by_key()));
    drop(theirs.made(&theirs.by_key()));
    let key = keys::read_identity(&fs::read(ours.key_file()).unwrap()).unwrap();
    let their_key = keys::read_identity(&fs::read(theirs.key_file()).unwrap()).unwrap();
    let plain = sealed::open(&their_key, &fs::read(theirs.home.identity()).unwrap()).unwrap();

    fs::write(
        ours.home.identity(),
        sealed::seal(&key.to_public(), &plain).unwrap(),
    )
    .unwrap();
    fs::copy(theirs.home.vault(), ours.home.vault()).unwrap();

    assert!(matches!(
        ours.refusal(&ours.by_key()),
        VaultError::Substituted(_)
    ));
}

#[test]
fn an_older_vault_is_told_by_what_the_log_says_was_written() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    let first = fs::read(place.home.vault()).unwrap();
    vault.add(token(CANARY), at(1)).unwrap();
    let (generation, sha256) = (vault.generation(), vault.sha256());
    vault.not_older_than(generation, sha256).unwrap();
    fs::write(place.home.vault(), &first).unwrap();

    let stale = place.opened(&place.by_key());

    let error = stale.not_older_than(generation, sha256).unwrap_err();
    assert!(matches!(
        error,
        VaultError::RolledBack {
            found: 1,
            recorded: 2
        }
    ));
    let mut stale = stale;
    stale.add(token("other"), at(1)).unwrap();
    assert!(
        stale.not_older_than(generation, sha256).is_err(),
        "same generation, other file"
    );
    vault.not_older_than(1, stale.sha256()).unwrap();
}

#[test]
fn a_vault_that_changed_on_disk_is_not_written_over() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    let first = fs::read(place.home.vault()).unwrap();
    vault.add(token(CANARY), at(1)).unwrap();
    fs::write(place.home.vault(), &first).unwrap();

    let error = vault.remove(&name("token")).unwrap_err();

    assert!(matches!(error, VaultError::ChangedOnDisk(_)));
    assert!(
        vault.find(&name("token")).is_some(),
        "what was not written did not happen"
    );
    assert_eq!(fs::read(place.home.vault()).unwrap(), first);
}

#[test]
fn the_generation_before_is_kept_and_a_second_vault_is_not_made() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    let first = fs::read(place.home.vault()).unwrap();
    vault.add(token(CANARY), at(1)).unwrap();
    let previous = place.folder.path().join("vault.age.prev");

    assert_eq!(fs::read(&previous).unwrap(), first);
    let again = Vault::create(&place.home, &place.by_key(), seed());
    assert!(matches!(again.err(), Some(VaultError::Exists(_))));
    fs::remove_file(place.home.vault()).unwrap();
    let again = Vault::create(&place.home, &place.by_key(), seed());
    assert!(matches!(again.err(), Some(VaultError::Exists(_))));
    let next = place.refusal(&place.by_key()).explain().next.unwrap();
    assert!(next.contains("vault.age.prev"), "{next}");
}

#[test]
fn no_vault_is_made_over_one_that_cannot_be_looked_at() {
    let place = place();
    let path = place.home.vault();
    // stat(2) refuses to follow it (ELOOP), for root too.
    std::os::unix::fs::symlink(&path, &path).unwrap();

    let made = Vault::create(&place.home, &place.by_key(), seed());

    assert!(matches!(made.err(), Some(VaultError::Io { .. })));
    assert!(Vault::exists(&place.home));
    assert!(path.is_symlink(), "it is as it was");
}

#[test]
fn after_a_new_passphrase_the_old_one_is_wrong() {
    let place = place();
    let vault = place.made(&by_passphrase("old"));

    vault.change_opener(&by_passphrase("new")).unwrap();

    assert!(matches!(
        place.refusal(&by_passphrase("old")),
        VaultError::WrongPassphrase
    ));
    drop(place.opened(&by_passphrase("new")));
    vault.change_opener(&place.by_key()).unwrap();
    drop(place.opened(&place.by_key()));
}

#[test]
fn a_data_key_is_unwrapped_by_the_log_identity_alone() {
    let place = place();
    let vault = place.made(&place.by_key());
    let (other, _) = new_log_identity();

    let file = wrap_to(&vault.log_recipient(), &[7; 32]).unwrap();

    assert_eq!(vault.log_unwrap(&file).as_deref(), Some(&[7; 32]));
    assert!(unwrap_with(&other, &file).is_none());
    assert!(vault.log_unwrap(&file[..file.len() - 1]).is_none());
    assert!(matches!(
        wrap_to("age1nope", &[7; 32]),
        Err(VaultError::NotAnAgeKey(_))
    ));
}

#[test]
fn the_root_signs_what_its_public_half_verifies() {
    let place = place();
    let vault = place.made(&place.by_key());

    let signature = vault.root_sign(b"message");

    let key = ed25519_dalek::VerifyingKey::from_bytes(&vault.root_public()).unwrap();
    let signature = ed25519_dalek::Signature::from_bytes(&signature);
    key.verify_strict(b"message", &signature).unwrap();
    assert!(key.verify_strict(b"other", &signature).is_err());
    let seed = new_root_seed().unwrap();
    assert_ne!(root_public_of(&seed), vault.root_public());
}

#[test]
fn no_file_and_no_error_holds_a_secret_in_clear() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    vault.add(token(CANARY), at(1)).unwrap();

    for file in fs::read_dir(place.folder.path()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(
            !bytes
                .windows(CANARY.len())
                .any(|part| part == CANARY.as_bytes())
        );
    }
    let shown = format!(
        "{:?}",
        vault.add(token(CANARY), at(1)).unwrap_err().explain()
    );
    assert!(!shown.contains(CANARY));
    assert!(!format!("{:?}", vault.list()).contains(CANARY));
}

fn identity_of(place: &Place) -> age::x25519::Identity {
    let path = place.home.identity();
    place
        .by_key()
        .unlock(&path, &fs::read(&path).unwrap())
        .unwrap()
}
