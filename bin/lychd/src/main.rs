//! The gate's daemon: owns authority, never judges or signals strangers, parses no foreign file.
//!
//! It accepts, gathers who is calling, and wires the rooms together; what is decided is decided in them.

mod admission;
mod agent;
mod bounds;
mod census;
mod daemon;
mod door;
mod launches;
mod notes;
mod notice;
mod operator;
mod pin;
mod retention;
mod room;
mod runs;
mod sealed;
mod shape;
mod store;
mod trust;
mod verbs;
mod watch;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use model::Home;
use sys::wiping::Wiping;
use tokio_util::task::TaskTracker;

use crate::notice::Notices;

/// What was freed is zero: after a lock no secret is left in a buffer that some library let go of.
#[global_allocator]
static MEMORY: Wiping = Wiping;

/// The daemon behind `lych`; it is started by it and rarely by hand.
#[derive(Debug, Parser)]
#[command(name = "lychd", version, about)]
struct Args {
    /// Keep every file below this folder.
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// What started it: operator, agent or service.
    #[arg(long, value_name = "WHO", default_value = "operator")]
    started_by: String,
    /// The journal that is told what waits.
    #[arg(
        long,
        value_name = "SOCKET",
        default_value = "/run/systemd/journal/socket",
        hide = true
    )]
    journal: PathBuf,
    /// The program that shows on the desktop what waits.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "/usr/bin/notify-send",
        hide = true
    )]
    notify: PathBuf,
}

/// Finds the home, and under which users it runs.
fn home(named: Option<PathBuf>) -> Result<Home, String> {
    let Some(folder) = named else {
        return Home::from_vars(|name| std::env::var_os(name).map(PathBuf::from))
            .map_err(|error| error.to_string());
    };
    let home = match sys::realm::of(&folder).map_err(|error| error.to_string())? {
        None => Home::below(&folder),
        // It keeps nothing as a caller.
        Some(users) => Home::separate(&folder, users, folder.join("private")),
    };
    home.map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let home = match home(args.home) {
        Ok(home) => home,
        Err(error) => {
            notes::stderr(&format!("error: {error}"));
            return ExitCode::from(model::Exit::Usage.code());
        }
    };
    let notices = Notices {
        journal: args.journal,
        desktop: args.notify,
        tasks: TaskTracker::new(),
    };
    // Without it the table grows as it is used, and calls wait for that.
    drop(sys::harden::wide_table());
    // One: a call is handed from thread to thread less often, and is sooner through, than with two. What takes
    // long has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(daemon::run(home, notices, &args.started_by)),
        Err(error) => Err(format!("the runtime cannot be started: {error}")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            notes::stderr(&format!("error: {why}"));
            ExitCode::from(model::Exit::Failed.code())
        }
    }
}
