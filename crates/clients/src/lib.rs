//! Knows where MCP clients keep the servers they are to start, and what such a server looks like as a process.
//!
//! Clients' own logs add what they said they started ([`Launched`]). Configurations come in as [`Expected`] servers. A file that cannot be read or parsed becomes a [`Note`]
//! and never stops the look: what it would have said is then unknown. No value of a configured environment
//! is kept, and arguments are redacted before they leave the parser.

mod expected;
mod launched;
mod launcher;
mod logs;
mod marker;
mod matching;
mod parse;
mod places;

pub use expected::{Client, Expected, Note};
pub use launched::{Launched, LoggedAt};
pub use launcher::is_shell;
pub use marker::marker;
pub use matching::{Match, Matcher, Part, Strength};
pub use parse::{ParseError, Source, parse};
pub use places::{Found, Places};
