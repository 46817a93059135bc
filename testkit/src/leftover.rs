//! Finds processes that a test left behind, by the name of its folder, which no other test shares.

use std::{fs, os::unix::ffi::OsStrExt, path::Path};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Deadline, deadline::wait_until};

/// A process that still belongs to a test's world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its number.
    pub pid: u32,
    /// Its command line, for the person who reads the failed test.
    pub command: String,
    started: Option<String>,
}

impl Leftover {
    /// Returns every process but this one whose command line, environment or working folder names `folder`.
    ///
    /// Where there is no `/proc` nothing is found: the check is then not made.
    #[must_use]
    pub fn of(folder: &Path) -> Vec<Self> {
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        all.flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != std::process::id() && belongs(*pid, folder))
            .map(|pid| Self {
                pid,
                command: command_of(pid),
                started: started(pid),
            })
            .collect()
    }

    /// Kills the process if it is still the one that was found, and waits until it is gone.
    pub(crate) fn end(&self, folder: &Path) {
        // Its number may have been given out again since: look once more, right before.
        if started(self.pid) != self.started || !belongs(self.pid, folder) {
            return;
        }
        let number = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(number) = number {
            // It may have ended by itself meanwhile, which is all that is wanted.
            let _ = kill_process(number, Signal::KILL);
        }
        wait_until("a killed process to be gone", Deadline::usual(), || {
            started(self.pid) != self.started || !belongs(self.pid, folder)
        });
    }
}

fn belongs(pid: u32, folder: &Path) -> bool {
    let proc = Path::new("/proc").join(pid.to_string());
    let names = |file: &str| {
        let bytes = fs::read(proc.join(file)).unwrap_or_default();
        let folder = folder.as_os_str().as_bytes();
        bytes.windows(folder.len()).any(|window| window == folder)
    };
    // A zombie has neither; it only waits for its parent.
    let inside = || fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    names("cmdline") || names("environ") || inside()
}

fn command_of(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    text.trim_end().to_owned()
}

/// Returns the start tick (proc_pid_stat(5), field 22).
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, field 2, may itself hold spaces and brackets.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(str::to_owned)
}
