//! The repository's own commands.

fn main() {}
