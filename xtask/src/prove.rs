//! `cargo xtask prove`: a claim at a scale that is too slow for every day, and the table that shows it.
//!
//! A proof is a test named `prove_NAME`, or several named `prove_NAME_…`. Every day it runs at a small scale; here it
//! is told how often and from which seed, and where to leave its table.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    fuzz,
    options::Options,
    shell::{Trouble, ask, cargo, program, root, run as show, say, target},
    table::{Ending, Table},
    tools,
};

/// What it is called, and what brings it.
type Tool = (&'static str, fn() -> Ending);

struct Proof {
    name: &'static str,
    claim: &'static str,
    /// How often, if nobody says.
    n: u64,
    /// Where its tests are.
    packages: &'static [&'static str],
    /// How the programs and the tests are built.
    profile: &'static str,
    /// What its tests need beside the toolchain.
    tools: &'static [Tool],
}

/// As they are delivered.
const RELEASE: &str = "release";
/// As on every day.
const DEV: &str = "dev";

const PROOFS: &[Proof] = &[
    Proof {
        name: "audit",
        claim: "a log of which any system call fails or is cut off keeps all it promised, and sends nothing else",
        n: 1_000_000,
        packages: &["audit", "e2e"],
        profile: RELEASE,
        tools: &[
            ("second verifier", tools::second_verifier),
            ("strace", tools::strace),
        ],
    },
    Proof {
        name: "corpus",
        claim: "every kind of leftover is called by its name, and its living twin is left alone",
        n: 1,
        packages: &["lych"],
        profile: DEV,
        tools: &[],
    },
    Proof {
        name: "servers",
        claim: "what is left of public servers is called what it is, however their client was lost",
        n: 1,
        packages: &["e2e"],
        profile: DEV,
        tools: &[("public servers", tools::servers)],
    },
    Proof {
        name: "reuse",
        claim: "no later holder of a number is taken for an earlier one",
        n: 10_000,
        packages: &["verdict"],
        profile: DEV,
        tools: &[],
    },
    Proof {
        name: "crash",
        claim: "the daemon killed at any moment loses no acknowledged record and sends nothing unrecorded",
        n: 200,
        packages: &["e2e"],
        profile: DEV,
        tools: &[],
    },
    Proof {
        name: "revoke",
        claim: "no call leaves behind the revocation of its run",
        n: 10_000,
        packages: &["e2e"],
        profile: DEV,
        tools: &[],
    },
    Proof {
        name: "tamper",
        claim: "any changed byte of a closed log is found and placed, without a key",
        n: 2_000,
        packages: &["e2e"],
        profile: DEV,
        tools: &[],
    },
];

/// Runs one proof and keeps its table, or lists them all.
pub(crate) fn run(options: &Options) -> Result<(), Trouble> {
    if options.words.first().is_some_and(|word| word == "fuzz") {
        let seconds = options.number("--n")?.unwrap_or(600);
        return fuzz::run(seconds, options.number("--seed")?.unwrap_or_else(chance));
    }
    let Some(name) = options.words.first() else {
        say("fuzz       n=600     no border breaks under libFuzzer (n: seconds a target)");
        for proof in PROOFS {
            say(&format!(
                "{:<10} n={:<7} {}",
                proof.name, proof.n, proof.claim
            ));
        }
        return Ok(());
    };
    let proof = PROOFS
        .iter()
        .find(|proof| proof.name == name)
        .ok_or_else(|| Trouble::Usage(format!("there is no proof named {name}")))?;
    let n = options.number("--n")?.unwrap_or(proof.n);
    let seed = options.number("--seed")?.unwrap_or_else(chance);
    prove(proof, n, seed)
}

fn prove(proof: &Proof, n: u64, seed: u64) -> Result<(), Trouble> {
    say(&format!(
        "{}: {} (n {n}, seed {seed})",
        proof.name, proof.claim
    ));
    let mut table = Table::default();
    for (name, install) in proof.tools {
        table.step(name, *install);
    }
    table.close()?;
    let rows = target().join(format!("prove-{}.md", proof.name));
    // What an earlier run left there would be taken for this one's.
    drop(fs::remove_file(&rows));
    let build = [
        "build",
        "-p",
        "lych",
        "-p",
        "lychd",
        "--locked",
        "--profile",
    ];
    show(cargo(&[&build[..], &[proof.profile]].concat()))?;
    // One test, or several that begin alike.
    let filter = format!("test(/(^|::)prove_{}(_[a-z_]+)?$/)", proof.name);
    // A test takes the programs that lie beside it, which are those of its own profile.
    let mut tests = cargo(&[
        "nextest",
        "run",
        "--locked",
        "--no-capture",
        "--cargo-profile",
    ]);
    tests.arg(proof.profile);
    for package in proof.packages {
        tests.args(["-p", package]);
    }
    tests
        .args(["--profile", "prove", "-E", &filter])
        .env("LYCH_PROVE_N", n.to_string())
        .env("LYCH_PROVE_SEED", seed.to_string())
        .env("LYCH_PROVE_TABLE", &rows);
    let result = show(tests);
    let table = fs::read_to_string(&rows).unwrap_or_default();
    say(&table);
    result?;
    keep(proof, n, seed, &table)
}

fn keep(proof: &Proof, n: u64, seed: u64, table: &str) -> Result<(), Trouble> {
    if table.is_empty() {
        return Err(Trouble::Program(
            "the proof passed and left no table".to_owned(),
        ));
    }
    let page = format!(
        "# {claim}\n\n`cargo xtask prove {name} --n {n} --seed {seed}` ({profile} build) on {machine}, at {commit}: passed.\n\n{table}\n",
        claim = proof.claim,
        name = proof.name,
        profile = proof.profile,
        machine = machine(),
        commit = commit(),
        table = table.trim_end(),
    );
    let path = root()
        .join("docs/proof")
        .join(proof.name)
        .with_extension("md");
    fs::write(&path, page)
        .map_err(|error| Trouble::Program(format!("cannot write {}: {error}", path.display())))?;
    say(&format!("kept in {}", relative(&path)));
    Ok(())
}

pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = ask(program("uname", &["-srm"])).unwrap_or_else(|| "an unknown system".to_owned());
    format!("{kernel}, {cores} cores")
}

pub(crate) fn commit() -> String {
    ask(program("git", &["describe", "--always", "--dirty"]))
        .unwrap_or_else(|| "an unknown commit".to_owned())
}

fn relative(path: &Path) -> String {
    let root = root();
    path.strip_prefix(&root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// A seed that differs from run to run; it is printed, so a run can be had again.
fn chance() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| u64::from(since.subsec_nanos()))
}
