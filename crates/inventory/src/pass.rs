//! One pass over all processes.

use std::io;

use model::{Foreign, Known, ProcessId, Stamp, redact};
use sys::{
    process::{ProcStat, split_command_line},
    procfs::{File, Link},
};

use crate::{
    Descriptor, Look, Process, SCHEMA, Snapshot, Source, Unreadable,
    crew::{self, Memory},
    terminal,
    users::Users,
    wires,
};

/// Looks at every process once and joins the ends of what they hold.
///
/// A process that ends under the look is left out: it is not there any more, which is not the same as not
/// being readable. One that the kernel does not answer for is listed with what could be read of it.
///
/// # Errors
/// The processes cannot be listed, or there is no boot id: nothing at all is known then.
pub fn take<S: Source>(source: &S) -> io::Result<Snapshot> {
    let began = source.now();
    let boot_id = source.boot_id()?;
    let users = Users::parse(&source.passwd().unwrap_or_default());
    let pids = source.pids()?;
    let (processes, mut unreadable) = all(source, &boot_id, users, pids);
    match source.blind_spot() {
        Ok(None) => {}
        Ok(Some(why)) => unreadable.push(Unreadable {
            pid: None,
            what: "other processes".to_owned(),
            why,
        }),
        Err(error) => unreadable.push(entry(None, "whether processes are hidden", &error)),
    }
    let sockets = source.unix_sockets().unwrap_or_else(|error| {
        unreadable.push(entry(None, "unix sockets", &error));
        Vec::new()
    });
    let mut snapshot = Snapshot {
        schema: SCHEMA.to_owned(),
        observed_at: began.wall,
        finished_at: began.wall,
        boot_id,
        observer_uid: source.observer_uid(),
        complete: unreadable.is_empty(),
        pipes: wires::pipes(&processes),
        sockets: wires::sockets(&processes, sockets),
        tcp: Vec::new(),
        udp: Vec::new(),
        unreadable,
        processes,
    };
    probe_pipes(source, &mut snapshot);
    snapshot.finished_at = source.now().wall;
    Ok(snapshot)
}

/// What was read of one process, and what could not be.
type Seen = io::Result<(Process, Vec<Unreadable>)>;

/// Looks at these processes, in their order.
fn all<S: Source>(
    source: &S,
    boot_id: &str,
    users: Users,
    pids: Vec<u32>,
) -> (Vec<Process>, Vec<Unreadable>) {
    let (source, boot_id) = (source.clone(), boot_id.to_owned());
    let look = move |pid, memory| process(&source, &boot_id, &users, pid, memory);
    let (mut processes, mut unreadable) = (Vec::with_capacity(pids.len()), Vec::new());
    for (pid, seen) in crew::looks(pids, look) {
        match seen {
            Ok((process, gaps)) => {
                processes.push(process);
                unreadable.extend(gaps);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unreadable.push(entry(Some(pid), "process", &error)),
        }
    }
    (processes, unreadable)
}

fn process<S: Source>(source: &S, boot_id: &str, users: &Users, pid: u32, memory: Memory) -> Seen {
    let look = source.process(pid)?;
    let uid = look.owner()?;
    let stat = look.stat()?;
    let now = source.now();
    let mut gaps = Vec::new();
    let mut gap = |what: &str, error: &io::Error| gaps.push(entry(Some(pid), what, error));
    // A kernel thread has no program, and a zombie none any more: nothing is missing there.
    let runs = !stat.is_kernel_thread() && !stat.state.is_dead();
    let command = if runs {
        let argv = memory
            .read(|| look.read(File::CommandLine))
            .map(|content| command(&content));
        known(argv, "command line", &mut gap)?
    } else {
        Known::Yes(Vec::new())
    };
    let text = |link| look.link(link).map(|text| Foreign::from_bytes(&text));
    let (exe, cwd) = if runs {
        (
            known(text(Link::Executable), "program", &mut gap)?,
            known(text(Link::WorkingFolder), "working folder", &mut gap)?,
        )
    } else {
        (
            Known::unknown("runs no program"),
            Known::unknown("runs no program"),
        )
    };
    let descriptors = if runs {
        let open = |raw: Vec<_>| raw.into_iter().map(Descriptor::from).collect();
        known(look.descriptors().map(open), "descriptors", &mut gap)?
    } else if stat.state.is_dead() && stat.threads > 1 {
        // Its other threads hold them, and they are shown below its first only.
        let hidden = Err(io::Error::other("its first thread has ended"));
        known(hidden, "descriptors", &mut gap)?
    } else {
        Known::Yes(Vec::new())
    };
    let id = ProcessId {
        boot_id: boot_id.to_owned(),
        pid,
        start_ticks: stat.start_ticks,
        pidfd_inode: None,
    };
    let base = fields(id, &stat, now);
    let process = Process {
        uid,
        user: users.name(uid),
        command,
        exe,
        cwd,
        descriptors,
        ..base
    };
    // Only of a process that was still there at the end of its own look a gap is a gap.
    Ok((process, gaps))
}

/// Fills what the line of fields says; the rest is not known yet.
fn fields(id: ProcessId, stat: &ProcStat, now: Stamp) -> Process {
    let unread = || "not read";
    Process {
        id,
        observed_at: now.wall,
        uid: 0,
        user: Foreign::from(""),
        comm: Foreign::from_bytes(&stat.comm),
        command: Known::unknown(unread()),
        exe: Known::unknown(unread()),
        cwd: Known::unknown(unread()),
        ppid: stat.ppid,
        pgid: stat.pgid,
        sid: stat.sid,
        tty: terminal::name(stat.tty),
        stat: stat_text(stat),
        elapsed_ms: now.boot_ms.saturating_sub(stat.started_ms()),
        cpu_ms: stat.cpu_ms(),
        rss_bytes: stat.rss_bytes(),
        threads: stat.threads,
        kernel_thread: stat.is_kernel_thread(),
        descriptors: Known::unknown(unread()),
        closer: None,
    }
}

fn stat_text(stat: &ProcStat) -> String {
    let mut text = stat.state.to_string();
    if stat.sid == stat.pid {
        text.push('s');
    }
    if stat.threads > 1 {
        text.push('l');
    }
    if stat.tty != 0 && stat.tty_group == i64::from(stat.pgid) {
        text.push('+');
    }
    text
}

/// A title written over the arguments is one text and is redacted word by word.
fn command(content: &[u8]) -> Vec<Foreign> {
    redact::arguments(split_command_line(content))
}

/// Turns what could not be read into an unknown value and a gap; only the end of the process is passed on.
fn known<T>(
    read: io::Result<T>,
    what: &str,
    gap: &mut impl FnMut(&str, &io::Error),
) -> io::Result<Known<T>> {
    match read {
        Ok(value) => Ok(Known::Yes(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(error) => {
            gap(what, &error);
            Ok(Known::unknown(why(&error)))
        }
    }
}

/// Asks the pipes whose readers may be at their end: those without a writer in sight.
fn probe_pipes<S: Source>(source: &S, snapshot: &mut Snapshot) {
    for pipe in &mut snapshot.pipes {
        if pipe.writers().next().is_some() {
            continue;
        }
        let Some(reader) = pipe.readers().next() else {
            continue;
        };
        let probe = source
            .process(reader.pid)
            .and_then(|look| look.probe_pipe(reader.fd, pipe.inode));
        match probe {
            Ok(probe) => {
                pipe.hung_up = Known::Yes(probe.hung_up);
                pipe.unread_bytes = Known::Yes(probe.unread_bytes);
            }
            Err(error) => {
                pipe.hung_up = Known::unknown(why(&error));
                pipe.unread_bytes = Known::unknown(why(&error));
            }
        }
    }
}

pub(crate) fn entry(pid: Option<u32>, what: &str, error: &io::Error) -> Unreadable {
    Unreadable {
        pid,
        what: what.to_owned(),
        why: why(error),
    }
}

/// Says why something could not be read, in a person's words.
pub(crate) fn why(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "permission denied".to_owned()
    } else if error.kind() == io::ErrorKind::NotFound {
        "it has ended".to_owned()
    } else {
        error.to_string()
    }
}
