//! Which keys open the vault besides its passphrase or key file: one for the worst day, and the machine's own.

use std::path::PathBuf;

use clap::Args;
use model::{Exit, Explain, Fault, Home};
use wire::operator::Request;

use crate::{daemon::text_path, operator::Operator, pin::PinArgs, ui};

#[derive(Debug, Args)]
pub(crate) struct Recipients {
    #[command(flatten)]
    change: Change,
    /// The machine's key may be read by programs of this user, agents included.
    #[arg(long, requires = "machine")]
    agent_readable: bool,
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Change {
    /// Let the key of this age recipient open vault.age when nothing else does.
    #[arg(long, value_name = "RECIPIENT")]
    recovery: Option<String>,
    /// Let no recovery key open it any more.
    #[arg(long)]
    no_recovery: bool,
    /// Let the daemon open the vault at its start, with the key in this file as its credential `lychgate-vault`.
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Let a person open it after every start.
    #[arg(long)]
    no_machine: bool,
}

/// Changes one of them.
pub(super) fn run(home: &Home, args: &Recipients) -> Result<Exit, Explain> {
    let change = &args.change;
    if change.machine.is_some() && !args.agent_readable {
        return Err(Explain::new(
            Exit::Refused,
            Fault::Caller,
            "a service's credential can be read by every program of its user",
        )
        .because("agents run as this user, so they could open the vault themselves")
        .next("say --agent-readable if that is what you want"));
    }
    let (request, done) = if let Some(file) = &change.machine {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let request = Request::VaultMachine {
            key_file: Some(text_path(&file)?),
        };
        let done = "The daemon opens the vault at its start, if it is given this key: LoadCredential=lychgate-vault:FILE";
        (request, done)
    } else if change.no_machine {
        let request = Request::VaultMachine { key_file: None };
        (request, "The machine's key opens nothing any more.")
    } else {
        let request = Request::VaultRecovery {
            recipient: change.recovery.clone(),
        };
        let done = if change.recovery.is_some() {
            "vault.age opens with that key too: `age --decrypt --identity KEY vault.age`. Keep the key elsewhere."
        } else {
            "No recovery key opens vault.age any more; it still opens older copies."
        };
        (request, done)
    };
    args.pin.ask(&mut Operator::connect(home)?, &request)?;
    ui::note(done);
    Ok(Exit::Done)
}
