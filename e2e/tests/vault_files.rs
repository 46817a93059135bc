//! The vault's files: backed up and put back, opened by the plain `age` tool, by a recovery key and by the machine's.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use testkit::{Deadline, Finished, Held, Target, wait_until};

use crate::gate::{Gate, SECRET};

fn text(path: &Path) -> &str {
    path.to_str().expect("a world's folder is UTF-8")
}

fn vault(gate: &Gate, args: &[&str]) -> Finished {
    let mut all = vec!["vault"];
    all.extend(args);
    gate.world.run(all)
}

/// Decrypts with the plain tool, which comes with the distribution (`apt install age`).
fn age(gate: &Gate, identity: &Path, file: &Path) -> Option<String> {
    let output = gate
        .world
        .command("age")
        .args(["--decrypt", "--identity"])
        .args([identity, file])
        .output()
        .expect("age, which this test needs: install it");
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes a key with the plain tool and returns its file and recipient.
fn keygen(gate: &Gate, name: &str) -> (PathBuf, String) {
    let file = gate.world.folder().join(name);
    let made = gate
        .world
        .command("age-keygen")
        .arg("-o")
        .arg(&file)
        .output();
    assert!(made.expect("age-keygen runs").status.success());
    let text = fs::read_to_string(&file).expect("a key");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("# public key: "));
    (file.clone(), line.expect("its recipient").to_owned())
}

/// Decodes the value of the secret out of an opened vault.
fn holds_secret(plain: &str) -> bool {
    let mut decode = Command::new("sh");
    decode.args(["-c", "tail -n +2 | jq -r '.secrets[].value | @base64d'"]);
    decode.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = decode.spawn().expect("a shell");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, plain.as_bytes()).expect("a reader");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    String::from_utf8_lossy(&output.stdout).contains(SECRET)
}

#[test]
fn a_backup_opens_with_plain_tools_alone() {
    let gate = Gate::before(Target::start());
    let file = gate.world.folder().join("vault.tar");
    drop(vault(&gate, &["backup", text(&file)]).expect_code(0));
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let apart = gate.world.folder().join("apart");
    fs::create_dir(&apart).expect("a folder");

    let unpacked = gate
        .world
        .command("tar")
        .arg("-xf")
        .arg(&file)
        .arg("-C")
        .arg(&apart)
        .status();

    assert!(unpacked.expect("tar runs").success());
    let identity = age(
        &gate,
        Path::new(gate.key_file()),
        &apart.join("identity.age"),
    );
    let identity = gate
        .world
        .write("identity.txt", identity.expect("the identity"));
    let plain = age(&gate, &identity, &apart.join("vault.age")).expect("the vault");
    assert!(holds_secret(&plain), "the secret is not in it");
    drop(vault(&gate, &["backup", text(&file)]).expect_code(1));
}

#[test]
fn an_old_vault_put_in_place_is_refused_and_a_restore_brings_it_back_on_record() {
    let gate = Gate::before(Target::start());
    let file = gate.world.folder().join("vault.tar");
    let old = fs::read(gate.world.home().vault()).expect("the vault");
    drop(vault(&gate, &["backup", text(&file)]).expect_code(0));
    drop(vault(&gate, &["remove", "token"]).expect_code(0));
    drop(gate.world.run(["lock"]).expect_code(0));

    fs::write(gate.world.home().vault(), old).expect("a vault that can be replaced");
    let refused = gate.unlock().expect_code(1);
    assert!(
        refused.stderr.contains("not the one that was written last"),
        "{refused:?}"
    );

    let restored = vault(
        &gate,
        &["restore", text(&file), "--key-file", gate.key_file()],
    );
    drop(restored.expect_code(0));
    let list = vault(&gate, &["list"]).expect_code(0).stdout;
    assert!(list.contains("token"), "{list}");
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(gate.unlock().expect_code(0));
    let acts = gate.world.run(["audit", "export"]).expect_code(0).stdout;
    assert!(acts.contains("vault_restored") && acts.contains("vault_backed_up"));
}

#[test]
fn a_restore_needs_the_right_key_the_right_log_and_a_daemon() {
    let gate = Gate::before(Target::start());
    let other = Gate::before(Target::start());
    let (file, foreign) = (
        gate.world.folder().join("vault.tar"),
        gate.world.folder().join("foreign.tar"),
    );
    drop(vault(&gate, &["backup", text(&file)]).expect_code(0));
    drop(vault(&other, &["backup", text(&foreign)]).expect_code(0));
    let before = fs::read(gate.world.home().vault()).expect("the vault");
    let junk = gate.world.write("junk", "no backup");
    let restore =
        |file: &Path, key: &str| vault(&gate, &["restore", text(file), "--key-file", key]);

    drop(restore(&junk, gate.key_file()).expect_code(1));
    drop(restore(Path::new("/nowhere"), gate.key_file()).expect_code(1));
    let wrong = restore(&file, other.key_file());
    assert!(wrong.code() != Some(0), "{wrong:?}");
    let refused = restore(&foreign, other.key_file()).expect_code(6);
    assert!(refused.stderr.contains("another log"), "{refused:?}");

    assert_eq!(
        fs::read(gate.world.home().vault()).expect("the vault"),
        before
    );
    gate.close();
    drop(restore(&file, gate.key_file()).expect_code(5));
    drop(vault(&gate, &["backup", "x.tar"]).expect_code(5));
}

#[test]
fn a_recovery_key_opens_the_vaults_file_until_it_is_taken_back() {
    let gate = Gate::before(Target::start());
    let (key, recipient) = keygen(&gate, "recovery.txt");
    let file = gate.world.home().vault();
    assert_eq!(age(&gate, &key, &file), None);

    drop(vault(&gate, &["recipients", "--recovery", &recipient]).expect_code(0));

    assert!(holds_secret(&age(&gate, &key, &file).expect("it opens")));
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(gate.unlock().expect_code(0));
    drop(vault(&gate, &["recipients", "--no-recovery"]).expect_code(0));
    assert_eq!(age(&gate, &key, &file), None);
    drop(vault(&gate, &["recipients", "--recovery", "age1nonsense"]).expect_code(1));
    drop(vault(&gate, &["recipients"]).expect_code(2));
}

/// Starts the daemon as a service manager does that hands over a credential.
fn service(gate: &Gate, key: &Path) -> Held {
    let folder = gate.world.folder().join("credentials");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir(&folder).expect("a folder");
    let credential = folder.join("lychgate-vault");
    fs::copy(key, &credential).expect("a key");
    fs::set_permissions(&credential, fs::Permissions::from_mode(0o400)).expect("our file");
    let mut command = gate.world.lychd([""; 0]);
    command.env("CREDENTIALS_DIRECTORY", &folder);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Held::start(&mut command);
    wait_until("the daemon to answer", Deadline::usual(), || {
        gate.world.run(["status"]).code() == Some(0)
    });
    daemon
}

fn state(gate: &Gate) -> String {
    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    status["vault"].as_str().expect("a state").to_owned()
}

#[test]
fn a_daemon_that_is_given_the_machines_key_opens_the_vault_by_itself_on_record() {
    let gate = Gate::before(Target::start());
    let (key, _) = keygen(&gate, "machine.txt");
    let (other, _) = keygen(&gate, "other.txt");
    let enrol = ["recipients", "--machine", text(&key)];
    drop(vault(&gate, &enrol).expect_code(6));
    drop(vault(&gate, &[&enrol[..], &["--agent-readable"]].concat()).expect_code(0));
    gate.close();

    let with_another = service(&gate, &other);
    assert_eq!(state(&gate), "locked", "another key opens nothing");
    drop(with_another);
    let daemon = service(&gate, &key);
    assert_eq!(state(&gate), "unlocked");

    let acts = gate.world.run(["audit", "export"]).expect_code(0).stdout;
    assert!(acts.contains("unlocked_by_machine"), "it is not on record");
    let kept = fs::read(gate.world.home().machine_identity()).expect("its file");
    drop(vault(&gate, &["recipients", "--no-machine"]).expect_code(0));
    assert!(!gate.world.home().machine_identity().exists());
    drop(daemon);
    // A copy that somebody kept.
    fs::write(gate.world.home().machine_identity(), kept).expect("a file");
    let daemon = service(&gate, &key);
    assert_eq!(
        state(&gate),
        "locked",
        "the vault names this machine no more"
    );
    drop(daemon);
}

#[test]
fn after_a_change_of_the_opener_the_old_one_is_refused() {
    let gate = Gate::before(Target::start());
    let (key, _) = keygen(&gate, "new.txt");

    drop(vault(&gate, &["passphrase", "--key-file", text(&key)]).expect_code(0));

    drop(gate.world.run(["lock"]).expect_code(0));
    let old = gate.unlock();
    assert!(old.code() != Some(0), "{old:?}");
    drop(
        gate.world
            .run(["unlock", "--key-file", text(&key)])
            .expect_code(0),
    );
}
