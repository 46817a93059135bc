//! What a call asks for, and the proofs it gathers on its way through the gate.

use model::{
    CallId, ConnectionId, Denial, Digest, Foreign, NotDurable, OutcomeBody, RequestKey, SecretName,
    Seq, SessionId, Target, Ticket,
};
use tokio_util::sync::CancellationToken;

/// One call, before anything is decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The call's own id.
    pub call: CallId,
    /// The run that asks.
    pub session: SessionId,
    /// The connection that delivered it.
    pub connection: ConnectionId,
    /// What it acts on.
    pub target: Target,
    /// Where the secret may go, as sealed.
    pub destination: Foreign,
    /// The secret it would use.
    pub secret: Option<SecretName>,
    /// Digest of everything the agent chose.
    pub arguments: Digest,
    /// The id it carries to the remote side.
    pub key: Option<RequestKey>,
    /// Whether it can change anything outside.
    pub is_write: bool,
}

/// A call that is queued for the log and may not do anything yet.
#[derive(Debug)]
#[must_use = "an attempt that nobody waits for stays open in the log"]
pub struct Attempted {
    pub(crate) ask: Ask,
    pub(crate) ticket: Ticket,
    pub(crate) cancel: CancellationToken,
}

impl Attempted {
    /// Waits until the attempt is on disk.
    ///
    /// # Errors
    /// It will never be; hand the error to [`Gate::unrecorded`](crate::Gate::unrecorded).
    pub async fn durable(self) -> Result<Permit, (CallId, NotDurable)> {
        let call = self.ask.call;
        let receipt = self.ticket.await.map_err(|error| (call, error))?;
        Ok(Permit {
            ask: self.ask,
            attempt_seq: receipt.seq,
            cancel: self.cancel,
        })
    }
}

/// Proof that the attempt is on disk: a connection may be opened, but nothing of the request may leave.
#[derive(Debug)]
#[must_use = "a permit is either cleared or withdrawn"]
pub struct Permit {
    pub(crate) ask: Ask,
    pub(crate) attempt_seq: Seq,
    pub(crate) cancel: CancellationToken,
}

impl Permit {
    /// Returns the call it was made for.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.ask.call
    }

    /// Returns the place of the attempt in the log.
    #[must_use]
    pub const fn attempt_seq(&self) -> Seq {
        self.attempt_seq
    }

    /// Returns what is cancelled when the call's authority is taken away.
    #[must_use]
    pub const fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

/// Proof that the gate was open for this call at its place in the log: its bytes may leave, now.
#[derive(Debug)]
#[must_use = "a cleared call must be settled, or it stays in flight for ever"]
pub struct Cleared {
    pub(crate) ask: Ask,
    pub(crate) attempt_seq: Seq,
    pub(crate) cancel: CancellationToken,
}

impl Cleared {
    /// Returns the call it was made for.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.ask.call
    }

    /// Remembers how it is settled.
    #[must_use]
    pub fn settled_by(&self, outcome: &OutcomeBody) -> Settled {
        Settled {
            ask: self.ask.clone(),
            attempt_seq: self.attempt_seq,
            outcome: outcome.clone(),
        }
    }

    /// Returns the request id that must go out with it.
    #[must_use]
    pub const fn key(&self) -> Option<&RequestKey> {
        self.ask.key.as_ref()
    }

    /// Returns what is cancelled when the call's authority is taken away.
    #[must_use]
    pub const fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

/// How a call was settled, for whoever must say later that its answer did not arrive.
#[derive(Debug)]
pub struct Settled {
    pub(crate) ask: Ask,
    pub(crate) attempt_seq: Seq,
    pub(crate) outcome: OutcomeBody,
}

/// A refusal, with the claim on its record.
#[derive(Debug)]
#[must_use = "the answer may go to the agent only when the refusal is on disk"]
pub struct Refused {
    /// Why.
    pub why: Denial,
    /// Which call.
    pub call: CallId,
    /// Its record; none where it was counted with earlier ones of the same kind.
    pub ticket: Option<Ticket>,
}
