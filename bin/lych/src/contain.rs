//! Contains what is left over: preserve, attribute, revoke, confirm, terminate, reconcile, record.
//!
//! The order is the incident's; here a person says what is meant, is shown what will happen, and agrees.
//! Without a terminal it only shows, unless `--yes` says that somebody has agreed.

pub(crate) mod choice;
pub(crate) mod desk;
mod eyes;
mod plan;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::Args;
use incident::{
    Desk, Ending, IncidentError, Opening, Recorded, Stage, State, View, preserve, resume,
};
use model::{Exit, Explain, Fault, Home, IncidentId, SessionId, SessionState};
use supervise::{Force, Plan};

use verdict::Extent;
use wire::operator::WardenAct;

use crate::{
    incident as verbs,
    pin::PinArgs,
    survey::{Closer, Survey},
    ui,
};

use choice::{Group, Wanted, groups, refuse_in_use, refuse_our_own};
use desk::Office;

/// How long a refused call is waited for. A survivor that polls or retries does so within seconds; one
/// that does not may never ask again, and a person waits in front of the screen.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

/// `lych contain`.
#[derive(Debug, Args)]
pub(crate) struct ContainArgs {
    #[command(flatten)]
    what: What,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Kill what does not end by itself; cleanup is then possibly incomplete.
    #[arg(long, requires = "reason")]
    force_kill: bool,
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
    /// Why; it is kept in the log and in the incident.
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    #[command(flatten)]
    pin: PinArgs,
    /// Print JSON, one document per incident.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(id = "contained", required = true, multiple = false)]
struct What {
    /// Processes by number, or findings as `lych ps` names them.
    #[arg(value_name = "PID|FINDING")]
    named: Vec<String>,
    /// What belongs to this run.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// What this client started.
    #[arg(long, value_name = "PID")]
    client: Option<u32>,
    /// Every proven orphan.
    #[arg(long)]
    orphans: bool,
    /// Go on with this incident.
    #[arg(long, value_name = "ID")]
    incident: Option<IncidentId>,
}

impl What {
    fn wanted(&self) -> Wanted {
        match (self.session, self.client) {
            (Some(session), _) => Wanted::Session(session),
            (None, Some(client)) => Wanted::Client(client),
            (None, None) if self.orphans => Wanted::Orphans,
            (None, None) => Wanted::Named(self.named.clone()),
        }
    }
}

/// Contains what was named.
pub(crate) fn run(home: &Home, args: &ContainArgs) -> Result<Exit, Explain> {
    let ending = args.ending()?;
    match args.what.incident {
        Some(id) => go_on(home, id, args, &ending),
        None => begin(home, args, &ending),
    }
}

impl ContainArgs {
    fn ending(&self) -> Result<Ending, Explain> {
        let mut plan = Plan::gentle();
        if self.force_kill {
            let force = Force::because(self.reason.as_deref().unwrap_or_default());
            plan = plan.forced(force.map_err(|error| {
                Explain::new(Exit::Usage, Fault::Caller, error.to_string())
                    .next("say why with --reason R")
            })?);
        }
        Ok(Ending::by(plan))
    }

    /// Killing by force is no narrowing act: what it interrupts may stay half done.
    fn stand_behind(&self, home: &Home, office: &mut Office) -> Result<(), Explain> {
        if self.force_kill {
            office.stand_behind(home, &self.pin, WardenAct::ForceKill)?;
        }
        Ok(())
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or("contained by an operator")
    }

    /// Tells whether it may be done: somebody has agreed, or does so now.
    fn agreed(&self, question: &str) -> bool {
        if self.dry_run {
            return false;
        }
        if self.yes {
            return true;
        }
        if !io::stdin().is_terminal() {
            ui::note(
                "This was a dry run, because there is no terminal to ask. Add --yes to do it.",
            );
            return false;
        }
        ask(question)
    }
}

fn ask(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(io::stderr(), "{question} [y/N] ").and_then(|()| io::stderr().flush());
    let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn begin(home: &Home, args: &ContainArgs, ending: &Ending) -> Result<Exit, Explain> {
    let survey = look(home)?;
    let wanted = args.what.wanted();
    let found = wanted.find(&survey)?;
    let session = wanted.session(&survey);
    refuse_in_use(&found)?;
    let mut office = Office::open(home)?;
    if let Some(session) = session {
        refuse_live_run(session, found.is_empty(), &mut office.desk())?;
    }
    let groups = groups(&found, &survey, session);
    refuse_our_own(&groups)?;
    if groups.is_empty() {
        ui::note("Nothing is proven to be left over.");
        return Ok(Exit::Done);
    }
    refuse_ended(&groups)?;
    if args.json {
        // With a plan on standard output a script could take it for the result.
        if args.dry_run || !args.yes {
            ui::json(&plan::json(&groups))?;
        }
    } else {
        ui::data(&plan::text(&groups, ending))?;
    }
    if !args.agreed("Do this?") {
        return Ok(Exit::Done);
    }
    args.stand_behind(home, &mut office)?;
    let mut worst = Exit::Done;
    for group in &groups {
        let exit = contain(home, group, &survey, args, ending, &mut office)?;
        if exit != Exit::Done {
            worst = exit;
        }
    }
    Ok(worst)
}

fn contain(
    home: &Home,
    group: &Group<'_>,
    survey: &Survey,
    args: &ContainArgs,
    ending: &Ending,
    office: &mut Office,
) -> Result<Exit, Explain> {
    let selection = group.selection(survey, args.reason.as_deref(), Opening::Contain)?;
    let desk = &mut office.desk();
    let preserved = preserve(home, selection, desk)?;
    let id = preserved.case().id();
    ui::note(&format!("Incident {id}"));
    let done = all_steps(Stage::Preserved(preserved), args, ending, desk);
    let done = done.map_err(|error| stopped(id, error))?;
    show(&done, args.json)
}

fn go_on(
    home: &Home,
    id: IncidentId,
    args: &ContainArgs,
    ending: &Ending,
) -> Result<Exit, Explain> {
    let mut stage = resume(home, id)?;
    if let Stage::Recorded(recorded) = stage {
        if recorded.state() == State::Contained {
            ui::note(&format!(
                "Incident {id} is contained; there is nothing left to do."
            ));
            return show(&recorded, args.json);
        }
        stage = recorded.again()?;
    }
    let ends = signals(&stage);
    if ends {
        let next = format!("Incident {id} goes on: its processes are ended next.");
        ui::note(&next);
        if !args.agreed("Do this?") {
            return Ok(Exit::Done);
        }
    } else if args.dry_run {
        ui::note(&format!(
            "Incident {id} goes on: both sides are compared next."
        ));
        return Ok(Exit::Done);
    }
    let mut office = Office::open(home)?;
    if ends {
        args.stand_behind(home, &mut office)?;
    }
    let done = all_steps(stage, args, ending, &mut office.desk());
    let done = done.map_err(|error| stopped(id, error))?;
    show(&done, args.json)
}

/// Tells whether the steps that are left end processes.
const fn signals(stage: &Stage) -> bool {
    match stage {
        Stage::Preserved(_) | Stage::Attributed(_) | Stage::Revoked(_) | Stage::Confirmed(_) => {
            true
        }
        Stage::Terminated(_) | Stage::Reconciled(_) | Stage::Recorded(_) => false,
    }
}

fn all_steps(
    mut stage: Stage,
    args: &ContainArgs,
    ending: &Ending,
    desk: &mut Desk<'_>,
) -> Result<Recorded, IncidentError> {
    loop {
        stage = match stage {
            Stage::Preserved(now) => {
                progress(args, "preserved; finding the run");
                Stage::Attributed(now.attribute(desk)?)
            }
            Stage::Attributed(now) => {
                progress(args, "revoking");
                Stage::Revoked(now.revoke(args.reason(), desk)?)
            }
            Stage::Revoked(now) => {
                progress(args, "waiting for a refused call");
                Stage::Confirmed(now.confirm(CONFIRM_WITHIN, desk)?)
            }
            Stage::Confirmed(now) => {
                progress(args, "ending the processes, and watching who comes back");
                Stage::Terminated(now.terminate(ending, desk)?)
            }
            Stage::Terminated(now) => {
                progress(args, "comparing both sides");
                Stage::Reconciled(now.reconcile(desk)?)
            }
            Stage::Reconciled(now) => Stage::Recorded(now.record(desk)?),
            Stage::Recorded(done) => return Ok(done),
        };
    }
}

fn progress(args: &ContainArgs, what: &str) {
    if !args.json {
        ui::note(&format!("  {what}"));
    }
}

fn show(done: &Recorded, json: bool) -> Result<Exit, Explain> {
    if json {
        ui::json(&View::of(done.case()))?;
    } else {
        ui::data(&verbs::text(done.case()))?;
    }
    Ok(done.state().exit())
}

fn stopped(id: IncidentId, error: IncidentError) -> Explain {
    let explain = Explain::from(error);
    let why = explain.why.clone().unwrap_or_default();
    Explain::new(
        explain.exit,
        explain.fault,
        format!("incident {id} stopped: {}", explain.what),
    )
    .because(why)
    .next(format!("go on with `lych contain --incident {id}`"))
}

/// Looks at everything and closely: this look is the evidence, and cannot be repeated afterwards.
pub(crate) fn look(home: &Home) -> Result<Survey, Explain> {
    Survey::take(home, Closer::All, Extent::Everything)
}

/// A run whose client lives is in use also where no process of it was found.
fn refuse_live_run(
    session: SessionId,
    nothing_found: bool,
    desk: &mut Desk<'_>,
) -> Result<(), Explain> {
    let run = match desk.authority.session(session) {
        Ok(run) => run,
        Err(why) if nothing_found => {
            return Err(Explain::new(
                Exit::Unreachable,
                Fault::Operator,
                format!("nothing is known of run {session}"),
            )
            .because(why)
            .next("start the daemon with `lych up`, or name the processes"));
        }
        Err(_) => return Ok(()),
    };
    match run {
        None if nothing_found => {
            let what = format!("there is no run {session}");
            let next = "list them with `lych sessions list`";
            Err(Explain::new(Exit::Failed, Fault::Caller, what).next(next))
        }
        Some(run) if matches!(run.state, SessionState::Live | SessionState::Pending) => {
            let what = format!("run {session} is {}: it is not contained", run.state);
            let next =
                format!("to take its authority away: `lych sessions revoke {session} --reason R`");
            Err(Explain::new(Exit::Refused, Fault::Caller, what).next(next))
        }
        Some(_) | None => Ok(()),
    }
}

/// What ended since the look leaves nothing to be contained.
fn refuse_ended(groups: &[Group<'_>]) -> Result<(), Explain> {
    let ended = groups
        .iter()
        .find(|group| group.subjects.is_empty() && group.session.is_none());
    let Some(group) = ended else { return Ok(()) };
    let pids: Vec<String> = group
        .findings
        .iter()
        .map(|one| one.root.pid.to_string())
        .collect();
    let what = format!("process {} has ended already", pids.join(", "));
    Err(Explain::new(Exit::Failed, Fault::Caller, what)
        .next("what it did is on record: `lych activity list`"))
}
