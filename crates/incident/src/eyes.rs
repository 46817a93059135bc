//! Looking at all processes, as an incident needs it.

use std::io;

use model::{ProcessId, ProcessRef, Wall};

/// Whoever can look at every process of this machine.
pub trait Eyes {
    /// Looks at all of them now.
    ///
    /// # Errors
    /// There is nothing to see them with.
    fn look(&mut self) -> io::Result<Look>;
}

/// One look at all processes.
#[derive(Debug, Clone)]
pub struct Look {
    /// When it began.
    pub observed_at: Wall,
    /// Whether nothing was unreadable.
    pub complete: bool,
    /// How many things could not be read.
    pub unreadable: usize,
    /// The whole of it as JSON, command lines redacted and environment by name only: the evidence.
    pub snapshot: Vec<u8>,
    /// Every process in it.
    pub processes: Vec<Sight>,
}

/// One process of a look.
#[derive(Debug, Clone)]
pub struct Sight {
    /// The process.
    pub process: ProcessRef,
    /// Its parent, if that was seen in the same look.
    pub parent: Option<ProcessId>,
    /// Whether a living client uses it: then it is nobody's replacement.
    pub in_use: bool,
}
