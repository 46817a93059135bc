//! The nouns every room shares: ids, times, paths, secrets, processes, calls and the records of the log.
//!
//! The ground floor depends on no other room and does no I/O. What two rooms must agree on is named
//! here first; what only one room needs stays there.

mod act;
mod call;
mod destination;
mod fault;
mod foreign;
mod hex;
mod home;
mod id;
mod journal;
mod known;
mod launch;
mod not_a_file;
mod process;
mod record;
pub mod redact;
mod secret;
mod session;
mod time;

pub use act::Act;
pub use call::{CallState, Digest, RequestKey, Target, Unsettled, Withdrawal};
pub use destination::{Destination, DestinationError};
pub use fault::{Exit, Explain, Fault};
pub use foreign::{Foreign, is_harmless};
pub use hex::hex;
pub use home::{Home, HomeError, Realm, Users};
pub use id::{
    CallId, ChannelName, ConnectionId, EpochId, IdError, IncidentId, LogId, OperationName,
    SecretName, SessionId,
};
pub use journal::{Journal, NotDurable, Receipt, Stub, Ticket};
pub use known::Known;
pub use launch::{ChildSeen, LaunchRecord, LinkSeen};
pub use not_a_file::NotAFile;
pub use process::{ChainLink, ExeId, LinkRole, Operator, Presence, ProcessId, ProcessRef, Seen};
pub use record::{Body, Denial, Entry, Kind, Lost, LostBasis, OutcomeBody, Scope, Seq};
pub use secret::Secret;
pub use session::SessionState;
pub use time::{Clock, Stamp, Wall};
