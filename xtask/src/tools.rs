//! What the tests need beside the toolchain: installed by name and version below the target folder, once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    sdks,
    shell::{Trouble, ask, cargo, program, run as show, say, target},
    table::{Ending, Table},
};

/// The official Python SDK, whose client must work with our server unchanged.
const PYTHON_SDK: &str = "2.3.0";

/// What the second verifier is made of beside Python itself; `contrib/requirements.txt` says the same to everybody.
const PYNACL: &str = "1.6.2";

/// Public servers that must be judged right: by what their client did, not by what they are called.
const NODE_SERVERS: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@playwright/mcp@0.0.83",
];
/// What uvx(1) is to have at hand: the package, and the program in it.
const PYTHON_SERVERS: &[(&str, &str)] = &[
    ("mcp-server-time==2026.10.19", "mcp-server-time"),
    ("mcp-server-git==2026.10.19", "mcp-server-git"),
    ("mcp-server-fetch==2026.10.24", "mcp-server-fetch"),
    ("fastmcp==4.2.3", "fastmcp"),
];

/// Brings uvx(1).
const UV: &str = "0.13.9";

/// Checks licences, sources and bans.
const CARGO_DENY: &str = "0.20.2";

/// Runs the tests; the one tool that everybody has already.
const CARGO_NEXTEST: &str = "0.9.143";

/// The platform that is checked without being run.
pub(crate) const MAC: &str = "aarch64-apple-darwin";

/// Installs everything and says what could not be.
pub(crate) fn run() -> Result<(), Trouble> {
    let mut table = Table::default();
    table.step("nextest", nextest);
    table.step("python sdk", python_sdk);
    table.step("python sdk 1", sdks::python_sdk_1);
    table.step("node clients", sdks::node);
    table.step("second verifier", second_verifier);
    table.step("public servers", servers);
    table.step("strace", strace);
    table.step("sshd", sshd);
    table.step("age", age);
    table.step("cargo-deny", || match cargo_deny() {
        Ok(path) => {
            say(&format!("{} is there", path.display()));
            Ending::Passed
        }
        Err(trouble) => Ending::NotRun(trouble.to_string()),
    });
    table.step("mac target", || match mac_target() {
        Ok(()) => Ending::Passed,
        Err(trouble) => Ending::NotRun(trouble.to_string()),
    });
    table.close()
}

/// Makes sure that `cargo nextest` is there.
pub(crate) fn nextest() -> Ending {
    if let Some(version) = ask(cargo(&["nextest", "--version"])) {
        say(version.lines().next().unwrap_or_default());
        return Ending::Passed;
    }
    let install = [
        "install",
        "cargo-nextest",
        "--locked",
        "--version",
        CARGO_NEXTEST,
    ];
    show(cargo(&install)).into()
}

/// Returns the folder of the virtual environment with the Python SDK.
pub(crate) fn venv() -> PathBuf {
    target().join("venv-mcp2")
}

/// Makes sure that the virtual environment holds the pinned SDK.
pub(crate) fn python_sdk() -> Ending {
    python_package(&venv(), "mcp", PYTHON_SDK)
}

/// Makes sure that the virtual environment of the second verifier holds its one package.
pub(crate) fn second_verifier() -> Ending {
    python_package(&verifier_venv(), "PyNaCl", PYNACL)
}

/// Returns the folder of the virtual environment of the second verifier.
pub(crate) fn verifier_venv() -> PathBuf {
    target().join("venv-verify")
}

/// Makes sure that a virtual environment holds one package in one version.
pub(crate) fn python_package(venv: &Path, name: &str, version: &str) -> Ending {
    python_packages(venv, &[(name, version)])
}

/// Makes sure that a virtual environment holds these packages, each in one version.
fn python_packages(venv: &Path, wanted: &[(&str, &str)]) -> Ending {
    let is_there = |(name, version): &(&str, &str)| {
        let question = format!("import importlib.metadata as m; print(m.version('{name}'))");
        let there = ask(program(venv.join("bin/python"), &["-c", &question]));
        there.as_deref() == Some(version)
    };
    let names: Vec<String> = wanted
        .iter()
        .map(|(name, version)| format!("{name}=={version}"))
        .collect();
    if wanted.iter().all(is_there) {
        say(&format!("{} is there", names.join(", ")));
        return Ending::Passed;
    }
    install_packages(venv, &names).into()
}

/// Makes the environment anew, so that all it holds is what is wanted.
fn install_packages(venv: &Path, wanted: &[String]) -> Result<(), Trouble> {
    make_venv(venv).or_else(|_| {
        // Debian keeps this module in a package of its own.
        say("python3 cannot make a virtual environment; installing python3-venv");
        show(apt(&["update", "-q"]))?;
        show(apt(&[
            "install",
            "-q",
            "-y",
            "--no-install-recommends",
            "python3-venv",
        ]))?;
        make_venv(venv)
    })?;
    let quiet = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
    let mut pip = program(venv.join("bin/python"), &quiet);
    pip.args(wanted);
    show(pip)
}

/// Makes sure that strace(1) is there: it shows that the verbs which only look send no signal.
pub(crate) fn strace() -> Ending {
    debian("strace", "strace")
}

/// Makes sure that sshd(8) is there: a real tunnel must be left alone.
pub(crate) fn sshd() -> Ending {
    debian("/usr/sbin/sshd", "openssh-server")
}

/// Makes sure that age(1) is there: what is sealed opens without any program of ours.
pub(crate) fn age() -> Ending {
    debian("/usr/bin/age", "age")
}

fn debian(command: &str, package: &str) -> Ending {
    if ask(program(command, &["-V"])).is_some() || Path::new(command).exists() {
        say(&format!("{command} is there"));
        return Ending::Passed;
    }
    let install = ["install", "-q", "-y", "--no-install-recommends", package];
    show(apt(&["update", "-q"]))
        .and_then(|()| show(apt(&install)))
        .into()
}

/// Makes sure that the public servers are there, each in the version that was judged before, and the clients
/// that start them.
pub(crate) fn servers() -> Ending {
    let venv = target().join("venv-servers");
    let ending = python_packages(&venv, &[("mcp", PYTHON_SDK), ("uv", UV)]);
    if !matches!(ending, Ending::Passed) {
        return ending;
    }
    node_servers().and_then(|()| python_servers(&venv)).into()
}

fn node_servers() -> Result<(), Trouble> {
    let folder = target().join("servers");
    let mark = folder.join("wanted");
    let wanted = NODE_SERVERS.join("\n");
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        say("the public servers are there");
        return Ok(());
    }
    let quiet = ["install", "--no-audit", "--no-fund", "--silent", "--prefix"];
    let mut npm = program("npm", &quiet);
    npm.arg(&folder).args(NODE_SERVERS);
    show(npm)?;
    write(&mark, &wanted)
}

/// Has uvx fetch each once, into a cache of ours; the tests then run without the network.
fn python_servers(venv: &Path) -> Result<(), Trouble> {
    let cache = target().join("uv-cache");
    let mark = cache.join("wanted");
    let wanted = format!("{PYTHON_SERVERS:?}");
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    for (package, name) in PYTHON_SERVERS {
        let mut uvx = program(
            venv.join("bin/uvx"),
            &["-q", "--from", package, name, "--help"],
        );
        uvx.env("UV_CACHE_DIR", &cache)
            .env("UV_PYTHON", venv.join("bin/python"))
            .env("UV_PYTHON_DOWNLOADS", "never");
        show(uvx)?;
    }
    write(&mark, &wanted)
}

fn write(path: &Path, text: &str) -> Result<(), Trouble> {
    fs::write(path, text)
        .map_err(|error| Trouble::Program(format!("cannot write {}: {error}", path.display())))
}

fn make_venv(venv: &Path) -> Result<(), Trouble> {
    let mut command = program("python3", &["-m", "venv", "--clear"]);
    command.arg(venv);
    show(command)
}

fn apt(args: &[&str]) -> Command {
    let mut command = program("apt-get", args);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Returns the path of cargo-deny, installed if it was not.
pub(crate) fn cargo_deny() -> Result<PathBuf, Trouble> {
    let folder = target().join("tools");
    let path = folder.join("bin/cargo-deny");
    let version = ask(program(&path, &["--version"]));
    if version.as_deref() == Some(&format!("cargo-deny {CARGO_DENY}")) {
        return Ok(path);
    }
    // Unoptimised: it builds in half the time and runs for a second.
    let mut install = cargo(&[
        "install",
        "cargo-deny",
        "--locked",
        "--version",
        CARGO_DENY,
        "--debug",
    ]);
    let build = folder.join("build");
    install
        .arg("--root")
        .arg(&folder)
        .arg("--target-dir")
        .arg(&build);
    show(install)?;
    // A gigabyte that nobody needs again; if it stays, nothing is wrong.
    drop(fs::remove_dir_all(build));
    Ok(path)
}

/// Makes sure that the standard library for the Mac is there.
pub(crate) fn mac_target() -> Result<(), Trouble> {
    let installed = ask(program("rustup", &["target", "list", "--installed"])).unwrap_or_default();
    if installed.lines().any(|line| line == MAC) {
        return Ok(());
    }
    show(program("rustup", &["target", "add", MAC]))
}
