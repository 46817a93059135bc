//! The gateway: one policy, one gate, and every call from its attempt to its outcome.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use authz::{Closed, Gate, Refused};
use channels::{Channel, Credential, Kept, Plan, Policy};
use model::{CallId, Denial, Foreign, Operator, Receipt, Scope, SessionId, Unsettled, Withdrawal};
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

use crate::{
    Acts, Asker, ChannelShown, Ending, HttpRequest, OperationShown, Refusal, act,
    advice::what_to_do, losses::Losses, undelivered::Undelivered,
};

/// How long calls in flight may go on after their client was lost, where the channel lets them finish.
pub const GRACE: Duration = Duration::from_secs(10);

/// Gives a secret for one use, if it is sealed for it.
pub trait Secrets: Send + Sync {
    /// Returns the credential that this plan needs; none if it needs none.
    ///
    /// # Errors
    /// The vault is locked, or the secret is missing or sealed for another destination or header.
    fn credential(&self, plan: &Plan) -> Result<Option<Credential>, Denial>;
}

/// What opens and shuts with the vault.
pub(crate) struct Open {
    pub(crate) policy: Arc<Policy>,
    /// From which request ids are derived.
    pub(crate) id_secret: Zeroizing<[u8; 32]>,
    /// Connections that were opened under it.
    pub(crate) kept: Kept,
}

pub(crate) struct Inner {
    pub(crate) gate: Arc<Gate>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) open: RwLock<Option<Arc<Open>>>,
    pub(crate) losses: Losses,
    pub(crate) answered: Undelivered,
    pub(crate) limits: channels::Limits,
    /// Owns every call's task until it has ended.
    tasks: TaskTracker,
}

/// Makes calls for agents. Clones share everything.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

impl Gateway {
    /// Returns a gateway behind `gate`; it knows no channel until it is [opened](Self::open).
    #[must_use]
    pub fn new(gate: Arc<Gate>, secrets: Arc<dyn Secrets>, limits: channels::Limits) -> Self {
        let inner = Inner {
            gate,
            secrets,
            open: RwLock::new(None),
            losses: Losses::default(),
            answered: Undelivered::default(),
            limits,
            tasks: TaskTracker::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Takes the policy that the vault holds, and the secret that request ids are derived from.
    pub fn open(&self, policy: Arc<Policy>, id_secret: Zeroizing<[u8; 32]>) {
        self.inner
            .gate
            .runs_wait(policy.admission() == channels::Admission::Ask);
        self.set(Some(Arc::new(Open {
            policy,
            id_secret,
            kept: Kept::default(),
        })));
    }

    /// Takes authority away, as [`Gate::close`] does, and with it the connections that were opened by it.
    pub fn close(&self, scope: Scope, reason: Foreign, by: Option<Operator>) -> Closed {
        let closed = self.inner.gate.close(scope, reason, by);
        // Those of other runs and channels too: opening them again costs little, and finding out which they are
        // would have to be right.
        if let Some(open) = self.inner.opened() {
            open.kept.close();
        }
        closed
    }

    /// Forgets policy and id secret: the vault is locked.
    pub fn shut(&self) {
        self.set(None);
    }

    fn set(&self, open: Option<Arc<Open>>) {
        *self
            .inner
            .open
            .write()
            .unwrap_or_else(PoisonError::into_inner) = open;
    }

    /// Tells every call of the run that its client is gone: each ends within its channel's grace.
    pub fn client_lost(&self, session: SessionId) {
        self.inner.losses.tell(session);
    }

    /// Forgets what is remembered of a run that has ended.
    pub fn ended(&self, session: SessionId) {
        self.inner.losses.forget(session);
        if let Some(open) = self.inner.opened() {
            open.kept.close_of(session);
        }
    }

    /// Waits until every call under way has ended. Calls cannot be made afterwards.
    pub async fn drain(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    pub(crate) fn opened(&self) -> Option<Arc<Open>> {
        self.open
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Tells the refusal to the agent, once it is on disk.
    pub(crate) async fn refused(refused: Refused) -> Ending {
        let receipt: Option<Receipt> = match refused.ticket {
            Some(ticket) => ticket.await.ok(),
            None => None,
        };
        let what_to_do = what_to_do(&refused.why);
        Ending::Refused(Refusal {
            call: refused.call,
            why: refused.why,
            what_to_do,
            receipt,
        })
    }
}

impl Acts for Gateway {
    fn channels(&self, who: Asker) -> Vec<ChannelShown> {
        let Some(open) = self.inner.opened() else {
            return Vec::new();
        };
        let shown = |channel: &Channel| ChannelShown {
            closed: self.inner.gate.shut_for(who.session, channel.name()),
            ..shown(channel)
        };
        open.policy.channels().iter().map(shown).collect()
    }

    async fn http(&self, who: Asker, request: HttpRequest) -> Ending {
        let Ok(call) = CallId::random() else {
            return Ending::Withdrawn {
                call: CallId::from_bytes([0; 10]),
                proof: Withdrawal::NeverCleared,
                why: "the operating system has no randomness to give".to_owned(),
                receipt: None,
            };
        };
        let inner = Arc::clone(&self.inner);
        // A task of its own: whoever asked may go away, the call comes to its recorded end all the same. It is
        // large, and in a box it is moved once.
        let run = Box::pin(async move { act::http(&inner, who, call, request).await });
        let task = self.inner.tasks.spawn(run);
        // The task ends early only with the daemon, whose next start records the call as unresolved.
        let unresolved = Ending::Unresolved {
            call,
            why: Unsettled::DaemonEnded,
            receipt: None,
        };
        task.await.unwrap_or(unresolved)
    }

    fn delivered(&self, _: Asker, call: CallId, reached: bool) {
        let Some(answered) = self.inner.answered.take(call) else {
            return;
        };
        if !reached {
            // The answer is known here and nowhere else: whoever looks for it is told so. Nobody waits
            // for this record; it goes to disk with the next one.
            drop(self.inner.gate.undelivered(answered));
        }
    }

    fn turned_away(&self, who: Asker, why: Denial) {
        let Ok(call) = CallId::random() else { return };
        let nothing = HttpRequest {
            channel: String::new(),
            method: String::new(),
            path: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        };
        let ask = act::unplanned(who, call, &nothing);
        drop(self.inner.gate.turn_away(&ask, why));
    }
}

fn shown(channel: &Channel) -> ChannelShown {
    let operation = |operation: &channels::Operation| OperationShown {
        name: operation.name().to_string(),
        allow: operation.allow().iter().map(ToString::to_string).collect(),
        idempotent: operation.idempotency_header().is_some(),
    };
    ChannelShown {
        name: channel.name().clone(),
        kind: channel.kind(),
        base: channel.base().to_string(),
        closed: None,
        operations: channel.operations().iter().map(operation).collect(),
    }
}
