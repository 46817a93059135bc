//! Where clients keep the logs that name the servers they started, and the ends of the newest of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Client, Launched, Places, launched};

impl Places {
    /// Reads what the clients of these homes have logged about the servers they started.
    pub(crate) fn launched(&self) -> Vec<Launched> {
        let mut found = Vec::new();
        for home in &self.homes {
            for (client, pattern) in LOGS {
                for file in newest(home, pattern) {
                    read(client, file, &mut found);
                }
            }
        }
        found
    }
}

/// What cannot be read was not logged for us; nothing follows from a log's absence.
fn read(client: Client, file: PathBuf, found: &mut Vec<Launched>) {
    let Ok(end) = sys::small_file::read_end(&file, LONGEST_END) else {
        return;
    };
    let text = String::from_utf8_lossy(&end.content);
    let launches = launched::parse(client, &text).into_iter();
    found.extend(launches.map(|(at, command)| Launched {
        client,
        command,
        at,
        source: file.clone(),
        owner_uid: end.owner_uid,
    }));
}

/// Lists the files below a folder that a pattern names; each part of it may have one `*`. Folders and files are
/// named by time or by server, so of many the last by name are taken.
fn newest(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for part in pattern.split('/') {
        found = match part.split_once('*') {
            None => found.iter().map(|one| one.join(part)).collect(),
            Some((start, end)) => found
                .iter()
                .flat_map(|one| matching(one, start, end))
                .collect(),
        };
    }
    found.truncate(MOST_LOGS);
    found
}

fn matching(folder: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(start) && name.ends_with(end))
        .collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.truncate(MOST_LOGS);
    names.iter().map(|name| folder.join(name)).collect()
}

/// Of one client, for each part of a path and in all.
const MOST_LOGS: usize = 16;

/// A day of a talkative client.
const LONGEST_END: u64 = 256 * 1024;

/// As issues and documents of these clients show them; where one keeps them elsewhere, nothing is known from it.
const LOGS: [(Client, &str); 6] = [
    (Client::ClaudeDesktop, "Library/Logs/Claude/mcp*.log"),
    (Client::ClaudeDesktop, ".config/Claude/logs/mcp*.log"),
    (
        Client::Cursor,
        "Library/Application Support/Cursor/logs/*/window*/exthost/anysphere.cursor-*/MCP*.log",
    ),
    (
        Client::Cursor,
        ".config/Cursor/logs/*/window*/exthost/anysphere.cursor-*/MCP*.log",
    ),
    (
        Client::VsCode,
        "Library/Application Support/Code/logs/*/window*/mcpServer*.log",
    ),
    (Client::VsCode, ".config/Code/logs/*/window*/mcpServer*.log"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_logs_of_a_home_are_found_and_only_the_end_of_a_long_one_is_read() {
        let home = tempfile::tempdir().unwrap();
        let cursor = ".config/Cursor/logs/20260101T100000/window1/exthost/anysphere.cursor-mcp/MCP user-x.log";
        let line = |program: &str| {
            format!(
                "2026-01-01 10:00:00.000 [info] Starting new stdio process with command: {program}\n"
            )
        };
        let filler = |length| "x".repeat(length) + "\n";
        let text = [
            line("early"),
            filler(56 * 1024),
            line("late"),
            filler(200 * 1024),
        ];
        let text = text.concat() + &line("last");
        write(&home.path().join(cursor), &text);
        let folder = Path::new(cursor).parent().unwrap();
        for other in ["MCP user-x.log.1", "other.log", "../MCP user-x.log"] {
            write(&home.path().join(folder).join(other), &line("elsewhere"));
        }

        let places = Places {
            homes: vec![home.path().to_owned()],
            ..Places::default()
        };
        let found = places.launched();

        let programs: Vec<&str> = found.iter().map(|one| one.command[0].raw()).collect();
        assert_eq!(programs, ["late", "last"]);
        assert_eq!(found[0].client, Client::Cursor);
    }

    #[test]
    fn of_many_logs_the_last_by_name_are_read() {
        let home = tempfile::tempdir().unwrap();
        for number in 10..40 {
            let name = format!("Library/Logs/Claude/mcp-{number}.log");
            let line = format!(
                "2026-01-01T10:00:00.000Z [x] [info] Using MCP server command: s{number}\n"
            );
            write(&home.path().join(name), &line);
        }

        let found = newest(home.path(), "Library/Logs/Claude/mcp*.log");

        assert_eq!(found.len(), MOST_LOGS);
        assert!(found[0].ends_with("mcp-39.log"));
    }
}
