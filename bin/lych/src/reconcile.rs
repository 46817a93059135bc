//! Outcomes that are still unknown, and saying what became of them.

use clap::{Subcommand, ValueEnum};
use model::{CallId, Exit, Explain, Home};
use wire::operator::Request;

use crate::{activity, operator::Operator, pin::PinArgs, ui};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Found {
    /// The effect is there.
    Confirmed,
    /// The effect is not there.
    Failed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Reconcile {
    /// List calls whose outcome is not known.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what became of a call, after looking at the remote side.
    Resolve {
        /// Which.
        call: CallId,
        /// What was found there.
        #[arg(long = "as", value_name = "FOUND")]
        found: Found,
        /// What shows it; it is kept in the log.
        #[arg(long, value_name = "TEXT")]
        evidence: String,
        #[command(flatten)]
        pin: PinArgs,
    },
}

/// Does what was asked of the open calls.
pub(crate) fn run(home: &Home, verb: Reconcile) -> Result<Exit, Explain> {
    match verb {
        Reconcile::List { json } => {
            let request = Request::ActivityList {
                session: None,
                since: None,
                open_only: true,
                last: None,
            };
            let value = Operator::connect(home)?.ask(&request)?;
            activity::print(&value, json, "Every outcome is known.")
        }
        Reconcile::Resolve {
            call,
            found,
            evidence,
            pin,
        } => {
            let happened = matches!(found, Found::Confirmed);
            let request = Request::Resolve {
                call,
                happened,
                evidence,
            };
            pin.ask(&mut Operator::connect(home)?, &request)?;
            ui::note(&format!("Call {call} is reconciled."));
            Ok(Exit::Done)
        }
    }
}
