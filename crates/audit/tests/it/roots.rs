//! Who vouches for whom.

use audit::AuditError;
use ledger::{Verdict, VerifyOptions, verify};
use model::{Digest, Exit};

use crate::world::*;

#[test]
fn a_daemon_run_that_no_root_vouches_for_is_negative_until_it_is_adopted() {
    let world = World::new();
    let (audit, recovered) = world.try_open().unwrap();
    audit.close().unwrap();
    drop(audit);
    let before = verify(&world.dir(), &VerifyOptions::default());
    let (audit, _) = world.open();
    audit.adopt_epoch(recovered.epoch, &world.root).unwrap();
    audit.close().unwrap();

    let after = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(before.verdict, Verdict::IntactLocalPin, "{before}");
    assert_eq!(before.exit(), Exit::Negative);
    assert_eq!(before.unendorsed[0].epoch, recovered.epoch);
    assert_eq!(after.exit(), Exit::Done, "{after}");
}

#[test]
fn a_strange_root_cannot_vouch() {
    let world = World::new();
    let (audit, _) = world.try_open().unwrap();

    let refused = audit.endorse(&Root::new(9));

    assert!(matches!(refused, Err(AuditError::NotTheRoot)));
}

#[test]
fn a_vaults_root_takes_over_from_the_bootstrap_root() {
    let world = World::new();
    let vault = Root::new(2);
    let (audit, _) = world.open();
    audit.adopt_root(&world.root, &vault).unwrap();
    audit.close().unwrap();
    drop(audit);
    let (audit, _) = world.try_open().unwrap();
    let old = audit.endorse(&world.root);
    audit.endorse(&vault).unwrap();
    audit.close().unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert!(matches!(old, Err(AuditError::NotTheRoot)));
    assert_eq!(report.exit(), Exit::Done, "{report}");
    assert_eq!(
        report.root.value(),
        Some(&Digest::from_bytes(audit::RootSigner::public(&vault)))
    );
    assert!(!report.root_is_bootstrap);
    let named = report
        .bootstrap_to
        .expect("the range before the vault took over");
    assert!(named > 1 && Some(named) < report.last_seq, "{report}");
    assert!(
        report
            .to_string()
            .contains(&format!("up to record {named}"))
    );
}

#[test]
fn an_endorsement_may_come_between_other_threads_records() {
    let world = World::new();
    let (audit, _) = world.open();
    let session = open_run(&audit);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..50).for_each(|_| {
                attempt(&audit, session);
            })
        });
        (0..20).for_each(|_| {
            audit.endorse(&world.root).unwrap();
        });
    });
    audit.close().unwrap();

    let report = verify(&world.dir(), &VerifyOptions::default());

    assert_eq!(report.exit(), Exit::Done, "{report}");
}
