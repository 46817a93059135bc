//! The processes are ended when nobody has looked for a refusal.

use incident::{Desk, Ending, Revoked};
use supervise::Plan;

fn terminate_before_confirm(revoked: Revoked, desk: &mut Desk<'_>) {
    let _ = revoked.terminate(&Ending::by(Plan::gentle()), desk);
}

fn main() {}
