//! What else points to whoever started a unit, beside who holds its wire.
//!
//! Evidence is told in the order of its [source](crate::EvidenceSource), the most telling first. A hint that names
//! another than what was found is told as well, and changes nothing: what it shows is that one of both is wrong.

use std::collections::{BTreeMap, BTreeSet};

use clients::{Client, LoggedAt, marker};
use inventory::Process;
use model::{Foreign, LinkRole};

use crate::{
    EvidenceSource as Source, EvidenceStrength as Weight, ServerView, Verdict, case::Case, records,
    world::World,
};

impl Case<'_, '_> {
    /// Adds what hints at an owner; of what is in use only what contradicts it.
    pub(crate) fn note_owner_hints(&mut self, verdict: Verdict, server: Option<&ServerView>) {
        self.note_log();
        self.note_runs();
        self.note_markers(verdict, server);
        self.note_launch_logs(verdict, server);
        if verdict.is_in_use() {
            return;
        }
        self.note_control_group();
        self.note_group_leader();
        self.note_neighbours_in_time();
    }

    /// A record is only as good as the log's word for it.
    fn note_log(&mut self) {
        let seen = self.unit.census.map(|seen| seen.record);
        let Some(record) = self.unit.record.or(seen) else {
            return;
        };
        let evidence = records::log_evidence(self, record);
        self.evidence.extend(evidence);
    }

    fn note_markers(&mut self, verdict: Verdict, server: Option<&ServerView>) {
        let mut names: BTreeSet<(Client, Foreign)> = BTreeSet::new();
        for process in self.unit.all().filter_map(|pid| self.world.process(pid)) {
            let closer = process.closer.as_ref();
            let known = closer.and_then(|closer| closer.env_names.value());
            let marked = known.into_iter().flatten();
            names.extend(marked.filter_map(|name| Some((marker(name.raw())?, name.clone()))));
        }
        for (client, name) in names {
            let what = format!("it was started with {name}, which {client} sets");
            self.note_client(Source::Environment, client, what, verdict, server);
        }
    }

    fn note_launch_logs(&mut self, verdict: Verdict, server: Option<&ServerView>) {
        let mut logged: BTreeMap<Client, LoggedAt> = BTreeMap::new();
        for process in self.unit.all().filter_map(|pid| self.world.process(pid)) {
            let launched = self.world.launched(process).into_iter();
            logged.extend(launched.map(|one| (one.client, one.at)));
        }
        for (client, at) in logged {
            let at = match at {
                LoggedAt::Utc(at) => at.to_string(),
                LoggedAt::Local(at) => {
                    format!("{} by its own clock", at.to_string().replace('Z', ""))
                }
            };
            let what = format!("{client} logged at {at} that it starts this command");
            self.note_client(Source::LaunchLog, client, what, verdict, server);
        }
    }

    /// Adds what names a client; of what is in use only if another's configuration has it.
    fn note_client(
        &mut self,
        source: Source,
        client: Client,
        mut what: String,
        verdict: Verdict,
        server: Option<&ServerView>,
    ) {
        let configured = server.map(|server| server.client);
        let other = configured.filter(|other| *other != client && *other != Client::Unnamed);
        match other {
            Some(other) => {
                what.push_str(&format!(": that contradicts the configuration of {other}"));
            }
            None if verdict.is_in_use() => return,
            None => {}
        }
        self.note(source, Weight::Medium, what);
    }

    /// Of a server that no record names itself: the runs whose chains name a process above it, or the one that
    /// led its group. Of several clients in a chain each is named.
    fn note_runs(&mut self) {
        if self.unit.record.is_some() || self.unit.census.is_some() {
            return;
        }
        let root = self.unit.root;
        let ancestors = self.world.snapshot().ancestors(root.pid());
        let mut above: BTreeSet<u32> = ancestors.iter().map(|one| one.pid()).collect();
        above.extend(self.stdin.seen.holders.iter().map(|holder| holder.pid));
        let mut found = BTreeSet::new();
        for record in self.world.input.launches {
            let links = record.chain.iter().filter(|link| {
                link.role != LinkRole::Shim
                    && !records::is_plain_shell(link)
                    && link.process.id.pid != 1
            });
            for link in links {
                let id = &link.process.id;
                let is = match link.role {
                    LinkRole::Above => "above the client",
                    LinkRole::HolderReported => "the client, as its shim says,",
                    LinkRole::Holder | LinkRole::Shim => "the client",
                };
                let led = [root.pgid, root.sid].contains(&id.pid)
                    && id.boot_id == root.id.boot_id
                    && id.start_ticks <= root.id.start_ticks;
                let what = match records::alive(self.world, link) {
                    Some(true) if above.contains(&id.pid) => {
                        format!("pid {} above it is {is} of run {}", id.pid, record.session)
                    }
                    Some(false) if led => format!(
                        "pid {}, which led its group or session and is dead, was {is} of run {}",
                        id.pid, record.session
                    ),
                    Some(_) | None => continue,
                };
                found.insert(what);
            }
        }
        for what in found {
            self.note(Source::Run, Weight::Medium, what);
        }
    }

    /// A control group of its own, as desktops and service managers make one for each program they start.
    fn note_control_group(&mut self) {
        let Some(closer) = &self.unit.root.closer else {
            return;
        };
        let what = match (closer.container(), closer.unit()) {
            (Some(id), _) => format!("it runs in container {}", id.get(..12).unwrap_or(id)),
            (None, Some(unit)) => format!("it is of {}", Foreign::new(unit)),
            (None, None) => return,
        };
        self.note(Source::ControlGroup, Weight::Medium, what);
    }

    fn note_group_leader(&mut self) {
        let root = self.unit.root;
        if root.pgid == root.pid() || self.unit.has(root.pgid) {
            return;
        }
        let what = match self.world.process(root.pgid) {
            Some(leader) if leader.id.start_ticks <= root.id.start_ticks && !leader.is_zombie() => {
                format!(
                    "its process group is led by pid {} ({}), which lives",
                    leader.pid(),
                    leader.comm
                )
            }
            Some(_) | None => format!(
                "the leader of its process group, pid {}, is gone",
                root.pgid
            ),
        };
        self.note(Source::ProcessGroup, Weight::Weak, what);
    }

    /// Servers of one client start together.
    fn note_neighbours_in_time(&mut self) {
        let root = self.unit.root;
        let near = |other: &&Process| {
            let apart = other.id.start_ticks.abs_diff(root.id.start_ticks);
            apart <= TOGETHER && other.uid == root.uid && other.pid() != root.pid()
        };
        let roots = self.units.iter().map(|unit| unit.root);
        let others: Vec<u32> = roots.filter(near).map(Process::pid).collect();
        if let [first, rest @ ..] = others.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more servers"),
            };
            let what = format!("it started within a second of pid {first}{more}");
            self.note(Source::StartTime, Weight::Weak, what);
        }
    }
}

/// Tells whether the log was read and knows nothing of a record's run.
pub(crate) fn is_unknown_to_log(world: &World<'_>, record: &model::LaunchRecord) -> bool {
    let log = world.input.log;
    log.read && !log.sessions.contains_key(&record.session)
}

/// One second, in ticks.
const TOGETHER: u64 = 100;
