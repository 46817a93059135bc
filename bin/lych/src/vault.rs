//! Secrets by name: added, listed, replaced, removed; never shown.

mod backup;
mod recipients;
mod tar;

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Args, Subcommand};
use model::{Exit, Explain, Fault, Home, Secret, SecretName};
use serde_json::Value;
use wire::operator::{Request, SecretText};

use crate::{
    daemon,
    operator::Operator,
    pin::{self, PinArgs},
    ui,
};

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
        #[command(flatten)]
        pin: PinArgs,
    },
    /// Choose how presence is established for acts that widen what agents may do.
    Presence(Presence),
    /// Put the vault under another passphrase or key file.
    Passphrase {
        #[command(flatten)]
        opener: daemon::OpenerArgs,
        #[command(flatten)]
        pin: PinArgs,
    },
    /// Choose which keys open the vault besides its passphrase or key file.
    Recipients(recipients::Recipients),
    /// Copy the sealed vault into one file, to be kept elsewhere.
    Backup {
        /// Where to; it must not exist.
        file: PathBuf,
    },
    /// Put the vault from a backup in place of the present one.
    Restore(backup::Restore),
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
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Presence {
    #[command(flatten)]
    rule: Rule,
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Rule {
    /// Ask for a PIN; the new one is read from this descriptor.
    #[arg(long, value_name = "N")]
    new_pin_fd: Option<i32>,
    /// Ask for a PIN; the new one is asked for on the terminal.
    #[arg(long)]
    new_pin: bool,
    /// Ask for nothing.
    #[arg(long)]
    none: bool,
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
            let changed = add.pin.ask(&mut Operator::connect(home)?, &request)?;
            ui::note(&format!("Secret {name} is sealed with where it may go."));
            warn_if_short(&changed);
        }
        Vault::Rotate { name, source, pin } => {
            let value = source.read()?;
            let request = Request::VaultRotate {
                name: name.clone(),
                value,
            };
            let changed = pin.ask(&mut Operator::connect(home)?, &request)?;
            ui::note(&format!(
                "Secret {name} has a new value. Revoke the old one where it was issued."
            ));
            warn_if_short(&changed);
        }
        Vault::Passphrase { opener, pin } => {
            let request = Request::VaultOpener {
                opener: opener.read(true)?,
            };
            pin.ask(&mut Operator::connect(home)?, &request)?;
            ui::note(
                "The vault has a new opener. Old copies of identity.age still open with the old one.",
            );
        }
        Vault::Remove { name } => {
            Operator::connect(home)?.ask(&Request::VaultRemove { name: name.clone() })?;
            ui::note(&format!(
                "Secret {name} is removed. It is still valid where it was issued."
            ));
        }
        Vault::Recipients(args) => return recipients::run(home, &args),
        Vault::Backup { file } => return backup::backup(home, &file),
        Vault::Restore(args) => return backup::restore(home, &args),
        Vault::Presence(args) => return presence(home, &args),
        Vault::List { json } => return list(home, json),
    }
    Ok(Exit::Done)
}

fn presence(home: &Home, args: &Presence) -> Result<Exit, Explain> {
    let new = match args.rule.new_pin_fd {
        Some(fd) => Some(daemon::from_fd(fd)?),
        None if args.rule.new_pin => Some(pin::new_from_terminal()?),
        None => None,
    };
    let request = Request::PresenceChoose {
        pin: new.as_ref().map(pin::text),
    };
    args.pin.ask(&mut Operator::connect(home)?, &request)?;
    ui::note(if new.is_some() {
        "Presence is `pin`: acts that widen what agents may do ask for it."
    } else {
        "Presence is `none`: nothing asks before authority is widened."
    });
    Ok(Exit::Done)
}

/// Says so where the daemon does not look for the secret in answers.
fn warn_if_short(changed: &Value) {
    if changed.get("looked_for") == Some(&Value::Bool(false)) {
        ui::note(
            "It is so short that it would be found in ordinary words: an answer that repeats it is not cleaned of it.",
        );
    }
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
