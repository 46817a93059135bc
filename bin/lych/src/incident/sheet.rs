//! Lines of at most 80 columns, with everything that somebody else wrote made harmless.

use model::Foreign;

/// Widest line, in characters: what a terminal shows at three in the morning, and what a mail keeps.
const WIDTH: usize = 80;

/// Where values begin behind their labels.
const VALUES_AT: usize = 21;

/// A text under construction.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    text: String,
}

impl Sheet {
    /// Returns the text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds a line, wrapped where it must be; what follows the first line stands `hang` columns in.
    pub(crate) fn line(&mut self, indent: usize, hang: usize, text: &str) {
        self.wrapped(&" ".repeat(indent), hang, text);
    }

    /// Adds a value behind its label.
    pub(crate) fn field(&mut self, label: &str, value: &str) {
        let start = format!("{:VALUES_AT$}", format!("  {label}"));
        self.wrapped(&start, VALUES_AT, value);
    }

    fn wrapped(&mut self, start: &str, hang: usize, text: &str) {
        // Sanitised before it is wrapped: an escaped character is longer than it was.
        let text = Foreign::new(text).to_string();
        let mut line = start.to_owned();
        let mut used = line.chars().count();
        let mut fresh = true;
        for word in text.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if !fresh {
                if used + 1 + word.len() > WIDTH {
                    self.end(&mut line, &mut used, hang);
                } else {
                    line.push(' ');
                    used += 1;
                }
            }
            // A word that no line can hold is cut, or it would break the terminal's own lines.
            while used + word.len() > WIDTH {
                let rest = word.split_off(WIDTH.saturating_sub(used).min(word.len()));
                line.extend(word.iter());
                word = rest;
                self.end(&mut line, &mut used, hang);
            }
            used += word.len();
            line.extend(word.iter());
            fresh = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn end(&mut self, line: &mut String, used: &mut usize, hang: usize) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
        *line = " ".repeat(hang);
        *used = hang;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut sheet = Sheet::default();
        sheet.field(
            "server",
            &format!("{} {}", "word ".repeat(40), "x".repeat(300)),
        );
        sheet.line(4, 6, &"é".repeat(200));

        let text = sheet.into_text();

        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert_eq!(text.matches('x').count(), 300);
    }

    #[test]
    fn an_escape_sequence_cannot_leave_its_line() {
        let mut sheet = Sheet::default();
        sheet.field("server", "a\u{1b}[2J\nincident i-0 CONTAINED");

        let text = sheet.into_text();

        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\u{1b}'));
    }
}
