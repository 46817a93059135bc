//! What a look at a whole machine costs beside `lsof -nP` and `ps -axo`, on a farm of processes.
//!
//! All three run in turn within each round, so that whatever else the machine does falls on all alike; the
//! figures to quote are the ratios of the medians. Processor time is what the kernel charges each for,
//! children included; the farm's processes wait and use none.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot go on has nothing to tell"
)]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write, stdout},
    net::TcpListener,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{io::FdFlags, process::Resource};

/// How many processes, and in how many rounds.
const SIZES: [(usize, usize); 3] = [(500, 9), (2_000, 7), (5_000, 5)];

/// What a client with many servers has.
const SERVERS: usize = 20;

/// How many hold the one pipe of the last row.
const HOLDERS: usize = 1_000;

/// The fields that ps(1) is asked for: those that every look of ours has, too.
const FIELDS: &str = "pid,ppid,pgid,sess,user,stat,etime,rss,args";

fn main() {
    match env::args().nth(1).as_deref() {
        Some("--client") => client(),
        Some("--holders") => holders(),
        Some(_) | None => measure(),
    }
}

/// Starts servers of about ten descriptors each and waits for the end of its own input.
fn client() {
    let shared = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let file = fs::File::open("/proc/version").expect("a file");
    let mut kept: Vec<(Child, UnixStream)> = Vec::new();
    for _ in 0..SERVERS {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (reader, writer) = io::pipe().expect("a pipe");
        let handed: [OwnedFd; 5] = [
            theirs.into(),
            reader.into(),
            writer.into(),
            shared.try_clone().expect("a copy").into(),
            file.try_clone().expect("a copy").into(),
        ];
        for fd in &handed {
            rustix::io::fcntl_setfd(fd.as_fd(), FdFlags::empty()).expect("an inheritable one");
        }
        let child = Command::new("/bin/sh")
            .args(["-c", "exec 8</proc/version 9</dev/null; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        kept.push((child, ours));
    }
    writeln!(stdout(), "ready").expect("the farm waits for it");
    let _ = io::stdin().read(&mut [0]);
    for (mut child, _) in kept {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

/// Starts a thousand processes that hold the write end of one pipe.
fn holders() {
    let (_reader, writer) = io::pipe().expect("a pipe");
    let mut kept: Vec<Child> = (0..HOLDERS)
        .map(|_| {
            Command::new("/bin/sh")
                .args(["-c", "read x"])
                .stdin(Stdio::piped())
                .stdout(writer.try_clone().expect("a copy"))
                .stderr(Stdio::null())
                .spawn()
                .expect("a holder")
        })
        .collect();
    writeln!(stdout(), "ready").expect("the farm waits for it");
    let _ = io::stdin().read(&mut [0]);
    for child in &mut kept {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

/// The farm; it ends with its clients' inputs.
struct Farm {
    clients: Vec<(Child, ChildStdin)>,
}

impl Farm {
    fn grow(&mut self, to: usize) {
        while self.clients.len() * SERVERS < to {
            self.add("--client");
        }
    }

    fn add(&mut self, what: &str) {
        let own = env::current_exe().expect("this program");
        let mut child = Command::new(&own)
            .arg(what)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a client");
        let stdin = child.stdin.take().expect("its input");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        out.read_line(&mut line).expect("its first line");
        assert_eq!(line, "ready\n");
        self.clients.push((child, stdin));
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        for (mut child, stdin) in self.clients.drain(..) {
            drop(stdin);
            let _ = child.wait();
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    processor: Duration,
}

/// Runs a program to its end, its output thrown away.
fn cost(words: &[&str]) -> Cost {
    let (first, rest) = words.split_first().expect("a program");
    let before = charged();
    let begun = Instant::now();
    let status = Command::new(first)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("a program that starts");
    let wall = begun.elapsed();
    // lsof ends with 1 if any of many files was not found.
    assert!(status.code().is_some(), "{words:?}: {status}");
    Cost {
        wall,
        processor: charged().saturating_sub(before),
    }
}

/// Processor time of all children that were waited for, from `/proc/self/stat` (proc_pid_stat(5), 16 and 17).
fn charged() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("a line");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    let ticks: u64 = rest
        .split(' ')
        .skip(13)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

fn median(costs: &[Cost], of: impl Fn(&Cost) -> Duration) -> f64 {
    let mut all: Vec<Duration> = costs.iter().map(of).collect();
    all.sort_unstable();
    let middle = all.get(all.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1000.0
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn measure() {
    let lych = env::var_os("LYCH_BENCH_PROGRAM").map(PathBuf::from);
    let lych = lych.expect("LYCH_BENCH_PROGRAM names the program to measure");
    let lych = lych.to_str().expect("a plain path");
    let most = rustix::process::getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: most.maximum,
        ..most
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    let home = tempfile::tempdir().expect("a home");
    let home = home.path().to_str().expect("a plain path").to_owned();
    let mut farm = Farm {
        clients: Vec::new(),
    };
    let out = &mut stdout();
    let head = "| processes | load | lych: CPU, wall ms | ps | lsof | CPU lych/lsof | CPU lych/ps | wall lych/lsof | CPU us per process |\n|---|---|---|---|---|---|---|---|---|\n";
    out.write_all(head.as_bytes()).expect("an output");
    for (size, rounds) in SIZES {
        farm.grow(size);
        let line = round(lych, &home, rounds);
        out.write_all(line.as_bytes()).expect("an output");
    }
    drop(farm);
    let mut farm = Farm {
        clients: Vec::new(),
    };
    farm.add("--holders");
    let line = round(lych, &home, 9);
    out.write_all(format!("the same, one pipe held by {HOLDERS} processes:\n{line}").as_bytes())
        .expect("an output");
}

/// Runs the three in turn, so often, and returns the row of the table.
fn round(lych: &str, home: &str, rounds: usize) -> String {
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for _ in 0..rounds {
        let [ours, ps, lsof] = &mut costs;
        ours.push(cost(&[lych, "--home", home, "ps", "--json"]));
        ps.push(cost(&["ps", "-axo", FIELDS]));
        lsof.push(cost(&["lsof", "-nP"]));
    }
    let [ours, ps, lsof] = costs.map(|costs| {
        (
            median(&costs, |cost| cost.processor),
            median(&costs, |cost| cost.wall),
        )
    });
    let entries = fs::read_dir("/proc").expect("the processes").flatten();
    let count = entries
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .count();
    let per = ours.0 * 1000.0 / f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    format!(
        "| {count} | {} | {:.0}, {:.0} | {:.0}, {:.0} | {:.0}, {:.0} | {:.2} | {:.2} | {:.2} | {per:.0} |\n",
        load(),
        ours.0,
        ours.1,
        ps.0,
        ps.1,
        lsof.0,
        lsof.1,
        ours.0 / lsof.0,
        ours.0 / ps.0,
        ours.1 / lsof.1,
    )
}
