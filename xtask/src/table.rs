//! Several steps, each run whatever became of the one before, and one table at the end.

use std::time::{Duration, Instant};

use crate::shell::{Trouble, complain, say};

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It did what it should.
    Passed,
    /// It did not, for this reason.
    Failed(String),
    /// It could not be tried on this machine; nothing is known.
    NotRun(String),
}

impl From<Result<(), Trouble>> for Ending {
    fn from(result: Result<(), Trouble>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(trouble) => Self::Failed(trouble.to_string()),
        }
    }
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(String, Duration, Ending)>);

impl Table {
    /// Runs a step and writes down how it ended.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Ending) {
        say(&format!("\n== {name}"));
        let begun = Instant::now();
        let ending = step();
        match &ending {
            Ending::Passed => {}
            Ending::Failed(why) => complain(&format!("{name} FAILED: {why}")),
            Ending::NotRun(why) => complain(&format!("{name} DID NOT RUN: {why}")),
        }
        self.0.push((name.to_owned(), begun.elapsed(), ending));
    }

    /// Prints the table.
    ///
    /// # Errors
    /// At least one step failed.
    pub(crate) fn close(self) -> Result<(), Trouble> {
        say("\nstep                       seconds  result");
        for (name, took, ending) in &self.0 {
            let word = match ending {
                Ending::Passed => "passed".to_owned(),
                Ending::Failed(why) => format!("FAILED ({why})"),
                Ending::NotRun(why) => format!("DID NOT RUN ({why})"),
            };
            say(&format!("{name:<26} {:>7.1}  {word}", took.as_secs_f64()));
        }
        let total: Duration = self.0.iter().map(|(_, took, _)| *took).sum();
        say(&format!("{:<26} {:>7.1}", "all", total.as_secs_f64()));
        match self.failed() {
            0 => Ok(()),
            count => Err(Trouble::Steps(count)),
        }
    }

    fn failed(&self) -> usize {
        self.0
            .iter()
            .filter(|(_, _, ending)| matches!(ending, Ending::Failed(_)))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_table_and_the_next_still_runs() {
        let mut table = Table::default();
        let mut ran = false;

        table.step("first", || Ending::Failed("no reason".to_owned()));
        table.step("second", || {
            ran = true;
            Ending::Passed
        });

        assert!(ran);
        assert!(matches!(table.close(), Err(Trouble::Steps(1))));
    }

    #[test]
    fn a_step_that_did_not_run_fails_nothing() {
        let mut table = Table::default();

        table.step("elsewhere", || Ending::NotRun("no Mac here".to_owned()));

        assert!(table.close().is_ok());
    }
}
