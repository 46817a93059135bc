//! Findings in words, in at most eighty columns.

use verdict::{Also, Authority, AuthorityLevel, Verdict};

/// The width of a page: what every terminal has.
pub(crate) const WIDTH: usize = 80;

/// Says what a verdict means.
pub(crate) const fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::LogicalOrphan => "RUN WITHOUT AN OWNER: what it worked for is gone",
        Verdict::OsOrphan => "LEFT OVER: its client is gone, its transport is at its end",
        Verdict::OrphanHeldOpen => {
            "LEFT OVER, HELD OPEN: its client is gone, another holds its transport"
        }
        Verdict::Detached => "LET GO: its parent lives but holds no end of its transport",
        Verdict::LeftoverChild => "LEFT-OVER HELPER: it outlived its server",
        Verdict::LogicalOrphanSuspect => "SUSPECT: its client may be stuck or have forgotten it",
        Verdict::Unknown => "NOT KNOWN: what had to be known could not be read",
        Verdict::Zombie => "ENDED: its parent has not collected it",
        Verdict::Recycled => "ANOTHER PROCESS: a record's number was given out again",
        Verdict::Shared => "SHARED: living processes are connected to it",
        Verdict::Managed => "MANAGED: a service manager runs it",
        Verdict::Live => "IN USE",
    }
}

/// Returns the word for an add-on.
pub(crate) const fn also_word(also: Also) -> &'static str {
    match also {
        Also::Spinning => "SPINNING",
        Also::Holds => "HOLDS",
        Also::Busy => "UNREAD-REQUESTS",
        Also::TermImmune => "IGNORES-TERM",
    }
}

/// Says what a unit could still do, by names, and promises nothing.
pub(crate) fn authority_words(authority: &Authority) -> String {
    let level = match authority.level {
        AuthorityLevel::Held | AuthorityLevel::Reachable => "may act",
        AuthorityLevel::Refused => "was cut off",
        AuthorityLevel::NoneSeen => "may act or not",
        AuthorityLevel::Unknown => "whether it can act could not be read",
    };
    if authority.because.is_empty() {
        return level.to_owned();
    }
    format!("{level}: {}", authority.because.join("; "))
}

/// Returns a duration in at most six characters.
pub(crate) fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    match (
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, _) => format!("{minutes}m"),
        (0, hours, minutes, _) => format!("{hours}h{minutes:02}"),
        (days, hours, _, _) if days < 100 => format!("{days}d{hours:02}h"),
        (days, _, _, _) => format!("{days}d"),
    }
}

/// Returns an amount of memory.
pub(crate) fn memory(bytes: u64) -> String {
    let mib = bytes / (1024 * 1024);
    if mib < 10_000 {
        format!("{mib} MB")
    } else {
        format!("{} GB", mib / 1024)
    }
}

/// Cuts a line to a width and shows that it was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.trim_end().to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Breaks a text at spaces into lines of at most eighty columns, all but the first further indented.
pub(crate) fn wrap(text: &str, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in text.split(' ') {
        let long = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if long && !empty {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.into_iter().map(|line| cut(&line, WIDTH)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_grow_coarser() {
        let shown: Vec<String> = [999, 61_000, 3_660_000, 90_000_000, 9_000_000_000_000]
            .into_iter()
            .map(age)
            .collect();

        assert_eq!(shown, ["0s", "1m", "1h01", "1d01h", "104166d"]);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let long = "word ".repeat(60) + &"x".repeat(200);

        for line in wrap(&long, 6) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert_eq!(cut(&"y".repeat(90), WIDTH).chars().count(), WIDTH);
    }
}
