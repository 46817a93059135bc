//! The launcher table: what `npx`, `uvx`, `docker run`, `sh -c` and the like turn a configured line into.
//!
//! A configured `npx -y PACKAGE` is three processes and none of them has that command line, so every line is
//! expanded into the [`Form`]s it may be seen in. A bare runtime (`node`, `python`, `npx` without a server
//! argument) has no form at all: it names no server.

use crate::matching::{Part, Strength};

/// One way a configured line may look as a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// These words, perhaps behind an interpreter.
    Line {
        words: Vec<String>,
        /// The most that this form can prove.
        at_most: Strength,
        part: Part,
    },
    /// A Node package's program: `node …/node_modules/….bin/NAME`, or the `sh -c NAME` that npm puts before it.
    NodePackage { package: String, rest: Vec<String> },
    /// A Python tool's script: `python …/bin/TOOL`, or the tool itself.
    PythonTool { tool: String, rest: Vec<String> },
}

/// Expands a configured line.
pub(crate) fn forms(words: &[String]) -> Vec<Form> {
    let mut found = Vec::new();
    expand(words, Strength::Exact, 0, &mut found);
    found
}

/// Tells whether a command line names no server: a runtime or launcher alone, or with options only.
fn names_nothing(words: &[String]) -> bool {
    let Some((program, args)) = words.split_first() else {
        return true;
    };
    let generic = is_runtime(program) || is_launcher(program) || is_shell(program);
    generic && args.iter().all(|arg| arg.starts_with('-'))
}

fn expand(words: &[String], at_most: Strength, depth: u8, found: &mut Vec<Form>) {
    if depth > DEEPEST || names_nothing(words) {
        return;
    }
    let Some((program, args)) = words.split_first() else {
        return;
    };
    let wraps = is_launcher(program) || is_shell(program);
    found.push(Form::Line {
        words: words.to_vec(),
        at_most,
        part: if wraps { Part::Launcher } else { Part::Server },
    });
    let inside = Strength::Strong;
    match (base(program), args.first().map(String::as_str)) {
        ("npx" | "bunx", _) => node_package(args, found),
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("bun", Some("x")) => {
            node_package(args.get(1..).unwrap_or_default(), found);
        }
        ("uvx", _) => python_tool(args, found),
        ("uv", Some("tool")) => python_tool(args.get(2..).unwrap_or_default(), found),
        ("pipx", Some("run")) => python_tool(args.get(1..).unwrap_or_default(), found),
        ("uv", Some("run")) => {
            let inner = args.get(1..).unwrap_or_default();
            expand(skip_options(inner, UV_VALUES), inside, depth + 1, found);
        }
        ("env", _) => expand(skip_assignments(args), inside, depth + 1, found),
        (shell, Some(_)) if is_shell(shell) => {
            let inner = shell_words(args);
            expand(skip_assignments(&inner), inside, depth + 1, found);
        }
        (_, _) => {}
    }
}

/// `npx [options] PACKAGE rest…`
fn node_package(args: &[String], found: &mut Vec<Form>) {
    let Some((package, rest)) = skip_options(args, NPM_VALUES).split_first() else {
        return;
    };
    // npm writes this title over its arguments, with its own options gone.
    let mut title = vec!["npm".to_owned(), "exec".to_owned(), package.clone()];
    title.extend(rest.iter().cloned());
    found.push(Form::Line {
        words: title,
        at_most: Strength::Strong,
        part: Part::Launcher,
    });
    found.push(Form::NodePackage {
        package: without_version(package).to_owned(),
        rest: rest.to_vec(),
    });
}

/// `uvx [options] TOOL rest…`
fn python_tool(args: &[String], found: &mut Vec<Form>) {
    let Some((tool, rest)) = skip_options(args, UV_VALUES).split_first() else {
        return;
    };
    // uvx runs uv with these words before its own.
    let mut title = vec!["uv".to_owned(), "tool".to_owned(), "uvx".to_owned()];
    title.extend(args.iter().cloned());
    found.push(Form::Line {
        words: title,
        at_most: Strength::Strong,
        part: Part::Launcher,
    });
    let end = tool.find(['@', '=', '[', '<', '>']).unwrap_or(tool.len());
    found.push(Form::PythonTool {
        tool: tool.get(..end).unwrap_or(tool).to_owned(),
        rest: rest.to_vec(),
    });
}

/// Skips leading options, with the values of those that have one.
fn skip_options<'a>(args: &'a [String], with_value: &[&str]) -> &'a [String] {
    let mut rest = args;
    while let Some((first, tail)) = rest.split_first() {
        if first == "--" {
            return tail;
        }
        if !first.starts_with('-') {
            return rest;
        }
        let takes_next = with_value.contains(&first.as_str());
        rest = tail.get(usize::from(takes_next)..).unwrap_or_default();
    }
    rest
}

fn skip_assignments(words: &[String]) -> &[String] {
    let is_prefix = |word: &String| {
        word == "exec"
            || word.starts_with('-')
            || word
                .split_once('=')
                .is_some_and(|(name, _)| is_variable(name))
    };
    let start = words
        .iter()
        .position(|word| !is_prefix(word))
        .unwrap_or(words.len());
    words.get(start..).unwrap_or_default()
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The words of `sh -c 'WORDS' rest…`; quoting is not interpreted beyond taking the quotes away.
pub(crate) fn shell_words(args: &[String]) -> Vec<String> {
    let script = args
        .iter()
        .position(|arg| arg.starts_with('-') && arg.ends_with('c'));
    let Some(script) = script.and_then(|at| args.get(at + 1)) else {
        return args.to_vec();
    };
    let quotes = ['\'', '"'];
    script
        .split_whitespace()
        .map(|word| word.trim_matches(quotes).to_owned())
        .collect()
}

/// Takes `@1.2.3` off a package; a scope's `@` stays.
fn without_version(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => package.get(..at).unwrap_or(package),
        Some(_) | None => package,
    }
}

/// Returns the last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Tells whether a program only runs other programs' text.
pub(crate) fn is_runtime(program: &str) -> bool {
    let name = base(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNTIMES.contains(&name)
}

fn is_launcher(program: &str) -> bool {
    LAUNCHERS.contains(&base(program))
}

/// Tells whether a program is a shell.
#[must_use]
pub fn is_shell(program: &str) -> bool {
    SHELLS.contains(&base(program).trim_start_matches('-'))
}

/// `sh -c` in `env` in `uv run` was seen; deeper nesting would be somebody playing with us.
const DEEPEST: u8 = 3;

const RUNTIMES: [&str; 9] = [
    "node", "nodejs", "python", "deno", "bun", "ruby", "perl", "php", "java",
];
const LAUNCHERS: [&str; 12] = [
    "npx", "npm", "bunx", "pnpm", "yarn", "uvx", "uv", "pipx", "env", "docker", "podman", "tsx",
];
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash"];

const NPM_VALUES: &[&str] = &["-p", "--package", "-c", "--call", "-w", "--workspace"];
const UV_VALUES: &[&str] = &[
    "--from",
    "--with",
    "--with-editable",
    "--python",
    "-p",
    "--directory",
    "--project",
    "--index",
    "--index-url",
    "--extra-index-url",
    "--env-file",
    "--extra",
    "--group",
    "--refresh-package",
];
