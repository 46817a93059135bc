//! Variables that only one client sets for what it starts: their names alone say whose a process is, or was.
//!
//! A hint: an agent's shell hands them on to whatever a person starts from it.

use crate::Client;

/// Returns which client sets a variable of this name.
#[must_use]
pub fn marker(variable: &str) -> Option<Client> {
    let known = MARKERS.iter().find(|(name, _)| *name == variable);
    known.map(|(_, client)| *client)
}

/// As their sources or documents have them; Claude Desktop is known to set none.
const MARKERS: [(&str, Client); 8] = [
    ("CLAUDECODE", Client::ClaudeCode),
    ("CLAUDE_CODE_ENTRYPOINT", Client::ClaudeCode),
    ("CLAUDE_CODE_SESSION_ID", Client::ClaudeCode),
    ("CODEX_SANDBOX", Client::Codex),
    ("CODEX_THREAD_ID", Client::Codex),
    ("CURSOR_TRACE_ID", Client::Cursor),
    ("GEMINI_CLI", Client::Gemini),
    ("VSCODE_PID", Client::VsCode),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_by_its_whole_name_only() {
        assert_eq!(marker("GEMINI_CLI"), Some(Client::Gemini));
        assert_eq!(marker("GEMINI_CLI_HOME"), None);
        assert_eq!(marker("PATH"), None);
    }
}
