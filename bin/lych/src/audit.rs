//! The log: checked, read and copied offline, without a vault, a key or a daemon; changed only through the daemon.

mod bodies;
pub(crate) mod copy;
pub(crate) mod known;
mod read;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::{EpochId, Exit, Explain, Fault, Home, IncidentId, LogId, Seq, SessionId};
use serde_json::Value;
use wire::operator::Request;

use crate::{operator::Operator, pin::PinArgs, ui};

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check the whole log: every stored byte, the chain, the signatures, the structure.
    Verify(Verify),
    /// Print the newest signed pin of the log, to be kept elsewhere.
    Head(Place),
    /// Show one record: its clear header, and with the vault open its body.
    Show {
        /// Its number.
        seq: Seq,
        #[command(flatten)]
        place: Place,
    },
    /// Print every record as a JSON line: with its body while the vault is open, its clear header otherwise.
    Export(Place),
    /// Copy the log to another folder, best on another machine's disk.
    Ship {
        /// Where to.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Go on copying until interrupted.
        #[arg(long)]
        follow: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Give up the oldest segments, on record; what an incident refers to stays.
    Prune {
        /// Keep what is younger than so many days (90).
        #[arg(long, value_name = "N")]
        days: Option<u64>,
        /// Give up older segments if the log is longer than so many bytes (1 GiB).
        #[arg(long, value_name = "N")]
        bytes: Option<u64>,
        #[command(flatten)]
        pin: PinArgs,
    },
    /// Destroy a run's data key, on record: its details can never be read again.
    Erase {
        /// Which run.
        session: SessionId,
        #[command(flatten)]
        pin: PinArgs,
    },
    /// Vouch for a daemon run that nobody endorsed.
    Adopt {
        /// Which, as `verify` names it.
        epoch: EpochId,
        #[command(flatten)]
        pin: PinArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The log's folder.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Place {
    fn of(&self, home: &Home) -> PathBuf {
        self.dir.clone().unwrap_or_else(|| home.audit())
    }

    /// Tells whether this is the log of the daemon of this home.
    const fn is_own(&self) -> bool {
        self.dir.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The log's folder.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The log it must be; without this, the one that was seen here first.
    #[arg(long, value_name = "ID")]
    log_id: Option<LogId>,
    /// A pin kept outside the log.
    #[arg(long, value_name = "FILE")]
    pin: Vec<PathBuf>,
    /// Take the pin that this incident holds.
    #[arg(long, value_name = "INCIDENT")]
    since: Option<IncidentId>,
    /// Without a pin from outside there is no judgement.
    #[arg(long)]
    require_pin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Does what was asked of the log.
pub(crate) fn run(home: &Home, verb: Audit) -> Result<Exit, Explain> {
    match verb {
        Audit::Verify(args) => verify(home, args),
        Audit::Head(place) => read::head(home, &place),
        Audit::Show { seq, place } => read::show(home, &place, seq),
        Audit::Export(place) => read::export(home, &place),
        Audit::Ship { to, follow, place } => copy::ship(home, &place, &to, follow),
        Audit::Prune { days, bytes, pin } => {
            let from = known::oldest_of_incidents(home)?;
            let value = ask(home, &pin, &Request::AuditPrune { days, bytes, from })?;
            ui::note(&match value.get("first_kept").and_then(Value::as_u64) {
                Some(first) => format!("The log begins with record {first} now, on record."),
                None => "Nothing is old enough to be given up.".to_owned(),
            });
            Ok(Exit::Done)
        }
        Audit::Erase { session, pin } => {
            ask(home, &pin, &Request::AuditErase { session })?;
            ui::note(&format!(
                "The key of {session} is destroyed. A copy of the log's keys kept elsewhere still opens its details."
            ));
            Ok(Exit::Done)
        }
        Audit::Adopt { epoch, pin } => {
            let value = ask(home, &pin, &Request::AuditAdopt { epoch })?;
            ui::note(&if value.get("already").is_some() {
                format!("{epoch} is vouched for already; nothing was done.")
            } else {
                format!("You vouch for {epoch}, on record.")
            });
            Ok(Exit::Done)
        }
    }
}

fn ask(home: &Home, pin: &PinArgs, request: &Request) -> Result<Value, Explain> {
    pin.ask(&mut Operator::connect(home)?, request)
}

fn verify(home: &Home, args: Verify) -> Result<Exit, Explain> {
    let own = args.dir.is_none();
    let dir = args.dir.unwrap_or_else(|| home.audit());
    let mut pins = args.pin;
    if let Some(incident) = args.since {
        pins.push(known::pin_of(home, incident)?);
    }
    let remembered = if own { known::log(home) } else { None };
    let options = ledger::VerifyOptions {
        log_id: args.log_id.or(remembered),
        pins,
        require_pin: args.require_pin,
    };
    let report = ledger::verify(&dir, &options);
    if args.json {
        ui::json(&report)?;
    } else {
        ui::data(&report.to_string())?;
    }
    if own {
        known::note_verified(home, &report);
    }
    if own
        && options.log_id.is_none()
        && report.exit() == Exit::Done
        && let Some(id) = report.log_id.value()
    {
        known::remember(home, *id);
        ui::note(&format!(
            "This log is taken for the right one from now on: {id}"
        ));
    }
    Ok(report.exit())
}

/// Says that a file could not be read or written.
fn refused(what: &str, path: &std::path::Path, error: &impl ToString) -> Explain {
    Explain::new(
        Exit::Failed,
        Fault::Operator,
        format!("cannot {what} {}", path.display()),
    )
    .because(error.to_string())
    .next("if there is no log yet, the daemon makes it (`lych up`); else look at the rights and the free space")
}
