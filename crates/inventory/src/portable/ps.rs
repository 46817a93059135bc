//! One line of ps(1), as GNU and BSD write it.

/// The fields that were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) pid: u32,
    pub(super) ppid: u32,
    pub(super) pgid: u32,
    pub(super) uid: u32,
    pub(super) rss_kib: u64,
    pub(super) stat: &'a str,
    pub(super) elapsed_s: u64,
    pub(super) cpu_s: u64,
    pub(super) tty: &'a str,
    pub(super) command: &'a str,
}

/// Parses a line; none if it is not as expected, so that nothing is guessed.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    let mut rest = line;
    let mut field = || {
        let text = rest.trim_start();
        let end = text.find(' ').unwrap_or(text.len());
        let (first, after) = text.split_at_checked(end)?;
        rest = after;
        (!first.is_empty()).then_some(first)
    };
    let seen = Line {
        pid: field()?.parse().ok()?,
        ppid: field()?.parse().ok()?,
        pgid: field()?.parse().ok()?,
        // A user of no name has -2 on a Mac.
        uid: uid(field()?)?,
        rss_kib: field()?.parse().ok()?,
        stat: field()?,
        elapsed_s: seconds(field()?)?,
        cpu_s: seconds(field()?)?,
        tty: field()?,
        command: "",
    };
    Some(Line {
        command: rest.trim(),
        ..seen
    })
}

fn uid(text: &str) -> Option<u32> {
    let number: i64 = text.parse().ok()?;
    u32::try_from(number & i64::from(u32::MAX)).ok()
}

/// Parses `[[days-]hours:]minutes:seconds[.hundredths]`; every part is decimal, also 08 and 09.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse().ok()?, clock),
        None => (0_u64, text),
    };
    let whole = clock.split('.').next()?;
    let mut sum = 0_u64;
    for part in whole.split(':') {
        sum = sum.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    days.checked_mul(86_400)?.checked_add(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_systems_lines_are_read_alike() {
        let linux = "  4242       1   4240  1000  9120 Ss    2-03:08:09 00:00:09 ?        python3 server.py --stdio";
        let mac = "  4242     1  4240   501   9120 Ss   02-03:08:09   0:09.08 ??       python3 server.py --stdio";

        let (linux, mac) = (parse(linux).unwrap(), parse(mac).unwrap());

        assert_eq!(linux.elapsed_s, 2 * 86_400 + 3 * 3600 + 8 * 60 + 9);
        assert_eq!((linux.elapsed_s, linux.cpu_s), (mac.elapsed_s, mac.cpu_s));
        assert_eq!((linux.command, linux.stat), (mac.command, mac.stat));
        assert_eq!((linux.pid, linux.ppid, linux.pgid), (4242, 1, 4240));
    }

    #[test]
    fn a_line_of_another_form_is_no_process() {
        for line in ["", "x", "1 2 3", "1 2 3 4 5 S soon 0:00 ?? x"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
