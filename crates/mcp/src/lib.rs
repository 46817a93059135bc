//! What the agent sees: two tools over one connection, in both eras of the Model Context Protocol.
//!
//! The only room with `rmcp`, and it may ask the gateway ([`gateway::Acts`]) and nothing else. It judges no
//! call: what an agent may do is the gate's to say, and its refusals are results here like any other.
//!
//! # Life of a request
//! `message` takes a line apart, `intake` decides whether it may enter, `rmcp` picks the handler for its
//! era, `face` answers or asks the gateway, `outbox` writes. A call that reached the gateway is never
//! taken back here: not by a cancel, which only spares the agent the answer, and not by the end of the connection,
//! after which the gateway is told that the answer was not delivered.
//!
//! # For whoever installs a log
//! `rmcp` writes whole messages, arguments and answers included, to `tracing`: see [`NOT_TO_BE_LOGGED`].

mod arguments;
mod connection;
mod face;
mod flights;
mod intake;
mod message;
mod outbox;
mod result;
mod socket;
mod tools;
mod transport;

pub use connection::{Closing, Connection, Ended, Event, serve};

/// The `tracing` target that a log must leave out: `rmcp` logs what agents send and get under it.
pub const NOT_TO_BE_LOGGED: &str = "rmcp";

/// How many requests of one connection may be unanswered. More than an agent has use for, and few enough that
/// as many answers of the largest size still fit into memory.
pub const MOST_IN_FLIGHT: usize = 64;
