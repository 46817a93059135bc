//! What clients wrote into their own logs about the servers they started: who, which command, when.
//!
//! These logs hold whole conversations and grow to any size, so only the ends of the newest are read, one form of
//! line is understood of each client, and nothing else of them is kept. A missing log says nothing.

use std::path::PathBuf;

use model::{Foreign, Wall, redact};

use crate::Client;

/// A line about a server that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// Whose log it is.
    pub client: Client,
    /// The command line, redacted.
    pub command: Vec<Foreign>,
    /// When.
    pub at: LoggedAt,
    /// The log.
    pub source: PathBuf,
    /// Whose file that is: it says nothing about other users' processes.
    pub owner_uid: u32,
}

/// A time as a log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedAt {
    /// With its zone.
    Utc(Wall),
    /// By a clock on a wall somewhere.
    Local(Wall),
}

impl LoggedAt {
    /// Tells whether it may be this moment, give or take.
    ///
    /// All zones are whole quarters of an hour, fourteen hours at most, apart from the world's own time.
    #[must_use]
    pub fn is_near(self, moment: Wall, give_or_take_ms: u64) -> bool {
        let (at, zone_unknown) = match self {
            Self::Utc(at) => (at, false),
            Self::Local(at) => (at, true),
        };
        let apart = at.millis().abs_diff(moment.millis());
        if !zone_unknown {
            return apart <= give_or_take_ms;
        }
        let over = apart % QUARTER_MS;
        apart <= FARTHEST_ZONE_MS + give_or_take_ms
            && (over <= give_or_take_ms || QUARTER_MS - over <= give_or_take_ms)
    }
}

impl Launched {
    /// Tells whether it may speak of the processes of this user.
    #[must_use]
    pub const fn speaks_of(&self, uid: u32) -> bool {
        self.owner_uid == uid || self.owner_uid == 0
    }
}

/// Finds the lines about servers in the end of a log, whose first line may be cut.
pub(crate) fn parse(client: Client, text: &str) -> Vec<(LoggedAt, Vec<Foreign>)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        let Some((at, words)) = launch(client, line, after) else {
            continue;
        };
        found.push((at, redact::arguments(words)));
    }
    found
}

fn launch(client: Client, line: &str, after: &str) -> Option<(LoggedAt, Vec<String>)> {
    let (_, marker) = MARKERS.iter().find(|(of, _)| *of == client)?;
    let (_, command) = line.split_once(marker)?;
    let at = time(line)?;
    // `PROGRAM with args and path: {` is followed by what Node's `util.inspect` makes of the arguments.
    let words = match command.split_once(" with args and path: ") {
        Some((program, _)) => {
            let (_, arguments) = entry(after).split_once("args: [")?;
            let mut words = vec![program.to_owned()];
            words.extend(inspected(arguments));
            words
        }
        None => command.split_whitespace().map(str::to_owned).collect(),
    };
    (!words.is_empty()).then_some((at, words))
}

/// Returns what belongs to the same entry: up to the next line that begins with a time.
fn entry(after: &str) -> &str {
    let begins = |line: &&str| time(line).is_some();
    let next = after.split_inclusive('\n').take_while(|line| !begins(line));
    let length = next.map(str::len).sum();
    after.get(..length).unwrap_or(after)
}

/// Reads the strings of a list up to its end. What is no string there (`[length]: 2`) is left out.
fn inspected(text: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut depth = 0_u32;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '[' => depth += 1,
            ']' if depth == 0 => break,
            ']' => depth -= 1,
            quote @ ('\'' | '"' | '`') => {
                let mut string = String::new();
                while let Some(inner) = characters.next().filter(|inner| *inner != quote) {
                    let escaped = (inner == '\\').then(|| characters.next()).flatten();
                    string.push(escaped.unwrap_or(inner));
                }
                strings.push(string);
            }
            _ => {}
        }
    }
    strings
}

/// Parses `2026-03-23T21:26:18.551Z` and `2025-11-05 09:59:48.527` at the start of a line.
fn time(line: &str) -> Option<LoggedAt> {
    let day = line.split([' ', 'T']).next()?;
    let clock = line.get(day.len() + 1..)?.split(' ').next()?;
    match clock.strip_suffix('Z') {
        Some(_) => Some(LoggedAt::Utc(format!("{day}T{clock}").parse().ok()?)),
        None => Some(LoggedAt::Local(format!("{day}T{clock}Z").parse().ok()?)),
    }
}

/// What stands before the command in each client's log.
const MARKERS: [(Client, &str); 3] = [
    (Client::ClaudeDesktop, "Using MCP server command: "),
    (Client::Cursor, "Starting new stdio process with command: "),
    (Client::VsCode, "Server command line: "),
];

const QUARTER_MS: u64 = 15 * 60 * 1000;

const FARTHEST_ZONE_MS: u64 = 14 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// As Claude Desktop writes it.
    const DESKTOP: &str = "ommand: cut off\n\
2026-03-23T21:26:18.510Z [home] [info] Initializing server... { metadata: undefined }\n\
2026-03-23T21:26:18.551Z [home] [info] Using MCP server command: /usr/bin/npx with args and path: {\n\
  metadata: {\n\
    args: [\n      '-y',\n      'mcp-home',\n      \"it's\",\n      '--token=hunter2',\n      [length]: 4\n    ],\n\
    paths: [ '/usr/bin', [length]: 1 ]\n  }\n} undefined\n";

    fn lines(client: Client, text: &str) -> Vec<String> {
        let found = parse(client, text).into_iter();
        let line = |words: Vec<Foreign>| {
            let words: Vec<&str> = words.iter().map(Foreign::raw).collect();
            words.join(" ")
        };
        found.map(|(_, words)| line(words)).collect()
    }

    #[test]
    fn claude_desktops_arguments_are_read_from_the_lines_behind_and_no_secret_is_kept() {
        let found = lines(Client::ClaudeDesktop, DESKTOP);

        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("/usr/bin/npx -y mcp-home it's --token="));
        assert!(!found[0].contains("hunter2"), "{found:?}");
    }

    /// Lines of Claude Desktop that start this program with what stands behind `args: `.
    fn desktop(second: u32, program: &str, args: &str) -> String {
        format!(
            "2026-03-23T21:26:{second:02}.000Z [x] [info] Using MCP server command: {program} with args and path: {{\n\
             metadata: {{ args: {args}, paths: [ '/usr/bin', [length]: 1 ] }}\n}} undefined\n"
        )
    }

    #[test]
    fn the_arguments_of_one_launch_are_never_those_of_the_next() {
        let text =
            desktop(18, "/opt/first", "undefined") + &desktop(19, "/opt/second", "[ 'two' ]");

        let found = lines(Client::ClaudeDesktop, &text);

        assert_eq!(found, ["/opt/second two"]);
    }

    #[test]
    fn an_argument_ends_at_its_own_quote_and_the_list_at_its_own_bracket() {
        let args = r#"[ 'it\'s', "a \"b\"", `c\\d`, 'e]', [ 'inner', [length]: 1 ], 'last', [length]: 6 ]"#;

        let found = parse(Client::ClaudeDesktop, &desktop(18, "/opt/srv", args));

        let words: Vec<&str> = found[0].1.iter().map(Foreign::raw).collect();
        let expected = [
            "/opt/srv", "it's", r#"a "b""#, r"c\d", "e]", "inner", "last",
        ];
        assert_eq!(words, expected);
        let without = lines(Client::ClaudeDesktop, &desktop(18, "/opt/srv", "[]"));
        assert_eq!(without, ["/opt/srv"]);
    }

    #[test]
    fn the_moment_of_a_launch_is_that_of_its_own_line_with_its_zone_if_it_has_one() {
        let at = |client, text: &str| parse(client, text)[0].0;
        let wall = |text: &str| text.parse::<Wall>().unwrap();

        let desktop = at(Client::ClaudeDesktop, DESKTOP);
        let code = "2025-11-05 09:59:48.527 [info] Server command line: npx -y server\n";
        let code_at = at(Client::VsCode, code);

        assert_eq!(desktop, LoggedAt::Utc(wall("2026-03-23T21:26:18.551Z")));
        assert_eq!(code_at, LoggedAt::Local(wall("2025-11-05T09:59:48.527Z")));
        assert_eq!(lines(Client::VsCode, code), ["npx -y server"]);
        assert!(
            lines(
                Client::VsCode,
                "2025-11-05 09:59:48.527 [info] Server command line: \n"
            )
            .is_empty()
        );
    }

    #[test]
    fn a_log_speaks_of_its_owners_processes_and_roots_of_everybodys() {
        let of = |owner_uid| Launched {
            client: Client::Cursor,
            command: Vec::new(),
            at: LoggedAt::Utc(Wall::from_millis(1)),
            source: PathBuf::new(),
            owner_uid,
        };

        assert!(of(1000).speaks_of(1000) && of(0).speaks_of(1000));
        assert!(!of(1001).speaks_of(1000));
    }

    #[test]
    fn cursors_line_is_read_with_and_without_the_servers_name() {
        let text = "2025-11-05 09:59:48.527 [info] Starting new stdio process with command: npx -y @azure/mcp@latest\n\
            2025-05-02 19:22:02.900 [info] fire: Starting new stdio process with command: uvx logfire-mcp\n\
            2025-05-02 19:22:02.902 [info] fire: Found 1 tools\n";

        let found = lines(Client::Cursor, text);

        assert_eq!(found, ["npx -y @azure/mcp@latest", "uvx logfire-mcp"]);
        assert!(lines(Client::Gemini, text).is_empty());
    }

    #[test]
    fn a_time_without_a_zone_is_near_in_some_zone_and_one_with_a_zone_only_in_that() {
        let wall = |text: &str| text.parse::<Wall>().unwrap();
        let noon = wall("2026-01-01T12:00:00.000Z");
        let near = |at: LoggedAt| at.is_near(noon, 5_000);

        assert!(near(LoggedAt::Utc(wall("2026-01-01T12:00:04Z"))));
        assert!(!near(LoggedAt::Utc(wall("2026-01-01T11:00:00Z"))));
        assert!(near(LoggedAt::Local(wall("2026-01-01T17:45:03Z"))));
        assert!(near(LoggedAt::Local(wall("2026-01-01T17:44:57Z"))));
        assert!(near(LoggedAt::Local(wall("2026-01-01T03:59:57Z"))));
        assert!(near(LoggedAt::Local(wall("2026-01-02T02:00:04Z"))));
        assert!(!near(LoggedAt::Local(wall("2026-01-02T02:15:00Z"))));
        assert!(!near(LoggedAt::Local(wall("2026-01-01T12:07:00Z"))));
        assert!(!near(LoggedAt::Local(wall("2026-01-03T12:00:00Z"))));
    }

    #[test]
    fn what_is_no_such_line_or_has_no_end_is_nothing_and_ends() {
        for text in [
            "",
            "Using MCP server command: npx\n",
            "2026-03-23T21:26:18Z [x] Using MCP server command: npx with args and path: {\n args: [ 'a",
            "9999-99-99 Using MCP server command: npx\n",
        ] {
            let found = lines(Client::ClaudeDesktop, text);
            assert!(found.len() <= 1, "{text}: {found:?}");
        }
    }
}
