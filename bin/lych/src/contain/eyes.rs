//! The machine as an incident sees it.

use std::{collections::BTreeMap, io};

use incident::{Eyes, Look, Sight};
use inventory::{Live, Snapshot};
use model::{Home, ProcessId};
use verdict::{Extent, Finding};

use crate::survey::{Closer, Survey};

/// This machine, looked at anew whenever an incident asks.
pub(crate) struct Machine {
    home: Home,
}

impl Machine {
    pub(crate) fn of(home: &Home) -> Self {
        Self { home: home.clone() }
    }
}

impl Eyes for Machine {
    fn look(&mut self) -> io::Result<Look> {
        inventory::take(&Live::open()?).map(|snapshot| look(&snapshot))
    }

    fn is_in_use(&mut self, process: &ProcessId) -> bool {
        // Who cannot be judged is not said to be in use: the incident then names it, and a person looks.
        let survey = Survey::take(&self.home, Closer::Candidates, Extent::Servers);
        survey.is_ok_and(|survey| {
            let boot = &survey.report.boot_id;
            let mut used = survey
                .report
                .findings
                .iter()
                .filter(|one| one.verdict.is_in_use());
            used.any(|finding| has(finding, boot, process))
        })
    }
}

fn has(finding: &Finding, boot_id: &str, process: &ProcessId) -> bool {
    let mut all = std::iter::once(&finding.root).chain(&finding.members);
    all.any(|view| view.identity(boot_id).is_some_and(|id| id.same(process)))
}

/// Returns a snapshot as an incident needs it.
pub(crate) fn look(snapshot: &Snapshot) -> Look {
    let by_pid: BTreeMap<u32, &ProcessId> = snapshot
        .processes
        .iter()
        .map(|process| (process.pid(), &process.id))
        .collect();
    let processes = snapshot.processes.iter();
    Look {
        observed_at: snapshot.observed_at,
        complete: snapshot.complete,
        unreadable: snapshot.unreadable.len(),
        processes: processes
            .filter(|process| !process.is_zombie() && !process.kernel_thread)
            .map(|process| Sight {
                process: process.reference(),
                parent: by_pid.get(&process.ppid).map(|id| (*id).clone()),
            })
            .collect(),
    }
}
