//! The warden's command: sees, judges, signals, and holds no authority.
//!
//! Every verb a person uses lives here, and the shim that an agent's client starts. What needs authority
//! is asked of the daemon over its operator socket.

mod activity;
mod audit;
mod authority;
mod channels;
mod cli;
mod contain;
mod daemon;
mod doctor;
mod drill;
mod incident;
mod inspect;
mod mcp;
mod operator;
mod pending;
mod pin;
mod ps;
mod reconcile;
mod sessions;
mod snapshot;
mod status;
mod survey;
mod system;
mod ui;
mod vault;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(exit) = drill::plays_server() {
        return ExitCode::from(exit.code());
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ui::usage(&error),
    };
    let exit = cli.run().unwrap_or_else(|error| {
        ui::explain(&error);
        error.exit
    });
    ExitCode::from(exit.code())
}
