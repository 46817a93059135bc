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

    /// Tells whether a living client uses this process: then it is nobody's replacement. Asked only of a
    /// process that looks like one.
    fn is_in_use(&mut self, process: &ProcessId) -> bool;
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
}
