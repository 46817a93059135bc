//! Compares a configured server with a command line: program *and* server argument, never a runtime's name.

use model::Foreign;
use serde::{Deserialize, Serialize};

use crate::{
    Expected, Launched,
    launcher::{Form, base, forms, is_runtime, is_shell, shell_words},
};

/// How well a process fits a configured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// The program fits, the arguments do not.
    Weak,
    /// Program and server argument fit, through a launcher or with parts that cannot be compared.
    Strong,
    /// The whole command line is as configured.
    Exact,
}

/// Which part of a configured server a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It starts the server and waits for it.
    Launcher,
    /// It is the server.
    Server,
}

/// That a process fits a configured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Match {
    /// How well.
    pub strength: Strength,
    /// As which part.
    pub part: Part,
}

/// Configured servers, prepared for comparing with many command lines.
#[derive(Debug, Clone)]
pub struct Matcher {
    forms: Vec<Vec<Form>>,
}

impl Matcher {
    /// Prepares these servers.
    #[must_use]
    pub fn new(expected: &[Expected]) -> Self {
        let lines = expected
            .iter()
            .map(|server| std::iter::once(&server.command).chain(&server.args));
        Self::of(lines)
    }

    /// Prepares the servers that clients have logged.
    #[must_use]
    pub fn of_launched(launched: &[Launched]) -> Self {
        Self::of(launched.iter().map(|one| &one.command))
    }

    fn of<'a>(lines: impl Iterator<Item = impl IntoIterator<Item = &'a Foreign>>) -> Self {
        let forms = lines.map(|line| {
            let words = line.into_iter().map(|word| word.raw().to_owned());
            forms(&words.collect::<Vec<String>>())
        });
        Self {
            forms: forms.collect(),
        }
    }

    /// Returns which of the servers a command line fits, by their places in the list, and how well.
    ///
    /// The command line must be redacted as the configuration is.
    #[must_use]
    pub fn matches(&self, command: &[Foreign]) -> Vec<(usize, Match)> {
        let seen = words(command);
        let best = |forms: &Vec<Form>| forms.iter().filter_map(|form| fits(form, &seen)).max();
        let all = self.forms.iter().enumerate();
        all.filter_map(|(at, forms)| Some((at, best(forms)?)))
            .collect()
    }
}

/// Splits a title that was written over the arguments into the words it was made of.
fn words(command: &[Foreign]) -> Vec<String> {
    match command {
        [title] => title.raw().split_whitespace().map(str::to_owned).collect(),
        many => many.iter().map(|word| word.raw().to_owned()).collect(),
    }
}

fn fits(form: &Form, seen: &[String]) -> Option<Match> {
    match form {
        Form::Line {
            words,
            at_most,
            part,
        } => line(words, seen).map(|strength| Match {
            strength: strength.min(*at_most),
            part: *part,
        }),
        Form::NodePackage { package, rest } => node_package(package, rest, seen),
        Form::PythonTool { tool, rest } => python_tool(tool, rest, seen).then_some(Match {
            strength: Strength::Strong,
            part: Part::Server,
        }),
    }
}

/// Compares with the words as they are, and with those behind an interpreter and its options.
fn line(words: &[String], seen: &[String]) -> Option<Strength> {
    let mut best = same_line(words, seen);
    if seen
        .first()
        .is_some_and(|program| is_runtime(program) || is_shell(program))
    {
        let script = seen.iter().skip(1).position(|word| !word.starts_with('-'));
        let behind = script.and_then(|at| seen.get(at + 1..)).unwrap_or_default();
        best = best.max(same_line(words, behind));
    }
    best
}

fn same_line(words: &[String], seen: &[String]) -> Option<Strength> {
    let (program, args) = words.split_first()?;
    let (seen_program, seen_args) = seen.split_first()?;
    let program = same_program(program, seen_program)?;
    match same_args(args, seen_args) {
        Some(args_strength) => Some(args_strength.min(program)),
        None => same_server(words, args, seen_args).then_some(Strength::Weak),
    }
}

fn same_program(configured: &str, seen: &str) -> Option<Strength> {
    let both_paths = configured.starts_with('/') && seen.starts_with('/');
    if configured == seen || !both_paths && base(configured) == base(seen) {
        return Some(Strength::Exact);
    }
    // `python` was found as `python3.11`.
    let family = |name: &str| {
        base(name)
            .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
            .to_owned()
    };
    (is_runtime(configured) && family(configured) == family(seen)).then_some(Strength::Strong)
}

fn same_args(configured: &[String], seen: &[String]) -> Option<Strength> {
    if configured.len() != seen.len() {
        return None;
    }
    let mut strength = Strength::Exact;
    for (configured, seen) in configured.iter().zip(seen) {
        if configured == seen {
            continue;
        }
        // A variable that we cannot resolve stands for anything between what stands around it.
        let (before, after) = wildcard(configured)?;
        let fits = seen.len() >= before.len() + after.len()
            && seen.starts_with(before)
            && seen.ends_with(after);
        if !fits {
            return None;
        }
        strength = Strength::Strong;
    }
    // With nothing but variables nothing was compared.
    let compared = configured.is_empty() || configured.iter().any(|arg| wildcard(arg).is_none());
    compared.then_some(strength)
}

/// Splits `a${B}c` into what stands before and behind its variables.
fn wildcard(text: &str) -> Option<(&str, &str)> {
    let start = text.find('$')?;
    let end = text.rfind('}').map_or(text.len(), |end| end + 1);
    Some((text.get(..start)?, text.get(end.max(start)..)?))
}

/// Same program, other arguments: only what names a server of its own counts.
fn same_server(words: &[String], args: &[String], seen: &[String]) -> bool {
    let names_itself = words.first().is_some_and(|program| {
        !is_runtime(program) && !is_shell(program) && forms(words).len() == 1
    });
    let positional = |args: &[String]| args.iter().find(|arg| !arg.starts_with('-')).cloned();
    let script = positional(args).is_some_and(|script| Some(script) == positional(seen));
    let generic = words
        .first()
        .is_some_and(|program| GENERIC.contains(&base(program)));
    !generic && (names_itself && args.is_empty() || script)
}

/// `node …/_npx/HASH/node_modules/.bin/NAME rest`, `node …/node_modules/PACKAGE/… rest`, `sh -c 'NAME' rest`.
fn node_package(package: &str, rest: &[String], seen: &[String]) -> Option<Match> {
    let (program, args) = seen.split_first()?;
    let found = |part| {
        Some(Match {
            strength: Strength::Strong,
            part,
        })
    };
    if is_shell(program) {
        let inner = shell_words(args);
        let (name, inner_rest) = inner.split_first()?;
        return if related(package, name) && inner_rest == rest {
            found(Part::Launcher)
        } else {
            None
        };
    }
    if !is_runtime(program) {
        return None;
    }
    let script = args.iter().position(|arg| !arg.starts_with('-'))?;
    let path = args.get(script)?;
    let installed = path.contains(&format!("/node_modules/{package}/"));
    let cached = path.contains("/_npx/") && related(package, base(path));
    if (installed || cached) && args.get(script + 1..)? == rest {
        return found(Part::Server);
    }
    None
}

fn python_tool(tool: &str, rest: &[String], seen: &[String]) -> bool {
    let same = |path: &str| base(path).replace('_', "-") == tool.replace('_', "-");
    let Some((program, args)) = seen.split_first() else {
        return false;
    };
    if same(program) {
        return args == rest;
    }
    let script = args.iter().position(|arg| !arg.starts_with('-'));
    let Some(script) = script.filter(|_| is_runtime(program)) else {
        return false;
    };
    args.get(script).is_some_and(|path| same(path)) && args.get(script + 1..) == Some(rest)
}

/// Tells whether a program may be a package's: they share a word that is not everybody's.
fn related(package: &str, program: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !COMMON.contains(word) && !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let ours = words(package);
    words(program).iter().any(|word| ours.contains(word))
}

const COMMON: [&str; 8] = [
    "mcp",
    "server",
    "cli",
    "js",
    "node",
    "the",
    "modelcontextprotocol",
    "bin",
];

/// Programs whose first argument names an act, not a server.
const GENERIC: [&str; 7] = ["docker", "podman", "npm", "uv", "env", "ssh", "lych"];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Client;

    fn configured(line: &[&str]) -> Expected {
        let (command, args) = line.split_first().unwrap();
        Expected {
            name: Foreign::from("x"),
            client: Client::ClaudeCode,
            command: Foreign::from(*command),
            args: args.iter().map(|arg| Foreign::from(*arg)).collect(),
            env_names: Vec::new(),
            source: PathBuf::new(),
            owner_uid: 0,
        }
    }

    fn compare(configured_line: &[&str], seen: &[&str]) -> Option<(Strength, Part)> {
        let seen: Vec<Foreign> = seen.iter().map(|word| Foreign::from(*word)).collect();
        let found = Matcher::new(&[configured(configured_line)]).matches(&seen);
        found.first().map(|(_, found)| (found.strength, found.part))
    }

    const EXACT: Option<(Strength, Part)> = Some((Strength::Exact, Part::Server));
    const STRONG: Option<(Strength, Part)> = Some((Strength::Strong, Part::Server));
    const WEAK: Option<(Strength, Part)> = Some((Strength::Weak, Part::Server));
    const LAUNCHER: Option<(Strength, Part)> = Some((Strength::Strong, Part::Launcher));

    #[test]
    fn the_configured_line_itself_is_exact_also_behind_an_interpreter() {
        let line = ["/opt/srv", "--stdio"];
        assert_eq!(compare(&line, &["/opt/srv", "--stdio"]), EXACT);
        assert_eq!(compare(&line, &["node", "/opt/srv", "--stdio"]), EXACT);
        assert_eq!(
            compare(&["srv", "a"], &["python3", "-u", "/usr/bin/srv", "a"]),
            EXACT
        );
        assert_eq!(
            compare(&["python", "s.py"], &["python3.11", "s.py"]),
            STRONG
        );
    }

    #[test]
    fn a_runtime_alone_is_nobody() {
        for line in [["node"], ["python3"], ["npx"], ["bash"]] {
            assert_eq!(compare(&line, &line), None, "{line:?}");
        }
        assert_eq!(compare(&["node", "a.js"], &["node", "b.js"]), None);
        assert_eq!(compare(&["npx", "-y"], &["npx", "-y"]), None);
    }

    #[test]
    fn all_three_processes_of_npx_are_recognised() {
        let line = [
            "npx",
            "-y",
            "@modelcontextprotocol/server-everything@1.2.3",
            "stdio",
        ];

        let title = "npm exec @modelcontextprotocol/server-everything@1.2.3 stdio";
        assert_eq!(compare(&line, &[title]), LAUNCHER);
        assert_eq!(
            compare(&line, &["sh", "-c", "'mcp-server-everything' stdio"]),
            LAUNCHER
        );
        let bin = "/home/u/.npm/_npx/5b2dd62b/node_modules/.bin/mcp-server-everything";
        assert_eq!(compare(&line, &["node", bin, "stdio"]), STRONG);
        assert_eq!(compare(&line, &["node", bin, "sse"]), None);
        let other = "/home/u/.npm/_npx/5b2dd62b/node_modules/.bin/mcp-server-memory";
        assert_eq!(compare(&line, &["node", other, "stdio"]), None);
    }

    #[test]
    fn uvx_and_uv_run_are_seen_through() {
        let line = ["uvx", "mcp-server-time==2026.1", "--local-timezone", "UTC"];
        let launcher = [
            "uv",
            "tool",
            "uvx",
            "mcp-server-time==2026.1",
            "--local-timezone",
            "UTC",
        ];
        assert_eq!(compare(&line, &launcher), LAUNCHER);
        let python = [
            "/c/bin/python",
            "/c/bin/mcp-server-time",
            "--local-timezone",
            "UTC",
        ];
        assert_eq!(compare(&line, &python), STRONG);

        let run = ["uv", "--quiet", "run", "--directory", "/p", "server.py"];
        assert_eq!(compare(&run[2..], &["python3", "server.py"]), None);
        let run = ["uv", "run", "--directory", "/p", "python", "server.py"];
        assert_eq!(compare(&run, &["python3", "server.py"]), STRONG);
    }

    #[test]
    fn a_shell_and_env_are_seen_through() {
        let line = ["bash", "-lc", "FOO=1 exec node /srv/server.js --x"];
        assert_eq!(compare(&line, &["node", "/srv/server.js", "--x"]), STRONG);
        let line = ["env", "A=b", "node", "/srv/server.js"];
        assert_eq!(compare(&line, &["node", "/srv/server.js"]), STRONG);
    }

    #[test]
    fn docker_run_is_the_line_that_was_configured_and_no_other() {
        let line = ["docker", "run", "-i", "--rm", "image"];
        assert_eq!(
            compare(&line, &["docker", "run", "-i", "--rm", "image"]),
            Some((Strength::Exact, Part::Launcher))
        );
        assert_eq!(
            compare(&line, &["docker", "run", "-i", "--rm", "other"]),
            None
        );
    }

    #[test]
    fn the_same_program_with_other_arguments_is_weak() {
        let line = ["python3", "/srv/server.py", "--db", "a"];
        assert_eq!(
            compare(&line, &["python3", "/srv/server.py", "--db", "b"]),
            WEAK
        );
        assert_eq!(compare(&["mcp-time"], &["mcp-time", "--utc"]), WEAK);
    }

    #[test]
    fn another_verb_of_the_same_program_is_nobody() {
        let line = ["lych", "--home", "/h", "mcp"];
        assert_eq!(compare(&line, &["lych", "--home", "/h", "ps"]), None);
        assert_eq!(compare(&line, &["lych", "--home", "/h", "mcp"]), EXACT);
    }

    #[test]
    fn a_variable_stands_for_anything_but_proves_less() {
        let line = ["srv", "--root", "${HOME}/data"];
        assert_eq!(compare(&line, &["srv", "--root", "/home/u/data"]), STRONG);
        assert_eq!(compare(&line, &["srv", "--root", "/home/u/other"]), None);
        assert_eq!(compare(&["node", "$SCRIPT"], &["node", "build.js"]), None);
    }

    #[test]
    fn names_that_only_contain_a_word_are_nobody() {
        let line = ["npx", "-y", "mcp-server"];
        assert_eq!(
            compare(&line, &["python3", "-m", "pytest", "/home/u/mcp-server-x"]),
            None
        );
        assert_eq!(compare(&line, &["vim", "mcp-server"]), None);
    }
}
