//! The only room that sends a signal: to processes that are identified, one by one, and says what came of it.
//!
//! A signal goes through a pidfd that was opened before the process was compared with the evidence, so it
//! reaches that process or nobody. Nothing here signals a process group: clients and servers often share
//! one, and `kill(-pgid)` on a server would end its client and the client's other servers.
//!
//! SIGTERM comes first, always. SIGKILL needs a [`Force`] with a reason, and what it ended is recorded as
//! [`FORCED`]. A process that remains is recorded with the reason why it does.

mod crash;
mod holdup;
mod plan;
mod record;
mod respawn;
mod target;
mod terminate;
#[cfg(test)]
mod tests;

pub use crash::crash;
pub use plan::{Force, NoReason, Plan};
pub use record::{
    Delivery, End, EndRecord, FORCED, Forced, HowEnded, Origin, Remains, Sent, Signal,
};
pub use respawn::{Before, Respawn, Sighting, respawned};
pub use target::{Evidence, NotATarget, Standing, Target};
pub use terminate::{Alone, Family, terminate};
