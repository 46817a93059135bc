//! The real clocks and the kernel's id of this boot.

use std::time::SystemTime;

use model::{Clock, Stamp, Wall};

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Stamp {
        Stamp {
            wall: Wall::from(SystemTime::now()),
            boot_ms: boot_millis(),
        }
    }
}

#[cfg(target_os = "linux")]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
// `CLOCK_MONOTONIC` of macOS goes on while the machine sleeps (clock_gettime(3)).
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Returns the milliseconds since boot, sleep included.
#[must_use]
pub fn boot_millis() -> u64 {
    let now = rustix::time::clock_gettime(BOOT_CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let millis = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(millis)
}

/// Returns the kernel's random id of this boot.
///
/// # Errors
/// It could not be read; identities made without it would be wrong after a reboot.
#[cfg(target_os = "linux")]
pub fn boot_id() -> std::io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Returns the session UUID of this boot.
///
/// # Errors
/// It could not be read; identities made without it would be wrong after a reboot.
#[cfg(not(target_os = "linux"))]
pub fn boot_id() -> std::io::Result<String> {
    let out = std::process::Command::new("/usr/sbin/sysctl")
        .args(["-n", "kern.bootsessionuuid"])
        .output()?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
