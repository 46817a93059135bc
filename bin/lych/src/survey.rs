//! Look, expect, judge: once, for every verb that needs to know what is left over.
//!
//! Works without a daemon, a vault or a set-up. What cannot be read is told in the report; only if the
//! processes cannot be listed at all there is nothing to tell.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use clients::{Found, Note, Places};
use inventory::{Live, Process, Snapshot, Target};
use model::{Clock, Exit, Explain, Fault, Foreign, Home, LaunchRecord};
use sys::clock::SystemClock;
use verdict::{Extent, Input, LogFacts, Report, SessionFact, candidates, judge};

/// One look and what it means.
pub(crate) struct Survey {
    /// All that was seen.
    pub(crate) snapshot: Snapshot,
    /// What it means.
    pub(crate) report: Report,
    /// Who held which wire, as the daemon wrote it down.
    pub(crate) launches: Vec<LaunchRecord>,
}

/// Which processes are looked at closer: environment names, control group, TCP, full identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closer {
    /// Those that are judged.
    Candidates,
    /// Those, and this one.
    And(u32),
    /// All.
    All,
}

impl Survey {
    /// Looks at every process and judges it.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub(crate) fn take(home: &Home, closer: Closer, extent: Extent) -> Result<Self, Explain> {
        let (live, mut snapshot) = look().map_err(|error| blind(&error))?;
        let mut found = places(&snapshot).read();
        let launches = launches(home, &mut found.notes);
        let log = log_facts(home, &snapshot, &launches, &mut found.notes);
        let mut pids = candidates(&input(&snapshot, &found, &launches, &log));
        match closer {
            Closer::Candidates => {}
            Closer::And(pid) => {
                pids.insert(pid);
            }
            Closer::All => pids.extend(snapshot.processes.iter().map(Process::pid)),
        }
        if let Some(live) = &live {
            inventory::closer(live, &mut snapshot, &pids);
        }
        let report = judge(&input(&snapshot, &found, &launches, &log), extent);
        Ok(Self {
            snapshot,
            report,
            launches,
        })
    }
}

/// Looks with what there is: `/proc`, or ps(1) and lsof(8) where no such thing exists.
fn look() -> io::Result<(Option<Live>, Snapshot)> {
    match Live::open() {
        Ok(live) => {
            let snapshot = inventory::take(&live)?;
            Ok((Some(live), snapshot))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let now = SystemClock.now().wall;
            let snapshot = inventory::take_portable(now, sys::process::own_uid())?;
            Ok((None, snapshot))
        }
        Err(error) => Err(error),
    }
}

const fn input<'a>(
    snapshot: &'a Snapshot,
    found: &'a Found,
    launches: &'a [LaunchRecord],
    log: &'a LogFacts,
) -> Input<'a> {
    Input {
        snapshot,
        expected: found.expected.as_slice(),
        launched: found.launched.as_slice(),
        notes: found.notes.as_slice(),
        launches,
        log,
    }
}

fn blind(error: &io::Error) -> Explain {
    Explain::new(
        Exit::Failed,
        Fault::Operator,
        "the processes of this machine cannot be listed",
    )
    .because(error)
    .next("mount /proc, or look from outside of this sandbox")
}

/// Our own configurations and those of the projects that possible servers work in. Root also reads those of
/// the users whose processes it sees, so that it judges as they would.
fn places(snapshot: &Snapshot) -> Places {
    let mut places = Places::from_vars(|name| std::env::var_os(name).map(PathBuf::from));
    let own = std::env::current_dir().ok();
    let on_a_wire = snapshot.processes.iter().filter(|process| {
        let input = process.descriptor(0).map(|open| &open.target);
        matches!(input, Some(Target::Pipe { .. } | Target::Socket { .. }))
    });
    let mut users: BTreeSet<u32> = BTreeSet::new();
    let mut folders: BTreeSet<PathBuf> = own.into_iter().collect();
    for process in on_a_wire {
        users.insert(process.uid);
        let folder = |cwd: &Foreign| PathBuf::from(OsStr::from_bytes(cwd.bytes()));
        folders.extend(process.cwd.value().map(folder));
    }
    places.folders = folders.into_iter().collect();
    if snapshot.observer_uid == 0 {
        let homes = homes();
        let theirs = users.iter().filter_map(|uid| homes.get(uid).cloned());
        places.homes.extend(theirs);
        places.homes.dedup();
    }
    places
}

/// The home folders of the local users (passwd(5)).
fn homes() -> BTreeMap<u32, PathBuf> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let (uid, home) = (fields.get(2)?.parse().ok()?, PathBuf::from(fields.get(5)?));
        home.is_absolute().then_some((uid, home))
    };
    passwd.lines().filter_map(entry).collect()
}

/// Reads the launch records; one that is none is noted.
fn launches(home: &Home, notes: &mut Vec<Note>) -> Vec<LaunchRecord> {
    let folder = home.launches();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                notes.push(note(folder, &error));
            }
            return Vec::new();
        }
    };
    let mut records = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let read = sys::small_file::read(&path, LARGEST_RECORD).and_then(|file| {
            let record: LaunchRecord = serde_json::from_slice(&file.content)?;
            Ok(record)
        });
        match read {
            Ok(record) if record.schema == LaunchRecord::SCHEMA => records.push(record),
            Ok(_) => notes.push(note(path, &"it is of another version")),
            // The daemon removes old ones while we read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => notes.push(note(path, &error)),
        }
    }
    records
}

/// Reads from the log what it says about the runs of these records, if one of their shims lives.
fn log_facts(
    home: &Home,
    snapshot: &Snapshot,
    launches: &[LaunchRecord],
    notes: &mut Vec<Note>,
) -> LogFacts {
    let lives = |record: &LaunchRecord| {
        let mut links = record.chain.iter().map(|link| &link.process.id);
        links.any(|id| {
            snapshot
                .process(id.pid)
                .is_some_and(|seen| seen.id.same(id))
        })
    };
    let mut facts = LogFacts::default();
    if !launches.iter().any(lives) {
        return facts;
    }
    let folder = home.audit();
    match runs(&folder) {
        Ok(runs) => {
            facts.read = true;
            facts.sessions = runs
                .in_order()
                .into_iter()
                .map(|(session, run)| {
                    let since = run.revoked.or_else(|| run.lost.last().copied());
                    let fact = SessionFact {
                        state: run.state(),
                        since: since.map(|mark| mark.at),
                    };
                    (session, fact)
                })
                .collect();
        }
        Err(error) => notes.push(note(folder, &error)),
    }
    facts
}

fn runs(folder: &std::path::Path) -> Result<ledger::Sessions, ledger::ReadError> {
    let mut runs = ledger::Sessions::default();
    for record in ledger::Records::open(folder)? {
        let (_, stored) = record?;
        runs.apply(&stored.header, stored.place);
    }
    Ok(runs)
}

fn note(file: PathBuf, why: &impl ToString) -> Note {
    Note {
        file,
        why: why.to_string(),
    }
}

/// The longest chain with the most children below it stays below, as `lychd` shortens their command lines.
const LARGEST_RECORD: u64 = 1024 * 1024;
