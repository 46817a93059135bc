//! Wall time for people, boot time for deadlines; order always comes from a sequence number.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

/// A point of wall-clock time in milliseconds since 1970-01-01T00:00:00Z.
///
/// Written as RFC 3339 in UTC with milliseconds. It can jump: never compute a deadline from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(u64);

impl Wall {
    /// Returns the time with this many milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }
}

impl From<SystemTime> for Wall {
    fn from(time: SystemTime) -> Self {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 9999-12-31 is the last day RFC 3339 can write.
        let millis = self.0.min(253_402_300_799_999);
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        humantime::format_rfc3339_millis(time).fmt(f)
    }
}

impl fmt::Debug for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Wall {
    type Err = humantime::TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text).map(Self::from)
    }
}

impl Serialize for Wall {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Wall {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// What a clock on the wall showed.
    pub wall: Wall,
    /// Milliseconds since boot, sleep included (`CLOCK_BOOTTIME`, clock_gettime(2)).
    pub boot_ms: u64,
}

/// Tells the time; tests bring their own.
pub trait Clock: Send + Sync {
    /// Returns the present moment on both clocks.
    fn now(&self) -> Stamp;
}
