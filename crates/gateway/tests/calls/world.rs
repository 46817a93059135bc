//! A gateway before a counting target, and a log in memory that says what was recorded.

use std::sync::{Arc, Mutex};

use authz::{Gate, Newcomer};
use channels::{Credential, Limits, Plan, Policy, Seal};
use gateway::{Acts, Asker, Ending, Gateway, HttpRequest, Secrets};
use model::{
    Body, ConnectionId, Denial, Digest, Entry, Foreign, Journal, Kind, LogId, ProcessId, Receipt,
    Scope, Secret, Ticket,
};
use testkit::{Deadline, Mode, Target, wait_until};
use zeroize::Zeroizing;

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) entries: Mutex<Vec<Entry>>,
    pub(crate) full: Mutex<bool>,
}

impl Journal for Memory {
    fn push(&self, entry: Entry) -> Ticket {
        if *self.full.lock().unwrap() {
            return Ticket::refused("the disk is full");
        }
        let mut entries = self.entries.lock().unwrap();
        entries.push(entry);
        let seq = entries.len() as u64;
        let (ticket, stub) = Ticket::new(seq);
        stub.settle(Ok(Receipt {
            log_id: LogId::from_bytes([0; 32]),
            seq,
            id: Digest::from_bytes([0; 32]),
        }));
        ticket
    }
}

impl Memory {
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let entries = self.entries.lock().unwrap();
        entries
            .iter()
            .filter(|entry| entry.call.is_some())
            .map(|entry| entry.kind)
            .collect()
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }
}

pub(crate) struct OneSecret {
    value: Secret,
    destination: String,
}

impl Secrets for OneSecret {
    fn credential(&self, plan: &Plan) -> Result<Option<Credential>, Denial> {
        let destinations = [self.destination.parse().unwrap()];
        let seal = Seal {
            value: &self.value,
            destinations: &destinations,
            header: "Authorization",
        };
        plan.credential(&seal).map(Some)
    }
}

pub(crate) struct World {
    pub(crate) target: Target,
    pub(crate) memory: Arc<Memory>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) gateway: Gateway,
    pub(crate) who: Asker,
    policy: Arc<Policy>,
}

pub(crate) fn world_with(extra: &str, sealed_for: Option<&str>) -> World {
    let target = Target::start();
    let memory = Arc::new(Memory::default());
    let gate = Arc::new(Gate::new(memory.clone()));
    let base = format!("http://{}", target.address());
    let secrets = OneSecret {
        value: Secret::new(b"s3cret".to_vec()),
        destination: sealed_for.unwrap_or(&base).to_owned(),
    };
    let policy = Policy::parse_draft(&format!(
        r#"
admission = "allow"
[channel.builds]
kind = "http"
base = "{base}"
secret = "token"
inject = {{ header = "Authorization", format = "Bearer {{secret}}" }}
{extra}
[[channel.builds.operation]]
name = "force"
allow = ["POST /force", "GET /health"]
idempotency = {{ header = "Idempotency-Key", window = "24h" }}
"#
    ))
    .unwrap();
    let gateway = Gateway::new(gate.clone(), Arc::new(secrets), Limits::default());
    let policy = Arc::new(policy);
    gateway.open(Arc::clone(&policy), Zeroizing::new([7; 32]));
    gate.unlocked(Vec::new());
    let who = admit(&gate, 1);
    World {
        target,
        memory,
        gate,
        gateway,
        who,
        policy,
    }
}

/// Admits a run of its own; its connection and its client are told by `number`.
pub(crate) fn admit(gate: &Gate, number: u8) -> Asker {
    let connection = ConnectionId::from_bytes([number; 10]);
    let holder = ProcessId {
        boot_id: "boot".into(),
        pid: number.into(),
        start_ticks: 10,
        pidfd_inode: None,
    };
    let admission = gate
        .admit(Newcomer {
            connection,
            chain: Vec::new(),
            holder: Some(holder),
            uid: 0,
            admission: "test".into(),
        })
        .unwrap();
    Asker {
        session: admission.session,
        connection,
    }
}

pub(crate) fn world() -> World {
    world_with("", None)
}

pub(crate) fn request(method: &str, path: &str) -> HttpRequest {
    HttpRequest {
        channel: "builds".into(),
        method: method.into(),
        path: path.into(),
        query: Vec::new(),
        headers: Vec::new(),
        body: (method == "POST").then(|| b"{}".to_vec()),
    }
}

impl World {
    /// Starts a call and leaves it to itself.
    pub(crate) fn begin(&self, method: &str, path: &str) -> tokio::task::JoinHandle<Ending> {
        let (gateway, who, request) = (self.gateway.clone(), self.who, request(method, path));
        tokio::spawn(async move { gateway.http(who, request).await })
    }

    /// Starts a call, leaves it to itself, and waits until the remote side has it and keeps its answer back.
    pub(crate) async fn held(&self, method: &str, path: &str) -> tokio::task::JoinHandle<Ending> {
        self.target.set_mode(Mode::Hold);
        let call = self.begin(method, path);
        self.until("the remote side to have it", |world| {
            !world.target.requests().is_empty()
        })
        .await;
        call
    }

    pub(crate) async fn until(&self, what: &'static str, is_so: impl Fn(&Self) -> bool) {
        // Looks on this thread, while the calls run on the others.
        tokio::task::block_in_place(|| wait_until(what, Deadline::usual(), || is_so(self)));
    }

    /// Applies the same policy once more.
    pub(crate) fn apply(&self) {
        let policy = Arc::clone(&self.policy);
        self.gateway.open(policy, Zeroizing::new([7; 32]));
    }

    /// Returns the request id that the first attempt on record has.
    pub(crate) fn recorded_key(&self) -> Option<String> {
        let entries = self.memory.entries.lock().unwrap();
        entries.iter().find_map(|entry| match &entry.body {
            Body::Attempt { key, .. } => key.as_ref().map(|key| key.0.clone()),
            _ => None,
        })
    }

    pub(crate) fn revoke(&self) -> Vec<model::CallId> {
        let scope = Scope::Run {
            session: self.who.session,
        };
        self.gate.close(scope, Foreign::new("test"), None).in_flight
    }
}
