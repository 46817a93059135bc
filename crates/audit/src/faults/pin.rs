//! Who records something does not wait for `HEAD`; who revokes does.

use std::{sync::mpsc::channel, thread, time::Duration};

use model::Kind;
use tempfile::TempDir;

use super::{SMALL, open, push};
use crate::writer::lock;

const SOON: Duration = Duration::from_secs(20);

/// Longer than HEAD may be behind.
const TOO_OLD: Duration = Duration::from_millis(1500);

#[test]
fn while_head_is_written_records_are_and_only_a_revocation_waits_for_its_turn() {
    let folder = TempDir::new().unwrap();
    let audit = open(&folder, SMALL);
    let pin = lock(&audit.shared.writer).pin.clone();
    let (tell, told) = channel();
    // As while the disk takes its time for that file.
    let turn = pin.hold();
    thread::scope(|scope| {
        scope.spawn(|| {
            push(&audit, Kind::Attempt).wait().unwrap();
            thread::sleep(TOO_OLD);
            push(&audit, Kind::Attempt).wait().unwrap();
            tell.send("recorded").unwrap();
            push(&audit, Kind::Revoked).wait().unwrap();
            tell.send("revoked").unwrap();
        });

        assert_eq!(told.recv_timeout(SOON), Ok("recorded"));
        assert!(told.recv_timeout(TOO_OLD).is_err(), "revoked without a pin");
        drop(turn);
        assert_eq!(told.recv_timeout(SOON), Ok("revoked"));
    });
}
