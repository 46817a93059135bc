//! A refusal is looked for when nothing was revoked.

use std::time::Duration;

use incident::{Attributed, Desk};

fn confirm_before_revoke(attributed: Attributed, desk: &mut Desk<'_>) {
    let _ = attributed.confirm(Duration::ZERO, desk);
}

fn main() {}
