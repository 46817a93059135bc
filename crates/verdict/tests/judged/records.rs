//! What launch records and the log add: runs that are gone though their wire is open.

use std::collections::BTreeMap;

use model::{ChainLink, ConnectionId, LaunchRecord, LinkRole, SessionId, SessionState, Wall};
use sys::process::Handle;
use verdict::{AuthorityLevel, Confidence, LogFacts, SessionFact, Suggest, Verdict};

use crate::scene::{Judged, Scene, evidence, wait_until};

/// A harness that runs the client as its worker: the worker holds the wire, as in a real agent.
struct Agent {
    scene: Scene,
    worker: Handle,
    record: LaunchRecord,
}

impl Agent {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let harness = ["sh", "-c", "python3 \"$0\" \"$1\"; true"];
        let scene = Scene::start_in(folder, "pipes", &harness);
        let shim = Handle::open(scene.server()).unwrap();
        let worker = Handle::open(shim.stat().ppid).unwrap();
        let above = Handle::open(scene.client()).unwrap();
        assert_eq!(worker.stat().ppid, scene.client());
        let link = |handle: &Handle, role| ChainLink {
            process: handle.describe().unwrap(),
            role,
        };
        let record = LaunchRecord {
            schema: LaunchRecord::SCHEMA.to_owned(),
            connection: ConnectionId::from_bytes([1; 10]),
            session: SessionId::from_bytes([2; 10]),
            session_seq: 1,
            chain: vec![
                link(&shim, LinkRole::Shim),
                link(&worker, LinkRole::Holder),
                link(&above, LinkRole::Above),
            ],
            lost: Vec::new(),
            connected_at: Wall::from_millis(1),
            transport_closed_at: None,
            revoked_at: None,
            children: Vec::new(),
        };
        Self {
            scene,
            worker,
            record,
        }
    }

    fn kill_harness(&mut self) {
        self.scene.crash();
        let harness = self.scene.client();
        wait_until(|| self.worker.stat_now().unwrap().ppid != harness);
    }

    fn worker(&self) -> u32 {
        self.worker.id().pid
    }

    fn judge(&self, log: &LogFacts) -> Judged {
        Judged::of(&[], std::slice::from_ref(&self.record), log)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.worker.is_alive().unwrap_or(false) {
            let pid = self.worker().to_string();
            let _ = std::process::Command::new("kill")
                .args(["-KILL", &pid])
                .status();
        }
    }
}

fn log_with(session: SessionId, state: SessionState) -> LogFacts {
    LogFacts {
        read: true,
        sessions: BTreeMap::from([(session, SessionFact { state, since: None })]),
    }
}

#[test]
fn a_worker_whose_harness_died_is_a_logical_orphan_though_its_wire_is_open_and_its_twin_is_live() {
    let mut agent = Agent::start();
    let twin = Agent::start();
    agent.kill_harness();

    let judged = agent.judge(&LogFacts::default());
    let of_twin = twin.judge(&LogFacts::default());

    let found = judged.finding(agent.worker());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::LogicalOrphan, Confidence::Inferred)
    );
    assert_eq!(found.root.pid, agent.worker());
    assert!(
        found
            .members
            .iter()
            .any(|member| member.pid == agent.scene.server())
    );
    assert_eq!(found.session, Some(agent.record.session));
    let owner = found.owner.as_ref().unwrap();
    assert_eq!((owner.pid, owner.alive), (agent.scene.client(), false));
    assert_eq!(found.suggest, Suggest::Contain);
    let shim = agent.scene.server();
    let roots = judged
        .report
        .findings
        .iter()
        .filter(|one| one.root.pid == shim);
    assert_eq!(roots.count(), 0, "the shim is no finding of its own");
    let live = of_twin.finding(twin.scene.server());
    assert_eq!(
        (live.verdict, live.session),
        (Verdict::Live, Some(twin.record.session))
    );
}

#[test]
fn without_a_record_a_logical_orphan_is_not_asserted() {
    let mut agent = Agent::start();
    agent.kill_harness();

    let judged = agent.scene.judge();

    assert_eq!(judged.finding(agent.scene.server()).verdict, Verdict::Live);
}

#[test]
fn a_record_that_the_log_does_not_know_is_only_a_suspicion() {
    let mut agent = Agent::start();
    agent.kill_harness();
    let elsewhere = log_with(SessionId::from_bytes([9; 10]), SessionState::Live);

    let judged = agent.judge(&elsewhere);

    let found = judged.finding(agent.worker());
    assert_eq!(found.verdict, Verdict::LogicalOrphanSuspect);
    assert_eq!(found.suggest, Suggest::Report);
    assert!(evidence(found).contains("the log knows no run"));
}

#[test]
fn a_run_that_was_revoked_is_a_logical_orphan_even_while_its_client_lives() {
    let agent = Agent::start();

    let judged = agent.judge(&log_with(agent.record.session, SessionState::Revoked));

    let found = judged.finding(agent.scene.server());
    assert_eq!(found.verdict, Verdict::LogicalOrphan);
    assert_eq!(
        found.root.pid,
        agent.scene.server(),
        "the client may go on with other things"
    );
    assert!(found.owner.as_ref().unwrap().alive);
    assert!(found.authority.level >= AuthorityLevel::Refused);
}

#[test]
fn a_later_holder_of_a_recorded_number_is_named_another_and_left_alone() {
    let mut agent = Agent::start();
    agent.kill_harness();
    for link in &mut agent.record.chain {
        link.process.id.start_ticks -= 1;
        link.process.id.pidfd_inode = Some(1);
    }

    let judged = agent.judge(&LogFacts::default());

    let found = judged.finding(agent.worker());
    assert_eq!(found.verdict, Verdict::Recycled);
    assert_eq!(found.suggest, Suggest::Leave);
    assert!(found.session.is_none(), "no run is said to be its own");
}

#[test]
fn a_shim_whose_client_is_dead_by_record_is_proven_without_any_configuration() {
    let mut agent = Agent::start();
    let record = LaunchRecord {
        chain: agent.record.chain.iter().take(2).cloned().collect(),
        ..agent.record.clone()
    };
    agent.kill_harness();
    let pid = agent.worker().to_string();
    std::process::Command::new("kill")
        .args(["-KILL", &pid])
        .status()
        .unwrap();
    let shim = Handle::open(agent.scene.server()).unwrap();
    wait_until(|| shim.stat_now().unwrap().ppid != agent.worker());

    let judged = Judged::of(&[], &[record], &LogFacts::default());

    let found = judged.finding(agent.scene.server());
    assert_eq!(
        (found.verdict, found.confidence),
        (Verdict::OsOrphan, Confidence::Proven)
    );
    assert!(!found.owner.as_ref().unwrap().alive);
}
