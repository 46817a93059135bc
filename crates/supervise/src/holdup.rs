//! Why a process that got a signal is still there, read from what the kernel shows of it.

use std::fs;

use model::ProcessId;

use crate::record::{Delivery, Remains, Sent};

/// Number of SIGTERM on every platform that Linux runs on (signal(7)).
const TERM: u32 = 15;

/// What `/proc/PID/status` says about SIGTERM (proc_pid_status(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    pending: bool,
    blocked: bool,
    ignored: bool,
    caught: bool,
}

impl Masks {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let has = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            let mask = u64::from_str_radix(line.trim(), 16).ok()?;
            Some(mask >> (TERM - 1) & 1 == 1)
        };
        Some(Self {
            pending: has("SigPnd:")? || has("ShdPnd:")?,
            blocked: has("SigBlk:")?,
            ignored: has("SigIgn:")?,
            caught: has("SigCgt:")?,
        })
    }
}

/// Returns why it is still there; `stat` is its state letter, `children` those of its children that live.
pub(crate) fn of(
    pid: u32,
    stat: Option<char>,
    signals: &[Sent],
    children: Vec<ProcessId>,
) -> Remains {
    if !signals.iter().any(|sent| sent.delivery == Delivery::Taken) {
        return Remains::NotSignalled;
    }
    judge(stat, Masks::read(pid), children)
}

fn judge(stat: Option<char>, masks: Option<Masks>, children: Vec<ProcessId>) -> Remains {
    match stat {
        Some('T' | 't') => return Remains::Stopped,
        Some('D') => return Remains::Uninterruptible,
        _ => {}
    }
    let Some(masks) = masks else {
        return Remains::NotKnown {
            why: "its signal masks could not be read".to_owned(),
        };
    };
    if masks.ignored {
        Remains::IgnoresTerm
    } else if masks.blocked || masks.pending {
        Remains::BlocksTerm
    } else if !masks.caught {
        Remains::NotKnown {
            why: "the signal was taken and has no handler, yet it lives".to_owned(),
        }
    } else if children.is_empty() {
        Remains::ShuttingDown
    } else {
        Remains::HeldByChild { children }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Masks = Masks {
        pending: false,
        blocked: false,
        ignored: false,
        caught: false,
    };

    #[test]
    fn the_masks_of_a_status_file_are_those_of_sigterm() {
        let status = "Name:\tx\nSigQ:\t0/1\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n\
                      SigBlk:\t0000000000000000\nSigIgn:\t0000000000004000\nSigCgt:\t0000000000002000\n";

        assert_eq!(
            Masks::parse(status),
            Some(Masks {
                pending: true,
                ignored: true,
                ..QUIET
            })
        );
        assert_eq!(Masks::parse("Name:\tx\n"), None);
    }

    #[test]
    fn a_stopped_and_an_uninterruptible_process_are_told_by_their_letter() {
        assert_eq!(judge(Some('T'), Some(QUIET), vec![]), Remains::Stopped);
        assert_eq!(
            judge(Some('D'), Some(QUIET), vec![]),
            Remains::Uninterruptible
        );
    }

    #[test]
    fn a_handler_that_has_run_means_shutting_down_or_waiting_for_children() {
        let caught = Masks {
            caught: true,
            ..QUIET
        };
        let child = ProcessId {
            boot_id: "b".to_owned(),
            pid: 7,
            start_ticks: 1,
            pidfd_inode: None,
        };

        assert_eq!(
            judge(Some('S'), Some(caught), vec![]),
            Remains::ShuttingDown
        );
        assert_eq!(
            judge(Some('S'), Some(caught), vec![child.clone()]),
            Remains::HeldByChild {
                children: vec![child]
            }
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        for masks in [None, Some(QUIET)] {
            assert!(matches!(
                judge(Some('S'), masks, vec![]),
                Remains::NotKnown { .. }
            ));
        }
    }
}
