//! The narrator: what happens, in the words and the output a person would have before him.

use serde_json::{Map, Value};

use super::stage::Ran;
use crate::ui;

/// Tells the story on stdout, or keeps quiet for programs.
pub(super) struct Tell {
    quiet: bool,
}

impl Tell {
    pub(super) const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Begins a part.
    pub(super) fn heading(&mut self, text: &str) {
        self.print(&format!("\n== {text}\n"));
    }

    /// Says one thing.
    pub(super) fn say(&mut self, text: &str) {
        self.print(&format!("\n-- {text}\n"));
    }

    /// Shows a command and what it printed.
    pub(super) fn ran(&mut self, command: &str, ran: &Ran) {
        let mut shown = format!("$ {command}\n");
        for part in [&ran.stdout, &ran.stderr] {
            shown.push_str(part);
            if !part.is_empty() && !part.ends_with('\n') {
                shown.push('\n');
            }
        }
        if ran.code != 0 {
            shown.push_str(&format!("(exit code {})\n", ran.code));
        }
        self.print(&shown);
    }

    /// Shows a command and the beginning of what it printed; the whole incident is shown once, later.
    pub(super) fn contained(&mut self, command: &str, ran: &Ran) {
        let begin = ran.stdout.split("\nprocess ").next().unwrap_or_default();
        let cut = Ran {
            stdout: format!("{begin}\n[…]\n"),
            stderr: String::new(),
            code: ran.code,
        };
        self.ran(command, &cut);
    }

    /// Lists what was checked.
    pub(super) fn claims(&mut self, claims: &Map<String, Value>) {
        self.say("Checked:");
        for (name, holds) in claims {
            let mark = if *holds == Value::Bool(true) {
                "yes"
            } else {
                "NO "
            };
            self.print(&format!("   {mark}  {}\n", name.replace('_', " ")));
        }
    }

    fn print(&self, text: &str) {
        if !self.quiet {
            // Whoever stopped reading has read enough; the drill itself goes on and cleans up.
            drop(ui::data(text));
        }
    }
}
