//! What the two wings say to each other: lines of JSON, a hello on each socket, the operator's verbs.
//!
//! Values only: no socket is opened here, so that both wings and every test speak exactly the same forms.

mod hello;
mod line;
pub mod operator;
mod view;

pub use hello::{Hello, Refusal, Reply, Role, Welcome, choose_protocol};
pub use line::{LINE_CAP, LineBuffer, LineError, decode, encode};
pub use view::{CallView, LogKeep, LostView, Reconciliation, SessionView, StatusView, VaultState};

/// The lowest version of the wire that this build speaks.
pub const PROTOCOL_MIN: u16 = 1;
/// The highest version of the wire that this build speaks.
pub const PROTOCOL_MAX: u16 = 1;
/// The version of the product.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
