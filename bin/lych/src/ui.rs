//! The person's side: data on stdout, everything else on stderr, and no panic when either is gone.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::error::{ContextKind, ErrorKind};
use model::{Exit, Explain, Fault, Foreign};
use serde::Serialize;

/// Prints the error that clap made in the form of every other one, and tells with which code to end.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version are data that was asked for.
        let _ = error.print();
        return ExitCode::from(Exit::Done.code());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(Exit::Usage.code());
    }
    let context = |kind| error.get(kind).map(ToString::to_string);
    let text = error.to_string();
    let first = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .trim_end_matches(':');
    let what = match (
        context(ContextKind::InvalidArg),
        context(ContextKind::InvalidValue),
    ) {
        (Some(argument), Some(value)) if !value.is_empty() => {
            format!(
                "{argument} does not take {:?}",
                Foreign::new(value).to_string()
            )
        }
        _ => Foreign::from(first).to_string(),
    };
    let mut explained = Explain::new(Exit::Usage, Fault::Caller, what);
    explained.why =
        std::error::Error::source(error).map(|source| Foreign::new(source.to_string()).to_string());
    if explained.why.is_none() {
        let missing = text
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(str::trim);
        let missing: Vec<&str> = missing.filter(|line| !line.is_empty()).collect();
        explained.why = (!missing.is_empty()).then(|| Foreign::new(missing.join(", ")).to_string());
    }
    if explained.why.is_none() {
        explained.why = Some(kind_of(error).to_owned());
    }
    let depth = if error.kind() == ErrorKind::InvalidSubcommand {
        0
    } else {
        2
    };
    let verbs = Foreign::new(verbs(depth).join(" ")).to_string();
    explain(&explained.next(format!(
        "see `lych {verbs}{}--help`",
        if verbs.is_empty() { "" } else { " " }
    )));
    ExitCode::from(Exit::Usage.code())
}

fn kind_of(error: &clap::Error) -> &'static str {
    let kind = error.kind();
    if kind == ErrorKind::UnknownArgument {
        "there is no such option here"
    } else if kind == ErrorKind::InvalidSubcommand {
        "there is no such verb"
    } else if kind == ErrorKind::ArgumentConflict {
        "only one of them can be meant"
    } else {
        "the command line does not have the expected form"
    }
}

/// The verbs that were typed, without options and what belongs to the global ones.
fn verbs(depth: usize) -> Vec<String> {
    let mut words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    let mut verbs = Vec::new();
    while let Some(word) = words.next() {
        if word == "--home" {
            words.next();
        } else if word.starts_with('-') || verbs.len() == depth {
            break;
        } else {
            verbs.push(word);
        }
    }
    verbs
}

/// Prints what happened, why, and what to do next.
pub(crate) fn explain(error: &Explain) {
    let mut text = format!("error: {}\n", error.what);
    if let Some(why) = &error.why {
        text.push_str(&format!("cause: {why}\n"));
    }
    if let Some(next) = &error.next {
        text.push_str(&format!("hint:  {next}\n"));
    }
    if error.fault == Fault::Ours {
        text.push_str("This is a defect of Lychgate; please report it.\n");
    }
    note(text.trim_end());
}

/// Prints a line for the person on stderr; a broken stderr is nobody's problem.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints data on stdout. Whoever closed the pipe has read enough.
///
/// # Errors
/// The output could not be written, for another reason than that nobody reads it.
pub(crate) fn data(text: &str) -> Result<(), Explain> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Explain::new(
            Exit::Failed,
            Fault::Operator,
            "the output could not be written",
        )
        .because(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints one value as JSON on stdout, with a line end.
///
/// # Errors
/// It could not be written.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Explain> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the result cannot be written as JSON",
        )
        .because(error)
    })?;
    text.push('\n');
    data(&text)
}

/// Prints a table, or a line that says there is nothing.
///
/// # Errors
/// It could not be written.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>, none: &str) -> Result<(), Explain> {
    if rows.is_empty() {
        note(none);
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(head.to_vec());
    table.add_rows(rows);
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    data(&(lines.join("\n") + "\n"))
}
