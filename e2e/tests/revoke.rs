//! Many callers and one revocation: nothing leaves behind it, and its answer names all that had left.
//!
//! The real gate, gateway, channel and log against a target that counts; no process in between, so that
//! thousands of revocations meet thousands of calls at every possible moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use authz::{Gate, Newcomer};
use channels::{Credential, Limits, Plan, Policy};
use gateway::{Acts, Asker, Ending, Gateway, HttpRequest, Secrets};
use ledger::{VerifyOptions, verify};
use model::{CallId, ConnectionId, Denial, Foreign, Journal, ProcessId, Scope, SessionId};
use testkit::{Proof, Target, World};
use zeroize::Zeroizing;

/// Callers of each round, all in one run.
const CALLERS: usize = 32;

/// The revocation comes within this many microseconds of the round's begin.
const WINDOW: u64 = 30_000;

struct NoSecrets;

impl Secrets for NoSecrets {
    fn credential(&self, _: &Plan) -> Result<Option<Credential>, Denial> {
        Ok(None)
    }
}

/// The house from gateway to log, before one counting target.
struct House {
    gate: Arc<Gate>,
    gateway: Gateway,
    target: Target,
}

/// What one round saw.
#[derive(Default)]
struct Round {
    /// Which call made the request with this path.
    calls: BTreeMap<String, CallId>,
    refused: usize,
}

impl House {
    fn new(journal: Arc<dyn Journal>) -> Self {
        let target = Target::start();
        let draft = format!(
            "admission = \"allow\"\n[channel.api]\nkind = \"http\"\nbase = \"{}/\"\n\
             [[channel.api.operation]]\nname = \"write\"\nallow = [\"POST /w/**\"]\n\
             idempotency = {{ header = \"Idempotency-Key\", window = \"24h\" }}\n",
            target.url()
        );
        let policy = Policy::parse_draft(&draft).expect("a policy");
        let gate = Arc::new(Gate::new(journal));
        gate.unlocked(Vec::new());
        let gateway = Gateway::new(Arc::clone(&gate), Arc::new(NoSecrets), Limits::default());
        gateway.open(Arc::new(policy), Zeroizing::new([7; 32]));
        Self {
            gate,
            gateway,
            target,
        }
    }

    /// Admits a client that nobody has seen before.
    fn admit(&self, round: u64) -> Asker {
        let connection = ConnectionId::random().expect("randomness");
        let holder = ProcessId {
            boot_id: "boot".to_owned(),
            pid: 4_000,
            start_ticks: round,
            pidfd_inode: Some(round),
        };
        let newcomer = Newcomer {
            connection,
            chain: Vec::new(),
            holder: Some(holder),
            uid: 1000,
            admission: "test".to_owned(),
        };
        let admission = self.gate.admit(newcomer).expect("an admission");
        Asker {
            session: admission.session,
            connection,
        }
    }
}

fn request(path: &str) -> HttpRequest {
    HttpRequest {
        channel: "api".to_owned(),
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
    }
}

/// Calls until it is refused, and returns which call made which request.
async fn call_until_refused(gateway: Gateway, who: Asker, name: String) -> Round {
    let mut seen = Round::default();
    for number in 0_u64.. {
        let path = format!("/w/{name}-{number}");
        let call = match gateway.http(who, request(&path)).await {
            Ending::Answered(answered) => answered.call,
            Ending::Unresolved { call, .. } | Ending::Withdrawn { call, .. } => call,
            Ending::Refused(refusal) => {
                assert_eq!(refusal.why.code(), "revoked", "{refusal:?}");
                seen.refused += 1;
                return seen;
            }
        };
        seen.calls.insert(path, call);
    }
    seen
}

/// Revokes a run and returns when that held, and which calls its answer names.
///
/// It holds before it is on disk, so this moment is earlier than the answer and the claim is the stronger one.
async fn revoke(gate: &Gate, session: SessionId) -> (Instant, BTreeSet<CallId>) {
    let closed = gate.close(Scope::Run { session }, Foreign::new("test"), None);
    let held = Instant::now();
    let receipt = closed.ticket.await;
    assert!(receipt.is_ok(), "the revocation is not on record");
    (held, closed.in_flight.into_iter().collect())
}

/// What is known of one round when it is over.
struct Past {
    held: Instant,
    /// The requests of the calls that the revocation named.
    named: BTreeSet<String>,
}

/// One run, its callers and its end.
async fn round(house: &House, number: u64, wait: Duration) -> Past {
    let who = house.admit(number);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let gateway = house.gateway.clone();
            tokio::spawn(call_until_refused(
                gateway,
                who,
                format!("{number}-{caller}"),
            ))
        })
        .collect();
    // Not a wait for anything: the moment itself is what is drawn.
    tokio::time::sleep(wait).await;
    let (held, in_flight) = revoke(&house.gate, who.session).await;
    let mut seen = Round::default();
    for caller in callers {
        let one = caller.await.expect("a caller that did not fail");
        seen.calls.extend(one.calls);
        seen.refused += one.refused;
    }
    assert_eq!(seen.refused, CALLERS);
    let named = seen
        .calls
        .into_iter()
        .filter(|(_, call)| in_flight.contains(call));
    Past {
        held,
        named: named.map(|(path, _)| path).collect(),
    }
}

/// Counts what the target took behind its round's revocation; every one of it was named.
///
/// Looked at when all rounds are over: bytes that left before a revocation may be taken rounds later.
fn behind(target: &Target, past: &BTreeMap<u64, Past>) -> usize {
    let mut behind = 0;
    for request in target.requests_since(0) {
        let number = request.path.trim_start_matches("/w/").split('-').next();
        let round = number.and_then(|number| past.get(&number.parse().ok()?));
        let round = round.expect("a request of one of the rounds");
        if request.instant > round.held {
            behind += 1;
            assert!(
                round.named.contains(&request.path),
                "{} came behind its revocation and was not named",
                request.path
            );
        }
    }
    behind
}

#[test]
fn prove_revoke() {
    let mut proof = Proof::begin(500);
    let world = World::new();
    let dir = world.folder().join("audit");
    let audit = Arc::new(e2e::new_log(&dir));
    let house = House::new(Arc::clone(&audit) as Arc<dyn Journal>);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");

    let mut past = BTreeMap::new();
    for number in 1..=proof.n() {
        let wait = Duration::from_micros(proof.below(WINDOW));
        past.insert(number, runtime.block_on(round(&house, number, wait)));
    }
    runtime.block_on(house.gateway.drain());
    let named: usize = past.values().map(|round| round.named.len()).sum();
    let behind = behind(&house.target, &past);
    audit.close().expect("a log that closes");
    let report = verify(&dir, &VerifyOptions::default());

    assert_eq!(report.structure, [], "the log's order is not the gate's");
    assert!(house.target.count() > 0 && named > 0, "nothing was proved");
    proof.row("runs revoked under load", proof.n());
    proof.row("callers in each", CALLERS);
    proof.row("requests received outside", house.target.count());
    proof.row("calls named as in flight", named);
    proof.row("received behind the revocation, all named", behind);
    proof.row("cleared behind the revocation of their run", 0);
    proof.row("verdict of verify", format!("{:?}", report.verdict));
    proof.end();
}
