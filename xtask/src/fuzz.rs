//! `cargo xtask prove fuzz`: libFuzzer on every border where foreign bytes come in, and the table of it.
//!
//! The targets are built by the nightly compiler with the flags that cargo-fuzz gives it, without a sanitizer:
//! there is no unsafe code in what they reach, and what is looked for is a panic, a hang or a broken claim.

use std::{fs, process::Command, time::Instant};

use crate::{
    prove::{commit, machine},
    shell::{Trouble, program, root, run as show, say, target},
};

/// Each has a file in `fuzz/fuzz_targets/` and a check of the same name.
const TARGETS: &[(&str, &str)] = &[
    (
        "line",
        "lines come out the same however they are cut, none above the cap",
    ),
    (
        "hello",
        "what can be read can be written, and reads back to the same",
    ),
    (
        "draft",
        "a draft that is taken seals to what reads back; one that is not says why",
    ),
    (
        "policy",
        "sealed bytes are read only if they are exactly what we would write",
    ),
    (
        "destination",
        "one spelling, a host without a user, TLS but to this machine",
    ),
    (
        "redactor",
        "a secret that stands in an answer does not stand in what is left",
    ),
    (
        "segment",
        "a log with these bytes for a segment passes only if they are what was written",
    ),
    (
        "certificate",
        "the same for the certificate of what was given up",
    ),
];

/// As cargo-fuzz 0.13 asks for coverage.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions";

/// One input may take so many seconds; more is a hang.
const HANGS: u64 = 10;

/// Fuzzes every target for so many seconds and keeps the table.
pub(crate) fn run(seconds: u64, seed: u64) -> Result<(), Trouble> {
    let triple = host()?;
    let built = target().join("fuzz");
    let mut build = program("cargo", &["+nightly", "build", "--release", "--bins"]);
    build
        .args(["--target", &triple, "--manifest-path"])
        .arg(root().join("fuzz/Cargo.toml"))
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", &built)
        // Set by the cargo that runs us, for its own compiler.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    show(build)?;
    let mut table = String::from(
        "| target | claim | seconds | executions | crashes and hangs |\n|---|---|---|---|---|\n",
    );
    let mut found = 0;
    for (name, claim) in TARGETS {
        let begun = Instant::now();
        let mut fuzzer = Command::new(built.join(&triple).join("release").join(name));
        let scratch = built.join("corpus").join(name);
        fs::create_dir_all(&scratch).map_err(|error| Trouble::Program(error.to_string()))?;
        fuzzer
            .arg(&scratch)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-seed={seed}"))
            .arg(format!("-timeout={HANGS}"))
            .arg(format!("-artifact_prefix={}/", built.display()))
            .arg("-print_final_stats=1");
        let output = fuzzer
            .output()
            .map_err(|error| Trouble::Program(format!("{name} cannot be started: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let broke = u32::from(!output.status.success());
        found += broke;
        let row = format!(
            "| {name} | {claim} | {} | {} | {broke} |\n",
            begun.elapsed().as_secs(),
            executions(&said).unwrap_or("not told"),
        );
        say(row.trim_end());
        if broke > 0 {
            say(&said);
        }
        table.push_str(&row);
    }
    let page = format!(
        "# No border breaks under libFuzzer\n\n`cargo xtask prove fuzz --n {seconds} --seed {seed}` ({seconds} s a target; 600 is the full length) \
         on {}, at {}: {}.\n\nEach target stops at the first crash or hang it meets.\n\n{table}",
        machine(),
        commit(),
        if found == 0 { "passed" } else { "FAILED" },
    );
    let path = root().join("docs/proof/fuzz.md");
    fs::write(&path, page).map_err(|error| Trouble::Program(error.to_string()))?;
    if found > 0 {
        return Err(Trouble::Program(format!("{found} targets broke")));
    }
    Ok(())
}

fn host() -> Result<String, Trouble> {
    let said = crate::shell::ask(program("rustc", &["-vV"])).unwrap_or_default();
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .ok_or_else(|| Trouble::Program("rustc does not say what it builds for".to_owned()))
}

fn executions(said: &str) -> Option<&str> {
    said.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .map(str::trim)
}
