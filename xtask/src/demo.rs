//! `cargo xtask demo`: the whole story on this machine, told by the product itself.

use crate::shell::{Trouble, cargo, program, run as show, target};

/// Builds both programs and runs `lych drill self`.
pub(crate) fn run(args: Vec<String>) -> Result<(), Trouble> {
    show(cargo(&[
        "build", "--quiet", "--locked", "-p", "lych", "-p", "lychd",
    ]))?;
    // The daemon is found beside the command, so one path says where both are.
    let mut drill = program(target().join("debug/lych"), &["drill", "self"]);
    drill.args(args);
    show(drill)
}
