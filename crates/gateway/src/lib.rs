//! One call, one gate: attempt, clear, send, settle, revoke.
//!
//! Knows no MCP, no HTTP and no socket: it hands a plan to a channel and an ending to whoever asked.

mod act;
mod advice;
mod ending;
mod gateway;
mod key;
mod losses;
mod undelivered;

pub use channels::Cut;
pub use ending::{
    Acts, Answered, Asker, ChannelShown, Ending, HttpRequest, OperationShown, Refusal,
};
pub use gateway::{GRACE, Gateway, Secrets};
