//! Shuts this process to others: no core dump, no reading of its memory by programs of the same user.

use std::{fs::File, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes this process leave no core and, where the system has it, be attachable by nobody but root.
///
/// # Errors
/// The kernel refused; a process with secrets must not go on then.
pub fn this_process() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    not_dumpable()
}

/// Takes all the descriptors that the system gives this process, and returns how many those are.
///
/// # Errors
/// The kernel refused.
pub fn all_descriptors() -> io::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without a limit it is the system's own (proc_sys_fs(5), nr_open), which is far above any need.
    let all = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    let raised = Rlimit {
        current: Some(all),
        maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(all)
}

/// Makes the table of descriptors as large as it will have to be; to be called while there is one thread.
///
/// The kernel does it by itself when the table is full, but lets every thread that opens something wait meanwhile, for
/// tens of milliseconds: it waits until no processor looks at the old one (`expand_fdtable`, `fs/file.c`).
///
/// # Errors
/// The kernel refused; the table then grows as it is used.
pub fn wide_table() -> io::Result<()> {
    let last = all_descriptors()?.min(TABLE).saturating_sub(1);
    let last = i32::try_from(last).map_err(io::Error::other)?;
    let any = File::open("/dev/null")?;
    drop(rustix::io::fcntl_dupfd_cloexec(&any, last)?);
    Ok(())
}

/// As many as 256 agents' connections, with their processes and calls, come near to.
const TABLE: u64 = 1 << 12;

/// More than any number of agents can use.
const ENOUGH: u64 = 1 << 16;

/// PR_SET_DUMPABLE (prctl(2)): also makes `/proc/self` belong to root, so that `environ`, `mem` and the
/// descriptors are shut to other programs of the user.
#[cfg(target_os = "linux")]
fn not_dumpable() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// `PT_DENY_ATTACH` would be the like of it, but breaks crash reports of the system; nothing is claimed.
#[cfg(not(target_os = "linux"))]
fn not_dumpable() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn the_table_of_descriptors_is_wide_before_anything_is_opened() {
        // `FDSize` of proc_pid_status(5).
        let table = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        };
        let before = table();

        super::wide_table().unwrap();

        let wanted = super::all_descriptors().unwrap().min(super::TABLE);
        assert!(before < wanted && table() >= wanted, "{before}, {wanted}");
    }
}
