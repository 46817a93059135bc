//! What the gate is measured beside, installed by name and version below the target folder, once.

use std::path::PathBuf;

use crate::{
    shell::{ask, program, run as show, say, target},
    table::Ending,
    tools::python_package,
};

/// Programs that people put between a client and a server today.
const NODE_PEERS: &[&str] = &[
    "mcp-remote@0.15.1",
    "supergateway@4.0.0",
    "mcp-proxy@6.7.19",
];
const PYTHON_PEERS: &[(&str, &str, &str)] = &[
    ("venv-mcp-proxy", "mcp-proxy", "0.13.0"),
    ("venv-fastmcp", "fastmcp", "3.4.11"),
];

/// Returns the folder of the Node peers; the Python ones lie beside it.
pub(crate) fn folder() -> PathBuf {
    target().join("peers")
}

/// Makes sure that each is there in its version; one that cannot be had is left out of the table.
pub(crate) fn install() {
    for (venv, name, version) in PYTHON_PEERS {
        tell(name, &python_package(&target().join(venv), name, version));
    }
    tell("the node peers", &node());
}

fn tell(name: &str, ending: &Ending) {
    if !matches!(ending, Ending::Passed) {
        say(&format!("{name} cannot be installed and is left out"));
    }
}

fn node() -> Ending {
    let prefix = folder().display().to_string();
    let listed = ask(program("npm", &["ls", "--prefix", &prefix, "--depth", "0"]));
    let there = |name: &&&str| listed.as_ref().is_some_and(|all| all.contains(**name));
    if NODE_PEERS.iter().filter(there).count() == NODE_PEERS.len() {
        say("the node peers are there");
        return Ending::Passed;
    }
    let mut npm = program(
        "npm",
        &[
            "install",
            "--no-audit",
            "--no-fund",
            "--silent",
            "--prefix",
            &prefix,
        ],
    );
    npm.args(NODE_PEERS);
    show(npm).into()
}
