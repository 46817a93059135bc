//! `lych doctor` finds what is wrong, calls a fault a fault, and names a remedy for each.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;
use testkit::{Target, World};

use crate::gate::Gate;

/// Returns the findings and the exit code.
fn doctor(world: &World) -> (Vec<Value>, i32) {
    let finished = world.run(["doctor", "--json"]);
    let code = finished.code().expect("it ended by itself");
    let found = finished.json()["findings"].as_array().cloned();
    (found.expect("a list"), code)
}

/// Returns what to do about the one finding whose text has these words.
fn remedy(found: &[Value], level: &str, words: &str) -> String {
    let is = |one: &&Value| {
        one["what"]
            .as_str()
            .is_some_and(|what| what.contains(words))
    };
    let one = found.iter().find(is);
    let one = one.unwrap_or_else(|| panic!("nothing about {words:?} in {found:#?}"));
    assert_eq!(one["level"], level, "{one:#}");
    one["next"].as_str().expect("a remedy").to_owned()
}

#[test]
fn a_gate_in_order_has_warnings_and_no_fault() {
    let gate = Gate::before(Target::start());

    let (found, code) = doctor(&gate.world);

    assert_eq!(code, 0, "{found:#?}");
    let copy = remedy(&found, "warning", "never was a copy");
    assert!(copy.contains("lych audit ship"), "{copy}");
    remedy(&found, "warning", "nothing asks before an act");
    let people = gate.world.run(["doctor"]).expect_code(0).stdout;
    assert!(
        people.contains("warning") && people.contains("do: "),
        "{people}"
    );
    let to = gate.world.folder().join("outside");
    let to = to.to_str().expect("UTF-8");
    drop(gate.world.run(["audit", "ship", "--to", to]).expect_code(0));
    let (found, _) = doctor(&gate.world);
    let all = format!("{found:?}");
    assert!(!all.contains("copy"), "{all}");
}

#[test]
fn without_a_daemon_it_says_so_and_looks_at_the_rest() {
    let empty = World::new();

    let (found, code) = doctor(&empty);

    assert_eq!(code, 0, "{found:#?}");
    assert!(remedy(&found, "warning", "not running").contains("lych up"));
    assert!(remedy(&found, "warning", "there is none").contains("lych init"));
}

#[test]
fn a_changed_log_is_a_fault_with_its_place_also_when_the_daemon_does_not_start() {
    let gate = Gate::before(Target::start());
    gate.close();
    let segment = gate.world.home().audit().join("seg/0000000000.seg");
    let mut bytes = fs::read(&segment).expect("a segment");
    bytes[2_000] ^= 1;
    fs::write(&segment, bytes).expect("a segment that can be changed");

    let (found, code) = doctor(&gate.world);

    assert_eq!(code, 3, "{found:#?}");
    let next = remedy(&found, "fault", "seg/0000000000.seg, byte");
    assert!(next.contains("evidence"), "{next}");
    drop(gate.world.run(["up"]).expect_code(5));
}

#[test]
fn a_home_that_is_open_to_others_is_a_fault_and_the_remedy_mends_it() {
    let gate = Gate::before(Target::start());
    gate.close();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(gate.world.folder(), open).expect("our folder");

    let (found, code) = doctor(&gate.world);
    assert_eq!(code, 3, "{found:#?}");
    let next = remedy(&found, "fault", "open to other users");
    let mended = gate.world.command("sh").args(["-c", &next]).status();
    assert!(mended.expect("a shell").success(), "{next}");

    let (found, code) = doctor(&gate.world);
    assert_eq!(code, 0, "{found:#?}");
}

#[test]
fn a_vault_without_its_identity_is_a_fault() {
    let gate = Gate::before(Target::start());
    gate.close();
    fs::remove_file(gate.world.home().identity()).expect("the identity");

    let (found, code) = doctor(&gate.world);

    assert_eq!(code, 3, "{found:#?}");
    let next = remedy(&found, "fault", "nothing opens the vault");
    assert!(next.contains("restore"), "{next}");
}
