//! What the tests of this room share: an authority that does as it is told, eyes that see `/proc`, and
//! programs to be ended.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use model::{
    CallId, CallState, ChannelName, Digest, Foreign, IncidentId, Known, Lost, LostBasis, Operator,
    Presence, ProcessId, ProcessRef, RequestKey, Scope, Seq, SessionId, SessionState, Target, Wall,
};
use supervise::Plan;
use sys::{clock::SystemClock, process::Handle};
use testkit::{Held, World};

use crate::{
    Authority, AuthorityLevel, CallFact, Confirmed, Desk, Ending, Eyes, IncidentError, Look,
    Opening, Place, Probed, Reach, Recorded, Refusal, Revocation, RunFact, Selection, Sight, Stage,
    Standing, Subject, Unanswered, Verification, preserve,
};

pub(crate) fn wall(seconds: u64) -> Wall {
    Wall::from_millis(1_772_334_000_000 + seconds * 1000)
}

pub(crate) fn operator() -> Operator {
    Operator {
        uid: 1000,
        login_uid: None,
        presence: Presence::Tty,
    }
}

/// An authority that knows one run and remembers what it was asked.
pub(crate) struct Fake {
    pub(crate) run: Option<RunFact>,
    pub(crate) calls: Vec<CallFact>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) probed: Probed,
    pub(crate) revoke_fails: bool,
    pub(crate) unrecorded: bool,
    pub(crate) away: bool,
    pub(crate) asked: Vec<String>,
    pub(crate) anchored: Vec<(String, bool)>,
    /// Looked at whenever a refusal is waited for: whoever is named here must live then.
    pub(crate) alive_at_confirm: BTreeMap<u32, bool>,
    pub(crate) watched: Vec<u32>,
}

impl Fake {
    /// Knows nobody.
    pub(crate) fn empty() -> Self {
        Self {
            run: None,
            calls: Vec::new(),
            refusal: None,
            probed: Probed::Otherwise("nothing was revoked".to_owned()),
            revoke_fails: false,
            unrecorded: false,
            away: false,
            asked: Vec::new(),
            anchored: Vec::new(),
            alive_at_confirm: BTreeMap::new(),
            watched: Vec::new(),
        }
    }

    /// Knows a run that was lost at second 100, and sees its own attempt refused.
    pub(crate) fn with_run(session: SessionId) -> Self {
        Self {
            run: Some(RunFact {
                session,
                state: SessionState::Lost,
                client: Known::unknown("not looked up"),
                client_reported: false,
                opened_at: wall(0),
                lost: Known::Yes(Some(Lost {
                    basis: LostBasis::HolderExited,
                    not_before: wall(100),
                    not_after: wall(100),
                    process: None,
                })),
                revoked_at: None,
            }),
            refusal: Some(Refusal {
                seq: 60,
                by: crate::RefusedBy::OwnAttempt,
            }),
            ..Self::empty()
        }
    }

    fn answer<T>(&mut self, asked: &str, value: T) -> Result<T, Unanswered> {
        self.asked.push(asked.to_owned());
        if self.away {
            return Err(Unanswered::Absent("it is away".to_owned()));
        }
        Ok(value)
    }
}

impl Authority for Fake {
    fn run_of(&mut self, _process: &ProcessId) -> Result<Option<SessionId>, Unanswered> {
        let session = self.run.as_ref().map(|run| run.session);
        self.answer("run_of", session)
    }

    fn session(&mut self, _id: SessionId) -> Result<Option<RunFact>, Unanswered> {
        let run = self.run.clone();
        self.answer("session", run)
    }

    fn calls(&mut self, _session: SessionId) -> Result<Vec<CallFact>, Unanswered> {
        let calls = self.calls.clone();
        self.answer("calls", calls)
    }

    fn revoke(&mut self, _scope: &Scope, _reason: &str) -> Result<Revocation, Unanswered> {
        if self.revoke_fails {
            return Err(Unanswered::Failed("the log is full".to_owned()));
        }
        let seq = (!self.unrecorded).then_some(50);
        self.answer(
            "revoke",
            Revocation {
                seq,
                at: wall(200),
                in_flight: Vec::new(),
                by: operator(),
            },
        )
    }

    fn refusal_after(
        &mut self,
        _session: SessionId,
        after: Seq,
        _at_most: Duration,
    ) -> Result<Option<Refusal>, Unanswered> {
        for pid in &self.watched {
            let alive = Handle::open(*pid).is_ok();
            self.alive_at_confirm.entry(*pid).or_insert(alive);
        }
        let refusal = self.refusal.filter(|refusal| refusal.seq > after);
        self.answer("refusal_after", refusal)
    }

    fn probe(&mut self, _session: SessionId) -> Result<Probed, Unanswered> {
        let probed = self.probed.clone();
        self.answer("probe", probed)
    }

    fn anchor(
        &mut self,
        _incident: IncidentId,
        step: &str,
        _sha256: Digest,
        late: bool,
    ) -> Result<Seq, Unanswered> {
        let seq = self.answer("anchor", 70)?;
        self.anchored.push((step.to_owned(), late));
        Ok(seq)
    }

    fn verify(&mut self) -> Result<Verification, Unanswered> {
        let json = serde_json::json!({"schema": "lych.verify/v1", "verdict": "intact_pinned"});
        let text = "intact and pinned\n".to_owned();
        self.answer("verify", Verification { json, text })
    }
}

/// Sees every process that `/proc` shows.
pub(crate) struct ProcEyes;

impl Eyes for ProcEyes {
    fn look(&mut self) -> io::Result<Look> {
        let pids = fs::read_dir("/proc")?.filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.parse::<u32>().ok()
        });
        let handles: Vec<Handle> = pids.filter_map(|pid| Handle::open(pid).ok()).collect();
        let sight = |handle: &Handle| {
            let ppid = handle.stat().ppid;
            let parent = handles.iter().find(|one| one.id().pid == ppid);
            Some(Sight {
                process: handle.describe().ok()?,
                parent: parent.map(|parent| parent.id().clone()),
            })
        };
        Ok(Look {
            observed_at: wall(150),
            complete: true,
            unreadable: 0,
            processes: handles.iter().filter_map(sight).collect(),
        })
    }

    fn is_in_use(&mut self, _process: &ProcessId) -> bool {
        false
    }
}

/// One test's incident: its world, its authority and its processes.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) authority: Fake,
    clock: SystemClock,
    eyes: ProcEyes,
}

impl Scene {
    pub(crate) fn new(authority: Fake) -> Self {
        Self {
            world: World::new(),
            authority,
            clock: SystemClock,
            eyes: ProcEyes,
        }
    }

    pub(crate) fn desk(&mut self) -> Desk<'_> {
        Desk {
            clock: &self.clock,
            authority: &mut self.authority,
            eyes: &mut self.eyes,
            operator: operator(),
        }
    }

    /// Starts a Python program that says when it is ready and then waits for signals.
    pub(crate) fn program(&self, setup: &str) -> Held {
        let script = format!(
            "import os, signal, subprocess, sys, time\n{setup}\nprint('ready', flush=True)\n\
             while True: signal.pause()\n"
        );
        let mut held = Held::start(
            self.world
                .command("python3")
                .args(["-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped()),
        );
        let mut line = String::new();
        BufReader::new(held.take_stdout().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        held
    }

    pub(crate) fn select(&mut self, pids: &[u32]) -> Selection {
        Selection {
            subjects: pids.iter().map(|pid| subject(*pid)).collect(),
            look: self.eyes.look().unwrap(),
            snapshot: b"{\"schema\":\"lych.snapshot/v1\"}\n".to_vec(),
            findings: b"[]\n".to_vec(),
            session: None,
            reason: Some("left over".to_owned()),
            opening: Opening::Contain,
        }
    }

    /// Takes all steps up to the confirmation.
    pub(crate) fn confirmed(&mut self, pids: &[u32]) -> Confirmed {
        let selection = self.select(pids);
        let home = self.world.home().clone();
        let desk = &mut self.desk();
        preserve(&home, selection, desk)
            .unwrap()
            .attribute(desk)
            .unwrap()
            .revoke("left over", desk)
            .unwrap()
            .confirm(Duration::ZERO, desk)
            .unwrap()
    }

    /// Takes all steps that are left.
    pub(crate) fn go_on(
        &mut self,
        stage: Stage,
        ending: &Ending,
    ) -> Result<Recorded, IncidentError> {
        let desk = &mut self.desk();
        let mut stage = stage;
        loop {
            stage = match stage {
                Stage::Preserved(now) => Stage::Attributed(now.attribute(desk)?),
                Stage::Attributed(now) => Stage::Revoked(now.revoke("left over", desk)?),
                Stage::Revoked(now) => Stage::Confirmed(now.confirm(Duration::ZERO, desk)?),
                Stage::Confirmed(now) => Stage::Terminated(now.terminate(ending, desk)?),
                Stage::Terminated(now) => Stage::Reconciled(now.reconcile(desk)?),
                Stage::Reconciled(now) => Stage::Recorded(now.record(desk)?),
                Stage::Recorded(done) => return Ok(done),
            };
        }
    }

    pub(crate) fn contain(&mut self, pids: &[u32], ending: &Ending) -> Recorded {
        let confirmed = self.confirmed(pids);
        self.go_on(Stage::Confirmed(confirmed), ending).unwrap()
    }
}

pub(crate) fn process(pid: u32) -> ProcessRef {
    Handle::open(pid).unwrap().describe().unwrap()
}

pub(crate) fn subject(pid: u32) -> Subject {
    let stat = Handle::open(pid).unwrap().stat().clone();
    Subject {
        finding: "f-1".to_owned(),
        verdict: "OS_ORPHAN".to_owned(),
        confidence: "proven".to_owned(),
        process: process(pid),
        observed_at: wall(150),
        started_at: Known::Yes(wall(1)),
        place: Known::Yes(Place {
            ppid: stat.ppid,
            pgid: stat.pgid,
            sid: stat.sid,
            stat: stat.state.letter().to_string(),
        }),
        server: Some("builds".into()),
        client: Known::unknown("its client is gone"),
        client_lost: Known::unknown("nobody saw it"),
        session_hint: None,
        reach: Reach {
            level: AuthorityLevel::NoneSeen,
            because: Vec::new(),
            secrets: Vec::new(),
            paths: Vec::new(),
        },
        standing: Standing::Endable,
    }
}

/// A write at this second and this place in the log.
pub(crate) fn call(number: u8, state: CallState, second: u64, seq: Seq) -> CallFact {
    let settled = matches!(state, CallState::Answered | CallState::Denied);
    CallFact {
        id: CallId::from_bytes([number; 10]),
        state,
        seq,
        attempted_at: wall(second),
        cleared_at: (state != CallState::Denied).then(|| wall(second)),
        settled_at: settled.then(|| wall(second + 1)),
        target: Known::Yes(Target {
            channel: ChannelName::try_from("builds".to_owned()).unwrap(),
            operation: None,
            method: "POST".into(),
            path: "/forceschedulers/x".into(),
        }),
        destination: Known::Yes(Foreign::new("https://ci.example.com/api/v2")),
        key: Some(Known::Yes(RequestKey("k1".to_owned()))),
        status: (state == CallState::Answered).then_some(Known::Yes(200)),
        remote_id: None,
        why: None,
        denied_seq: (state == CallState::Denied).then_some(seq + 1),
    }
}

pub(crate) fn brief() -> Ending {
    by(Plan {
        grace: Duration::from_millis(400),
        look_every: Duration::from_millis(50),
        ..Plan::gentle()
    })
}

/// Nobody is watched for who would start a process again.
pub(crate) const fn by(plan: Plan) -> Ending {
    Ending {
        plan,
        watch: Duration::ZERO,
    }
}

pub(crate) const fn gentle() -> Ending {
    by(Plan::gentle())
}
