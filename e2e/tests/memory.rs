//! Where a secret may be seen: at the target, and nowhere else; after a lock not in the daemon's memory either.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write, stdout},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use testkit::{Deadline, Held, Mode, Reply, Request, Target, wait_until};

use crate::{
    agent::Agent,
    front::Front,
    gate::{Gate, SECRET},
};

/// Counts how often `needle` stands in the writable memory of a process; none if that may not be read.
fn in_memory(pid: u32, needle: &[u8]) -> Option<usize> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut found = 0;
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (Some(range), Some(rights)) = (words.next(), words.next()) else {
            continue;
        };
        if !rights.starts_with("rw") {
            continue;
        }
        let (from, to) = range.split_once('-')?;
        let from = u64::from_str_radix(from, 16).ok()?;
        let to = u64::from_str_radix(to, 16).ok()?;
        memory.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        // A part that was unmapped meanwhile holds nothing.
        drop((&mut memory).take(to - from).read_to_end(&mut bytes));
        found += bytes
            .windows(needle.len())
            .filter(|window| *window == needle)
            .count();
    }
    Some(found)
}

fn daemon_of(gate: &Gate) -> u32 {
    let status = gate.world.run(["status", "--json"]).expect_code(0).json();
    let pid = status["daemon"]["pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("a pid")
}

/// A target that repeats the secret, so that it passes through every buffer both ways.
fn echoing() -> Target {
    Target::answering(|request| {
        let echoed = request.header("authorization").unwrap_or_default();
        Reply::json(200, format!("{{\"you_sent\":\"{echoed}\"}}")).with("x-echo", echoed)
    })
}

/// The same behind TLS.
fn echoing_over_tls() -> Gate {
    let target = echoing();
    let front = Front::before(target.address());
    let ca = format!("ca = '''\n{}'''", front.ca);
    Gate::leading_to(&format!("https://{}", front.address), &ca, target)
}

#[test]
fn after_a_lock_the_secret_is_gone_from_the_daemons_memory() {
    gone_after_a_lock(&Gate::before(echoing()));
}

#[test]
fn after_a_lock_the_secret_is_gone_also_where_it_went_over_tls() {
    gone_after_a_lock(&echoing_over_tls());
}

fn gone_after_a_lock(gate: &Gate) {
    let pid = daemon_of(gate);
    let mut agent = Agent::open(&gate.world);
    for number in 0..20 {
        let said = agent.call("GET", &format!("/r/{number}")).to_string();
        assert!(!said.contains(SECRET), "{said}");
    }
    let sent = gate.target.requests();
    let carried = |request: &Request| {
        request
            .header("authorization")
            .is_some_and(|value| value.contains(SECRET))
    };
    assert_eq!(sent.iter().filter(|request| carried(request)).count(), 20);
    let Some(open) = in_memory(pid, SECRET.as_bytes()) else {
        // Only root may read the memory of a process that is not dumpable.
        drop(writeln!(
            stdout(),
            "NOT RUN: this user may not read the daemon's memory"
        ));
        return;
    };
    assert!(
        open > 0,
        "the reader sees nothing even while the vault is open"
    );

    drop(gate.world.run(["lock"]).expect_code(0));

    assert_eq!(in_memory(pid, SECRET.as_bytes()), Some(0));
}

#[test]
fn the_next_call_carries_the_secret_that_the_vault_was_given_last() {
    let gate = Gate::before(Target::start());
    let mut agent = Agent::open(&gate.world);
    agent.call("GET", "/r/1");

    let rotate = ["vault", "rotate", "token", "--from-stdin"];
    drop(
        gate.world
            .run_with(rotate, b"canary-of-later")
            .expect_code(0),
    );
    agent.call("GET", "/r/2");

    let sent = gate.target.requests();
    let sent: Vec<_> = sent
        .iter()
        .map(|request| request.header("authorization"))
        .collect();
    let first = format!("Bearer {SECRET}");
    assert_eq!(sent, [Some(first.as_str()), Some("Bearer canary-of-later")]);
}

#[test]
fn who_adds_a_secret_that_answers_are_not_cleaned_of_is_told_so() {
    let gate = Gate::before(Target::start());
    let url = gate.target.url();
    let add = ["vault", "add", "short", "--for", &url, "--from-stdin"];
    let rotate = ["vault", "rotate", "short", "--from-stdin"];
    let told = |args: &[&str], value: &str| {
        let finished = gate.world.run_with(args, value.as_bytes()).expect_code(0);
        finished.stderr.contains("not cleaned of it")
    };

    assert!(told(&add, "seven-7"));
    assert!(!told(&rotate, "eight--8"));
    assert!(told(&rotate, "seven-7"));
}

#[test]
fn a_daemon_that_crashes_leaves_no_core() {
    let gate = Gate::before(echoing());
    drop(gate.world.run(["down"]).expect_code(0));
    // Whoever starts it lets programs leave their core, and this one would tell what it knows.
    let unlimited = |command: &Command| {
        let mut shell = gate.world.command("sh");
        shell.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.stdin(Stdio::null()).stdout(Stdio::null());
        shell.stderr(Stdio::null());
        Held::start(&mut shell)
    };
    let abort = |pid: u32| {
        let mut kill = gate.world.command("sh");
        kill.args(["-c", &format!("kill -ABRT {pid}")]);
        let killed = gate.world.finish(&mut kill, b"", Deadline::usual());
        drop(killed.expect_code(0));
    };
    let mut control = unlimited(gate.world.command("sleep").arg("1000"));
    wait_until("the control to run", Deadline::usual(), || {
        fs::read(format!("/proc/{}/cmdline", control.pid()))
            .is_ok_and(|line| line.starts_with(b"sleep"))
    });
    let mut daemon = unlimited(&gate.world.lychd([""; 0]));
    wait_until("the daemon to open its vault", Deadline::usual(), || {
        gate.unlock().code() == Some(0)
    });
    let mut agent = Agent::open(&gate.world);
    drop(agent.call("GET", "/r/x"));

    abort(control.pid());
    abort(daemon.pid());
    let (other, ours) = (
        control.wait(Deadline::usual()),
        daemon.wait(Deadline::usual()),
    );

    if !other.core_dumped() {
        drop(writeln!(
            stdout(),
            "NOT RUN: no program leaves a core on this machine"
        ));
    }
    assert_eq!(ours.signal(), Some(6), "{ours:?}");
    assert!(!ours.core_dumped(), "the daemon left a core");
    for path in files_below(gate.world.folder()) {
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, SECRET.as_bytes()), "{}", path.display());
    }
}

#[test]
fn a_secret_is_found_in_no_answer_file_command_line_or_environment() {
    let gate = echoing_over_tls();
    let mut agent = Agent::open(&gate.world);
    for (method, path) in [
        ("GET", "/r/x"),
        ("DELETE", "/r/x"),
        ("POST", "/w/x"),
        ("GET", "/r/\u{1b}"),
    ] {
        let said = agent.call(method, path).to_string();
        assert!(!said.contains(SECRET), "{said}");
    }
    gate.target.set_mode(Mode::CloseBeforeAnswer);
    let said = agent.call("POST", "/w/y").to_string();
    assert!(
        said.contains("unresolved") && !said.contains(SECRET),
        "{said}"
    );
    let shim = Held::start(gate.world.command("sleep").arg("100").stdin(Stdio::null()));
    let incident = shim.pid().to_string();
    for verb in [
        &["vault", "list", "--json"][..],
        &["channels", "list"],
        &["activity", "list", "--json"],
        &["sessions", "list", "--json"],
        &["reconcile", "list"],
        &["ps", "--json", "--all"],
        &["snapshot"],
        &["incident", "open", &incident],
        &["audit", "show"],
        &["status"],
        &["vault", "add", "token", "--for", "nonsense", "--from-stdin"],
    ] {
        let said = gate.world.run_with(verb, SECRET.as_bytes());
        assert!(
            !said.stdout.contains(SECRET) && !said.stderr.contains(SECRET),
            "{verb:?}"
        );
    }

    let processes = gate.world.processes();
    assert!(processes.len() > 2, "{processes:?}");
    for process in processes {
        for part in ["cmdline", "environ"] {
            // A process that is not dumpable shows its environment to root alone.
            let bytes = fs::read(format!("/proc/{}/{part}", process.pid)).unwrap_or_default();
            assert!(
                !holds(&bytes, SECRET.as_bytes()),
                "{part} of {}",
                process.command
            );
        }
    }
    drop(shim);
    drop(agent);
    gate.close();

    let files = files_below(gate.world.folder());
    for expected in ["vault.age", "lychd.log", "shim.stderr", "LOG"] {
        assert!(
            files.iter().any(|path| path.ends_with(expected)),
            "{expected}"
        );
    }
    for folder in ["launches", "incidents"] {
        let inside = |path: &PathBuf| path.components().any(|part| part.as_os_str() == folder);
        assert!(files.iter().any(inside), "{folder}");
    }
    for path in files {
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, SECRET.as_bytes()), "{}", path.display());
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of ours").flatten() {
        let kind = entry.file_type().expect("a kind of file");
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}
