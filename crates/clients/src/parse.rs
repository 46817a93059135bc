//! Turns the text of a configuration into expected servers; pure, for any client's shape.

use std::path::PathBuf;

use jsonc_parser::ParseOptions;
use model::{Foreign, redact};
use serde_json::{Map, Value};

use crate::{Client, Expected};

/// The text is no configuration that this code understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The file is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is no JSON, even with comments and trailing commas.
    #[error("it is not JSON (line {line})")]
    Json {
        /// Where the parser gave up, counted from 1.
        line: usize,
    },
    /// It is no TOML.
    #[error("it is not TOML")]
    Toml,
}

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Whose configuration it is.
    pub client: Client,
    /// The file.
    pub file: PathBuf,
    /// The user whose file it is.
    pub owner_uid: u32,
}

/// Parses the configuration in `content`.
///
/// The key that holds the servers is recognised, not told: `mcpServers`, `servers`, `mcp.servers`,
/// `mcp_servers`, and `mcpServers` of each project. Servers without a command (HTTP) are left out, as are
/// entries of a shape that no client would start.
///
/// # Errors
/// The text is not of its format. The text itself is not in the error: it may hold secrets.
pub fn parse(source: &Source, content: &[u8]) -> Result<Vec<Expected>, ParseError> {
    let text = std::str::from_utf8(content).map_err(|_| ParseError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = if source.file.extension().is_some_and(|end| end == "toml") {
        toml::from_str(text).map_err(|_| ParseError::Toml)?
    } else if text.trim().is_empty() {
        Value::Null
    } else {
        json(text)?
    };
    let servers = containers(&root)
        .into_iter()
        .flatten()
        .filter_map(|(name, entry)| expected(source, name, entry));
    Ok(servers.collect())
}

fn json(text: &str) -> Result<Value, ParseError> {
    jsonc_parser::parse_to_serde_value(text, &ParseOptions::default()).map_err(|error| {
        let before = text.get(..error.range().start).unwrap_or(text);
        ParseError::Json {
            line: before.matches('\n').count() + 1,
        }
    })
}

/// Returns every map of servers in a configuration.
fn containers(root: &Value) -> Vec<&Map<String, Value>> {
    let mut found: Vec<&Value> = ["mcpServers", "servers", "mcp_servers"]
        .iter()
        .filter_map(|key| root.get(key))
        .collect();
    found.extend(root.pointer("/mcp/servers"));
    if let Some(projects) = root.get("projects").and_then(Value::as_object) {
        found.extend(
            projects
                .values()
                .filter_map(|project| project.get("mcpServers")),
        );
    }
    found.into_iter().filter_map(Value::as_object).collect()
}

fn expected(source: &Source, name: &str, entry: &Value) -> Option<Expected> {
    let command = entry.get("command")?.as_str()?;
    let args = strings(entry.get("args"));
    let mut words: Vec<&str> = vec![command];
    if args.is_empty() {
        // Some people write the whole line into `command`.
        words = command.split_whitespace().collect();
    }
    words.extend(args);
    let mut redacted = redact::arguments(words).into_iter();
    let mut env_names: Vec<Foreign> = Vec::new();
    if let Some(env) = entry.get("env").and_then(Value::as_object) {
        env_names.extend(env.keys().map(|name| Foreign::from(name.as_str())));
    }
    env_names.extend(
        strings(entry.get("env_vars"))
            .into_iter()
            .map(Foreign::from),
    );
    Some(Expected {
        name: Foreign::from(name),
        client: source.client,
        command: redacted.next()?,
        args: redacted.collect(),
        env_names,
        source: source.file.clone(),
        owner_uid: source.owner_uid,
    })
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(file: &str, text: &str) -> Vec<Expected> {
        parse(&source(Client::ClaudeCode, file), text.as_bytes()).unwrap()
    }

    fn source(client: Client, file: &str) -> Source {
        Source {
            client,
            file: PathBuf::from(file),
            owner_uid: 1000,
        }
    }

    fn line(server: &Expected) -> String {
        let mut words = vec![server.command.raw()];
        words.extend(server.args.iter().map(Foreign::raw));
        words.join(" ")
    }

    #[test]
    fn claude_codes_user_and_project_servers_are_all_found() {
        let found = parsed(
            ".claude.json",
            r#"{"numStartups": 4, "mcpServers": {"a": {"command": "npx", "args": ["-y", "pkg"]}},
                "projects": {"/p": {"mcpServers": {"b": {"type": "stdio", "command": "srv"}}}, "/q": {}}}"#,
        );

        let lines: Vec<String> = found.iter().map(line).collect();
        assert_eq!(lines, ["npx -y pkg", "srv"]);
    }

    #[test]
    fn comments_trailing_commas_and_vscodes_key_are_understood() {
        let found = parsed(
            "mcp.json",
            "{ // mine\n \"inputs\": [], \"servers\": {\"x\": {\"command\": \"srv\", \"args\": [\"1\",],},}, }",
        );

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name.raw(), "x");
    }

    #[test]
    fn codex_toml_is_understood() {
        let found = parsed(
            "config.toml",
            "[mcp_servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\nenv_vars = [\"TZ\"]\n",
        );

        assert_eq!(line(&found[0]), "uvx mcp-server-time");
        assert_eq!(found[0].env_names[0].raw(), "TZ");
    }

    #[test]
    fn no_value_of_the_environment_and_no_secret_argument_is_kept() {
        let found = parsed(
            "mcp.json",
            r#"{"mcpServers": {"a": {"command": "srv", "args": ["--token", "hunter2"],
                "env": {"API_KEY": "s3cret"}}}}"#,
        );

        let kept = format!("{found:?}");
        assert!(kept.contains("API_KEY"));
        assert!(!kept.contains("s3cret") && !kept.contains("hunter2"));
    }

    #[test]
    fn servers_that_are_reached_over_http_are_not_expected_as_processes() {
        let found = parsed(
            "mcp.json",
            r#"{"mcpServers": {"a": {"url": "https://x"}, "b": {"command": 7}, "c": []}}"#,
        );

        assert!(found.is_empty());
    }

    #[test]
    fn broken_text_is_an_error_that_does_not_repeat_it() {
        let source = source(Client::Cursor, "mcp.json");
        let error = parse(&source, b"{\n \"token\": hunter2").unwrap_err();

        assert_eq!(error.to_string(), "it is not JSON (line 2)");
        let toml = parse(&self::source(Client::Codex, "c.toml"), b"token = hunter2 x").unwrap_err();
        assert!(!format!("{toml:?} {toml}").contains("hunter2"));
        assert_eq!(parse(&source, b"\xff").unwrap_err(), ParseError::NotText);
    }

    #[test]
    fn an_empty_file_expects_nothing() {
        assert!(parsed("mcp.json", " \n").is_empty());
    }
}
