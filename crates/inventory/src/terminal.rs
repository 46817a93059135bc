//! Names a controlling terminal by its device number (proc_pid_stat(5), field 7).

/// Returns the name as ps(1) shows it; none if there is no terminal.
pub(crate) fn name(device: i32) -> Option<String> {
    let device = device.cast_unsigned();
    if device == 0 {
        return None;
    }
    // Minor numbers above 255 have their upper bits beyond the major number.
    let major = device >> 8 & 0xfff;
    let minor = device & 0xff | device >> 12 & 0xfff00;
    Some(match major {
        PTS_FIRST..=PTS_LAST => format!("pts/{}", (major - PTS_FIRST) * 256 + minor),
        VIRTUAL if minor < 64 => format!("tty{minor}"),
        VIRTUAL => format!("ttyS{}", minor - 64),
        _ => format!("{major}:{minor}"),
    })
}

/// Unix98 terminals and virtual consoles (the kernel's `admin-guide/devices.rst`).
const PTS_FIRST: u32 = 136;
const PTS_LAST: u32 = 143;
const VIRTUAL: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_named_as_ps_names_them() {
        assert_eq!(name(0), None);
        assert_eq!(name(34816).as_deref(), Some("pts/0"));
        assert_eq!(name(34816 + 7).as_deref(), Some("pts/7"));
        assert_eq!(name(1025).as_deref(), Some("tty1"));
        assert_eq!(name(1088).as_deref(), Some("ttyS0"));
    }
}
