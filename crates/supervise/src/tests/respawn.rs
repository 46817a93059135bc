//! Who stands in the place of an ended process, and who was there before.

use super::*;
use crate::{Before, Sighting, respawned};

#[test]
fn a_supervisor_that_starts_it_again_is_named() {
    let world = World::new();
    let ended = end_one(program(&world, "x = 'the same command'"), &patient());
    let again = program(&world, "x = 'the same command'");
    let other = program(&world, "x = 'another command'");
    let sighting = |held: &Held| Sighting {
        process: evidence(held.pid()).process,
        parent: Some(Handle::open(std::process::id()).unwrap().id().clone()),
    };

    let ended = std::slice::from_ref(&ended);
    let nobody = Before::default();
    let found = respawned(ended, &nobody, &[sighting(&again), sighting(&other)]);

    assert_eq!(found.len(), 1);
    assert_eq!(found[0].now.id.pid, again.pid());
    assert_eq!(found[0].by.pid, std::process::id());
    let mut stranger = Handle::open(std::process::id()).unwrap().id().clone();
    stranger.start_ticks += 1;
    for parent in [None, Some(stranger)] {
        let elsewhere = Sighting {
            parent,
            ..sighting(&again)
        };
        assert_eq!(respawned(ended, &nobody, &[elsewhere]), []);
    }
    let there = Before::of([&sighting(&again).process.id]);
    assert_eq!(respawned(ended, &there, &[sighting(&again)]), []);
}

#[test]
fn who_was_there_before_is_told_from_who_came_in_the_same_tick() {
    let id = |pid, start_ticks| ProcessId {
        boot_id: "boot".to_owned(),
        pid,
        start_ticks,
        pidfd_inode: None,
    };
    let (old, young, twin) = (id(1, 5), id(2, 7), id(3, 7));

    let before = Before::of([&old, &young, &twin]);

    for there in [&old, &young, &twin, &id(9, 6)] {
        assert!(before.had(there), "{there:?}");
    }
    for new in [id(4, 7), id(5, 8)] {
        assert!(!before.had(&new), "{new:?}");
    }
    assert!(!Before::of([]).had(&old));
}
