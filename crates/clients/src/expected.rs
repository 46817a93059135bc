//! A server that a client is configured to start.

use std::{fmt, path::PathBuf};

use model::Foreign;
use serde::{Deserialize, Serialize};

/// A server that a client is configured to start over stdio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// What the configuration calls it.
    pub name: Foreign,
    /// Whose configuration it is.
    pub client: Client,
    /// The program.
    pub command: Foreign,
    /// Its arguments, values that look like secrets redacted.
    pub args: Vec<Foreign>,
    /// Names of the variables it gets, never values.
    pub env_names: Vec<Foreign>,
    /// The file that says so.
    pub source: PathBuf,
    /// Whose file that is: a configuration says nothing about other users' processes, or whoever can write a
    /// file somewhere above a stranger's folder could make an orphan of the stranger's process.
    pub owner_uid: u32,
}

impl Expected {
    /// Tells whether it may speak of the processes of this user.
    #[must_use]
    pub const fn speaks_of(&self, uid: u32) -> bool {
        self.owner_uid == uid || self.owner_uid == 0
    }
}

/// A configuration that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex, all its forms.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    #[serde(rename = "vscode")]
    VsCode,
    /// Gemini CLI.
    Gemini,
    /// Whoever a file belongs to that was named by hand.
    Unnamed,
}

impl Client {
    /// Returns the id that commands and JSON use.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Gemini => "gemini",
            Self::Unnamed => "unnamed",
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
