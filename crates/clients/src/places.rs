//! Where the clients keep their configurations on this machine.

use std::{collections::BTreeSet, io, path::PathBuf};

use crate::{Client, Expected, Launched, Note, Source, parse};

/// Where to look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The home folders of the users whose configurations count.
    pub homes: Vec<PathBuf>,
    /// Folders that may lie in a project; their ancestors are looked at too.
    pub folders: Vec<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and the like: files that are somewhere else than usual.
    pub moved: Vec<(Client, PathBuf)>,
    /// Files named by hand.
    pub extra: Vec<PathBuf>,
}

/// What was found there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The servers.
    pub expected: Vec<Expected>,
    /// What the clients have logged about the servers they started.
    pub launched: Vec<Launched>,
    /// The files that could not be used.
    pub notes: Vec<Note>,
}

impl Places {
    /// Returns the places of the person whose environment `var` looks up.
    #[must_use]
    pub fn from_vars(var: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let file = |name: &str, client, file: &str| {
            var(name)
                .filter(|folder| folder.is_absolute())
                .map(|folder| (client, folder.join(file)))
        };
        Self {
            homes: var("HOME")
                .filter(|home| home.is_absolute())
                .into_iter()
                .collect(),
            folders: Vec::new(),
            moved: file("CLAUDE_CONFIG_DIR", Client::ClaudeCode, ".claude.json")
                .into_iter()
                .chain(file("CODEX_HOME", Client::Codex, "config.toml"))
                .collect(),
            extra: Vec::new(),
        }
    }

    /// Reads all configurations that are there.
    #[must_use]
    pub fn read(&self) -> Found {
        let mut found = Found {
            launched: self.launched(),
            ..Found::default()
        };
        for (client, file) in self.files() {
            match sys::small_file::read(&file, LARGEST) {
                Ok(read) => {
                    let source = Source {
                        client,
                        file,
                        owner_uid: read.owner_uid,
                    };
                    match parse(&source, &read.content) {
                        Ok(expected) => found.expected.extend(expected),
                        Err(error) => found.note(source.file, &error),
                    }
                }
                Err(error) if is_absent(&error) && !self.extra.contains(&file) => {}
                Err(error) => found.note(file, &error),
            }
        }
        found
    }

    /// Lists the files, each once.
    fn files(&self) -> Vec<(Client, PathBuf)> {
        let mut files = self.moved.clone();
        for home in &self.homes {
            files.extend(
                HOME_FILES
                    .iter()
                    .map(|(client, file)| (*client, home.join(file))),
            );
        }
        for folder in self.folders.iter().flat_map(|folder| folder.ancestors()) {
            files.extend(
                PROJECT_FILES
                    .iter()
                    .map(|(client, file)| (*client, folder.join(file))),
            );
        }
        files.extend(
            self.extra
                .iter()
                .map(|file| (Client::Unnamed, file.clone())),
        );
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        files.retain(|(_, file)| seen.insert(file.clone()));
        files
    }
}

impl Found {
    fn note(&mut self, file: PathBuf, why: &dyn std::error::Error) {
        let why = why.to_string();
        self.notes.push(Note { file, why });
    }
}

/// Clients that are not installed have no files: that is ordinary and no note.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// `~/.claude.json` also holds histories; larger ones than this were not seen.
const LARGEST: u64 = 32 * 1024 * 1024;

/// Files below a home folder.
const HOME_FILES: [(Client, &str); 10] = [
    (Client::ClaudeCode, ".claude.json"),
    (
        Client::ClaudeDesktop,
        ".config/Claude/claude_desktop_config.json",
    ),
    (
        Client::ClaudeDesktop,
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    (Client::Codex, ".codex/config.toml"),
    (Client::Cursor, ".cursor/mcp.json"),
    (Client::VsCode, ".config/Code/User/mcp.json"),
    (Client::VsCode, ".config/Code/User/settings.json"),
    (
        Client::VsCode,
        "Library/Application Support/Code/User/mcp.json",
    ),
    (Client::VsCode, ".vscode-server/data/User/mcp.json"),
    (Client::Gemini, ".gemini/settings.json"),
];

/// Files in a project or above it.
const PROJECT_FILES: [(Client, &str); 5] = [
    (Client::ClaudeCode, ".mcp.json"),
    (Client::Codex, ".codex/config.toml"),
    (Client::Cursor, ".cursor/mcp.json"),
    (Client::VsCode, ".vscode/mcp.json"),
    (Client::Gemini, ".gemini/settings.json"),
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn server(key: &str, name: &str) -> String {
        format!(r#"{{"{key}": {{"{name}": {{"command": "srv-{name}"}}}}}}"#)
    }

    fn names(found: &Found) -> Vec<&str> {
        found
            .expected
            .iter()
            .map(|server| server.name.raw())
            .collect()
    }

    #[test]
    fn the_six_clients_user_files_are_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |file: &str| home.path().join(file);
        write(&at(".claude.json"), &server("mcpServers", "code"));
        write(
            &at(".config/Claude/claude_desktop_config.json"),
            &server("mcpServers", "desktop"),
        );
        write(
            &at(".codex/config.toml"),
            "[mcp_servers.codex]\ncommand = \"srv\"\n",
        );
        write(&at(".cursor/mcp.json"), &server("mcpServers", "cursor"));
        write(
            &at(".config/Code/User/mcp.json"),
            &server("servers", "vscode"),
        );
        write(
            &at(".gemini/settings.json"),
            &server("mcpServers", "gemini"),
        );

        let found = Places {
            homes: vec![home.path().to_owned()],
            ..Places::default()
        }
        .read();

        let expected = ["code", "desktop", "codex", "cursor", "vscode", "gemini"];
        assert_eq!(names(&found), expected);
        let clients: BTreeSet<Client> = found.expected.iter().map(|one| one.client).collect();
        assert_eq!(clients.len(), 6);
        assert!(found.notes.is_empty());
    }

    #[test]
    fn project_files_are_found_in_the_folder_and_above_it() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        write(
            &top.path().join(".mcp.json"),
            &server("mcpServers", "above"),
        );
        write(
            &inner.join(".vscode/mcp.json"),
            &server("servers", "inside"),
        );

        let found = Places {
            folders: vec![inner.clone(), inner],
            ..Places::default()
        }
        .read();

        assert_eq!(names(&found), ["inside", "above"]);
    }

    #[test]
    fn a_broken_file_and_a_missing_named_file_are_noted_and_the_rest_is_read() {
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join(".cursor/mcp.json"), "{ nonsense");
        write(
            &home.path().join(".claude.json"),
            &server("mcpServers", "good"),
        );
        let named = home.path().join("absent.json");

        let found = Places {
            homes: vec![home.path().to_owned()],
            extra: vec![named.clone()],
            ..Places::default()
        }
        .read();

        assert_eq!(names(&found), ["good"]);
        let noted: Vec<&PathBuf> = found.notes.iter().map(|note| &note.file).collect();
        assert_eq!(noted, [&home.path().join(".cursor/mcp.json"), &named]);
    }

    #[test]
    fn a_relative_home_is_no_home() {
        let places = Places::from_vars(|_| Some(PathBuf::from("relative")));

        assert_eq!(places, Places::default());
    }
}
