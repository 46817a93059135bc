//! A process is an identity, not a number: numbers are given out again.

use serde::{Deserialize, Serialize};

use crate::{Foreign, Wall};

/// The file an executable image was loaded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExeId {
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number (`st_ino`).
    pub ino: u64,
}

/// What tells one process from every other one, also from a later holder of its pid.
///
/// Pid and start tick alone are not enough: under forced reuse 97.5 % of the pairs repeat, because a tick
/// lasts 10 ms. The pidfd's inode (pidfs, Linux 6.9) never does within one boot. Where it is missing the
/// identity is weaker and says so by its absence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The kernel's random id of this boot.
    pub boot_id: String,
    /// The process number, unique only at one moment.
    pub pid: u32,
    /// Clock ticks from boot to the start of the process (proc_pid_stat(5), field 22).
    pub start_ticks: u64,
    /// Inode of the process's pidfd, unique within one boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pidfd_inode: Option<u64>,
}

impl ProcessId {
    /// Tells whether both name the same process as far as both know.
    ///
    /// The pidfd inode decides where both have it; otherwise boot, pid and start tick must agree.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let base = self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_ticks == other.start_ticks;
        match (self.pidfd_inode, other.pidfd_inode) {
            (Some(ours), Some(theirs)) => base && ours == theirs,
            _ => base,
        }
    }
}

/// A process as records and people name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Which process.
    pub id: ProcessId,
    /// Its command line with values that look like secrets redacted.
    pub command: Vec<Foreign>,
    /// Where its executable was found, if that could be read.
    pub exe: Option<Foreign>,
    /// The executable's file, if that could be read.
    pub exe_id: Option<ExeId>,
}

impl ProcessRef {
    /// Returns it with at most about so many bytes of command line, as JSON has them: a record has a bound, and a
    /// command line of two megabytes is in nobody's interest but of whoever wants to be on none.
    ///
    /// What is left out is counted at the end. Whoever needs the whole takes a snapshot.
    #[must_use]
    pub fn shortened(mut self, most: usize) -> Self {
        let mut room = most;
        let mut kept = 0;
        for word in &self.command {
            let Some(left) = room.checked_sub(cost(word)) else {
                break;
            };
            room = left;
            kept += 1;
        }
        let rest = self.command.split_off(kept);
        let Some(first) = rest.first() else {
            return self;
        };
        // Half of it is better than none: the program's own name may be the long one.
        let begun: String = first.raw().chars().take(room / PER_CHARACTER).collect();
        let bytes: usize = rest.iter().map(|word| word.bytes().len()).sum();
        let more = bytes.saturating_sub(begun.len());
        if !begun.is_empty() {
            self.command.push(Foreign::new(begun));
        }
        self.command
            .push(Foreign::new(format!("[{more} bytes more]")));
        self
    }
}

/// What a word takes in a record, its place in a list included.
fn cost(word: &Foreign) -> usize {
    serde_json::to_string(word).map_or(usize::MAX, |text| text.len().saturating_add(16))
}

/// As much as JSON makes of one character, and its bytes once more where they are no UTF-8.
const PER_CHARACTER: usize = 12;

/// One link of the chain shim → … → client, seen at admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// The process.
    pub process: ProcessRef,
    /// What part it plays.
    pub role: LinkRole,
}

/// The part a process plays in the chain above a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRole {
    /// Our own end of the wire.
    Shim,
    /// Holds the other end of the shim's standard input: the client.
    Holder,
    /// Holds it as the shim says: the daemon is another user and cannot look. That it stands above the shim is
    /// seen all the same.
    HolderReported,
    /// Stands between or above, up to the first shell, session leader or service manager.
    Above,
}

impl LinkRole {
    /// Tells whether this is the client, be it seen or only reported.
    #[must_use]
    pub const fn is_holder(self) -> bool {
        matches!(self, Self::Holder | Self::HolderReported)
    }
}

/// How a person's presence was established for an act that widens authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// The request came from another user than the agent's.
    OtherUid,
    /// A PIN was given.
    Pin,
    /// A terminal was attached.
    Tty,
    /// Nothing was established.
    None,
}

/// When and by whom an operator act was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The user id of the process that connected (`SO_PEERCRED`, unix(7)).
    pub uid: u32,
    /// The audit login uid, if the kernel has one (proc_pid_loginuid(5)).
    pub login_uid: Option<u32>,
    /// How presence was established.
    pub presence: Presence,
}

/// A fact about a process that was seen at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen<T> {
    /// What was seen.
    pub value: T,
    /// When.
    pub at: Wall,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(command: Vec<Foreign>) -> ProcessRef {
        ProcessRef {
            id: ProcessId {
                boot_id: "boot".to_owned(),
                pid: 1,
                start_ticks: 1,
                pidfd_inode: None,
            },
            command,
            exe: None,
            exe_id: None,
        }
    }

    fn words(process: &ProcessRef) -> Vec<&str> {
        process.command.iter().map(Foreign::raw).collect()
    }

    #[test]
    fn a_command_line_that_has_room_stays_as_it_is() {
        let short = with(vec!["node".into(), "server.js".into(), "".into()]);

        assert_eq!(short.clone().shortened(4096), short);
        assert_eq!(with(Vec::new()).shortened(0), with(Vec::new()));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let long = with(vec![
            "node".into(),
            Foreign::new("x".repeat(5000)),
            "y".into(),
        ]);

        let shown = long.shortened(4096);

        assert_eq!(words(&shown)[0], "node");
        assert_eq!(shown.command.len(), 3);
        let begun = words(&shown)[1].len();
        assert!(begun > 100);
        assert_eq!(words(&shown)[2], format!("[{} bytes more]", 5001 - begun));
    }

    #[test]
    fn no_command_line_takes_more_than_it_is_given() {
        for word in ["\u{1b}", "\u{1f600}", "\u{7f}", "\"", "x"] {
            for repeats in [1, 100, 100_000] {
                for count in [1, 50, 3000] {
                    if repeats * count > 300_000 {
                        continue;
                    }
                    let bytes = word.repeat(repeats).into_bytes();
                    let torn = [bytes.as_slice(), b"\xff"].concat();
                    for argument in [Foreign::from_bytes(&bytes), Foreign::from_bytes(&torn)] {
                        let shown = with(vec![argument; count]).shortened(4096);
                        let json = serde_json::to_string(&shown.command).unwrap();
                        assert!(
                            json.len() < 4096 + 100,
                            "{word:?} {repeats} {count}: {}",
                            json.len()
                        );
                    }
                }
            }
        }
    }
}
