//! The crash drill: crash a client on purpose, and read what stays.

mod act;
mod client;
mod stage;
mod target;
mod tell;

use std::{io, path::Path};

use clap::{Args, Subcommand};
use model::{Exit, Explain, Fault, Home};
use serde_json::json;

use crate::ui;

#[derive(Debug, Subcommand)]
pub(crate) enum Drill {
    /// Crash a client of our own at both points and check the whole story.
    #[command(name = "self")]
    Own(Own),
    /// The drill's harness; started by the drill.
    #[command(hide = true)]
    Harness,
    /// The drill's agent worker; started by the drill.
    #[command(hide = true)]
    Worker,
}

#[derive(Debug, Args)]
pub(crate) struct Own {
    /// Keep the folder with the log and the incidents.
    #[arg(long)]
    keep: bool,
    /// Print JSON only.
    #[arg(long)]
    json: bool,
}

/// The name under which this program plays a third-party server that ignores the end of its input.
pub(crate) const SERVER_NAME: &str = "notes-server";

/// Plays the third-party server, if that is the name we were started by.
pub(crate) fn plays_server() -> Option<Exit> {
    let name = std::env::args_os().next()?;
    if Path::new(&name).file_name()? != SERVER_NAME {
        return None;
    }
    Some(ended(client::deaf_server()))
}

fn ended(result: io::Result<()>) -> Exit {
    match result {
        Ok(()) => Exit::Done,
        Err(error) => {
            ui::note(&format!("error: {error}"));
            Exit::Failed
        }
    }
}

/// Does what was asked of the drill. `named` is the home if one was named.
pub(crate) fn run(named: Option<&Home>, verb: &Drill) -> Result<Exit, Explain> {
    match verb {
        Drill::Own(own) => own_drill(named, own),
        Drill::Harness => Ok(ended(client::harness())),
        Drill::Worker => Ok(ended(client::worker())),
    }
}

fn own_drill(named: Option<&Home>, own: &Own) -> Result<Exit, Explain> {
    let mut tell = tell::Tell::new(own.json);
    let home = named.and_then(Home::root);
    let keep = own.keep || home.is_some();
    let failed = |error: io::Error| {
        let exit = if error.kind() == io::ErrorKind::TimedOut {
            Exit::TimedOut
        } else {
            Exit::Failed
        };
        Explain::new(exit, Fault::Ours, "the drill did not get to its end").because(error)
    };
    let mut stage = stage::Stage::set_up(home, keep).map_err(failed)?;
    let mut points = Vec::new();
    for point in [act::Point::BeforeSend, act::Point::AfterAccept] {
        points.push(act::play(&mut stage, point, &mut tell).map_err(failed)?);
    }
    if keep {
        ui::note(&format!(
            "The log and the incidents are kept in {}",
            stage.home.display()
        ));
    }
    drop(stage);
    let met = points.iter().all(|point| point.met);
    if own.json {
        ui::json(&json!({"schema": "lych.drill/v1", "server": "self", "points": points}))?;
    } else {
        ui::data(if met {
            "\nEvery claim holds.\n"
        } else {
            "\nNOT every claim holds.\n"
        })?;
    }
    Ok(if met { Exit::Done } else { Exit::Negative })
}
