//! The log as its users see it: written, verified, read back, recovered.

mod world;

use audit::CallFilter;
use ledger::{Verdict, VerifyOptions, verify};
use model::{CallState, Exit, SessionState};
use world::*;

#[test]
fn a_cleanly_closed_log_is_intact_and_can_be_read_back() {
    let world = World::new();
    let (audit, recovered) = world.open();
    let session = open_run(&audit);
    let call = attempt(&audit, session);
    clear(&audit, session, call);
    answer(&audit, session, call);

    let calls = audit.calls(&CallFilter::default(), None).unwrap();
    let runs = audit.sessions(None).unwrap();
    audit.close().unwrap();
    let report = verify(&world.dir(), &VerifyOptions::default());

    assert!(recovered.created && recovered.closed_in_order);
    assert_eq!(calls[0].state, CallState::Answered);
    assert_eq!(calls[0].status.value(), Some(&Some(201)));
    assert_eq!(calls[0].target.value().unwrap().method.raw(), "POST");
    assert_eq!(runs[0].state, SessionState::Live);
    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert_eq!(report.exit(), Exit::Done, "{report}");
}
