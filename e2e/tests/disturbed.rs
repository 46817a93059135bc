//! The daemon itself, disturbed by strace(1) while it puts one call and a revocation on record: every file system call
//! of its committer fails, or is the last thing the daemon does.
//!
//! The log alone, with every call from its opening to its end, is disturbed one floor down, in `audit`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use model::Kind;
use serde_json::{Value, json};
use testkit::{Deadline, Held, Proof, Target, wait_for, wait_until};

use crate::{
    agent::{Agent, refused},
    gate::Gate,
    operator::Line,
};

const CALLS: &str =
    "openat,write,pwrite64,fdatasync,fsync,rename,fallocate,ftruncate,unlink,statx,fstat,read";
const KINDS: [&str; 4] = ["error=EIO", "error=ENOSPC", "error=EINTR", "signal=SIGKILL"];

/// How long an answer may take that perhaps never comes, because the daemon is dead: its shim then ends at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// One place where one thing goes wrong.
struct Point {
    call: String,
    nth: usize,
    kind: &'static str,
}

/// Returns the thread of the daemon that writes the log.
fn committer(daemon: &Held) -> String {
    let threads = format!("/proc/{}/task", daemon.pid());
    wait_for("the committer's thread", Deadline::usual(), || {
        let tasks = fs::read_dir(&threads).ok()?;
        tasks.flatten().find_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            (name.trim() == "audit-committer")
                .then(|| task.file_name().to_string_lossy().into_owned())
        })
    })
}

/// Follows one thread, and nothing else of the daemon; returns when it does.
fn follow(gate: &Gate, thread: &str, inject: &[String]) -> Held {
    let mut command = gate.world.command("strace");
    // The log's own files alone: the committer also writes to an eventfd(2) to wake a waiting task, which no disk fails.
    let log = gate.world.home().audit();
    for name in ["", "HEAD", "HEAD.tmp", "seg", "seg/0000000000.seg"] {
        command.arg("-P").arg(log.join(name).components().as_path());
    }
    command
        .args(["-p", thread, "-o"])
        .arg(gate.world.folder().join("trace"))
        .args(["-e", &format!("trace={CALLS}")])
        .args(inject)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut strace = Held::start(&mut command);
    let mut said = BufReader::new(strace.take_stderr().expect("a piped output"));
    let mut line = String::new();
    said.read_line(&mut line).expect("strace speaks");
    assert!(
        line.contains("attached"),
        "strace(1) could not follow: {line}"
    );
    strace
}

/// What one disturbed call left.
struct Left {
    /// The answer's place in the log, if an answer came.
    receipt: Option<(u64, String)>,
    /// Where the revocation stands, if the operator was told so.
    revoked: Option<u64>,
}

/// One call, a revocation of everything and another call while the committer is disturbed; then the daemon is killed, if
/// it still lives.
fn live(gate: &Gate, path: &str, inject: &[String]) -> Left {
    let mut daemon = gate.open_daemon();
    let mut agent = Agent::open(&gate.world);
    let mut strace = follow(gate, &committer(&daemon), inject);
    let id = agent.send("POST", path);
    let answer = agent.answer(id, Deadline::after(PATIENCE));
    let revoked = revoke_all(gate);
    let reached = gate.target.count();
    let late = agent.send("POST", &format!("{path}-late"));
    drop(agent.answer(late, Deadline::after(PATIENCE)));
    daemon.crash();
    strace.wait(Deadline::usual());
    if revoked != Revoked::Unreached {
        assert_eq!(
            gate.target.count(),
            reached,
            "a call left behind the revocation"
        );
    }
    let receipt = answer.and_then(|answer| {
        let receipt = &answer["result"]["_meta"]["lychgate/receipt"];
        Some((receipt["seq"].as_u64()?, receipt["id"].as_str()?.to_owned()))
    });
    let revoked = match revoked {
        Revoked::OnRecord(seq) => Some(seq),
        Revoked::NotRecorded | Revoked::Unreached => None,
    };
    Left { receipt, revoked }
}

/// What an operator is told who revokes.
#[derive(Debug, PartialEq, Eq)]
enum Revoked {
    OnRecord(u64),
    NotRecorded,
    /// The daemon was gone before it answered.
    Unreached,
}

fn revoke_all(gate: &Gate) -> Revoked {
    let request = json!({"verb": "revoke", "scope": {"scope": "all"}, "reason": "test"});
    let answer = Line::reach(&gate.world).and_then(|mut line| line.ask(&request));
    match answer {
        Some(answer) => answer["done"]["seq"]
            .as_u64()
            .map_or(Revoked::NotRecorded, Revoked::OnRecord),
        None => Revoked::Unreached,
    }
}

fn points(gate: &Gate) -> Vec<Point> {
    let left = live(gate, "/w/undisturbed", &[]);
    assert!(left.receipt.is_some(), "an undisturbed call is answered");
    let trace = fs::read_to_string(gate.world.folder().join("trace")).expect("a trace");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in trace.lines() {
        if let Some((name, _)) = line.split_once('(') {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    let mut points = Vec::new();
    for (call, all) in counts {
        for nth in 1..=all {
            points.extend(KINDS.map(|kind| Point {
                call: call.clone(),
                nth,
                kind,
            }));
        }
    }
    points
}

/// Returns the state of every call by the key that its request carried.
fn states(gate: &Gate) -> BTreeMap<String, String> {
    let listed = gate
        .world
        .run(["activity", "list", "--json"])
        .expect_code(0)
        .json();
    let calls = listed["calls"].as_array().cloned().expect("calls");
    let text = |call: &Value, field: &str| call[field].as_str().map(str::to_owned);
    calls
        .iter()
        .filter_map(|call| Some((text(call, "key")?, text(call, "state")?)))
        .collect()
}

#[test]
fn prove_audit_daemon() {
    let mut proof = Proof::begin(8);
    if sys::process::own_uid() != 0 {
        eprintln!("NOT RUN: only root may follow a daemon that shuts itself to others");
        return;
    }
    let gate = Gate::before(Target::start());
    gate.close();
    let points = points(&gate);
    let wanted = usize::try_from(proof.n())
        .unwrap_or(usize::MAX)
        .min(points.len());
    let (mut receipts, mut revoked) = (Vec::new(), Vec::new());
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for turn in 0..wanted {
        let point = points.get(turn * points.len() / wanted).expect("a point");
        let rule = format!("inject={}:{}:when={}", point.call, point.kind, point.nth);
        let left = live(
            &gate,
            &format!("/w/{turn}"),
            &["-e".to_owned(), rule.clone()],
        );
        receipts.extend(left.receipt);
        revoked.extend(left.revoked);
        *kinds.entry(format!("at {}", point.call)).or_default() += 1;
        let report = gate.world.run(["audit", "verify", "--json"]);
        if report.code() != Some(0) {
            wrong.push(format!("{rule}: {report:?}"));
        }
    }

    let daemon = gate.open_daemon();
    let states = states(&gate);
    let received = gate.target.requests();
    let unrecorded = received.iter().filter(|request| {
        let key = request.idempotency_key().expect("every write has its key");
        !states.contains_key(key)
    });
    let unrecorded = unrecorded.count();
    let stored: Vec<_> = ledger::Records::open(&gate.world.home().audit())
        .expect("a log")
        .map(|record| record.expect("a record that can be read").1)
        .collect();
    let log: BTreeMap<u64, String> = stored
        .iter()
        .map(|stored| (stored.header.seq, stored.id.to_string()))
        .collect();
    let missing = |seq: &&u64| {
        let mut all = stored.iter();
        !all.any(|stored| stored.header.seq == **seq && stored.header.kind == Kind::Revoked)
    };
    let revocations_lost = revoked.iter().filter(missing).count();
    let lost = receipts
        .iter()
        .filter(|(seq, id)| log.get(seq) != Some(id))
        .count();
    drop(daemon);

    proof.row("points", wanted);
    proof.row("points there are", points.len());
    for (kind, count) in kinds {
        proof.row(&kind, count);
    }
    proof.row("calls that reached the target", received.len());
    proof.row("of these without a durable attempt", unrecorded);
    proof.row("answers acknowledged to the agent", receipts.len());
    proof.row("of these not in the log", lost);
    proof.row("revocations acknowledged to the operator", revoked.len());
    proof.row("of these not in the log", revocations_lost);
    proof.row("false alarms of verify", wrong.len());
    proof.end();
    assert_eq!((unrecorded, lost, revocations_lost), (0, 0, 0));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!received.is_empty() && !receipts.is_empty());
}

/// Tells whether a thread of the daemon is held by whoever follows it.
fn is_held(daemon: &Held, thread: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/task/{thread}/stat", daemon.pid()));
    // The state stands behind the name (proc(5)), which is ours and has no bracket.
    stat.is_ok_and(|stat| stat.contains(") t "))
}

/// Returns why the agent's channel is shut, which the gate answers from memory.
fn shut(agent: &mut Agent) -> Option<String> {
    let id = agent.request("tools/call", &json!({"name": "channels", "arguments": {}}));
    let answer = agent.answer(id, Deadline::usual()).expect("an answer");
    let channel = &answer["result"]["structuredContent"]["channels"][0];
    channel["closed"].as_str().map(str::to_owned)
}

#[test]
fn while_the_disk_hangs_nothing_leaves_operators_look_and_a_revocation_holds_at_once() {
    if sys::process::own_uid() != 0 {
        eprintln!("NOT RUN: only root may follow a daemon that shuts itself to others");
        return;
    }
    let gate = Gate::before(Target::start());
    gate.close();
    let daemon = gate.open_daemon();
    let mut agent = Agent::open(&gate.world);
    assert_eq!(refused(&agent.call("GET", "/r/1")), None);
    let revoke = json!({"verb": "revoke", "reason": "test",
        "scope": {"scope": "run", "session": gate.only_run()}});
    let committer = committer(&daemon);
    let hours = [
        "-e".to_owned(),
        "inject=fdatasync:delay_enter=3600000000".to_owned(),
    ];
    let mut strace = follow(&gate, &committer, &hours);

    let call = agent.send("GET", "/r/2");
    wait_until("the disk to hang", Deadline::usual(), || {
        is_held(&daemon, &committer)
    });
    let mut line = Line::open(&gate.world);
    let revoked = thread::spawn(move || line.say(&revoke));
    wait_until("the gate to know", Deadline::usual(), || {
        shut(&mut agent).as_deref() == Some("revoked")
    });
    drop(gate.world.run(["status"]).expect_code(0));
    drop(gate.world.run(["sessions", "list"]).expect_code(0));
    assert!(is_held(&daemon, &committer), "the disk hangs all the while");
    assert_eq!(gate.target.count(), 1, "nothing leaves without its record");

    // The disk goes on.
    let mut end = gate.world.command("sh");
    end.args(["-c", &format!("kill -TERM {}", strace.pid())]);
    drop(
        gate.world
            .finish(&mut end, b"", Deadline::usual())
            .expect_code(0),
    );
    strace.wait(Deadline::usual());
    let revoked = revoked.join().expect("an answer");
    assert!(revoked["done"]["seq"].is_u64(), "{revoked:#}");
    let answer = agent.answer(call, Deadline::usual()).expect("an answer");
    let withdrawn = &answer["result"]["structuredContent"]["withdrawn"];
    assert_eq!(withdrawn["nothing_left"], true, "{answer:#}");
    assert_eq!(refused(&agent.call("GET", "/r/3")), Some("revoked"));
    assert_eq!(gate.target.count(), 1, "it left behind the revocation");
    drop(agent);
    drop(daemon);
}
