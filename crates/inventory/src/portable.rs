//! A look through ps(1) and lsof(8): what a Mac has, and what runs on Linux too, so that both ways of looking
//! can be held against each other. Not run on a Mac yet; its forms are tested on recorded text.
//!
//! It sees less than the native look. There is no identity beyond a start in whole seconds, no unread bytes, and
//! nobody is asked whether a pipe hung up: an end is seen only where every process's descriptors were listed
//! and no holder is among them, or on a Mac, where one end names the other, if it names none any more. A process that lsof does not list is not readable, never without descriptors.

use std::{
    collections::BTreeMap,
    io,
    process::{Command, Stdio},
};

use model::{Foreign, Known, ProcessId, Wall, redact};

mod inet;
mod lsof;
mod ps;

use crate::{Process, SCHEMA, Snapshot, Unreadable, wires};

/// The text of both programs.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// What `ps` said to [`PS`].
    pub ps: &'a str,
    /// What `lsof` said to [`LSOF`].
    pub lsof: &'a str,
}

/// What ps(1) is asked for; every field is known to both systems.
pub const PS: [&str; 2] = [
    "-axo",
    "pid=,ppid=,pgid=,uid=,rss=,stat=,etime=,time=,tty=,command=",
];

/// What lsof(8) is asked for: one field a line, numbers as numbers, ends of pipes where it knows them.
pub const LSOF: [&str; 4] = ["-nP", "-w", "-F", "pftaDdinPT"];

/// Looks with both programs.
///
/// # Errors
/// One of them cannot be started or says nothing: nothing is known then, which is not "no processes".
pub fn take_portable(now: Wall, observer_uid: u32) -> io::Result<Snapshot> {
    let ps = said("ps", &PS)?;
    let endpoints: &[&str] = if std::env::consts::OS == "linux" {
        &["+E"]
    } else {
        &[]
    };
    let lsof = said("lsof", &[&LSOF[..], endpoints].concat())?;
    let listing = Listing {
        ps: &ps,
        lsof: &lsof,
    };
    Ok(parse_portable(listing, now, observer_uid))
}

fn said(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    // lsof ends with 1 if something it came across had gone again; only its silence means failure.
    if output.stdout.is_empty() {
        return Err(io::Error::other(format!("{program} said nothing")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes a look of what both programs said.
#[must_use]
pub fn parse_portable(listing: Listing<'_>, now: Wall, observer_uid: u32) -> Snapshot {
    let opened = lsof::parse(listing.lsof);
    let mut unreadable = Vec::new();
    let mut processes = Vec::new();
    for line in listing.ps.lines().filter(|line| !line.trim().is_empty()) {
        let Some(seen) = ps::parse(line) else {
            unreadable.push(gap(None, "a line of ps", "it is not as expected"));
            continue;
        };
        let runs = !seen.stat.starts_with('Z');
        let descriptors = match opened.by_pid.get(&seen.pid) {
            Some(Ok(open)) => Known::Yes(open.clone()),
            Some(Err(why)) => unlisted(seen.pid, why, &mut unreadable),
            None if runs => unlisted(seen.pid, "lsof does not list it", &mut unreadable),
            None => Known::Yes(Vec::new()),
        };
        processes.push(process(seen, descriptors, now));
    }
    processes.sort_unstable_by_key(Process::pid);
    let mut pipes = wires::pipes(&processes);
    for pipe in &mut pipes {
        if opened.severed.contains(&pipe.inode) {
            pipe.hung_up = Known::Yes(true);
        }
    }
    Snapshot {
        schema: SCHEMA.to_owned(),
        observed_at: now,
        finished_at: now,
        boot_id: NO_BOOT.to_owned(),
        observer_uid,
        complete: unreadable.is_empty(),
        pipes,
        sockets: wires::sockets(&processes, opened.sockets),
        tcp: opened.tcp,
        udp: opened.udp,
        unreadable,
        processes,
    }
}

fn unlisted<T>(pid: u32, why: &str, unreadable: &mut Vec<Unreadable>) -> Known<T> {
    unreadable.push(gap(Some(pid), "descriptors", why));
    Known::unknown(why)
}

fn gap(pid: Option<u32>, what: &str, why: &str) -> Unreadable {
    Unreadable {
        pid,
        what: what.to_owned(),
        why: why.to_owned(),
    }
}

fn process(seen: ps::Line<'_>, descriptors: Known<Vec<crate::Descriptor>>, now: Wall) -> Process {
    let words: Vec<&str> = seen.command.split_ascii_whitespace().collect();
    // Kernel threads have no program; ps shows them so, and what has ended too.
    let has_ended = seen.stat.starts_with('Z');
    let kernel_thread = seen.command.starts_with('[') && seen.rss_kib == 0 && !has_ended;
    let name = words.first().and_then(|word| word.rsplit('/').next());
    let command = if kernel_thread {
        Vec::new()
    } else {
        redact::arguments(&words)
    };
    Process {
        id: ProcessId {
            boot_id: NO_BOOT.to_owned(),
            pid: seen.pid,
            start_ticks: (now.millis() / 1000).saturating_sub(seen.elapsed_s) * TICKS,
            pidfd_inode: None,
        },
        observed_at: now,
        uid: seen.uid,
        user: Foreign::new(seen.uid.to_string()),
        comm: Foreign::from(name.unwrap_or_default()),
        command: Known::Yes(command),
        exe: Known::unknown("ps does not tell"),
        cwd: Known::unknown("not asked"),
        ppid: seen.ppid,
        pgid: seen.pgid,
        // `sess` is a pointer on one system and a number on the other.
        sid: if seen.stat.contains('s') { seen.pid } else { 0 },
        tty: (!seen.tty.starts_with('?')).then(|| seen.tty.to_owned()),
        stat: seen.stat.to_owned(),
        elapsed_ms: seen.elapsed_s.saturating_mul(1000),
        cpu_ms: seen.cpu_s.saturating_mul(1000),
        rss_bytes: seen.rss_kib.saturating_mul(1024),
        threads: 0,
        kernel_thread,
        descriptors,
        closer: None,
    }
}

/// What is open, by process, with the reason where that could not be listed.
type ByPid = BTreeMap<u32, Result<Vec<crate::Descriptor>, String>>;

/// As many a second as a Linux kernel shows, so that what is near to another in time is so here, too.
const TICKS: u64 = 100;

/// There is no id of the boot here; starts in whole seconds are compared within one look only.
pub(crate) const NO_BOOT: &str = "not known";
