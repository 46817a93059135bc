//! Two verifiers that share no code agree: the program, and the one in Python that was written from the format's page.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use testkit::{Proof, Target, program};

use crate::{agent::Agent, gate::Gate};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the interpreter of the environment that `cargo xtask tools` makes.
fn python() -> PathBuf {
    let venv = env::var_os("LYCH_VERIFY_VENV").map_or_else(
        || {
            let target = program("lych");
            let target = target.ancestors().nth(2).expect("the target folder");
            target.join("venv-verify")
        },
        PathBuf::from,
    );
    let python = venv.join("bin/python");
    assert!(
        python.exists(),
        "{} is missing: run `cargo xtask tools` once",
        python.display()
    );
    python
}

fn second(script: &str, args: &[&Path]) -> Value {
    let mut command = Command::new(python());
    // Without this the interpreter would leave its bytecode in the tree.
    command
        .arg("-B")
        .arg(Path::new(ROOT).join("contrib").join(script));
    let output = command.args(args).output().expect("python runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{script}: {complaint}"))
}

fn first(log: &Path, told: &Value, pin: &Path) -> Value {
    let mut command = Command::new(program("lych"));
    command
        .args(["audit", "verify", "--json", "--dir"])
        .arg(log);
    if let Some(id) = told["log_id"].as_str() {
        command.args(["--log-id", id]);
    }
    if told["require_pin"] == json!(true) {
        command.arg("--require-pin");
    }
    if pin.exists() {
        command.arg("--pin").arg(pin);
    }
    // No home: a verifier needs none.
    let output = command
        .env_clear()
        .env("HOME", "/nonexistent")
        .output()
        .expect("lych runs");
    let mut said: Value = serde_json::from_slice(&output.stdout).expect("a report");
    said["exit"] = json!(output.status.code());
    said
}

/// What both must say, in one form.
fn essence(said: &Value) -> Value {
    let count = |name: &str| {
        said[name]
            .as_array()
            .map_or(said[name].clone(), |all| json!(all.len()))
    };
    let each = |name: &str, field: &str| {
        let all = said[name].as_array().expect("a list");
        all.iter()
            .map(|one| one.get(field).unwrap_or(one).clone())
            .collect::<Vec<_>>()
    };
    // Which pin file a fork or a cut is named after is each one's own affair.
    let by_pin = ["forked", "truncated"]
        .iter()
        .any(|word| said["verdict"] == *word);
    let file = if by_pin {
        &Value::Null
    } else {
        &said["first_bad"]["file"]
    };
    json!({
        "verdict": said["verdict"], "exit": said["exit"], "file": file, "head": said["head"],
        "first_seq": said["first_seq"], "last_seq": said["last_seq"],
        "repairs": count("repairs"), "prunes": count("prunes"), "unendorsed": each("unendorsed", "epoch"),
        "structure": each("structure", "seq"), "open_attempts": each("open_attempts", "seq"),
    })
}

/// Both verifiers agree on every vector, and with the verdict on record.
#[test]
fn prove_audit_vectors() {
    let mut proof = Proof::begin(1);
    let folder = Path::new(ROOT).join("crates/ledger/testdata/vectors");
    let python = second("vectors.py", &[&folder]);
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the vectors") {
        let folder = entry.expect("a vector").path();
        let name = folder
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let told = fs::read(folder.join("verdict.json")).expect("a verdict");
        let told: Value = serde_json::from_slice(&told).expect("a verdict");

        let rust = first(&folder.join("log"), &told, &folder.join("pin.json"));

        assert_eq!(essence(&rust), essence(&python[&name]), "{name}");
        assert_eq!(
            essence(&rust),
            essence(&told),
            "{name}: not the verdict on record"
        );
        assert_eq!(
            rust["first_bad"]["offset"], told["first_bad"]["offset"],
            "{name}"
        );
        seen += 1;
    }
    assert!(seen >= 60, "{seen} vectors");
    proof.row("vectors", seen);
    // A single one ends the test.
    proof.row("on which the two verifiers and the record differ", 0);
    proof.end();
}

#[test]
fn both_verifiers_agree_on_a_log_that_the_daemon_wrote() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    for number in 0..5 {
        let id = agent.send("POST", &format!("/w/{number}"));
        assert!(agent.answer(id, testkit::Deadline::usual()).is_some());
    }
    drop(agent);
    gate.close();
    let log = gate.world.home().audit();

    let rust = first(&log, &json!({}), Path::new("/nonexistent"));
    let mut python = second("verify.py", &[&log]);

    python["exit"] = rust["exit"].clone();
    assert_eq!(essence(&rust), essence(&python));
    assert_eq!(rust["verdict"], "intact_local_pin", "{rust:#}");
}
