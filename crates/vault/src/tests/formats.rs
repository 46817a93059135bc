//! The stored forms: what version 1 wrote stays readable, and the plain `age` tool opens it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{CANARY, at, by_passphrase, identity_of, name, place, token};
use crate::{VaultError, sealed};

/// A vault that version 1 wrote, beside the key file that opens it.
fn version_1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1")
}

#[test]
fn any_changed_byte_of_either_file_is_found() {
    let place = place();
    drop(place.made(&place.by_key()));

    for file in [place.home.vault(), place.home.identity()] {
        let good = fs::read(&file).unwrap();
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 1;
            fs::write(&file, &bad).unwrap();
            drop(place.refusal(&place.by_key()));
        }
        fs::write(&file, &good[..good.len() - 1]).unwrap();
        drop(place.refusal(&place.by_key()));
        fs::write(&file, &good).unwrap();
    }
}

#[test]
fn a_later_version_is_named_as_such() {
    let place = place();
    let vault = place.made(&place.by_key());
    let identity = identity_of(&place);
    let plain = crate::content::frame_json(br#"{"version":2,"more":true}"#, &identity).unwrap();
    fs::write(
        place.home.vault(),
        sealed::seal(&identity.to_public(), &plain).unwrap(),
    )
    .unwrap();
    drop(vault);

    let error = place.refusal(&place.by_key());

    assert!(
        matches!(error, VaultError::Newer { version: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_vault_of_version_1_is_opened_and_written_further() {
    let place = place();
    for file in ["key", "identity.age", "vault.age"] {
        // As bytes: a copy would take over the mode that a checkout gave the file.
        let bytes = fs::read(version_1().join(file)).unwrap();
        sys::durable::create(&place.folder.path().join(file), &bytes).unwrap();
    }

    let mut vault = place.opened(&place.by_key());

    assert_eq!(vault.generation(), 4);
    let secret = vault.find(&name("ci-token")).unwrap();
    assert_eq!(secret.value.expose(), b"not-a-real-token");
    assert_eq!(secret.header, "X-Api-Key");
    let listing = &vault.list()[0];
    assert_eq!(
        listing.destinations[0].to_string(),
        "https://ci.example.com/api/v2"
    );
    assert_eq!(
        (listing.created_at, listing.rotated_at),
        (at(1_000), Some(at(2_000)))
    );
    assert_eq!(vault.policy(), Some(&br#"{"version":1}"#[..]));
    assert_eq!(
        vault.root_public(),
        [
            11, 130, 67, 34, 83, 161, 198, 224, 159, 72, 64, 74, 5, 88, 114, 113, 210, 148, 76, 46,
            121, 95, 102, 81, 244, 147, 177, 94, 150, 113, 109, 163
        ]
    );
    assert_eq!(
        vault.log_recipient(),
        "age1m5muad82zj4qdysu4u0s4nft6s7ly3wn7nq2339a3hmj8e99ddwspg8tmk"
    );
    vault.remove(&name("ci-token")).unwrap();
    assert_eq!(place.opened(&place.by_key()).generation(), 5);
}

/// Recovery as `docs/vault-format.md` shows it.
#[test]
fn the_plain_age_tool_opens_both_files() {
    if Command::new("age").arg("--version").output().is_err() {
        eprintln!("not tested: the age tool is not installed");
        return;
    }
    let place = place();
    let mut vault = place.made(&place.by_key());
    vault.add(token(CANARY), at(1)).unwrap();
    let age = |key: &Path, file: &Path| {
        let output = Command::new("age")
            .arg("--decrypt")
            .arg("--identity")
            .arg(key)
            .arg(file)
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };

    let identity = place.folder.path().join("identity.txt");
    fs::write(&identity, age(&place.key_file(), &place.home.identity())).unwrap();
    let plain = String::from_utf8(age(&identity, &place.home.vault())).unwrap();

    let (mac, json) = plain.split_once('\n').unwrap();
    assert!(mac.starts_with("hmac-sha256 "), "{mac}");
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["secrets"][0]["value"], "Y2FuYXJ5LVp4ODEtdmFsdWU=");
}

#[test]
fn a_planted_identity_that_takes_hours_to_open_is_refused_at_once() {
    let place = place();
    drop(place.made(&by_passphrase("right")));
    let file = fs::read(place.home.identity()).unwrap();
    let at = file.windows(3).position(|part| part == b" 2\n").unwrap();
    let planted = [&file[..at], b" 30\n", &file[at + 3..]].concat();
    fs::write(place.home.identity(), planted).unwrap();

    let error = place.refusal(&by_passphrase("right"));

    assert!(error.to_string().contains("take too long"), "{error}");
}

#[test]
fn a_change_that_cannot_be_written_did_not_happen() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    let obstacle = place.folder.path().join("vault.age.tmp");
    fs::create_dir(&obstacle).unwrap();

    let error = vault.add(token(CANARY), at(1)).unwrap_err();

    assert!(matches!(error, VaultError::Io { .. }), "{error}");
    assert_eq!((vault.generation(), vault.list().len()), (1, 0));
    assert_eq!(place.opened(&place.by_key()).sha256(), vault.sha256());
    fs::remove_dir(&obstacle).unwrap();
    vault.add(token(CANARY), at(1)).unwrap();
    assert_eq!(place.opened(&place.by_key()).generation(), 2);
}

#[test]
fn what_a_crash_leaves_beside_the_vault_changes_nothing() {
    let place = place();
    let mut vault = place.made(&place.by_key());
    let current = fs::read(place.home.vault()).unwrap();
    let beside = |name: &str| place.folder.path().join(name);

    // Between the two renames of a change: the old generation under both names, half a new one beside it.
    fs::write(beside("vault.age.prev"), &current).unwrap();
    fs::write(beside("vault.age.tmp"), &current[..100]).unwrap();

    assert_eq!(place.opened(&place.by_key()).generation(), 1);
    vault.add(token(CANARY), at(1)).unwrap();
    assert_eq!(place.opened(&place.by_key()).generation(), 2);
    assert!(!beside("vault.age.tmp").exists());
}

#[test]
fn the_rest_of_a_creation_that_did_not_end_is_no_obstacle() {
    let place = place();
    drop(place.made(&place.by_key()));
    fs::remove_file(place.home.vault()).unwrap();

    drop(place.made(&by_passphrase("other")));

    assert_eq!(place.opened(&by_passphrase("other")).generation(), 1);
}
