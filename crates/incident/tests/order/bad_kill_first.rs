//! The processes are ended when only the evidence is safe.

use incident::{Desk, Ending, Preserved};
use supervise::Plan;

fn kill_first(preserved: Preserved, desk: &mut Desk<'_>) {
    let _ = preserved.terminate(&Ending::by(Plan::gentle()), desk);
}

fn main() {}
