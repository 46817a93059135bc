//! A real gate over a journal in memory, and plans for a server of ours.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use authz::{Ask, Cleared, Gate, Newcomer, Permit};
use model::{
    CallId, ConnectionId, Digest, Entry, Foreign, Journal, LogId, OutcomeBody, ProcessId, Receipt,
    RequestKey, Scope, Secret, SessionId, Ticket,
};

use crate::{Credential, HttpAsk, Limits, Plan, Policy, Seal, Sent, connect};

pub(super) const SECRET: &str = "canary-Q7-s3cret";

#[derive(Default)]
struct Memory(Mutex<u64>);

impl Journal for Memory {
    fn push(&self, _: Entry) -> Ticket {
        let mut seq = self.0.lock().unwrap();
        *seq += 1;
        let (ticket, stub) = Ticket::new(*seq);
        stub.settle(Ok(Receipt {
            log_id: LogId::from_bytes([0; 32]),
            seq: *seq,
            id: Digest::from_bytes([0; 32]),
        }));
        ticket
    }
}

pub(super) struct World {
    gate: Gate,
    session: SessionId,
    next: AtomicU8,
}

impl World {
    pub(super) fn new() -> Self {
        let gate = Gate::new(Arc::new(Memory::default()));
        gate.unlocked(Vec::new());
        gate.runs_wait(false);
        let holder = ProcessId {
            boot_id: "boot".into(),
            pid: 10,
            start_ticks: 10,
            pidfd_inode: None,
        };
        let newcomer = Newcomer {
            connection: ConnectionId::from_bytes([1; 10]),
            chain: Vec::new(),
            holder: Some(holder),
            uid: 1000,
            admission: "test".into(),
        };
        let session = gate.admit(newcomer).unwrap().session;
        Self {
            gate,
            session,
            next: AtomicU8::new(1),
        }
    }

    pub(super) async fn permit(&self, plan: &Plan) -> Permit {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let ask = Ask {
            call: CallId::from_bytes([number; 10]),
            session: self.session,
            connection: ConnectionId::from_bytes([1; 10]),
            target: plan.target().clone(),
            destination: Foreign::new(plan.destination().to_string()),
            secret: plan.secret().cloned(),
            arguments: plan.arguments(),
            key: plan
                .idempotency_header()
                .map(|_| RequestKey("key-1".to_owned())),
            is_write: plan.is_write(),
        };
        self.gate.attempt(ask).unwrap().durable().await.unwrap()
    }

    pub(super) fn clear(&self, permit: Permit) -> Cleared {
        self.gate.clear(permit).unwrap()
    }

    pub(super) const fn run(&self) -> SessionId {
        self.session
    }

    /// Ends an answered call, so that it is no longer under way.
    pub(super) fn settle(&self, cleared: Cleared) {
        let answered = OutcomeBody::Answered {
            status: 200,
            delivered: None,
            remote_id: None,
        };
        drop(self.gate.settle(cleared, answered));
    }

    pub(super) fn revoke(&self) {
        let session = self.session;
        drop(
            self.gate
                .close(Scope::Run { session }, Foreign::new("test"), None),
        );
    }

    /// The whole way of one call.
    pub(super) async fn call(&self, plan: &Plan, limits: Limits) -> Sent {
        let permit = self.permit(plan).await;
        let mut connection = connect(&permit, plan, &limits).await.unwrap();
        let cleared = self.clear(permit);
        connection.send(&cleared, Some(credential(plan))).await
    }
}

pub(super) fn credential(plan: &Plan) -> Credential {
    let destinations = [plan.destination().clone()];
    let value = Secret::new(SECRET.as_bytes().to_vec());
    let seal = Seal {
        value: &value,
        destinations: &destinations,
        header: "authorization",
    };
    match plan.credential(&seal) {
        Ok(credential) => credential,
        Err(denial) => panic!("{denial:?}"),
    }
}

pub(super) fn policy_for(scheme: &str, address: SocketAddr, more: &str) -> Policy {
    let text = format!(
        r#"
[channel.builds]
kind = "http"
base = "{scheme}://{address}/api"
secret = "token"
{more}
[[channel.builds.operation]]
name = "read"
allow = ["GET /builds/*", "HEAD /builds/*"]
[[channel.builds.operation]]
name = "force"
allow = ["POST /force", "GET /force"]
idempotency = {{ header = "Idempotency-Key", window = "24h" }}
job = {{ id = "/result/0" }}
"#
    );
    Policy::parse_draft(&text).unwrap()
}

pub(super) fn ask(method: &str, path: &str) -> HttpAsk {
    HttpAsk {
        channel: "builds".to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
    }
}

pub(super) fn get(address: SocketAddr) -> Plan {
    policy_for("http", address, "")
        .plan(ask("GET", "/builds/1"))
        .unwrap()
}

pub(super) fn post(address: SocketAddr) -> Plan {
    let mut ask = ask("POST", "/force");
    ask.body = Some(b"{\"a\":1}".to_vec());
    policy_for("http", address, "").plan(ask).unwrap()
}

/// Long enough for a loaded machine to answer, short enough for a test that waits for its end.
pub(super) fn short() -> Limits {
    Limits {
        connect: Duration::from_millis(1000),
        head: Duration::from_millis(1000),
        whole: Duration::from_millis(1500),
        answer_bytes: 1000,
    }
}

pub(super) fn patient() -> Limits {
    Limits {
        answer_bytes: 1000,
        ..Limits::default()
    }
}
