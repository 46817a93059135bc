//! One confirmation used for two endings.

use incident::{Confirmed, Desk, Ending};
use supervise::Plan;

fn twice(confirmed: Confirmed, desk: &mut Desk<'_>) {
    let _ = confirmed.terminate(&Ending::by(Plan::gentle()), desk);
    let _ = confirmed.terminate(&Ending::by(Plan::gentle()), desk);
}

fn main() {}
