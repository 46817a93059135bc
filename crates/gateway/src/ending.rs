//! What an agent asks for and every way in which it can end.

use std::future::Future;

use channels::Cut;
use model::{
    CallId, ChannelName, ConnectionId, Denial, Foreign, Receipt, SessionId, Unsettled, Withdrawal,
};

/// Who asks: which run, over which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The run.
    pub session: SessionId,
    /// The connection.
    pub connection: ConnectionId,
}

/// An HTTP action, as the agent words it. All of it is the agent's text and none of it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Which channel.
    pub channel: String,
    /// The method.
    pub method: String,
    /// The path below the channel's base.
    pub path: String,
    /// Query parameters, in order.
    pub query: Vec<(String, String)>,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Option<Vec<u8>>,
}

/// A channel, as an agent may see it: never a secret's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelShown {
    /// Its name.
    pub name: ChannelName,
    /// `http` or `ssh`.
    pub kind: &'static str,
    /// Where it leads.
    pub base: String,
    /// Why nothing can be done with it now, if so.
    pub closed: Option<Denial>,
    /// What it allows.
    pub operations: Vec<OperationShown>,
}

/// An operation of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationShown {
    /// Its name.
    pub name: String,
    /// Its methods and path patterns.
    pub allow: Vec<String>,
    /// Whether the remote side recognises a repeated write by its key.
    pub idempotent: bool,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// An answer came, whatever its status.
    Answered(Answered),
    /// We refused it.
    Refused(Refusal),
    /// Provably nothing left.
    Withdrawn {
        /// Which call.
        call: CallId,
        /// What proves it.
        proof: Withdrawal,
        /// Why it was given up, for a person.
        why: String,
        /// Its record.
        receipt: Option<Receipt>,
    },
    /// It may have had an effect, and nobody here knows.
    Unresolved {
        /// Which call.
        call: CallId,
        /// Why not.
        why: Unsettled,
        /// Its record.
        receipt: Option<Receipt>,
    },
}

/// An answer from the remote side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Which call.
    pub call: CallId,
    /// The HTTP status.
    pub status: u16,
    /// Header fields that an agent may see.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// What the remote side sent and is not in it.
    pub cut: Cut,
    /// The remote side's own id for what was done.
    pub remote_id: Option<Foreign>,
    /// Its record.
    pub receipt: Option<Receipt>,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which call.
    pub call: CallId,
    /// Why.
    pub why: Denial,
    /// What the agent, or the person behind it, can do.
    pub what_to_do: String,
    /// Its record; none where it was counted with earlier ones of the same kind.
    pub receipt: Option<Receipt>,
}

/// What an agent's protocol may ask of the gate, and nothing else.
pub trait Acts: Send + Sync + 'static {
    /// Lists the channels.
    fn channels(&self, who: Asker) -> Vec<ChannelShown>;

    /// Makes one HTTP action and tells how it ended.
    ///
    /// It runs to its end even if the returned future is dropped: what has left cannot be called back.
    fn http(&self, who: Asker, request: HttpRequest) -> impl Future<Output = Ending> + Send;

    /// Takes note that an answer reached the agent, or that it could not be delivered.
    fn delivered(&self, who: Asker, call: CallId, reached: bool);

    /// Puts a call on record that was refused before it could be made, because it is not well formed or
    /// because too many are under way.
    fn turned_away(&self, who: Asker, why: Denial);
}
