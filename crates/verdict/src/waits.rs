//! Which processes will do something without being asked: by a timer, or since a thread waits only for so long.

use inventory::{Process, Wait};

use crate::{EvidenceSource as Source, EvidenceStrength as Weight, case::Case};

impl Case<'_, '_> {
    /// Adds which of its processes will wake by themselves, each once.
    pub(crate) fn note_waits(&mut self, processes: &[&Process]) {
        for process in processes {
            if let Some(how) = timer(process).or_else(|| waiting(process)) {
                let what = format!("pid {} will wake by itself: {how}", process.pid());
                self.note(Source::Proc, Weight::Strong, what);
            }
        }
    }
}

fn timer(process: &Process) -> Option<String> {
    let timers = process
        .open()
        .filter_map(|open| Some((open.wakes_in_ms?, open.fd)));
    let (millis, fd) = timers.min()?;
    Some(format!(
        "its timer at descriptor {fd} goes off in {millis} ms"
    ))
}

/// The main thread tells more than the others: those may only look after the runtime.
fn waiting(process: &Process) -> Option<String> {
    let closer = process.closer.as_ref()?;
    let main = closer.waits.value().and_then(|wait| ends(*wait));
    main.map(|how| format!("it {how}")).or_else(|| {
        let mut threads = closer.wakers.value().into_iter().flatten();
        let (thread, how) = threads.find_map(|one| Some((one.thread, ends(one.wait)?)))?;
        Some(format!("its thread {thread} {how}"))
    })
}

fn ends(wait: Wait) -> Option<String> {
    match wait {
        Wait::OthersOrTime { at_most_ms } => Some(format!("waits for {at_most_ms} ms at most")),
        Wait::OthersOrUntil => Some("waits for others, or until a time".to_owned()),
        Wait::Time => Some("sleeps for a time".to_owned()),
        Wait::Nothing | Wait::Others | Wait::Unclear => None,
    }
}
