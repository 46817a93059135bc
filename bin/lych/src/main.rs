//! The warden's command.

fn main() {}
