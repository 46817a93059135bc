//! `cargo xtask bench`: one measurement, built for release.

use crate::{
    options::Options,
    peers,
    shell::{Trouble, cargo, run as show, say, target},
};

/// Each is a program in `e2e/benches/`, but the log's, which is in its room.
const BENCHES: &[(&str, &str)] = &[
    (
        "gateway",
        "what the gate adds to a call, and how soon it starts, ends and refuses",
    ),
    (
        "inventory",
        "what a look at all processes costs beside lsof and ps",
    ),
    (
        LOG,
        "the log beside the bare machine: append, verify, the last calls of a million records",
    ),
];

const LOG: &str = "log";

/// Runs one measurement, or lists them all.
pub(crate) fn run(options: &Options) -> Result<(), Trouble> {
    let Some(name) = options.words.first() else {
        for (name, what) in BENCHES {
            say(&format!("{name:<10} {what}"));
        }
        return Ok(());
    };
    if !BENCHES.iter().any(|(known, _)| known == name) {
        return Err(Trouble::Usage(format!(
            "there is no measurement named {name}"
        )));
    }
    let package = if name == LOG { "audit" } else { "e2e" };
    let mut bench = cargo(&["bench", "--locked", "-p", package, "--bench", name]);
    if name == "inventory" {
        show(cargo(&["build", "--locked", "--release", "-p", "lych"]))?;
        bench.env("LYCH_BENCH_PROGRAM", target().join("release/lych"));
    }
    if name == "gateway" {
        let build = [
            "build",
            "--locked",
            "--release",
            "-p",
            "lych",
            "-p",
            "lychd",
        ];
        show(cargo(&build))?;
        peers::install();
        bench.env("LYCH_BENCH_PEERS", peers::folder());
    }
    show(bench)
}
