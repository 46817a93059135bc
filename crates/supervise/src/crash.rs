//! A crash on purpose, of a child of ours.

use std::{
    io,
    process::{Child, ExitStatus},
};

/// Kills a child hard, as a crash would, and reaps it.
///
/// It is our own and not yet waited for, so its pid is still its own (waitpid(2)) and the signal can reach
/// nobody else.
///
/// # Errors
/// It could not be signalled or waited for.
pub fn crash(child: &mut Child) -> io::Result<ExitStatus> {
    child.kill()?;
    child.wait()
}
