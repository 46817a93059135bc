//! One call, one gate: attempt, clear, send, settle, revoke.
//!
//! Knows no MCP, no HTTP and no socket: it hands a plan to a channel and an ending to whoever asked.

mod ending;

pub use ending::{
    Acts, Answered, Asker, ChannelShown, Ending, HttpRequest, OperationShown, Refusal,
};
