//! The command line: every verb, its options and where it goes.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use model::{Exit, Explain, Fault, Home, HomeError};

use crate::{
    activity, audit, channels, contain, daemon, doctor, drill, incident, inspect, mcp, pending, ps,
    reconcile, sessions, snapshot, status, system, ui, vault, watch,
};

/// Find what a crashed AI client left behind, prove what it can still do, and end it with a record.
#[derive(Debug, Parser)]
#[command(
    name = "lych",
    version,
    about,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Args)]
struct Global {
    /// Keep every file below this folder.
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what is left over, whose it was, and what to do next.
    Ps(ps::PsArgs),
    /// Say it again whenever it changes.
    Watch(watch::WatchArgs),
    /// Tell all about one process.
    Inspect(inspect::InspectArgs),
    /// Keep everything that can be seen, as evidence.
    Snapshot(snapshot::SnapshotArgs),
    /// Revoke, see a call refused, stop, reconcile: what is left over, in that order.
    Contain(contain::ContainArgs),
    /// The incident record.
    #[command(subcommand)]
    Incident(incident::Incident),
    /// Set up: start the daemon, make the vault.
    Init(daemon::InitArgs),
    /// Start the daemon.
    Up(daemon::UpArgs),
    /// Stop the daemon; runs keep their records.
    Down,
    /// Say how the daemon, the vault and the log are.
    Status(status::StatusArgs),
    /// Look for what is wrong, and say what to do about each.
    Doctor(doctor::DoctorArgs),
    /// Open the vault.
    Unlock(daemon::UnlockArgs),
    /// Shut the vault; calls are refused and recorded from then on.
    Lock,
    /// Secrets, each sealed with where it may go.
    #[command(subcommand)]
    Vault(vault::Vault),
    /// Channels: the ways to touch outside systems.
    #[command(subcommand)]
    Channels(channels::Channels),
    /// Runs and their authority.
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// What waits for a person: runs, and repetitions of open writes.
    Pending(pending::PendingArgs),
    /// Admit a run that waits, or let an open write be made once more.
    Allow(pending::AllowArgs),
    /// Take a run's authority away, or let a remembered shape wait again.
    Deny(pending::DenyArgs),
    /// What was asked for, in which order.
    #[command(subcommand)]
    Activity(activity::Activity),
    /// Outcomes that are still unknown.
    #[command(subcommand)]
    Reconcile(reconcile::Reconcile),
    /// The log, checked without a key.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// The stdio server for an agent; its client starts it.
    Mcp,
    /// Crash a client on purpose and read what stays.
    #[command(subcommand)]
    Drill(drill::Drill),
}

impl Cli {
    /// Does what was asked.
    ///
    /// # Errors
    /// What happened, why, and what to do next.
    pub(crate) fn run(self) -> Result<Exit, Explain> {
        let home = self.global.home(&self.verb)?;
        match self.verb {
            Verb::Ps(args) => ps::run(&home, &args),
            Verb::Watch(args) => watch::run(&home, &args),
            Verb::Inspect(args) => inspect::run(&home, &args),
            Verb::Snapshot(args) => snapshot::run(&home, &args),
            Verb::Contain(args) => contain::run(&home, &args),
            Verb::Incident(verb) => incident::run(&home, verb),
            Verb::Init(args) => daemon::init(&home, &args),
            Verb::Up(args) => daemon::up(&home, &args),
            Verb::Down => daemon::down(&home),
            Verb::Status(args) => status::run(&home, &args),
            Verb::Doctor(args) => doctor::run(&home, &args),
            Verb::Unlock(args) => daemon::unlock(&home, &args),
            Verb::Lock => daemon::lock(&home),
            Verb::Vault(verb) => vault::run(&home, verb),
            Verb::Channels(verb) => channels::run(&home, verb),
            Verb::Sessions(verb) => sessions::run(&home, verb),
            Verb::Pending(args) => pending::list(&home, &args),
            Verb::Allow(args) => pending::allow(&home, &args),
            Verb::Deny(args) => pending::deny(&home, &args),
            Verb::Activity(verb) => activity::run(&home, verb),
            Verb::Reconcile(verb) => reconcile::run(&home, verb),
            Verb::Audit(verb) => audit::run(&home, verb),
            Verb::Mcp => Ok(mcp::run(&home)),
            Verb::Drill(verb) => drill::run(self.global.home.is_some().then_some(&home), &verb),
        }
    }
}

impl Verb {
    /// Tells whether the verb hands over a secret or widens authority. Those do not honour `LYCH_HOME`:
    /// a variable that a program of the user can set must not choose where a passphrase goes.
    const fn is_sensitive(&self) -> bool {
        match self {
            Self::Unlock(_) | Self::Vault(_) | Self::Allow(_) => true,
            Self::Channels(verb) => verb.is_apply(),
            Self::Ps(_)
            | Self::Watch(_)
            | Self::Inspect(_)
            | Self::Snapshot(_)
            | Self::Contain(_)
            | Self::Incident(_)
            | Self::Init(_)
            | Self::Up(_)
            | Self::Down
            | Self::Status(_)
            | Self::Doctor(_)
            | Self::Lock
            | Self::Sessions(_)
            | Self::Pending(_)
            | Self::Deny(_)
            | Self::Activity(_)
            | Self::Reconcile(_)
            | Self::Audit(_)
            | Self::Mcp
            | Self::Drill(_) => false,
        }
    }
}

impl Global {
    fn home(&self, verb: &Verb) -> Result<Home, Explain> {
        match (&self.home, verb) {
            (Some(folder), _) => {
                let named = std::path::absolute(folder).map_err(|error| nowhere(&error))?;
                system::home_at(&named)
            }
            (None, Verb::Up(args)) if args.is_system() => system::home_at(Path::new(system::USUAL)),
            (None, _) => {
                let home =
                    from_environment(verb.is_sensitive()).map_err(|error| nowhere(&error))?;
                // One that a variable names may be root's as well.
                home.root()
                    .map_or_else(|| Ok(home.clone()), system::home_at)
            }
        }
    }
}

/// Whoever has set the variable expects that it holds, so it is said aloud where it does not.
fn from_environment(sensitive: bool) -> Result<Home, HomeError> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if !sensitive || var("LYCH_HOME").is_none() {
        return Home::from_vars(var);
    }
    let home = Home::from_vars(|name| var(name).filter(|_| name != "LYCH_HOME"))?;
    ui::note(&format!(
        "note:  LYCH_HOME is not honoured here: no variable chooses where a secret or an authority goes. This is \
         about {}; name another home with --home DIR",
        home.operator_socket().display()
    ));
    Ok(home)
}

fn nowhere(error: &impl ToString) -> Explain {
    Explain::new(
        Exit::Usage,
        Fault::Caller,
        "it is not clear where Lychgate keeps its files",
    )
    .because(error.to_string())
    .next("set HOME, or name a folder with --home DIR")
}
