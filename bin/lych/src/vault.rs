//! Secrets by name: added, listed, replaced, removed; never shown.

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Args, Subcommand};
use model::{Exit, Explain, Fault, Home, Secret, SecretName};
use serde_json::Value;
use wire::operator::{Request, SecretText};

use crate::{daemon, operator::Operator, ui};

#[derive(Debug, Subcommand)]
pub(crate) enum Vault {
    /// Add a secret, sealed with where it may go.
    Add(Add),
    /// List the secrets, without their values.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Replace a secret's value.
    Rotate {
        /// Its name.
        name: SecretName,
        #[command(flatten)]
        source: Source,
    },
    /// Remove a secret.
    Remove {
        /// Its name.
        name: SecretName,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name.
    name: SecretName,
    /// Where it may go, as in `https://api.example.com/v2`
    #[arg(long = "for", value_name = "DESTINATION", required = true)]
    destinations: Vec<String>,
    /// The header it may go into.
    #[arg(long, value_name = "H", default_value = "Authorization")]
    header: String,
    #[command(flatten)]
    source: Source,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Source {
    /// Read the value from standard input.
    #[arg(long)]
    from_stdin: bool,
    /// Read the value from this descriptor.
    #[arg(long, value_name = "N")]
    from_fd: Option<i32>,
}

impl Source {
    fn read(&self) -> Result<SecretText, Explain> {
        let value: Secret = match (self.from_stdin, self.from_fd) {
            (_, Some(fd)) => daemon::from_fd(fd)?,
            (true, None) => daemon::from_stdin()?,
            (false, None) => sys::terminal::ask_hidden("Secret: ").map_err(|error| {
                Explain::new(
                    Exit::Usage,
                    Fault::Caller,
                    "there is no terminal to ask for the secret",
                )
                .because(error)
                .next("give it with --from-stdin or --from-fd N")
            })?,
        };
        if value.expose().is_empty() {
            return Err(Explain::new(
                Exit::Usage,
                Fault::Caller,
                "the secret is empty",
            ));
        }
        Ok(SecretText::new(STANDARD.encode(value.expose())))
    }
}

/// Does what was asked of the vault.
pub(crate) fn run(home: &Home, verb: Vault) -> Result<Exit, Explain> {
    match verb {
        Vault::Add(add) => {
            let value = add.source.read()?;
            let name = add.name.clone();
            let request = Request::VaultAdd {
                name: add.name,
                value,
                destinations: add.destinations,
                header: Some(add.header),
            };
            Operator::connect(home)?.ask(&request)?;
            ui::note(&format!("Secret {name} is sealed with where it may go."));
        }
        Vault::Rotate { name, source } => {
            let value = source.read()?;
            Operator::connect(home)?.ask(&Request::VaultRotate {
                name: name.clone(),
                value,
            })?;
            ui::note(&format!(
                "Secret {name} has a new value. Revoke the old one where it was issued."
            ));
        }
        Vault::Remove { name } => {
            Operator::connect(home)?.ask(&Request::VaultRemove { name: name.clone() })?;
            ui::note(&format!(
                "Secret {name} is removed. It is still valid where it was issued."
            ));
        }
        Vault::List { json } => return list(home, json),
    }
    Ok(Exit::Done)
}

fn list(home: &Home, json: bool) -> Result<Exit, Explain> {
    let value = Operator::connect(home)?.ask(&Request::VaultList)?;
    if json {
        ui::json(&value)?;
        return Ok(Exit::Done);
    }
    let secrets = value
        .get("secrets")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let text = |secret: &Value, key: &str| match secret.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    };
    let row = |secret: &Value| {
        ["name", "header", "destinations"]
            .iter()
            .map(|key| text(secret, key))
            .collect()
    };
    let rows = secrets.iter().map(row).collect();
    ui::table(
        &["NAME", "HEADER", "MAY GO TO"],
        rows,
        "The vault holds no secret.",
    )?;
    Ok(Exit::Done)
}
