//! One crash, from the ordinary session to the closed incident, with every claim checked on the way.

use std::io;

use model::IncidentId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    client::Write1,
    stage::{Client, READS, Ran, STALLED, Stage, answers, until},
    tell::Tell,
};

/// Where the write is when the client dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// On record, and no connection to the remote side can be established.
    BeforeSend,
    /// The remote side has it, and has not answered.
    AfterAccept,
}

/// What a point of the drill showed, as `lych.drill/v1` has it.
#[derive(Debug, Serialize)]
pub(super) struct Showed {
    point: &'static str,
    applicable: bool,
    answers: Map<String, Value>,
    expectation: &'static str,
    pub(super) met: bool,
    left: Vec<u32>,
}

impl Point {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::BeforeSend => "before_send",
            Self::AfterAccept => "after_accept",
        }
    }

    const fn channel(self) -> &'static str {
        match self {
            Self::BeforeSend => STALLED,
            Self::AfterAccept => READS,
        }
    }

    const fn expectation(self) -> &'static str {
        match self {
            Self::BeforeSend => {
                "nothing of the write reaches the remote side, and the record proves it"
            }
            Self::AfterAccept => {
                "the write is unresolved until the remote side is asked by its request id"
            }
        }
    }
}

/// The claims of one act, by name; all of them must hold.
#[derive(Default)]
struct Claims(Map<String, Value>);

impl Claims {
    fn add(&mut self, name: &str, holds: bool) {
        self.0.insert(name.to_owned(), json!(holds));
    }

    fn all_hold(&self) -> bool {
        self.0.values().all(|value| *value == json!(true))
    }
}

/// Plays one crash.
pub(super) fn play(stage: &mut Stage, point: Point, tell: &mut Tell) -> io::Result<Showed> {
    let mut claims = Claims::default();
    tell.heading(match point {
        Point::BeforeSend => "Crash 1: before the request leaves",
        Point::AfterAccept => "Crash 2: the remote side has the request, the answer has not come",
    });
    let write = Write1 {
        channel: point.channel().to_owned(),
        after: 3,
    };
    let mut crashed = stage.client(&format!("crash-{}", point.word()), Some(write))?;
    let twin = stage.client(&format!("twin-{}", point.word()), None)?;
    let call = in_flight(stage, point)?;
    tell.say(&format!(
        "A client (harness {}, agent worker {}) and its living twin ({}, {}) are at work.",
        crashed.pids.harness, crashed.pids.worker, twin.pids.harness, twin.pids.worker
    ));
    tell.say(&format!(
        "Its write {} is under way. Now the harness is killed with SIGKILL.",
        text(&call, "id")
    ));
    supervise::crash(&mut crashed.harness)?;

    let session = text(&call, "session_id");
    until("the run to be found abandoned", || {
        let shown = stage.json(&["sessions", "show", &session, "--json"]).ok()?;
        (shown.pointer("/session/state") == Some(&json!("abandoned"))).then_some(())
    })?;
    look(stage, &crashed, &twin, &session, tell, &mut claims)?;
    contain(stage, point, &crashed, &call, tell, &mut claims)?;
    after(stage, point, crashed, twin, &call, tell, &mut claims)
}

/// Waits until the write is where the point wants it, and returns it.
fn in_flight(stage: &Stage, point: Point) -> io::Result<Value> {
    if point == Point::AfterAccept {
        until("the remote side to have the write", || {
            stage
                .target
                .seen()
                .iter()
                .any(|seen| seen.method == "POST")
                .then_some(())
        })?;
    }
    let state = if point == Point::BeforeSend {
        "attempted"
    } else {
        "cleared"
    };
    until("the write to be on record", || {
        let listed = stage.json(&["activity", "list", "--json"]).ok()?;
        let calls = listed.get("calls")?.as_array()?;
        let hit = |call: &&Value| {
            call.get("state") == Some(&json!(state))
                && call.pointer("/target/method") == Some(&json!("POST"))
                && call.pointer("/target/channel") == Some(&json!(point.channel()))
        };
        calls.iter().find(hit).cloned()
    })
}

/// What is left over, and whose it is.
fn look(
    stage: &Stage,
    crashed: &Client,
    twin: &Client,
    session: &str,
    tell: &mut Tell,
    claims: &mut Claims,
) -> io::Result<()> {
    tell.say("What exactly is left over, and whose it is:");
    tell.ran("lych ps", &stage.run(&["ps"], None)?);
    let seen = stage.json(&["ps", "--all", "--json"])?;
    let finding = |pid: u32| {
        let findings = seen.get("findings")?.as_array()?;
        let has = |part: &Value| part.get("pid") == Some(&json!(pid));
        let is_in = |finding: &&Value| {
            finding.get("root").is_some_and(has)
                || finding
                    .get("members")
                    .and_then(Value::as_array)
                    .is_some_and(|all| all.iter().any(has))
        };
        findings.iter().find(is_in).cloned()
    };
    let verdict = |pid: u32| {
        finding(pid)
            .map(|finding| text(&finding, "verdict"))
            .unwrap_or_default()
    };
    let confidence = |pid: u32| {
        finding(pid)
            .map(|finding| text(&finding, "confidence"))
            .unwrap_or_default()
    };
    claims.add(
        "worker_is_a_logical_orphan",
        verdict(crashed.pids.worker) == "LOGICAL_ORPHAN",
    );
    claims.add(
        "worker_belongs_to_its_run",
        finding(crashed.pids.worker).and_then(|found| found.get("session").cloned())
            == Some(json!(session)),
    );
    claims.add(
        "server_is_a_proven_os_orphan",
        verdict(crashed.pids.server) == "OS_ORPHAN" && confidence(crashed.pids.server) == "proven",
    );
    let lives_for = |owner: u32| {
        let findings = seen.get("findings").and_then(Value::as_array);
        findings.is_some_and(|all| {
            all.iter().any(|finding| {
                finding.pointer("/owner/pid") == Some(&json!(owner))
                    && finding.get("verdict") == Some(&json!("LIVE"))
            })
        })
    };
    claims.add(
        "twins_are_live",
        verdict(twin.pids.server) == "LIVE"
            && lives_for(twin.pids.harness)
            && lives_for(twin.pids.worker),
    );
    tell.say("Can it still act? One of them closely:");
    let worker = crashed.pids.worker.to_string();
    tell.ran(
        &format!("lych inspect {worker}"),
        &stage.run(&["inspect", &worker], None)?,
    );
    Ok(())
}

/// Revoke, see a call refused, stop; then the server that never used the gate.
fn contain(
    stage: &Stage,
    point: Point,
    crashed: &Client,
    call: &Value,
    tell: &mut Tell,
    claims: &mut Claims,
) -> io::Result<()> {
    let session = text(call, "session_id");
    tell.say("Revoke, see a call refused, stop, in that order:");
    let contain = [
        "contain",
        "--session",
        &session,
        "--yes",
        "--reason",
        "drill: its harness was killed",
    ];
    let ran = stage.run(&contain, None)?;
    tell.contained(&format!("lych contain --session {session} --yes"), &ran);
    let incident = incident_of(&ran)?;
    let shown = stage.json(&["incident", "show", &incident, "--json"])?;
    claims.add(
        "own_next_call_was_refused_on_record",
        shown.pointer("/confirmation/kind") == Some(&json!("refused"))
            && shown.pointer("/confirmation/by") == Some(&json!("own_attempt"))
            && shown
                .pointer("/confirmation/seq")
                .is_some_and(Value::is_u64),
    );
    let time = |field: &str| {
        let row = shown.pointer("/rows/0").unwrap_or(&Value::Null);
        row.pointer(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let (lost, revoked) = (time("/client_lost/at"), time("/revoked_at"));
    // Times of one form (RFC 3339, UTC, milliseconds) sort as text.
    claims.add(
        "loss_and_revocation_are_two_times_on_record",
        lost.is_some() && revoked.is_some() && lost < revoked,
    );
    if point == Point::AfterAccept {
        claims.add(
            "not_contained_while_the_remote_side_is_unknown",
            ran.code == 3,
        );
        reconcile(stage, call, tell, claims)?;
        let again = stage.run(&["contain", "--incident", &incident, "--yes"], None)?;
        tell.contained(&format!("lych contain --incident {incident} --yes"), &again);
        claims.add("contained", again.code == 0);
    } else {
        claims.add("contained", ran.code == 0);
    }
    tell.say("The incident, as it is kept:");
    tell.ran(
        &format!("lych incident show {incident}"),
        &stage.run(&["incident", "show", &incident], None)?,
    );
    server(stage, crashed, tell, claims)
}

/// The remote side is asked by the request id, and what it says is put on record.
fn reconcile(stage: &Stage, call: &Value, tell: &mut Tell, claims: &mut Claims) -> io::Result<()> {
    let open = stage.run(&["reconcile", "list"], None)?;
    tell.say("What became of the write is not known here:");
    tell.ran("lych reconcile list", &open);
    let (id, key) = (text(call, "id"), text(call, "key"));
    claims.add("write_is_unresolved", open.stdout.contains(&id));
    let there = stage
        .target
        .seen()
        .iter()
        .filter(|seen| seen.key.as_deref() == Some(&key))
        .count();
    tell.say(&format!(
        "The remote side, asked by the request id {key}, has it {there} time(s)."
    ));
    claims.add("remote_side_has_it_once", there == 1);
    let evidence = format!("the deploy API lists request {key} once");
    let resolved = stage.run(
        &[
            "reconcile",
            "resolve",
            &id,
            "--as",
            "confirmed",
            "--evidence",
            &evidence,
        ],
        None,
    )?;
    tell.ran(
        &format!("lych reconcile resolve {id} --as confirmed --evidence …"),
        &resolved,
    );
    Ok(())
}

/// The third-party server beside it: identified, ended, and its own secret to be rotated.
fn server(stage: &Stage, crashed: &Client, tell: &mut Tell, claims: &mut Claims) -> io::Result<()> {
    tell.say("The third-party server never used this gate, so nothing can be refused to it:");
    let pid = crashed.pids.server.to_string();
    let ran = stage.run(
        &["contain", &pid, "--yes", "--reason", "drill: left over"],
        None,
    )?;
    tell.contained(&format!("lych contain {pid} --yes"), &ran);
    claims.add("server_is_partial_not_contained", ran.code == 3);
    let shown = stage.json(&["incident", "show", &incident_of(&ran)?, "--json"])?;
    claims.add(
        "its_own_secret_is_to_be_rotated",
        shown.to_string().contains("NOTES_API_TOKEN"),
    );
    Ok(())
}

/// Nothing of it is left, nothing else was touched, and the log says so to anyone.
fn after(
    stage: &mut Stage,
    point: Point,
    crashed: Client,
    twin: Client,
    call: &Value,
    tell: &mut Tell,
    claims: &mut Claims,
) -> io::Result<Showed> {
    let shown = stage.json(&["activity", "show", &text(call, "id"), "--json"])?;
    let state = shown
        .pointer("/call/state")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    claims.add(
        "write_is_accounted_for",
        state
            == if point == Point::BeforeSend {
                "withdrawn"
            } else {
                "reconciled"
            },
    );
    let posts = stage
        .target
        .seen()
        .iter()
        .filter(|seen| seen.method == "POST")
        .count();
    claims.add(
        "remote_side_saw_what_the_record_says",
        posts == usize::from(point == Point::AfterAccept),
    );
    let mut left = Vec::new();
    for pid in [crashed.pids.worker, crashed.pids.server] {
        if sys::process::Handle::open(pid).is_ok_and(|handle| handle.is_alive().unwrap_or(true)) {
            left.push(pid);
        }
    }
    claims.add("nothing_is_left", left.is_empty());
    let before = answers(&twin.folder);
    claims.add(
        "twin_still_works",
        until("the twin's next answer", || {
            (answers(&twin.folder) > before).then_some(())
        })
        .is_ok(),
    );
    tell.say("The history, checked without any key:");
    let verify: Ran = stage.run(&["audit", "verify"], None)?;
    tell.ran("lych audit verify", &verify);
    claims.add("log_is_intact", verify.code == 0);
    drop(crashed);
    stage.dismiss(twin)?;
    let met = claims.all_hold();
    tell.claims(&claims.0);
    Ok(Showed {
        point: point.word(),
        applicable: true,
        answers: std::mem::take(&mut claims.0),
        expectation: point.expectation(),
        met,
        left,
    })
}

/// Finds the incident's id where a person would: in what `contain` printed.
fn incident_of(ran: &Ran) -> io::Result<String> {
    let mut words = ran.stdout.split_whitespace();
    let id = words.find_map(|word| word.parse::<IncidentId>().ok());
    id.map(|id| id.to_string())
        .ok_or_else(|| io::Error::other(format!("no incident was opened: {}", ran.stderr)))
}

fn text(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
