//! What every step is given: the time, whoever holds authority, whoever can look, and who acts.

use model::{Clock, Operator};

use crate::{authority::Authority, eyes::Eyes};

/// Everything outside its own folder that a step may use.
pub struct Desk<'a> {
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Holds authority.
    pub authority: &'a mut dyn Authority,
    /// Looks at processes.
    pub eyes: &'a mut dyn Eyes,
    /// Who acts, as this process knows it.
    pub operator: Operator,
}
