//! What hangs below a process, without looking at all others.

use std::{collections::BTreeSet, fs, io};

/// Returns the children of a process, of all its threads (proc_tid_children(5)).
///
/// # Errors
/// `NotFound` if it has ended; `Unsupported` where the kernel does not list children.
pub fn children(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path().join("children");
        match fs::read_to_string(path) {
            Ok(text) => found.extend(text.split(' ').filter_map(|pid| pid.parse::<u32>().ok())),
            // A thread that ends while we look passes its children on to another.
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Returns all that hangs below a process, nearest first, at most so many.
///
/// # Errors
/// As [`children`], of the process itself; what is below it may come and go.
pub fn descendants(pid: u32, at_most: usize) -> io::Result<Vec<u32>> {
    let mut found: Vec<u32> = children(pid)?.into_iter().collect();
    let mut at = 0;
    while let Some(next) = found.get(at).copied() {
        if found.len() >= at_most {
            found.truncate(at_most);
            break;
        }
        found.extend(children(next).unwrap_or_default());
        at += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_children_are_found_and_the_number_is_bounded() {
        // In the background a shell gives its children no input unless it is told to.
        let script = "exec 3<&0; cat <&3 & cat <&3 & echo; wait";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();

        let below = descendants(shell.id(), 10).unwrap();
        let bounded = descendants(shell.id(), 1).unwrap();

        assert!(children(std::process::id()).unwrap().contains(&shell.id()));
        assert_eq!(below.len(), 2, "{below:?}");
        assert_eq!(bounded.len(), 1);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(children(shell.id()).is_err());
    }
}
