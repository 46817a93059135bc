//! The person's side: data on stdout, everything else on stderr, and no panic when either is gone.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{
    CommandFactory,
    error::{ContextKind, ErrorKind},
};
use model::{Exit, Explain, Fault, Foreign};
use serde::Serialize;

use crate::cli::Cli;

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
    let verbs = verbs().join(" ");
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

/// The verbs that were typed and are some: what stands behind them may be anything.
fn verbs() -> Vec<String> {
    let mut at = Cli::command();
    let mut words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    let mut verbs = Vec::new();
    while let Some(word) = words.next() {
        if word == "--home" {
            words.next();
        } else if let Some(verb) = at.find_subcommand(&word).cloned() {
            verbs.push(word);
            at = verb;
        } else {
            break;
        }
    }
    verbs
}

/// Prints what happened, why, and what to do next.
///
/// A part of each may be somebody else's text that a library put into its own words (a key of a configuration
/// file, a path): all of it is made harmless here, on one line, and not longer than a person reads.
pub(crate) fn explain(error: &Explain) {
    let mut text = format!("error: {}\n", harmless(&error.what));
    if let Some(why) = &error.why {
        text.push_str(&format!("cause: {}\n", harmless(why)));
    }
    if let Some(next) = &error.next {
        text.push_str(&format!("hint:  {}\n", harmless(next)));
    }
    if error.fault == Fault::Ours {
        text.push_str("This is a defect of Lychgate; please report it.\n");
    }
    note(text.trim_end());
}

fn harmless(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST_PART).collect();
    let more = if shown.len() < text.len() {
        " […]"
    } else {
        ""
    };
    format!("{}{more}", Foreign::new(shown))
}

/// A part of an error, in characters: a screen of them, since what is longer is read nowhere.
const LONGEST_PART: usize = 2_000;

/// Prints a line for the person on stderr; a broken stderr is nobody's problem.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// The last net before a terminal: whatever page or table forgot to make somebody else's text harmless.
fn shown(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c == '\n' || c == '\t' || model::is_harmless(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| {
        if plain(c) {
            c.to_string()
        } else {
            c.escape_unicode().to_string()
        }
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// How a line of a page stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    /// Something is left over.
    Alarm,
    /// Something may be.
    Doubt,
    /// All is as it should be.
    Fine,
    /// What to do next.
    Strong,
}

impl Tint {
    /// ECMA-48, `SGR`; the eight colours that every terminal has.
    const fn start(self) -> &'static str {
        match self {
            Self::Alarm => "\u{1b}[1;31m",
            Self::Doubt => "\u{1b}[33m",
            Self::Fine => "\u{1b}[32m",
            Self::Strong => "\u{1b}[1m",
        }
    }
}

/// Prints a page on stdout, some of its lines in colour where that is shown and wanted.
///
/// Only whole lines that begin at the edge can stand out: somebody else's text never begins there.
///
/// # Errors
/// The output could not be written, for another reason than that nobody reads it.
pub(crate) fn page(text: &str, tint: impl Fn(&str) -> Option<Tint>) -> Result<(), Explain> {
    if !is_colour_wanted() {
        return data(text);
    }
    let line = |line: &str| match tint(line).filter(|_| !line.starts_with(' ')) {
        Some(tint) => format!("{}{}\u{1b}[0m\n", tint.start(), shown(line)),
        None => format!("{}\n", shown(line)),
    };
    write(&text.lines().map(line).collect::<String>())
}

/// A terminal that is one, and nobody who said no (<https://no-color.org>).
fn is_colour_wanted() -> bool {
    let said_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !said_no && !dumb && io::stdout().is_terminal()
}

/// Prints data on stdout. Whoever closed the pipe has read enough.
///
/// # Errors
/// The output could not be written, for another reason than that nobody reads it.
pub(crate) fn data(text: &str) -> Result<(), Explain> {
    write(&shown(text))
}

fn write(text: &str) -> Result<(), Explain> {
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
    data(&escaped(&text))
}

/// JSON (RFC 8259, section 7) lets everything from U+0080 stand as it is; a terminal acts on some of it. The
/// escaped form means the same, and such characters stand nowhere but in its strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || model::is_harmless(c) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
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
