//! Every byte and every length of a log of twenty kilobytes, before a pin from outside.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    thread,
};

use audit::Sizes;
use ledger::verify;
use model::Exit;

use crate::world::*;

const LONG: usize = 20_000;

/// Writes a log of two daemon runs in one segment, and returns how much of it is used.
fn write(world: &World) -> usize {
    loop {
        let (audit, _) = world.open();
        let session = open_run(&audit);
        for _ in 0..8 {
            let call = attempt(&audit, session);
            clear(&audit, session, call);
            answer(&audit, session, call);
        }
        revoke(&audit, session);
        audit.close().unwrap();
        drop(audit);
        if world.used_of_last_segment() >= LONG {
            assert_eq!(world.segments(), 1);
            return world.used_of_last_segment();
        }
    }
}

/// Has every place below `used` tried, by as many threads as there are processors, each with its own copy.
fn each_place(world: &World, used: usize, tried: impl Fn(&Path, &File, usize) + Sync) {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for worker in 0..workers {
            let copy = world.copy(&format!("copy-{worker}"));
            let tried = &tried;
            scope.spawn(move || {
                let segment = copy.join("seg/0000000000.seg");
                let segment = File::options().write(true).open(segment).unwrap();
                // Cut behind the last record, as when it is full: the zeros would be read each time.
                segment.set_len(used as u64).unwrap();
                (0..used)
                    .rev()
                    .filter(|at| at % workers == worker)
                    .for_each(|at| tried(&copy, &segment, at));
            });
        }
    });
}

fn pinned_world() -> (World, usize) {
    let world = World::of(Sizes {
        segment: 64 * 1024,
        reserve: 4 * 1024,
    });
    let used = write(&world);
    fs::copy(world.dir().join("HEAD"), world.folder.path().join("pin")).unwrap();
    (world, used)
}

#[test]
fn no_changed_byte_passes_before_a_pin() {
    let (world, used) = pinned_world();
    let pin = pinned(&world.folder.path().join("pin"));
    let whole = fs::read(world.last_segment()).unwrap();

    each_place(&world, used, |copy, segment, at| {
        let place = at as u64;
        segment
            .write_all_at(&[whole[at] ^ 1 << (at % 8)], place)
            .unwrap();
        let report = verify(copy, &pin);
        segment.write_all_at(&[whole[at]], place).unwrap();

        assert_eq!(report.exit(), Exit::Negative, "at {at}: {report}");
    });

    assert_eq!(verify(&world.dir(), &pin).exit(), Exit::Done);
}

#[test]
fn no_shorter_log_passes_before_a_pin() {
    let (world, used) = pinned_world();
    let pin = pinned(&world.folder.path().join("pin"));

    // From the end on, so that each copy gets shorter and shorter.
    each_place(&world, used, |copy, segment, len| {
        segment.set_len(len as u64).unwrap();
        let report = verify(copy, &pin);

        assert_eq!(report.exit(), Exit::Negative, "cut at {len}: {report}");
    });
}
