//! A run is revoked when nobody knows whose the processes are.

use incident::{Desk, Preserved};

fn revoke_before_attribute(preserved: Preserved, desk: &mut Desk<'_>) {
    let _ = preserved.revoke("reason", desk);
}

fn main() {}
