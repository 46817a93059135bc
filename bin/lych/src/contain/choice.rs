//! Which processes are to be contained, and what refuses that.

use std::collections::BTreeMap;

use incident::{
    AuthorityLevel, LostSeen, Named, Opening, Place, Reach, Selection, Standing, Subject,
};
use model::{
    Exit, Explain, Fault, Foreign, Known, LaunchRecord, LinkRole, ProcessRef, SessionId, Wall,
};
use supervise::{Evidence, Target};
use sys::process::Handle;
use verdict::{Confidence, Finding, ProcessView, Verdict, command_text};

use super::eyes;
use crate::survey::Survey;

/// What the operator named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Processes by number and findings by id.
    Named(Vec<String>),
    /// One run.
    Session(SessionId),
    /// Everything that one client started.
    Client(u32),
    /// Every proven orphan.
    Orphans,
}

/// What becomes one incident: the findings of one run, or one finding without a run.
pub(crate) struct Group<'a> {
    pub(crate) session: Option<SessionId>,
    pub(crate) findings: Vec<&'a Finding>,
    pub(crate) subjects: Vec<Subject>,
}

impl Wanted {
    /// Finds what was named.
    ///
    /// # Errors
    /// There is no such process or finding.
    pub(crate) fn find<'a>(&self, survey: &'a Survey) -> Result<Vec<&'a Finding>, Explain> {
        let all = &survey.report.findings;
        match self {
            Self::Named(names) => named(names, all),
            Self::Session(session) => Ok(all
                .iter()
                .filter(|finding| finding.session == Some(*session))
                .collect()),
            Self::Client(pid) => {
                let of_client = |finding: &&Finding| {
                    finding
                        .owner
                        .as_ref()
                        .is_some_and(|owner| owner.pid == *pid)
                };
                let found: Vec<&Finding> = all.iter().filter(of_client).collect();
                if found.is_empty() && self.session(survey).is_none() {
                    let what = format!("nothing is known to belong to client {pid}");
                    return Err(nobody(&what));
                }
                Ok(found)
            }
            Self::Orphans => Ok(all
                .iter()
                .filter(|one| one.verdict.is_orphan() && one.confidence == Confidence::Proven)
                .collect()),
        }
    }
}

impl Wanted {
    /// Returns the run that was named, by itself or by its client, so that it is contained also where no
    /// process of it is left.
    pub(crate) fn session(&self, survey: &Survey) -> Option<SessionId> {
        match self {
            Self::Session(session) => Some(*session),
            Self::Client(pid) => {
                let is_its = |record: &&LaunchRecord| {
                    let mut links = record.chain.iter();
                    links.any(|link| link.role.is_holder() && link.process.id.pid == *pid)
                };
                // A number is given out again: the newest record means the client that is meant.
                let records = survey.launches.iter().filter(is_its);
                let newest = records.max_by_key(|record| record.connected_at);
                newest.map(|record| record.session)
            }
            Self::Named(_) | Self::Orphans => None,
        }
    }
}

fn named<'a>(names: &[String], all: &'a [Finding]) -> Result<Vec<&'a Finding>, Explain> {
    let mut found: Vec<&Finding> = Vec::new();
    for name in names {
        // Whoever names one process of a unit means the unit: a wrapper without its server is half of it.
        let is_meant = |finding: &&Finding| match name.parse::<u32>() {
            Ok(pid) => finding.root.pid == pid || finding.members.iter().any(|one| one.pid == pid),
            Err(_) => finding.id == *name,
        };
        let finding = all
            .iter()
            .find(is_meant)
            .ok_or_else(|| nobody(&format!("there is no process or finding {name}")))?;
        if !found.iter().any(|known| known.id == finding.id) {
            found.push(finding);
        }
    }
    Ok(found)
}

fn nobody(what: &str) -> Explain {
    Explain::new(Exit::Failed, Fault::Caller, what).next("see what is there with `lych ps --all`")
}

/// Refuses what a living client uses, what a service manager runs and what several share.
///
/// # Errors
/// One of them is; nothing is contained then.
pub(crate) fn refuse_in_use(findings: &[&Finding]) -> Result<(), Explain> {
    let Some(finding) = findings.iter().find(|finding| finding.verdict.is_in_use()) else {
        return Ok(());
    };
    let (pid, verdict) = (finding.root.pid, finding.verdict.word());
    let why = finding
        .evidence
        .first()
        .map_or("", |evidence| &evidence.what);
    let next = if finding.verdict == Verdict::Managed {
        "stop it where it is managed".to_owned()
    } else {
        let id = finding
            .session
            .map_or_else(|| "ID".to_owned(), |session| session.to_string());
        format!(
            "look closer: `lych inspect {pid}`; end its authority: `lych sessions revoke {id} --reason R`"
        )
    };
    Err(Explain::new(
        Exit::Refused,
        Fault::Caller,
        format!("process {pid} is {verdict}: it is not contained"),
    )
    .because(format!("{}: {why}", command_text(&finding.root)))
    .next(next))
}

/// Refuses this program, what started it, the daemon, and what is never signalled.
///
/// # Errors
/// One of the processes is one of those; nothing is contained then.
pub(crate) fn refuse_our_own(groups: &[Group<'_>]) -> Result<(), Explain> {
    for subject in groups.iter().flat_map(|group| &group.subjects) {
        let pid = subject.process.id.pid;
        let refused = if is_daemon(&subject.process) {
            format!("process {pid} is the daemon: stop it with `lych down`")
        } else {
            let evidence = Evidence {
                process: subject.process.clone(),
                standing: subject.standing,
            };
            match Target::verify(&evidence) {
                Ok(_) => continue,
                Err(refused) if refused.is_gone() => continue,
                Err(refused) => refused.to_string(),
            }
        };
        return Err(Explain::new(Exit::Refused, Fault::Caller, refused)
            .because("nothing was contained")
            .next("name what is left over: `lych ps`"));
    }
    Ok(())
}

/// Tells whether it runs the daemon's binary beside this one.
fn is_daemon(process: &ProcessRef) -> bool {
    let own = std::env::current_exe().ok();
    let daemon = own.map(|own| own.with_file_name("lychd"));
    let runs = process.exe.as_ref().map(Foreign::raw);
    runs.is_some() && daemon.as_deref().and_then(std::path::Path::to_str) == runs
}

/// Returns one group per run, and one per finding that has none.
pub(crate) fn groups<'a>(
    findings: &[&'a Finding],
    survey: &Survey,
    session: Option<SessionId>,
) -> Vec<Group<'a>> {
    let mut by_run: BTreeMap<SessionId, Vec<&Finding>> = BTreeMap::new();
    let mut groups = Vec::new();
    // A run that was named is an incident also where no process of it is left.
    if let Some(session) = session {
        by_run.insert(session, Vec::new());
    }
    for finding in findings {
        match finding.session {
            Some(session) => by_run.entry(session).or_default().push(finding),
            None => groups.push(Group {
                session: None,
                findings: vec![finding],
                subjects: subjects(finding, survey),
            }),
        }
    }
    for (session, findings) in by_run {
        let mut subjects: Vec<Subject> = findings
            .iter()
            .flat_map(|finding| subjects(finding, survey))
            .collect();
        subjects.extend(ended_shims(session, survey, &subjects));
        groups.push(Group {
            session: Some(session),
            findings,
            subjects,
        });
    }
    groups
}

impl Group<'_> {
    /// Returns what an incident about it is opened with.
    ///
    /// # Errors
    /// A finding cannot be written as JSON.
    pub(crate) fn selection(
        &self,
        survey: &Survey,
        reason: Option<&str>,
        opening: Opening,
    ) -> Result<Selection, Explain> {
        Ok(Selection {
            subjects: self.subjects.clone(),
            look: eyes::look(&survey.snapshot),
            snapshot: to_json(&survey.snapshot)?,
            findings: to_json(&self.findings)?,
            session: self.session,
            reason: reason.map(str::to_owned),
            opening,
        })
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Explain> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| {
        Explain::new(
            Exit::Failed,
            Fault::Ours,
            "the evidence cannot be written as JSON",
        )
        .because(error)
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn subjects(finding: &Finding, survey: &Survey) -> Vec<Subject> {
    // Whoever has the number now is a stranger.
    if finding.verdict == Verdict::Recycled {
        return Vec::new();
    }
    let all = std::iter::once(&finding.root).chain(&finding.members);
    all.filter_map(|view| subject(finding, view, survey))
        .collect()
}

/// Returns none for a process that ended since the look: nothing is left to be ended or preserved of it.
fn subject(finding: &Finding, view: &ProcessView, survey: &Survey) -> Option<Subject> {
    let seen = view.identity(&survey.report.boot_id)?;
    // Held once more for its full identity, and so that a later holder of its number is not taken for it.
    let process = match Handle::reopen(&seen).and_then(|handle| handle.describe()) {
        Ok(process) => process,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(_) => survey.snapshot.process(view.pid)?.reference(),
    };
    let started = view.observed_at.millis().saturating_sub(view.elapsed_ms);
    let is_root = view.pid == finding.root.pid;
    Some(Subject {
        finding: finding.id.clone(),
        verdict: finding.verdict.word().to_owned(),
        confidence: finding.confidence.word().to_owned(),
        process,
        observed_at: view.observed_at,
        started_at: Known::Yes(Wall::from_millis(started)),
        place: Known::Yes(Place {
            ppid: view.ppid,
            pgid: view.pgid,
            sid: view.sid,
            stat: view.stat.clone(),
        }),
        server: finding.server.as_ref().map(|server| server.name.clone()),
        client: client(finding, survey),
        client_lost: client_lost(finding, view, Wall::from_millis(started)),
        session_hint: finding.session,
        reach: reach(finding, is_root),
        standing: standing(finding.verdict),
    })
}

fn client(finding: &Finding, survey: &Survey) -> Known<Named> {
    if let Some(owner) = &finding.owner {
        return Known::Yes(Named {
            pid: owner.pid,
            command: owner.command.value().cloned().unwrap_or_default(),
            reported: false,
        });
    }
    let of_run = |record: &&LaunchRecord| finding.session == Some(record.session);
    let mut links = survey
        .launches
        .iter()
        .filter(of_run)
        .flat_map(|record| &record.chain);
    match links.find(|link| link.role.is_holder()) {
        Some(link) => Known::Yes(link.into()),
        None => Known::unknown("no client was seen, and no record names one"),
    }
}

fn client_lost(finding: &Finding, view: &ProcessView, started: Wall) -> Known<LostSeen> {
    let is_gone = finding.owner.as_ref().is_none_or(|owner| !owner.alive);
    if finding.verdict.is_orphan() && is_gone {
        // It was started by a client, so that was there then; it was gone when we looked.
        return Known::Yes(LostSeen {
            not_before: started,
            not_after: view.observed_at,
            source: "gone_when_looked_at".to_owned(),
        });
    }
    Known::unknown("nothing that was seen tells when")
}

/// What a unit holds was found for the unit as a whole: it is told once, at its root.
fn reach(finding: &Finding, is_root: bool) -> Reach {
    let authority = &finding.authority;
    let level = match authority.level {
        verdict::AuthorityLevel::Unknown => AuthorityLevel::Unknown,
        verdict::AuthorityLevel::NoneSeen => AuthorityLevel::NoneSeen,
        verdict::AuthorityLevel::Refused => AuthorityLevel::Refused,
        verdict::AuthorityLevel::Reachable => AuthorityLevel::Reachable,
        verdict::AuthorityLevel::Held => AuthorityLevel::Held,
    };
    if !is_root {
        return Reach {
            level,
            because: vec![Foreign::new(format!("as found for {}", finding.id))],
            secrets: Vec::new(),
            paths: Vec::new(),
        };
    }
    let join =
        |lists: &[&Vec<Foreign>]| lists.iter().flat_map(|list| list.iter().cloned()).collect();
    Reach {
        level,
        because: authority.because.iter().map(Foreign::new).collect(),
        secrets: join(&[&authority.env_names, &authority.files]),
        paths: join(&[&authority.sockets, &authority.tcp, &authority.consumes]),
    }
}

const fn standing(verdict: Verdict) -> Standing {
    match verdict {
        Verdict::Live => Standing::Live,
        Verdict::Managed => Standing::Managed,
        Verdict::Shared => Standing::Shared,
        Verdict::LogicalOrphan
        | Verdict::OsOrphan
        | Verdict::OrphanHeldOpen
        | Verdict::Detached
        | Verdict::LeftoverChild
        | Verdict::LogicalOrphanSuspect
        | Verdict::Unknown
        | Verdict::Zombie
        | Verdict::Recycled => Standing::Endable,
    }
}

/// A shim ends with its client; the launch record still names it, and so does the incident.
fn ended_shims(session: SessionId, survey: &Survey, known: &[Subject]) -> Vec<Subject> {
    let of_run = |record: &&LaunchRecord| record.session == session;
    let mut found = Vec::new();
    for record in survey.launches.iter().filter(of_run) {
        for link in record
            .chain
            .iter()
            .filter(|link| link.role == LinkRole::Shim)
        {
            let id = &link.process.id;
            let is_known = known.iter().any(|one| one.process.id.same(id));
            if !is_known && Handle::reopen(id).is_err() {
                found.push(ended_shim(record, &link.process, survey));
            }
        }
    }
    found
}

fn ended_shim(record: &LaunchRecord, process: &ProcessRef, survey: &Survey) -> Subject {
    let holder = record.chain.iter().find(|link| link.role.is_holder());
    Subject {
        finding: format!("launch record {}", record.connection),
        verdict: "NOT_JUDGED".to_owned(),
        confidence: Confidence::Unknown.word().to_owned(),
        process: process.clone(),
        observed_at: survey.snapshot.observed_at,
        started_at: Known::unknown("it had ended"),
        place: Known::unknown("it had ended"),
        server: None,
        client: holder.map_or_else(
            || Known::unknown("no client was recorded"),
            |link| Known::Yes((&link.process).into()),
        ),
        client_lost: Known::unknown("the run's own record tells when"),
        session_hint: Some(record.session),
        reach: Reach {
            level: AuthorityLevel::NoneSeen,
            because: vec![Foreign::new("a shim that has ended holds nothing")],
            secrets: Vec::new(),
            paths: Vec::new(),
        },
        standing: Standing::Endable,
    }
}
