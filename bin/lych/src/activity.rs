//! The activity journal: which calls, in which order, and how each ended.

use clap::Subcommand;
use model::{CallId, CallState, Exit, Explain, Fault, Home, Known, SessionId, Wall};
use serde_json::{Value, json};
use wire::{CallView, operator::Request};

use crate::{operator::Operator, ui};

/// How many calls a person is shown if nothing narrows them down: a log may hold millions. A script gets all of
/// them, as ever.
const USUAL: usize = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum Activity {
    /// List calls in the order of the log: the last 100, if nothing narrows them down; as JSON, all.
    List {
        /// At most so many, the newest.
        #[arg(long, value_name = "N", conflicts_with = "all")]
        last: Option<usize>,
        /// All there are.
        #[arg(long)]
        all: bool,
        /// Of this run only.
        #[arg(long, value_name = "ID")]
        session: Option<SessionId>,
        /// Not before this time (RFC 3339).
        #[arg(long, value_name = "T")]
        since: Option<Wall>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one call.
    Show {
        /// Which.
        call: CallId,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Does what was asked of the activity journal.
pub(crate) fn run(home: &Home, verb: Activity) -> Result<Exit, Explain> {
    match verb {
        Activity::List {
            last,
            all,
            session,
            since,
            json,
        } => {
            let narrow = all || json || session.is_some() || since.is_some();
            let request = Request::ActivityList {
                session,
                since,
                open_only: false,
                last: last.or((!narrow).then_some(USUAL)),
            };
            let value = Operator::connect(home)?.ask(&request)?;
            let exit = print(&value, json, "No call is on record.")?;
            if value.get("earlier_left_out") == Some(&Value::Bool(true)) {
                ui::note("There are earlier ones: `--last N` or `--all` shows them.");
            }
            Ok(exit)
        }
        Activity::Show { call, json } => show(home, call, json),
    }
}

/// Prints a list of calls.
pub(crate) fn print(value: &Value, as_json: bool, none: &str) -> Result<Exit, Explain> {
    if as_json {
        ui::json(value)?;
        return Ok(Exit::Done);
    }
    let calls: Vec<CallView> = serde_json::from_value(
        value.get("calls").cloned().unwrap_or(json!([])),
    )
    .map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the list of calls has an unexpected form",
        )
        .because(error)
    })?;
    let rows = calls.iter().map(row).collect();
    ui::table(&["ATTEMPTED", "CALL", "STATE", "TARGET"], rows, none)?;
    Ok(Exit::Done)
}

fn row(call: &CallView) -> Vec<String> {
    vec![
        call.attempted_at.to_string(),
        call.id.to_string(),
        state_of(call),
        target_of(call),
    ]
}

fn state_of(call: &CallView) -> String {
    let state = match (call.state, call.status.value(), call.why.value()) {
        (CallState::Answered, Some(Some(status)), _) => format!("answered {status}"),
        (state, _, Some(Some(why))) => format!("{state} ({why})"),
        (state, _, _) => state.to_string(),
    };
    if call.probe.value() == Some(&true) {
        format!("{state}, our probe")
    } else {
        state
    }
}

/// A call's target in a few words.
pub(crate) fn target_of(call: &CallView) -> String {
    match call.target.value() {
        Some(target) => format!("{} {} {}", target.channel, target.method, target.path),
        None => format!("unknown: {}", call.target.why().unwrap_or("-")),
    }
}

fn show(home: &Home, id: CallId, as_json: bool) -> Result<Exit, Explain> {
    let value = Operator::connect(home)?.ask(&Request::ActivityShow { call: id })?;
    if as_json {
        ui::json(&value)?;
        return Ok(Exit::Done);
    }
    let call: CallView = serde_json::from_value(value.get("call").cloned().unwrap_or_default())
        .map_err(|error| {
            Explain::new(Exit::Failed, Fault::Ours, "a call has an unexpected form").because(error)
        })?;
    let time = |at: Option<Wall>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let session = call
        .session_id
        .map_or_else(|| "-".to_owned(), |id| id.to_string());
    ui::data(&format!(
        "call        {}\nrun         {session}\nstate       {}\ntarget      {}\nat          {}\nrequest id  {}\nremote id   {}\nattempted   {}\ncleared     {}\nsettled     {}\nrecord      {}\n",
        call.id,
        state_of(&call),
        target_of(&call),
        shown(&call.destination.clone().map(Some)),
        shown(&call.key.clone().map(|key| key.map(|key| key.0))),
        shown(&call.remote_id),
        call.attempted_at,
        time(call.cleared_at),
        time(call.settled_at),
        call.seq,
    ))?;
    Ok(Exit::Done)
}

fn shown<T: ToString>(known: &Known<Option<T>>) -> String {
    match known {
        Known::Yes(Some(value)) => value.to_string(),
        Known::Yes(None) => "-".to_owned(),
        Known::Unknown { unknown } => format!("unknown: {unknown}"),
    }
}
