//! The incident record: open, list, show, note, attach, export, close.

mod page;
mod sheet;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};
use incident::{Case, IncidentError, Opening, View, list, preserve};
use model::{Exit, Explain, Fault, Home, IncidentId, SessionId};
use serde_json::{Value, json};
use wire::operator::WardenAct;

pub(crate) use sheet::Sheet;
pub(crate) use words::command;

use crate::{
    contain::{
        choice::{Wanted, groups},
        desk::Office,
        look,
    },
    pin::PinArgs,
    ui,
};

/// Largest file that is attached: an incident is copied and mailed.
const LARGEST: u64 = 64 << 20;

/// `lych incident`.
#[derive(Debug, Subcommand)]
pub(crate) enum Incident {
    /// Keep the evidence and find the run; nothing is revoked or ended.
    Open(Open),
    /// List incidents, newest first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one incident.
    Show {
        /// Which.
        id: IncidentId,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write something down.
    Note {
        /// In which incident.
        id: IncidentId,
        /// What.
        text: String,
        /// The follow-up that is done by it, as `show` names it.
        #[arg(long, value_name = "FOLLOW-UP")]
        done: Option<String>,
    },
    /// Add a file.
    Attach {
        /// To which incident.
        id: IncidentId,
        /// Which.
        file: PathBuf,
    },
    /// Write it as a page or as JSON, in clear text.
    Export(Export),
    /// Close it.
    Close(Close),
}

/// `lych incident open`.
#[derive(Debug, Args)]
pub(crate) struct Open {
    #[command(flatten)]
    what: What,
    /// Why; it is kept in the incident.
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(id = "opened", required = true, multiple = false)]
struct What {
    /// Processes by number, or findings as `lych ps` names them.
    #[arg(value_name = "PID|FINDING")]
    named: Vec<String>,
    /// This run.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
}

/// `lych incident export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Which.
    id: IncidentId,
    /// The folder to write it into; standard output if there is none.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// As a page or as JSON.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A page in Markdown.
    Md,
    /// The same as `show --json`.
    Json,
}

/// `lych incident close`.
#[derive(Debug, Args)]
pub(crate) struct Close {
    /// Which.
    id: IncidentId,
    /// Close it although follow-up is open.
    #[arg(long, requires = "reason")]
    accept_open: bool,
    #[command(flatten)]
    pin: PinArgs,
    /// Why; it is kept in the incident.
    #[arg(long, value_name = "R")]
    reason: Option<String>,
}

/// Does what was asked of the incidents.
pub(crate) fn run(home: &Home, verb: Incident) -> Result<Exit, Explain> {
    match verb {
        Incident::Open(open) => open_new(home, &open),
        Incident::List { json } => list_all(home, json),
        Incident::Show { id, json } => show(&Case::read(home, id)?, json),
        Incident::Note { id, text, done } => {
            let mut case = Case::open(home, id)?;
            case.note(&text, done, &mut Office::open(home)?.desk())?;
            ui::note(&format!("Noted in {id}"));
            Ok(Exit::Done)
        }
        Incident::Attach { id, file } => attach(home, id, &file),
        Incident::Export(args) => export(home, &args),
        Incident::Close(args) => close(home, &args),
    }
}

/// Returns the whole incident as a person reads it.
pub(crate) fn text(case: &Case) -> String {
    text::show(&View::of(case), case.verify_text().as_deref())
}

fn open_new(home: &Home, args: &Open) -> Result<Exit, Explain> {
    let survey = look(home)?;
    let wanted = match args.what.session {
        Some(session) => Wanted::Session(session),
        None => Wanted::Named(args.what.named.clone()),
    };
    let found = wanted.find(&survey)?;
    let mut office = Office::open(home)?;
    for group in groups(&found, &survey, args.what.session) {
        let selection = group.selection(&survey, args.reason.as_deref(), Opening::Open)?;
        let desk = &mut office.desk();
        let opened = preserve(home, selection, desk)?.attribute(desk)?;
        ui::note(&format!("Incident {}", opened.case().id()));
        show(opened.case(), args.json)?;
    }
    Ok(Exit::Done)
}

fn show(case: &Case, json: bool) -> Result<Exit, Explain> {
    if json {
        ui::json(&View::of(case))?;
    } else {
        ui::data(&text(case))?;
    }
    Ok(Exit::Done)
}

fn list_all(home: &Home, json: bool) -> Result<Exit, Explain> {
    let mut views: Vec<View> = Vec::new();
    let mut unreadable = Vec::new();
    for id in list(home)? {
        match Case::read(home, id) {
            Ok(case) => views.push(View::of(&case)),
            Err(error) => unreadable.push((id, error)),
        }
    }
    views.sort_by_key(|view| std::cmp::Reverse(view.opened_at.value().copied()));
    if json {
        ui::json(&list_json(&views, &unreadable))?;
    } else {
        let rows = views.iter().map(list_row).collect();
        let head = ["INCIDENT", "STATE", "OPENED", "FOLLOW-UP", "PROCESSES"];
        ui::table(&head, rows, "There are no incidents.")?;
        for (id, error) in &unreadable {
            ui::note(&format!("{id} cannot be read: {error}"));
        }
    }
    Ok(if unreadable.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn open_follow_up(view: &View) -> usize {
    view.follow_up.iter().filter(|item| item.is_open()).count()
}

fn list_row(view: &View) -> Vec<String> {
    vec![
        view.id.to_string(),
        view.state.word().to_owned(),
        words::known(&view.opened_at, ToString::to_string),
        format!("{} open", open_follow_up(view)),
        view.rows.len().to_string(),
    ]
}

fn list_json(views: &[View], unreadable: &[(IncidentId, IncidentError)]) -> Value {
    let incidents: Vec<Value> = views
        .iter()
        .map(|view| {
            json!({
                "id": view.id,
                "state": view.state,
                "opened_at": view.opened_at,
                "open_follow_up": open_follow_up(view),
                "rows": view.rows.len(),
            })
        })
        .collect();
    let unreadable: Vec<Value> = unreadable
        .iter()
        .map(|(id, error)| json!({"id": id, "why": error.to_string()}))
        .collect();
    json!({"schema": "lych.incidents/v1", "incidents": incidents, "unreadable": unreadable})
}

fn attach(home: &Home, id: IncidentId, file: &Path) -> Result<Exit, Explain> {
    let unreadable = |error: std::io::Error| {
        Explain::new(
            Exit::Failed,
            Fault::Caller,
            format!("{} cannot be read", file.display()),
        )
        .because(error)
    };
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(unreadable)?;
    opened
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST {
        let what = format!("{} has more than {} MiB", file.display(), LARGEST >> 20);
        return Err(Explain::new(Exit::Failed, Fault::Caller, what)
            .next("attach a note that says where it is kept, and its digest"));
    }
    let name = file
        .file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy();
    let mut case = Case::open(home, id)?;
    case.attach(&name, &bytes, &mut Office::open(home)?.desk())?;
    ui::note(&format!("Attached to {id}"));
    Ok(Exit::Done)
}

fn export(home: &Home, args: &Export) -> Result<Exit, Explain> {
    let case = Case::read(home, args.id)?;
    let view = View::of(&case);
    let (name, text) = match args.format {
        Format::Md => {
            let page = page::markdown(&view, case.verify_text().as_deref());
            (format!("{}.md", args.id), page)
        }
        Format::Json => {
            let text = serde_json::to_string_pretty(&view).map_err(|error| {
                Explain::new(
                    Exit::Failed,
                    Fault::Ours,
                    "the incident cannot be written as JSON",
                )
                .because(error)
            })?;
            (format!("{}.json", args.id), text + "\n")
        }
    };
    ui::note(page::CLEAR_TEXT);
    let Some(folder) = &args.output else {
        ui::data(&text)?;
        return Ok(Exit::Done);
    };
    let path = folder.join(name);
    sys::durable::replace(&path, text.as_bytes()).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Operator,
            format!("{} cannot be written", path.display()),
        )
        .because(error)
    })?;
    ui::note(&format!("Written to {}", path.display()));
    Ok(Exit::Done)
}

fn close(home: &Home, args: &Close) -> Result<Exit, Explain> {
    let mut case = Case::open(home, args.id)?;
    let reason = args.reason.as_deref().filter(|_| args.accept_open);
    let mut office = Office::open(home)?;
    let act = WardenAct::IncidentClose { incident: args.id };
    office.stand_behind(home, &args.pin, act)?;
    case.close(reason, &mut office.desk())?;
    ui::note(&format!("Closed {}", args.id));
    Ok(Exit::Done)
}
