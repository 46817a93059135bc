//! Runs and their authority: list, show, revoke.

use clap::{Args, Subcommand};
use model::{ChannelName, Exit, Explain, Fault, Home, LinkRole, Scope, SecretName, SessionId};
use serde_json::json;
use wire::{
    SessionView,
    operator::{Request, Revoked},
};

use crate::{operator::Operator, ui};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List runs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one run.
    Show {
        /// Which.
        id: SessionId,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take authority away, from the very next call on.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = false)]
struct What {
    /// This run.
    id: Option<SessionId>,
    /// Every use of this channel.
    #[arg(long, value_name = "C")]
    channel: Option<ChannelName>,
    /// Every use of this secret.
    #[arg(long, value_name = "S")]
    secret: Option<SecretName>,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    what: What,
    /// Why; it is kept in the log.
    #[arg(long)]
    reason: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Does what was asked of the runs.
pub(crate) fn run(home: &Home, verb: Sessions) -> Result<Exit, Explain> {
    match verb {
        Sessions::List { json } => list(home, json),
        Sessions::Show { id, json } => show(home, id, json),
        Sessions::Revoke(revoke) => take_away(home, revoke),
    }
}

fn list(home: &Home, json: bool) -> Result<Exit, Explain> {
    let value = Operator::connect(home)?.ask(&Request::SessionsList)?;
    if json {
        ui::json(&value)?;
        return Ok(Exit::Done);
    }
    let sessions = value.get("sessions").cloned().unwrap_or(json!([]));
    let views: Vec<SessionView> = serde_json::from_value(sessions).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the daemon's list of runs has an unexpected form",
        )
        .because(error)
    })?;
    let row = |view: &SessionView| {
        vec![
            view.id.to_string(),
            view.state.to_string(),
            opened(view),
            client_of(view),
        ]
    };
    ui::table(
        &["RUN", "STATE", "OPENED", "CLIENT"],
        views.iter().map(row).collect(),
        "No run is on record.",
    )?;
    Ok(Exit::Done)
}

/// The client in a few words: pid and command, or why that is not known.
pub(crate) fn client_of(view: &SessionView) -> String {
    let Some(chain) = view.chain.value() else {
        return format!("unknown: {}", view.chain.why().unwrap_or("-"));
    };
    let Some(holder) = chain.iter().find(|link| link.role.is_holder()) else {
        return "unknown: nobody was seen to hold its wire".to_owned();
    };
    let command: Vec<String> = holder
        .process
        .command
        .iter()
        .map(ToString::to_string)
        .collect();
    let whose_word = if holder.role == LinkRole::HolderReported {
        " (reported by its shim, not seen)"
    } else {
        ""
    };
    format!(
        "{} {}{whose_word}",
        holder.process.id.pid,
        command.join(" ")
    )
}

fn opened(view: &SessionView) -> String {
    view.opened_at
        .value()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn show(home: &Home, id: SessionId, json: bool) -> Result<Exit, Explain> {
    let value = Operator::connect(home)?.ask(&Request::SessionShow { id })?;
    if json {
        ui::json(&value)?;
        return Ok(Exit::Done);
    }
    let view: SessionView = serde_json::from_value(
        value.get("session").cloned().unwrap_or_default(),
    )
    .map_err(|error| {
        Explain::new(Exit::Failed, Fault::Ours, "a run has an unexpected form").because(error)
    })?;
    let mut text = format!(
        "run       {}\nstate     {}\nopened    {}\nclient    {}\n",
        view.id,
        view.state,
        opened(&view),
        client_of(&view)
    );
    for found in &view.lost {
        match found.lost.value() {
            Some(lost) => text.push_str(&format!(
                "lost      {} to {} ({:?})\n",
                lost.not_before, lost.not_after, lost.basis
            )),
            None => text.push_str(&format!(
                "lost      unknown: {}\n",
                found.lost.why().unwrap_or("-")
            )),
        }
    }
    if let Some(at) = view.revoked_at {
        text.push_str(&format!(
            "revoked   {at} (record {})\n",
            view.revoked_seq.unwrap_or_default()
        ));
    }
    ui::data(&text)?;
    Ok(Exit::Done)
}

fn take_away(home: &Home, revoke: Revoke) -> Result<Exit, Explain> {
    let What {
        id,
        channel,
        secret,
    } = revoke.what;
    let scope = match (id, channel, secret) {
        (Some(session), _, _) => Scope::Run { session },
        (_, Some(channel), _) => Scope::Channel { channel },
        (_, _, Some(secret)) => Scope::Secret { secret },
        (None, None, None) => {
            return Err(
                Explain::new(Exit::Usage, Fault::Caller, "say what to revoke")
                    .next("a run's id, --channel C or --secret S"),
            );
        }
    };
    let revoked: Revoked = Operator::connect(home)?.ask_for(&Request::Revoke {
        scope,
        reason: revoke.reason,
    })?;
    if revoke.json {
        ui::json(
            &json!({"schema": "lych.revoked/v1", "seq": revoked.seq, "at": revoked.at,
            "in_flight": revoked.in_flight, "by": revoked.by}),
        )?;
        return Ok(if revoked.seq.is_some() {
            Exit::Done
        } else {
            Exit::Failed
        });
    }
    let Some(seq) = revoked.seq else {
        ui::note(
            "Revoked, NOT recorded: the log cannot be written. Nothing is cleared until the daemon restarts.",
        );
        return Ok(Exit::Failed);
    };
    ui::note(&format!("Revoked at {}, record {seq}.", revoked.at));
    if revoked.in_flight.is_empty() {
        ui::note("No call was in flight.");
    }
    for call in &revoked.in_flight {
        ui::note(&format!(
            "In flight at that moment, may have had an effect: {call}"
        ));
    }
    Ok(Exit::Done)
}
