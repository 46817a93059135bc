//! The log, checked offline: no vault, no key, no daemon.

use std::path::PathBuf;

use clap::Subcommand;
use model::{Exit, Explain, Home, LogId};

use crate::ui;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check the whole log: every stored byte, the chain, the signatures, the structure.
    Verify {
        /// The log's folder.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The log it must be.
        #[arg(long, value_name = "ID")]
        log_id: Option<LogId>,
        /// A pin kept outside the log.
        #[arg(long, value_name = "FILE")]
        pin: Vec<PathBuf>,
        /// Call it negative if nothing outside confirms the end.
        #[arg(long)]
        require_pin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Does what was asked of the log.
pub(crate) fn run(home: &Home, verb: Audit) -> Result<Exit, Explain> {
    let Audit::Verify {
        dir,
        log_id,
        pin,
        require_pin,
        json,
    } = verb;
    let dir = dir.unwrap_or_else(|| home.audit());
    let options = ledger::VerifyOptions {
        log_id,
        pins: pin,
        require_pin,
    };
    let report = ledger::verify(&dir, &options);
    if json {
        ui::json(&report)?;
    } else {
        ui::data(&report.to_string())?;
    }
    Ok(report.exit())
}
