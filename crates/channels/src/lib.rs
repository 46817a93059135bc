//! Channels: what an agent may ask of an outside system, and the only way out to it.
//!
//! The only room that opens outbound connections. A request is planned before anything happens
//! ([`Policy::plan`]), connected under a permit ([`connect`]), and sent under a cleared one
//! ([`Connection::send`]): a connection sends nothing without it. It follows no redirect, repeats nothing,
//! keeps a connection for a moment and for one run alone ([`Kept`]), and reads no variable of its environment
//! (no proxy, no certificate file, no key log).
//!
//! # What a plan leaves to the agent
//! A path below the channel's base, a query, headers that neither frame the message nor carry authority, and
//! a body. Scheme, host, port and credential come from the policy and the vault. What is not listed is
//! refused; an empty list allows nothing.
//!
//! # When the outcome is not known
//! Once a request may have left, no error is called a failure: it is [`Sent::Broke`]. Only what the HTTP
//! library hands back unwritten is [`Sent::HandedBack`], the proof that nothing left.

mod answer;
mod connect;
mod draft;
mod kept;
mod limits;
mod minted;
mod network;
mod path;
mod pattern;
mod plan;
mod policy;
mod rules;
mod scrub;
mod send;
mod tls;
mod window;
mod words;

#[cfg(test)]
mod tests;

pub use connect::{ConnectError, Connection, connect};
pub use draft::DraftError;
pub use kept::Kept;
pub use limits::Limits;
pub use pattern::{Allow, JobPath, PatternError};
pub use plan::{Credential, HttpAsk, Plan, Seal};
pub use policy::{
    Admission, Channel, Idempotency, Inject, Job, OnClientLost, Operation, Policy, PolicyError,
    ResultKept,
};
pub use rules::{LogRules, OnLock, RunRules};
pub use scrub::{is_looked_for, scrubbed};
pub use send::{Answer, Cut, NotSent, Sent};
