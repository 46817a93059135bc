//! The gate's daemon.

fn main() {}
