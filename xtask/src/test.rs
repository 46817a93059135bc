//! Everything that must hold before a change lands.
//!
//! Nextest comes last among the test runners: a reader of the output finds its sum where he looks for it.

use crate::{
    sdks,
    shell::{Trouble, cargo, program, run as show},
    table::{Ending, Table},
    tools,
};

/// Runs every step and prints the table.
pub(crate) fn run() -> Result<(), Trouble> {
    let mut table = Table::default();
    table.step("fetch", || show(cargo(&["fetch", "--locked"])).into());
    table.step("tools", tools);
    table.step("format", || {
        show(cargo(&["fmt", "--all", "--check"])).into()
    });
    table.step("clippy", clippy);
    table.step("deny", deny);
    table.step("check for the Mac", mac);
    table.step("documentation", documentation);
    table.step("build", || {
        show(cargo(&["build", "--workspace", "--bins", "--locked"])).into()
    });
    table.step("documentation's examples", || {
        show(cargo(&["test", "--workspace", "--doc", "--locked"])).into()
    });
    table.step("tests", tests);
    table.close()
}

fn tools() -> Ending {
    for tool in [
        tools::nextest,
        tools::python_sdk,
        sdks::python_sdk_1,
        sdks::node,
        tools::second_verifier,
        tools::servers,
        tools::strace,
        tools::sshd,
        tools::age,
    ] {
        let ending = tool();
        if !matches!(ending, Ending::Passed) {
            return ending;
        }
    }
    Ending::Passed
}

fn clippy() -> Ending {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    show(cargo(&args)).into()
}

fn deny() -> Ending {
    match tools::cargo_deny() {
        Ok(path) => {
            let check = ["--offline", "check", "bans", "licenses", "sources"];
            show(program(path, &check)).into()
        }
        Err(trouble) => Ending::NotRun(trouble.to_string()),
    }
}

fn mac() -> Ending {
    if let Err(trouble) = tools::mac_target() {
        return Ending::NotRun(trouble.to_string());
    }
    let check = ["check", "--locked", "-p", "lych", "--target", tools::MAC];
    show(cargo(&check)).into()
}

fn documentation() -> Ending {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    show(command).into()
}

fn tests() -> Ending {
    let mut command = cargo(&["nextest", "run", "--workspace", "--locked"]);
    command
        .env("LYCH_PY_VENV", tools::venv())
        .env("LYCH_PY1_VENV", sdks::python_1_venv())
        .env("LYCH_NODE_CLIENTS", sdks::node_clients())
        .env("LYCH_VERIFY_VENV", tools::verifier_venv());
    show(command).into()
}
