//! The person's PIN, for acts that widen what agents may do.

use std::io::{self, IsTerminal};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use model::{Exit, Explain, Fault, Secret};
use serde_json::Value;
use wire::operator::{PIN_NEEDED, Request, SecretText};

use crate::{daemon::from_fd, operator::Operator};

/// Where the PIN comes from.
#[derive(Debug, Default, Args)]
pub(crate) struct PinArgs {
    /// Read the PIN from this descriptor.
    #[arg(long, value_name = "N")]
    pin_fd: Option<i32>,
}

impl PinArgs {
    /// Asks the daemon for something that may need the PIN; on a terminal the person is asked for it.
    ///
    /// # Errors
    /// As [`Operator::ask`], or there is no PIN to be had.
    pub(crate) fn ask(&self, operator: &mut Operator, request: &Request) -> Result<Value, Explain> {
        if let Some(fd) = self.pin_fd {
            operator.ask(&present(&from_fd(fd)?))?;
            return operator.ask(request);
        }
        match operator.ask(request) {
            Err(error) if error.what == PIN_NEEDED && io::stdin().is_terminal() => {
                operator.ask(&present(&from_terminal("PIN: ")?))?;
                operator.ask(request)
            }
            answer => answer,
        }
    }
}

fn present(pin: &Secret) -> Request {
    Request::Present { pin: text(pin) }
}

/// Turns a PIN into the form in which it crosses the operator's socket.
pub(crate) fn text(pin: &Secret) -> SecretText {
    SecretText::new(STANDARD.encode(pin.expose()))
}

/// Asks for a new PIN, twice.
///
/// # Errors
/// There is no terminal, or the two differ.
pub(crate) fn new_from_terminal() -> Result<Secret, Explain> {
    let first = from_terminal("New PIN: ")?;
    if from_terminal("Again: ")?.expose() != first.expose() {
        return Err(
            Explain::new(Exit::Usage, Fault::Caller, "the two PINs differ").next("try again"),
        );
    }
    Ok(first)
}

fn from_terminal(prompt: &str) -> Result<Secret, Explain> {
    sys::terminal::ask_hidden(prompt).map_err(|error| {
        Explain::new(
            Exit::Usage,
            Fault::Caller,
            "there is no terminal to ask for the PIN",
        )
        .because(error)
        .next("give it with --pin-fd N")
    })
}
