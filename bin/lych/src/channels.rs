//! Channels: what the applied policy allows, and making the draft effective.

use clap::Subcommand;
use model::{Exit, Explain, Home};
use serde_json::Value;
use wire::operator::Request;

use crate::{operator::Operator, pin::PinArgs, ui};

#[derive(Debug, Subcommand)]
pub(crate) enum Channels {
    /// List the channels of the applied policy, with their boundary answers.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make the draft in config.toml effective.
    Apply {
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        pin: PinArgs,
    },
}

impl Channels {
    pub(crate) const fn is_apply(&self) -> bool {
        matches!(self, Self::Apply { .. })
    }
}

/// Does what was asked of the channels.
pub(crate) fn run(home: &Home, verb: Channels) -> Result<Exit, Explain> {
    match verb {
        Channels::Apply { dry_run, pin } => {
            let request = Request::ChannelsApply { dry_run };
            let value = pin.ask(&mut Operator::connect(home)?, &request)?;
            for line in value
                .get("changes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                ui::data(&format!("{}\n", line.as_str().unwrap_or_default()))?;
            }
            ui::note(if dry_run {
                "Nothing was changed (dry run)."
            } else {
                "The policy is sealed and effective."
            });
        }
        Channels::List { json } => {
            let value = Operator::connect(home)?.ask(&Request::ChannelsList)?;
            if json {
                ui::json(&value)?;
            } else {
                let described = value
                    .get("described")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                if described.is_empty() {
                    ui::note(
                        "No channel is applied. Write config.toml, then `lych channels apply`.",
                    );
                }
                for line in described {
                    ui::data(&format!("{}\n", line.as_str().unwrap_or_default()))?;
                }
            }
        }
    }
    Ok(Exit::Done)
}
