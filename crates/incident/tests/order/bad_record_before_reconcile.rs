//! The record is written when the remote side was not looked at.

use incident::{Desk, Terminated};

fn record_before_reconcile(terminated: Terminated, desk: &mut Desk<'_>) {
    let _ = terminated.record(desk);
}

fn main() {}
