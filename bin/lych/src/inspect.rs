//! `lych inspect PID`: what a person reads about one process before deciding.

use clap::Args;
use inventory::{Closer as Details, Descriptor, Holder, Process, Snapshot, Target, Wait};
use model::{Exit, Explain, Fault, Foreign, Home, Known};
use serde_json::json;
use verdict::{Evidence, EvidenceStrength, Extent, Finding};

use crate::{
    ps::{
        section_of,
        words::{WIDTH, age, authority_words, cut, memory, wrap},
    },
    survey::{Closer, Survey},
    ui,
};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Which process.
    pid: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Looks at one process and tells all about it.
///
/// # Errors
/// There is no such process, or the processes cannot be listed.
pub(crate) fn run(home: &Home, args: &InspectArgs) -> Result<Exit, Explain> {
    let survey = Survey::take(home, Closer::And(args.pid), Extent::Everything)?;
    let snapshot = &survey.snapshot;
    let process = snapshot.process(args.pid).ok_or_else(|| {
        Explain::new(
            Exit::Failed,
            Fault::Caller,
            format!("there is no process {}", args.pid),
        )
        .next("lych ps --all lists those that are there")
    })?;
    let finding = survey.report.findings.iter().find(|finding| {
        finding.root.pid == args.pid || finding.members.iter().any(|member| member.pid == args.pid)
    });
    if args.json {
        ui::json(&json!({
            "schema": "lych.inspect/v1",
            "observed_at": snapshot.observed_at,
            "boot_id": snapshot.boot_id,
            "process": process,
            "ancestors": snapshot.ancestors(args.pid).iter().map(|one| one.pid()).collect::<Vec<_>>(),
            "group": group(snapshot, process),
            "children": snapshot.children(args.pid).map(Process::pid).collect::<Vec<_>>(),
            "finding": finding,
        }))?;
        return Ok(Exit::Done);
    }
    let mut lines = identity(process);
    lines.extend(kin(snapshot, process));
    lines.extend(descriptors(snapshot, process));
    lines.extend(finding.into_iter().flat_map(judgement));
    ui::data(&(lines.join("\n") + "\n"))?;
    Ok(Exit::Done)
}

fn identity(process: &Process) -> Vec<String> {
    let command: Vec<&str> = process.arguments().collect();
    let shown = if command.is_empty() {
        format!("[{}]", process.comm)
    } else {
        Foreign::new(command.join(" ")).to_string()
    };
    let mut lines = wrap(&format!("pid {}  {shown}", process.pid()), 0);
    let mut field = |name: &str, value: String| {
        lines.push(cut(&format!("  {name:<10}{value}"), WIDTH));
    };
    field("user", process.user.to_string());
    field("program", known(&process.exe));
    field("folder", known(&process.cwd));
    let inode = process.id.pidfd_inode;
    let inode = inode.map_or_else(String::new, |inode| format!(", pidfd inode {inode}"));
    field(
        "identity",
        format!(
            "boot {}, tick {}{inode}",
            process.id.boot_id, process.id.start_ticks
        ),
    );
    field(
        "state",
        format!(
            "{}  runs {}  cpu {}  {}  threads {}",
            process.stat,
            age(process.elapsed_ms),
            age(process.cpu_ms),
            memory(process.rss_bytes),
            process.threads
        ),
    );
    let tty = process.tty.as_deref().unwrap_or("none");
    field(
        "belongs",
        format!(
            "parent {}, group {}, session {}, terminal {tty}",
            process.ppid, process.pgid, process.sid
        ),
    );
    if let Some(details) = &process.closer {
        for (name, value) in more(details) {
            field(name, value);
        }
    }
    lines
}

fn more(details: &Details) -> Vec<(&'static str, String)> {
    let names = match &details.env_names {
        Known::Yes(names) => {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("{} names: {}", names.len(), names.join(" "))
        }
        Known::Unknown { unknown } => format!("not readable: {unknown}"),
    };
    let inode = |value: &Known<u64>| match value {
        Known::Yes(inode) => inode.to_string(),
        Known::Unknown { .. } => "?".to_owned(),
    };
    let namespaces = format!(
        "net {}, pid {}, mnt {}, user {}",
        inode(&details.network_namespace),
        inode(&details.pid_namespace),
        inode(&details.mount_namespace),
        inode(&details.user_namespace)
    );
    let mut more = vec![
        ("cgroup", known(&details.cgroup)),
        ("spaces", namespaces),
        ("waits", waits(details)),
        ("variables", names),
    ];
    if let Known::Yes(at) = details.last_ran {
        more.insert(2, ("last ran", at.to_string()));
    }
    if let Known::Yes(pids) = &details.namespace_pids
        && let [_, inner @ ..] = pids.as_slice()
        && !inner.is_empty()
    {
        let inner: Vec<String> = inner.iter().map(ToString::to_string).collect();
        more.push((
            "inside",
            format!("pid {} of its own namespace", inner.join(", ")),
        ));
    }
    more
}

/// What its main thread waits for, in words, and whether another will wake by itself.
fn waits(details: &Details) -> String {
    let main = match &details.waits {
        Known::Yes(Wait::Nothing) => "for nothing: it runs",
        Known::Yes(Wait::Others) => "for others only",
        Known::Yes(Wait::OthersOrTime { .. } | Wait::OthersOrUntil) => {
            "for others, or until a time: it wakes by itself"
        }
        Known::Yes(Wait::Time) => "until a time: it wakes by itself",
        Known::Yes(Wait::Unclear) => "for what its call does not tell",
        Known::Unknown { unknown } => unknown,
    };
    match details.wakers.value().map_or(0, Vec::len) {
        0 => main.to_owned(),
        1 => format!("{main}; another thread wakes by itself"),
        more => format!("{main}; {more} other threads wake by themselves"),
    }
}

fn known(value: &Known<Foreign>) -> String {
    match value {
        Known::Yes(text) => text.to_string(),
        Known::Unknown { unknown } => format!("not readable: {unknown}"),
    }
}

/// All others of its process group.
fn group(snapshot: &Snapshot, process: &Process) -> Vec<u32> {
    let of_group = snapshot
        .processes
        .iter()
        .filter(|other| other.pgid == process.pgid && other.pid() != process.pid());
    of_group.map(Process::pid).collect()
}

fn kin(snapshot: &Snapshot, process: &Process) -> Vec<String> {
    let mut lines = vec![String::new(), "above it".to_owned()];
    let above = snapshot.ancestors(process.pid());
    lines.extend(above.iter().map(|one| short(one)));
    if above.is_empty() {
        lines.push("  nobody that can be seen".to_owned());
    }
    lines.push("in its process group".to_owned());
    let group = group(snapshot, process);
    if group.is_empty() {
        lines.push("  nobody else: it can be told apart by its group".to_owned());
    }
    lines.extend(
        group
            .iter()
            .filter_map(|pid| snapshot.process(*pid))
            .map(short),
    );
    let children: Vec<String> = snapshot.children(process.pid()).map(short).collect();
    if !children.is_empty() {
        lines.push("below it".to_owned());
        lines.extend(children);
    }
    lines
}

fn short(process: &Process) -> String {
    let words: Vec<&str> = process.arguments().collect();
    let text = if words.is_empty() {
        format!("[{}]", process.comm)
    } else {
        Foreign::new(words.join(" ")).to_string()
    };
    cut(
        &format!("  {:>7} {:<4} {text}", process.pid(), process.stat),
        WIDTH,
    )
}

fn descriptors(snapshot: &Snapshot, process: &Process) -> Vec<String> {
    let mut lines = vec![String::new(), "open descriptors".to_owned()];
    if let Some(why) = process.descriptors.why() {
        lines.push(format!("  not readable: {why}"));
    }
    for open in process.open() {
        lines.push(cut(&descriptor(snapshot, process.pid(), open), WIDTH));
    }
    lines
}

fn descriptor(snapshot: &Snapshot, pid: u32, open: &Descriptor) -> String {
    let access = open.access.map_or("", inventory::Access::letters);
    let what = match &open.target {
        Target::Pipe { inode } => pipe(snapshot, pid, open, *inode),
        Target::Socket { inode } => socket(snapshot, *inode),
        Target::Null => "/dev/null".to_owned(),
        Target::Terminal { path } => path.to_string(),
        Target::File {
            path,
            deleted: false,
        } => path.to_string(),
        Target::File {
            path,
            deleted: true,
        } => format!("{path} (deleted)"),
        Target::Kernel { name } => name.to_string(),
    };
    let wakes = open
        .wakes_in_ms
        .map_or_else(String::new, |millis| format!(", goes off in {millis} ms"));
    format!("  {:>4} {access:<2} {what}{wakes}", open.fd)
}

fn pipe(snapshot: &Snapshot, pid: u32, open: &Descriptor, inode: u64) -> String {
    let Some(pipe) = snapshot.pipe(inode) else {
        return format!("pipe {inode}");
    };
    let reads = open.access.is_some_and(inventory::Access::reads);
    let others: Vec<&Holder> = if reads {
        pipe.writers().collect()
    } else {
        pipe.readers().collect()
    };
    let role = if reads { "written by" } else { "read by" };
    let mut text = format!("pipe {inode}, {role} {}", holders(&others, pid));
    if reads && pipe.hung_up.value() == Some(&true) {
        text = format!("pipe {inode}, at its end: nobody can write to it");
    }
    if let (true, Some(bytes @ 1..)) = (reads, pipe.unread_bytes.value()) {
        text.push_str(&format!(", {bytes} bytes unread"));
    }
    text
}

fn socket(snapshot: &Snapshot, inode: u64) -> String {
    if let Some(tcp) = snapshot.tcp.iter().find(|tcp| tcp.inode == inode) {
        return format!("tcp {:?} {} -> {}", tcp.state, tcp.local, tcp.remote);
    }
    let Some(socket) = snapshot.socket(inode) else {
        return format!("socket {inode}");
    };
    let name = socket
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!(" {name}"));
    if socket.listening {
        return format!("unix socket{name}, listens");
    }
    match socket.peer {
        Some(0) => format!("unix socket{name}, at its end: the other side is closed"),
        None => format!("unix socket{name}"),
        Some(peer) => {
            let other = snapshot.socket(peer);
            let holding: Vec<&Holder> = other.iter().flat_map(|other| &other.holders).collect();
            let to = other.and_then(|other| other.name.clone());
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            format!("unix socket{name}{to}, other end {}", holders(&holding, 0))
        }
    }
}

fn holders(all: &[&Holder], own: u32) -> String {
    let names: Vec<String> = all
        .iter()
        .take(4)
        .map(|holder| {
            if holder.pid == own {
                format!("itself fd {}", holder.fd)
            } else {
                format!("pid {} fd {}", holder.pid, holder.fd)
            }
        })
        .collect();
    match (names.is_empty(), all.len().saturating_sub(names.len())) {
        (true, _) => "nobody that can be seen".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn judgement(finding: &Finding) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(wrap(&section_of(finding).head(), 0));
    lines.push(cut(&format!("  finding {}", finding.id), WIDTH));
    if let Some(session) = finding.session {
        lines.push(format!("  run {session}"));
    }
    for evidence in &finding.evidence {
        lines.extend(wrap(
            &format!("- {} [{}]", evidence.what, weight(evidence)),
            2,
        ));
    }
    lines.extend(wrap(&authority_words(&finding.authority), 2));
    lines
}

const fn weight(evidence: &Evidence) -> &'static str {
    match evidence.strength {
        EvidenceStrength::Strong => "strong",
        EvidenceStrength::Medium => "medium",
        EvidenceStrength::Weak => "weak",
    }
}
