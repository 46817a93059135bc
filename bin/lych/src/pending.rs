//! What waits for a person, and what he says to it: pending, allow, deny.

use std::str::FromStr;

use clap::Args;
use model::{CallId, Exit, Explain, Fault, Foreign, Home, Scope, SessionId};
use serde_json::Value;
use wire::{SessionView, operator::Request};

use crate::{operator::Operator, pin::PinArgs, sessions, ui};

#[derive(Debug, Args)]
pub(crate) struct PendingArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The run that may act; with --repeat the open call that may be made once more.
    id: Named,
    /// Let one repetition of an open write pass; the write itself stays open.
    #[arg(long, conflicts_with = "remember")]
    repeat: bool,
    /// Admit runs of the same shape from now on: the same programs by content, in the same order.
    #[arg(long)]
    remember: bool,
    #[command(flatten)]
    pin: PinArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The run that may not act, or the remembered shape that shall wait again.
    id: Named,
}

/// What an id names.
#[derive(Debug, Clone)]
enum Named {
    Run(SessionId),
    Call(CallId),
    Shape(String),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = text
            .strip_prefix("t-")
            .filter(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if shape.is_some() {
            return Ok(Self::Shape(text.to_owned()));
        }
        let run = text.parse().map(Self::Run);
        run.or_else(|_| text.parse().map(Self::Call))
            .map_err(|_| "it is no id of a run (s-…), a call (c-…) or a shape (t-…)".to_owned())
    }
}

/// Lists what waits.
pub(crate) fn list(home: &Home, args: &PendingArgs) -> Result<Exit, Explain> {
    let value = Operator::connect(home)?.ask(&Request::Pending)?;
    if args.json {
        ui::json(&value)?;
        return Ok(Exit::Done);
    }
    let runs: Vec<SessionView> = part(&value, "runs")?;
    let mut text = String::new();
    for run in &runs {
        text.push_str(&format!(
            "run    {}  {}\n       lych allow {}\n",
            run.id,
            sessions::client_of(run),
            run.id
        ));
    }
    for repeat in items(&value, "repeats") {
        let of = word(repeat, "of");
        text.push_str(&format!(
            "repeat {of}  asked for by {}\n       lych reconcile resolve {of} …, or lych allow --repeat {of}\n",
            word(repeat, "asked_by")
        ));
    }
    if text.is_empty() {
        ui::note("Nothing waits.");
    }
    for shape in items(&value, "remembered") {
        text.push_str(&format!("known  {}\n", word(shape, "id")));
        for program in items(shape, "what") {
            let program = Foreign::from(program.as_str().unwrap_or_default());
            text.push_str(&format!("       {program}\n"));
        }
    }
    ui::data(&text)?;
    Ok(Exit::Done)
}

fn part<T: serde::de::DeserializeOwned>(value: &Value, key: &str) -> Result<T, Explain> {
    let part = value.get(key).cloned().unwrap_or_default();
    serde_json::from_value(part).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the daemon's list has an unexpected form",
        )
        .because(error)
    })
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("-")
}

/// Admits a run, or lets a repetition pass.
pub(crate) fn allow(home: &Home, args: &AllowArgs) -> Result<Exit, Explain> {
    let request = match (&args.id, args.repeat) {
        (Named::Run(session), false) => Request::Allow {
            session: *session,
            remember: args.remember,
        },
        (Named::Call(call), true) => Request::AllowRepeat { call: *call },
        (Named::Run(_), true) => {
            return Err(wrong_id("--repeat takes the id of an open call (c-…)"));
        }
        (Named::Call(_), false) => {
            return Err(wrong_id(
                "no operation asks a person for each call yet; to repeat an open call, add --repeat",
            ));
        }
        (Named::Shape(_), _) => {
            return Err(wrong_id(
                "a shape is remembered by `lych allow RUN --remember`",
            ));
        }
    };
    let value = args.pin.ask(&mut Operator::connect(home)?, &request)?;
    match &args.id {
        Named::Run(session) => ui::note(&format!("Run {session} may act.")),
        Named::Call(_) | Named::Shape(_) => {
            ui::note("One repetition may pass. What became of the first is still not known.");
        }
    }
    if let Some(shape) = value.get("remembered").and_then(Value::as_str) {
        ui::note(&format!(
            "Runs of this shape are admitted from now on; `lych deny {shape}` ends that."
        ));
    }
    Ok(Exit::Done)
}

/// Takes a run's authority away, or lets a shape wait again. Never asks.
pub(crate) fn deny(home: &Home, args: &DenyArgs) -> Result<Exit, Explain> {
    let mut operator = Operator::connect(home)?;
    match &args.id {
        Named::Run(session) => {
            operator.ask(&Request::Revoke {
                scope: Scope::Run { session: *session },
                reason: "denied by the operator".to_owned(),
            })?;
            ui::note(&format!("Run {session} may not act, and stays so."));
        }
        Named::Shape(shape) => {
            operator.ask(&Request::Forget {
                shape: shape.clone(),
            })?;
            ui::note("Runs of this shape wait again; those that were admitted go on.");
        }
        Named::Call(_) => {
            return Err(wrong_id(
                "a call that waits for a permission to repeat is refused already",
            ));
        }
    }
    Ok(Exit::Done)
}

fn wrong_id(why: &str) -> Explain {
    Explain::new(Exit::Usage, Fault::Caller, "this id does not fit here")
        .because(why)
        .next("lych pending")
}
