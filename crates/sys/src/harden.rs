//! Shuts this process to others: no core dump, no reading of its memory by programs of the same user.

use std::io;

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
