//! Folds that go on where they stopped, over a log whose daemons crash.

use ledger::{Calls, Records, Sessions};
use model::{CallState, Seq};
use proptest::prelude::*;

use crate::world::*;

/// One daemon run: what it does, and how it ends.
#[derive(Debug, Clone)]
struct Life {
    acts: Vec<Act>,
    ending: Ending,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    OpenRun,
    Attempt,
    Clear,
    Answer,
    Revoke,
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Closed,
    Crashed,
    /// Crashed in the middle of a write, of which this many bytes are left.
    Torn(u8),
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let act = prop_oneof![
        Just(Act::OpenRun),
        Just(Act::Attempt),
        Just(Act::Attempt),
        Just(Act::Clear),
        Just(Act::Answer),
        Just(Act::Revoke),
    ];
    let ending = prop_oneof![
        Just(Ending::Closed),
        Just(Ending::Crashed),
        (1u8..).prop_map(Ending::Torn),
    ];
    let life =
        (prop::collection::vec(act, 0..8), ending).prop_map(|(acts, ending)| Life { acts, ending });
    prop::collection::vec(life, 1..4)
}

/// Lives one life in the log.
fn live(world: &World, life: &Life) {
    let (audit, _) = world.open();
    let session = open_run(&audit);
    let (mut attempted, mut cleared) = (Vec::new(), Vec::new());
    for act in &life.acts {
        match act {
            Act::OpenRun => drop(open_run(&audit)),
            Act::Attempt => attempted.push(attempt(&audit, session)),
            Act::Clear => cleared.extend(attempted.pop().inspect(|call| {
                clear(&audit, session, *call);
            })),
            Act::Answer => drop(cleared.pop().map(|call| answer(&audit, session, call))),
            Act::Revoke => drop(revoke(&audit, session)),
        }
    }
    if let Ending::Closed = life.ending {
        audit.close().unwrap();
    }
    drop(audit);
    if let Ending::Torn(bytes) = life.ending {
        world.overwrite_tail(&vec![bytes; bytes.into()]);
    }
}

/// What a reader knows, and up to where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Known {
    sessions: Sessions,
    calls: Calls,
    last: Seq,
}

impl Known {
    /// Goes on with the records that are new, at most so many.
    fn go_on(&mut self, world: &World, most: usize) {
        let last = self.last;
        let records = Records::open(&world.dir()).unwrap();
        let new = records
            .map(|record| record.unwrap().1)
            .skip_while(|record| record.header.seq <= last);
        for record in new.take(most) {
            self.sessions.apply(&record.header, record.place);
            self.calls.apply(&record.header, record.place);
            self.last = record.header.seq;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_reader_that_goes_on_after_each_crash_knows_what_one_who_begins_anew_knows(
        lives in lives(), stop in 0usize..40
    ) {
        let world = World::new();
        let mut known = Known::default();
        for life in &lives {
            live(&world, life);
            // In the middle of what is new, and then the rest.
            known.go_on(&world, stop);
            known.go_on(&world, usize::MAX);
            let mut anew = Known::default();
            anew.go_on(&world, usize::MAX);
            prop_assert_eq!(&known, &anew);
        }

        // What the daemon itself remembers of its past are the calls that are still open.
        let (_audit, recovered) = world.open();
        let mut open: Vec<_> = recovered.open_calls.iter().map(|open| open.call).collect();
        let mut told: Vec<_> = known
            .calls
            .in_order()
            .into_iter()
            .filter(|(_, call)| call.state.is_open() || call.state == CallState::Attempted)
            .map(|(id, _)| id)
            .collect();
        open.sort_unstable();
        told.sort_unstable();
        prop_assert_eq!(open, told);
    }
}
