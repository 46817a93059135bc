//! Set-up and service: init, up, down, unlock, lock.

use std::{
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use model::{Exit, Explain, Fault, Home, Secret};
use wire::operator::{Opener, Request, SecretText};

use crate::{
    mcp,
    operator::Operator,
    pin::{self, PinArgs},
    system, ui,
};

/// Longest passphrase or secret taken from a descriptor, in bytes.
const SECRET_CAP: u64 = 1 << 20;

/// Above the daemon's own grace for running calls, so that it is never called stuck while it waits for them.
const STOP_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Ask nothing.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    opener: OpenerArgs,
    /// The key file may be read by programs of this user, agents included.
    #[arg(long, requires = "key_file")]
    agent_readable: bool,
    /// Ask for this PIN before authority is widened; it is read from this descriptor.
    #[arg(long, value_name = "N", conflicts_with = "presence")]
    pin_fd: Option<i32>,
    /// How a person proves to be there, if not by a PIN: `none`, and `status` says so.
    #[arg(long, value_name = "KIND", value_parser = ["none"])]
    presence: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UnlockArgs {
    #[command(flatten)]
    opener: OpenerArgs,
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OpenerArgs {
    /// Read the passphrase from this descriptor.
    #[arg(long, value_name = "N", conflicts_with = "key_file")]
    passphrase_fd: Option<i32>,
    /// Open the vault with this key file.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Run the daemon as a user of its own (root only); the home is then /var/lib/lychgate unless one is named.
    #[arg(long)]
    system: bool,
    /// The daemon's user.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "lychgate",
        requires = "system"
    )]
    daemon_user: String,
    /// The user whose agents are served; who called sudo if none is named.
    #[arg(long, value_name = "NAME", requires = "system")]
    agent_user: Option<String>,
}

impl UpArgs {
    /// Tells whether the daemon is to be a user of its own.
    pub(crate) const fn is_system(&self) -> bool {
        self.system
    }
}

/// Starts the daemon and makes the vault.
pub(crate) fn init(home: &Home, args: &InitArgs) -> Result<Exit, Explain> {
    let separate = home.realm().is_separate();
    if args.opener.key_file.is_some() && !args.agent_readable && !separate {
        return Err(Explain::new(
            Exit::Refused,
            Fault::Caller,
            "a key file can be read by every program of this user",
        )
        .because("agents run as this user, so they could open the vault themselves")
        .next("use a passphrase, or say --agent-readable if that is what you want"));
    }
    let pin = args.new_pin()?;
    let opener = if args.yes && args.opener.is_empty() {
        generated_key(home)?
    } else {
        args.opener.read(true)?
    };
    mcp::ensure_daemon(home, mcp::StartedBy::Operator)?;
    let value = Operator::connect(home)?.ask(&Request::Init {
        opener,
        pin: pin.as_ref().map(pin::text),
    })?;
    ui::note("The vault is made and open.");
    if args.yes && args.opener.is_empty() {
        let who = if separate {
            "the daemon's user"
        } else {
            "this user"
        };
        ui::note(&format!(
            "Its key lies in {}; programs of {who} can read it.",
            own_key(home).display()
        ));
    }
    ui::note(if separate {
        "Programs of the agents' user reach neither the vault nor its policy, and cannot ask the daemon for more. \
         What such a program says of itself stays its word."
    } else {
        "This keeps mistakes, orphans and strange servers out, not a hostile program of yours."
    });
    ui::note(if pin.is_some() {
        "Presence is `pin`: acts that widen what agents may do ask for it."
    } else {
        "Presence is `none`: nothing asks before authority is widened."
    });
    ui::json(&value)?;
    Ok(Exit::Done)
}

fn own_key(home: &Home) -> PathBuf {
    home.identity().with_file_name("vault.key")
}

/// `--yes` asks nothing, so the vault opens with a key file of its own beside it. That keeps the secrets
/// out of agents' hands by mistake, not by force, and it says so.
fn generated_key(home: &Home) -> Result<Opener, Explain> {
    Ok(Opener::KeyFile(text_path(&own_key(home))?))
}

/// Starts the daemon if it is not running.
pub(crate) fn up(home: &Home, args: &UpArgs) -> Result<Exit, Explain> {
    if args.is_system() {
        let home = system::set_up(home, &args.daemon_user, args.agent_user.as_deref())?;
        mcp::ensure_daemon(&home, mcp::StartedBy::Operator)?;
        ui::note(&format!(
            "Operators are root from now on; agents' clients start: lych{} mcp",
            home.option()
        ));
    } else {
        mcp::ensure_daemon(home, mcp::StartedBy::Operator)?;
    }
    ui::note("The daemon is running.");
    Ok(Exit::Done)
}

/// Stops the daemon.
pub(crate) fn down(home: &Home) -> Result<Exit, Explain> {
    let mut operator = Operator::connect(home)?;
    let daemon = operator.daemon()?;
    operator.ask(&Request::Stop)?;
    drop(operator);
    if daemon.wait_exit(STOP_WITHIN).unwrap_or(false) {
        ui::note("The daemon has closed its log and ended.");
        return Ok(Exit::Done);
    }
    Err(Explain::new(
        Exit::TimedOut,
        Fault::Operator,
        "the daemon was told to stop and has not ended yet",
    )
    .because("calls may still be under way")
    .next("look at lychd.log, and again with `lych status`"))
}

/// Opens the vault.
pub(crate) fn unlock(home: &Home, args: &UnlockArgs) -> Result<Exit, Explain> {
    let opener = if args.opener.is_empty() && own_key(home).try_exists().unwrap_or(true) {
        generated_key(home)?
    } else {
        args.opener.read(false)?
    };
    let request = Request::Unlock { opener };
    args.pin.ask(&mut Operator::connect(home)?, &request)?;
    ui::note("The vault is open.");
    Ok(Exit::Done)
}

/// Shuts the vault.
pub(crate) fn lock(home: &Home) -> Result<Exit, Explain> {
    Operator::connect(home)?.ask(&Request::Lock)?;
    ui::note("The vault is shut; calls are refused and recorded.");
    Ok(Exit::Done)
}

impl InitArgs {
    /// Returns the PIN to set. That nothing asks must be chosen: by `--presence none`, or by `--yes`, which says
    /// that no question is wanted.
    fn new_pin(&self) -> Result<Option<Secret>, Explain> {
        match self.pin_fd {
            Some(fd) => from_fd(fd).map(Some),
            None if self.yes || self.presence.is_some() => Ok(None),
            None if io::stdin().is_terminal() => pin::new_from_terminal().map(Some),
            None => Err(Explain::new(
                Exit::Usage,
                Fault::Caller,
                "it is not said how a person proves to be there",
            )
            .because("acts that widen what agents may do can ask for a PIN")
            .next("give one with --pin-fd N, or choose --presence none")),
        }
    }
}

impl OpenerArgs {
    const fn is_empty(&self) -> bool {
        self.passphrase_fd.is_none() && self.key_file.is_none()
    }

    pub(crate) fn read(&self, is_new: bool) -> Result<Opener, Explain> {
        if let Some(path) = &self.key_file {
            let path =
                std::path::absolute(path).map_err(|error| unreadable("the key file", &error))?;
            return Ok(Opener::KeyFile(text_path(&path)?));
        }
        let passphrase = match self.passphrase_fd {
            Some(fd) => from_fd(fd)?,
            None => from_terminal(is_new)?,
        };
        if passphrase.expose().is_empty() {
            return Err(
                Explain::new(Exit::Usage, Fault::Caller, "the passphrase is empty")
                    .next("give one on a terminal, or with --passphrase-fd N"),
            );
        }
        Ok(Opener::Passphrase(SecretText::new(
            STANDARD.encode(passphrase.expose()),
        )))
    }
}

pub(crate) fn text_path(path: &Path) -> Result<String, Explain> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Explain::new(
            Exit::Usage,
            Fault::Caller,
            "the path of a key file must be valid UTF-8",
        )
        .because(path.display())
    })
}

/// Reads a secret from a descriptor that the caller opened for it; one trailing line end is dropped.
pub(crate) fn from_fd(fd: i32) -> Result<Secret, Explain> {
    if fd < 0 || fd == 1 || fd == 2 {
        return Err(Explain::new(
            Exit::Usage,
            Fault::Caller,
            format!("descriptor {fd} cannot hold a secret"),
        )
        .next("open one for it, as in `lych … --passphrase-fd 3 3<file`"));
    }
    let file = sys::terminal::inherited(fd)
        .map_err(|error| unreadable(&format!("descriptor {fd}"), &error))?;
    from_reader(file, &format!("descriptor {fd}"))
}

/// Reads a secret from standard input; one trailing line end is dropped.
pub(crate) fn from_stdin() -> Result<Secret, Explain> {
    from_reader(io::stdin().lock(), "standard input")
}

fn from_reader(reader: impl Read, what: &str) -> Result<Secret, Explain> {
    // Room for the whole before the first byte comes, so that growing leaves no copies behind.
    let mut bytes = Vec::with_capacity(65536);
    reader
        .take(SECRET_CAP + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(what, &error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > SECRET_CAP {
        return Err(Explain::new(
            Exit::Usage,
            Fault::Caller,
            format!("{what} holds more than {SECRET_CAP} bytes"),
        ));
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Secret::new(bytes))
}

fn from_terminal(is_new: bool) -> Result<Secret, Explain> {
    if !io::stdin().is_terminal() {
        return Err(Explain::new(
            Exit::Usage,
            Fault::Caller,
            "there is no terminal to ask for the passphrase",
        )
        .next("give it with --passphrase-fd N, or use --key-file FILE"));
    }
    let ask = |prompt: &str| {
        sys::terminal::ask_hidden(prompt).map_err(|error| unreadable("the terminal", &error))
    };
    let first = ask("Passphrase: ")?;
    if is_new && ask("Again: ")?.expose() != first.expose() {
        return Err(
            Explain::new(Exit::Usage, Fault::Caller, "the two passphrases differ")
                .next("try again"),
        );
    }
    Ok(first)
}

fn unreadable(what: &str, error: &io::Error) -> Explain {
    Explain::new(
        Exit::Failed,
        Fault::Caller,
        format!("{what} could not be read"),
    )
    .because(error)
}
