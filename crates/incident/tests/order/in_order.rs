//! Builds: every step has the one in front of it.

use std::time::Duration;

use incident::{Desk, Ending, IncidentError, Recorded, Selection, preserve};
use model::Home;
use supervise::Plan;

#[expect(dead_code, reason = "it only has to build")]
fn contain(home: &Home, all: Selection, desk: &mut Desk<'_>) -> Result<Recorded, IncidentError> {
    preserve(home, all, desk)?
        .attribute(desk)?
        .revoke("leftover", desk)?
        .confirm(Duration::from_secs(5), desk)?
        .terminate(&Ending::by(Plan::gentle()), desk)?
        .reconcile(desk)?
        .record(desk)
}

fn main() {}
