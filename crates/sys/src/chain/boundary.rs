//! Where the chain above a client ends: service managers, persons' shells, session leaders.

use std::fs;

use crate::{
    process::{Handle, split_command_line},
    stat::ProcStat,
};

/// What kind of end of a chain a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    /// A person types into it: it is no part of the run.
    PersonsShell,
    /// The top of what was started together: the last link.
    SessionLeader,
    /// None.
    None,
}

/// Tells what kind of end this process is.
pub(super) fn of(handle: &Handle) -> Boundary {
    let stat = handle.stat();
    let command = fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
    let arguments: Vec<&[u8]> = split_command_line(&command).collect();
    if is_persons_shell(stat, &arguments) {
        Boundary::PersonsShell
    } else if stat.sid == stat.pid {
        Boundary::SessionLeader
    } else {
        Boundary::None
    }
}

/// Tells whether this process starts others on nobody's behalf in particular.
pub(super) fn is_service_manager(stat: &ProcStat) -> bool {
    stat.pid == 1 || SERVICE_MANAGERS.contains(&stat.comm.as_slice())
}

/// A shell with a terminal, with neither a script nor a command.
fn is_persons_shell(stat: &ProcStat, arguments: &[&[u8]]) -> bool {
    if stat.tty == 0 || !SHELLS.contains(&stat.comm.as_slice()) {
        return false;
    }
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        if TAKE_A_VALUE.contains(argument) {
            rest.next();
        } else if !is_plain_option(argument) {
            return false;
        }
    }
    true
}

/// A long option, or a cluster of short ones without `c`, which takes a command (sh(1)).
fn is_plain_option(argument: &[u8]) -> bool {
    argument.starts_with(b"--")
        || argument
            .strip_prefix(b"-")
            .is_some_and(|letters| !letters.contains(&b'c'))
}

const SHELLS: &[&[u8]] = &[
    b"ash", b"bash", b"csh", b"dash", b"elvish", b"fish", b"ksh", b"mksh", b"nu", b"pwsh",
    b"rbash", b"sh", b"tcsh", b"xonsh", b"zsh",
];

/// Options of interactive shells with a value of their own, as the terminals of editors use them.
const TAKE_A_VALUE: &[&[u8]] = &[
    b"--init-command",
    b"--init-file",
    b"--rcfile",
    b"-C",
    b"-O",
    b"-o",
];

/// Names as `/proc/PID/stat` cuts them, at 15 bytes.
const SERVICE_MANAGERS: &[&[u8]] = &[
    b"catatonit",
    b"conmon",
    b"containerd-shim",
    b"docker-init",
    b"dumb-init",
    b"init",
    b"launchd",
    b"runsv",
    b"runsvdir",
    b"s6-supervise",
    b"s6-svscan",
    b"supervisord",
    b"systemd",
    b"tini",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(comm: &str, tty: i32) -> ProcStat {
        let line = format!(
            "42 ({comm}) S 41 42 42 {tty} -1 0 0 0 0 0 7 9 0 0 20 0 1 0 123456 10000000 512 0"
        );
        ProcStat::parse(line.as_bytes()).unwrap()
    }

    fn is_persons(command: &str) -> bool {
        let arguments: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        is_persons_shell(&stat("bash", 34816), &arguments)
    }

    #[test]
    fn a_shell_that_a_person_types_into_is_told_from_one_that_runs_something() {
        for command in [
            "bash",
            "-bash",
            "bash -il",
            "bash --norc",
            "bash --init-file /x.sh -i",
        ] {
            assert!(is_persons(command), "{command}");
        }
        for command in ["bash -c", "bash -lc agent", "bash run.sh", "bash -e run.sh"] {
            assert!(!is_persons(command), "{command}");
        }
    }

    #[test]
    fn a_shell_without_a_terminal_is_nobodys() {
        assert!(!is_persons_shell(&stat("bash", 0), &[b"bash"]));
    }

    #[test]
    fn another_program_is_no_shell_whatever_its_arguments() {
        assert!(!is_persons_shell(&stat("node", 34816), &[b"bash"]));
    }

    #[test]
    fn the_first_process_and_a_users_manager_are_service_managers() {
        let first = ProcStat {
            pid: 1,
            ..stat("anything", 0)
        };

        assert!(is_service_manager(&first));
        assert!(is_service_manager(&stat("systemd", 0)));
        assert!(!is_service_manager(&stat("node", 0)));
    }
}
