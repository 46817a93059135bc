//! `lych snapshot`: everything that can be seen, as evidence.

use std::{io, path::PathBuf};

use clap::Args;
use model::{Exit, Explain, Fault, Home};
use verdict::Extent;

use crate::{
    survey::{Closer, Survey},
    ui,
};

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Write it to this new file (mode 0600) and not to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The snapshot is always JSON; the option is accepted so that it may be given to every verb.
    #[arg(long, hide = true)]
    json: bool,
}

/// Takes a snapshot of all processes.
///
/// # Errors
/// The processes cannot be listed, or the file cannot be written.
pub(crate) fn run(home: &Home, args: &SnapshotArgs) -> Result<Exit, Explain> {
    let survey = Survey::take(home, Closer::All, Extent::Servers)?;
    let Some(path) = &args.output else {
        ui::json(&survey.snapshot)?;
        return Ok(Exit::Done);
    };
    let mut text = serde_json::to_vec_pretty(&survey.snapshot).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the snapshot cannot be written as JSON",
        )
        .because(error)
    })?;
    text.push(b'\n');
    let absolute = std::path::absolute(path).map_err(|error| unwritten(path, &error))?;
    sys::durable::create(&absolute, &text).map_err(|error| unwritten(path, &error))?;
    ui::note(&format!(
        "{} processes written to {}",
        survey.snapshot.processes.len(),
        path.display()
    ));
    if !survey.snapshot.complete {
        ui::note(&format!(
            "{} things could not be read; the snapshot names each and why",
            survey.snapshot.unreadable.len()
        ));
    }
    Ok(Exit::Done)
}

fn unwritten(path: &std::path::Path, error: &io::Error) -> Explain {
    let explain = Explain::new(
        Exit::Failed,
        Fault::Caller,
        format!("the snapshot could not be written to {}", path.display()),
    )
    .because(error);
    if error.kind() == io::ErrorKind::AlreadyExists {
        explain.next("name a new file: evidence is never overwritten")
    } else if error.kind() == io::ErrorKind::NotFound {
        explain.next("choose a folder that is there")
    } else {
        explain.next("choose a folder that you may write to")
    }
}
