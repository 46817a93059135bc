//! Segments that are given up: on record, with all that the rest still needs.

use std::fs;

use audit::{Audit, CallFilter, Retention};
use ledger::{Certificate, Verdict, VerifyOptions, verify};
use model::{Body, CallState, Entry, Exit, Kind, Wall};

use crate::world::*;

const ALL: Retention = Retention {
    since: Wall::from_millis(u64::MAX),
    bytes: 0,
    from: None,
};

/// A log of several segments: a run that was revoked, one that goes on with an open call, and many calls that ended.
fn long(world: &World) -> (Audit, model::SessionId, model::CallId) {
    let (audit, _) = world.open();
    let revoked = open_run(&audit);
    revoke(&audit, revoked);
    let session = open_run(&audit);
    let open = attempt(&audit, session);
    clear(&audit, session, open);
    for _ in 0..60 {
        let call = attempt(&audit, session);
        clear(&audit, session, call);
        answer(&audit, session, call);
    }
    (audit, session, open.0)
}

#[test]
fn what_is_given_up_on_record_leaves_an_intact_log_that_goes_on() {
    let world = World::new();
    let (audit, session, open) = long(&world);
    let before = world.segments();
    let receipt = durable(&audit, attempt_entry(session, call_id()));

    let given = audit.prune(&ALL).unwrap().unwrap();
    let after = attempt(&audit, session);
    answerable(&audit, session, after);
    audit.close().unwrap();
    drop(audit);

    assert_eq!(given.segments, before - 1);
    let pin = world.folder.path().join("receipt.json");
    fs::write(&pin, serde_json::to_vec(&receipt).unwrap()).unwrap();
    let report = verify(&world.dir(), &pinned(&pin));
    assert_eq!(report.verdict, Verdict::IntactPinned, "{report}");
    assert_eq!(report.exit(), Exit::Done, "{report}");
    assert_eq!(report.first_seq, Some(given.first_kept));
    let (audit, recovered) = world.open();
    assert!(recovered.open_calls.iter().any(|call| call.call == open));
    assert_eq!(recovered.revoked_runs.len(), 1);
    let calls = audit.calls(&CallFilter::default(), Some(&Xor)).unwrap();
    let open = calls.iter().find(|call| call.id == open).unwrap();
    assert_eq!(open.state, CallState::Unresolved);
    assert!(open.target.value().is_some(), "{open:?}");
}

fn answerable(audit: &Audit, session: model::SessionId, call: (model::CallId, u64)) {
    clear(audit, session, call);
    answer(audit, session, call);
}

#[test]
fn a_log_can_be_pruned_again_and_again() {
    let world = World::new();
    let (audit, session, open) = long(&world);
    let mut last = 0;
    for _ in 0..3 {
        let given = audit.prune(&ALL).unwrap().unwrap();
        assert!(given.first_kept > last);
        last = given.first_kept;
        for _ in 0..40 {
            answerable(&audit, session, attempt(&audit, session));
        }
    }
    audit.close().unwrap();
    drop(audit);

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.verdict, Verdict::IntactLocalPin, "{report}");
    assert!(report.structure.is_empty(), "{report}");
    let (_, recovered) = world.open();
    assert!(recovered.open_calls.iter().any(|call| call.call == open));
    assert_eq!(fs::read_dir(world.dir().join("pruned")).unwrap().count(), 1);
}

#[test]
fn what_an_incident_refers_to_is_kept() {
    let world = World::new();
    let (audit, ..) = long(&world);

    let given = audit
        .prune(&Retention {
            from: Some(1),
            ..ALL
        })
        .unwrap();
    let younger = audit.prune(&Retention {
        since: Wall::from_millis(0),
        bytes: u64::MAX,
        from: None,
    });

    assert_eq!(given, None);
    assert_eq!(younger.unwrap(), None);
}

/// Anchors a step of an incident that refers to records from this one on.
fn anchor(audit: &Audit, from: Option<u64>) {
    let body = Body::IncidentStep {
        incident: "i-0000000000000000".parse().unwrap(),
        step: "01-preserve".to_owned(),
        sha256: model::Digest::from_bytes([3; 32]),
        late: false,
        from,
    };
    let entry = Entry {
        kind: Kind::IncidentStep,
        session: None,
        call: None,
        refers_to: None,
        body,
    };
    durable(audit, entry);
}

#[test]
fn the_log_itself_tells_from_where_on_incidents_need_it_also_after_a_crash_and_a_prune() {
    let world = World::new();
    let (audit, session, _) = long(&world);
    let needed = durable(&audit, attempt_entry(session, call_id())).seq;
    assert_eq!(audit.kept_from(Some(&Xor)).unwrap(), None);
    anchor(&audit, Some(needed));
    anchor(&audit, None);
    anchor(&audit, Some(needed + 5));
    assert!(audit.could_prune(&ALL).unwrap());
    for _ in 0..40 {
        answerable(&audit, session, attempt(&audit, session));
    }
    let from = audit.kept_from(Some(&Xor)).unwrap();
    audit.prune(&Retention { from, ..ALL }).unwrap().unwrap();
    drop(audit);

    let (audit, _) = world.open();
    let from = audit.kept_from(Some(&Xor)).unwrap();

    assert_eq!(from, Some(needed));
    assert!(!audit.could_prune(&Retention { from, ..ALL }).unwrap());
    let kept = verify(&world.dir(), &VerifyOptions::default()).first_seq;
    assert!(kept.unwrap() <= needed, "{kept:?}");
    assert!(
        audit.kept_from(None).is_err(),
        "what cannot be read is kept"
    );
}

#[test]
fn a_changed_log_is_not_pruned() {
    let world = World::new();
    let (audit, ..) = long(&world);
    world.flip("seg/0000000000.seg", 700);

    assert!(audit.prune(&ALL).is_err());
    assert!(world.dir().join("seg/0000000000.seg").exists());
}

#[test]
fn a_removal_that_a_crash_cut_short_is_finished_by_the_next_start() {
    let world = World::new();
    let (audit, ..) = long(&world);
    let name = |index: usize| world.dir().join(format!("seg/{index:010}.seg"));
    let given_up: Vec<_> = (0..world.segments() - 1)
        .map(|index| (name(index), fs::read(name(index)).unwrap()))
        .collect();
    let given = audit.prune(&ALL).unwrap().unwrap();
    audit.close().unwrap();
    drop(audit);
    for removed in 0..given_up.len() {
        for (path, bytes) in &given_up[removed..] {
            fs::write(path, bytes).unwrap();
        }
        let between = verify(&world.dir(), &VerifyOptions::default());
        assert_eq!(between.exit(), Exit::Done, "{removed}: {between}");

        world.open().0.close().unwrap();

        assert!(given_up.iter().all(|(path, _)| !path.exists()));
        let report = verify(&world.dir(), &VerifyOptions::default());
        assert_eq!(report.first_seq, Some(given.first_kept), "{report}");
    }
}

#[test]
fn a_certificate_that_is_changed_in_any_byte_is_found() {
    let world = World::new();
    let (audit, ..) = long(&world);
    audit.prune(&ALL).unwrap().unwrap();
    audit.close().unwrap();
    drop(audit);
    let file = fs::read_dir(world.dir().join("pruned"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = fs::read(&file).unwrap();
    assert_eq!(
        file,
        Certificate::path(&world.dir(), u64::try_from(world.first_segment()).unwrap())
    );
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        *changed.get_mut(at).unwrap() ^= 4;
        fs::write(&file, &changed).unwrap();

        let report = verify(&world.dir(), &VerifyOptions::default());

        assert_eq!(report.verdict, Verdict::Tampered, "byte {at}: {report}");
    }
}
