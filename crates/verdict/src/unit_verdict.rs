//! The verdict on one unit, from its wire first and its parent second.
//!
//! Order of the questions: could it be read at all; does a service manager run it; what became of the other
//! end of its input; only then, whose child it is now. Each answer leaves its evidence.

use inventory::{Holder, Process};

use crate::{
    Confidence, EndKind, EndState, EvidenceSource as Source, EvidenceStrength as Weight, Owner,
    Verdict,
    case::Case,
    dependents::dependents,
    leftovers,
    parentage::{Parent, is_adopter, parent},
    records,
    wire::strangers,
};

/// What was decided.
pub(crate) type Decision = (Verdict, Confidence);

pub(crate) const CANNOT_TELL: Decision = (Verdict::Unknown, Confidence::Unknown);

impl Case<'_, '_> {
    /// Decides what the unit is.
    pub(crate) fn decide(&mut self) -> Decision {
        if let Some(why) = self.unit.root.descriptors.why() {
            let what = format!("its descriptors could not be read: {why}");
            self.note(Source::Proc, Weight::Strong, what);
            return CANNOT_TELL;
        }
        self.note_input("its");
        if self.is_managed() {
            return (Verdict::Managed, Confidence::Inferred);
        }
        let decision = match (self.stdin.is_wire(), self.stdin.seen.state) {
            (false, _) if self.stdin.named_pipe.is_some() => self.by_name(),
            (false, _) => self.without_wire(),
            (true, EndState::Open | EndState::HeldOpen) => self.held(),
            (true, EndState::Eof) => self.at_its_end(),
            (true, EndState::Unknown) => {
                self.note(
                    Source::Descriptors,
                    Weight::Strong,
                    "who holds the other end of its input could not be told",
                );
                CANNOT_TELL
            }
        };
        self.unless_shared(decision)
    }

    /// A service's main process is a direct child of its manager and leads a session of its own.
    fn is_managed(&mut self) -> bool {
        let root = self.unit.root;
        let unit = root.closer.as_ref().and_then(|closer| closer.unit());
        let service = unit.filter(|unit| unit.ends_with(".service") && !unit.starts_with("user@"));
        let Some(service) = service.map(str::to_owned) else {
            return false;
        };
        let adopted = matches!(parent(self.world, root), Parent::Adopter(_));
        let dead_wire = self.stdin.is_wire() && self.stdin.seen.state == EndState::Eof;
        if !adopted || dead_wire || root.sid != root.pid() {
            return false;
        }
        let what = format!("it is the main process of {}", model::Foreign::new(service));
        self.note(Source::ControlGroup, Weight::Strong, what);
        true
    }

    fn without_wire(&mut self) -> Decision {
        if self.stdin.seen.kind == EndKind::Tty && self.stdin.seen.state == EndState::Eof {
            self.note(Source::Descriptors, Weight::Strong, "its terminal is gone");
            let (verdict, confidence) = self.at_its_end();
            return (verdict, confidence.min(Confidence::Inferred));
        }
        if self.stdin.seen.kind == EndKind::Tty {
            self.note(
                Source::Descriptors,
                Weight::Medium,
                "a terminal holds its input",
            );
            return (Verdict::Live, Confidence::Inferred);
        }
        if leftovers::is_recorded(self.world, self.unit.root) {
            return self.decide_leftover();
        }
        if let Some(above) = leftovers::recorded_parent(self.world, self.unit.root) {
            let what = format!("a record saw it below pid {above}, which lives");
            self.note(Source::Census, Weight::Medium, what);
            return (Verdict::Live, Confidence::Inferred);
        }
        self.note(
            Source::Descriptors,
            Weight::Medium,
            "it has no stdio transport: whether anybody uses it cannot be told from one",
        );
        CANNOT_TELL
    }

    /// Somebody holds the other end: a client, or only whoever inherited it.
    pub(crate) fn held(&mut self) -> Decision {
        let end = self.stdin.seen.clone();
        let strangers: Vec<&Holder> = strangers(&end, |pid| self.unit.has(pid));
        if strangers.is_empty() && end.holders.is_empty() {
            return CANNOT_TELL;
        }
        if let Some(client) = self.client_among(&strangers) {
            return self.used_by(client);
        }
        self.stdin.seen.state = EndState::HeldOpen;
        let what = if strangers.is_empty() {
            "only processes of its own hold the other end of its input".to_owned()
        } else {
            "who holds the other end of its input only inherited it and is no client".to_owned()
        };
        self.note(Source::Descriptors, Weight::Medium, what);
        let recorded_dead = self.client_dead_by_record();
        match parent(self.world, self.unit.root) {
            Parent::Adopter(why) => {
                self.note(Source::Proc, Weight::Medium, why);
                (Verdict::OrphanHeldOpen, Confidence::Inferred)
            }
            Parent::Living(_) | Parent::Unseen(_) if recorded_dead => {
                (Verdict::OrphanHeldOpen, Confidence::Inferred)
            }
            Parent::Living(above) => {
                self.owned_by(above);
                if self.note_living_parent(above) {
                    (Verdict::Detached, Confidence::Suspected)
                } else {
                    CANNOT_TELL
                }
            }
            Parent::Unseen(why) => {
                self.note(Source::Proc, Weight::Medium, why);
                CANNOT_TELL
            }
        }
    }

    /// Picks the holder that uses the server: an ancestor before anybody else.
    fn client_among<'h>(&self, holders: &[&'h Holder]) -> Option<&'h Holder> {
        let above = self.world.snapshot().ancestors(self.unit.root.pid());
        let ancestor = holders
            .iter()
            .find(|holder| above.iter().any(|process| process.pid() == holder.pid));
        let recorded = || {
            holders
                .iter()
                .find(|holder| self.is_recorded_client(holder.pid))
        };
        let other = || holders.iter().find(|holder| self.may_be_client(holder));
        ancestor.or_else(recorded).or_else(other).copied()
    }

    fn is_recorded_client(&self, pid: u32) -> bool {
        let holder = self.unit.record.and_then(|record| records::holder(record));
        holder.is_some_and(|holder| {
            holder.process.id.pid == pid && records::alive(self.world, holder) == Some(true)
        })
    }

    /// A process that merely inherited the end: another server, a survivor of the same dead client, or one
    /// whose descriptor was meant to be inherited, as no client's own end is.
    fn may_be_client(&self, holder: &Holder) -> bool {
        let Some(process) = self.world.process(holder.pid) else {
            return false;
        };
        if self.is_another_server(holder.pid) {
            return false;
        }
        let own = process
            .descriptor(holder.fd)
            .and_then(|open| open.close_on_exec)
            .unwrap_or(true);
        let left_over = matches!(parent(self.world, process), Parent::Adopter(_));
        let reads_answers = self
            .stdout
            .seen
            .holders
            .iter()
            .any(|reader| reader.pid == holder.pid);
        own && (reads_answers || !left_over)
    }

    fn used_by(&mut self, holder: &Holder) -> Decision {
        let Some(client) = self.world.process(holder.pid) else {
            return CANNOT_TELL;
        };
        self.owned_by(client);
        self.note_other_owners(client);
        let above = self.world.snapshot().ancestors(self.unit.root.pid());
        let is_ancestor = above.iter().any(|process| process.pid() == client.pid());
        if let Some(stuck) = self.stuck(client) {
            self.note(Source::Proc, Weight::Strong, stuck.what);
            return (Verdict::LogicalOrphanSuspect, Confidence::Suspected);
        }
        if self.is_left_over_with(client) {
            let what = format!(
                "that is pid {}, whose own parent is gone: it was left over with it, as a fork of its client is",
                client.pid()
            );
            self.note(Source::Descriptors, Weight::Medium, what);
            return (Verdict::LogicalOrphanSuspect, Confidence::Suspected);
        }
        if self.is_left_over_itself(client) {
            let what = format!("that is pid {}, which is left over itself", client.pid());
            self.note(Source::Descriptors, Weight::Medium, what);
            return (Verdict::LogicalOrphanSuspect, Confidence::Inferred);
        }
        if self.is_forgotten_generation(client) {
            return (Verdict::LogicalOrphanSuspect, Confidence::Suspected);
        }
        if is_ancestor && is_adopter(client) {
            let what = format!("that is pid {}, which only starts and reaps", client.pid());
            self.note(Source::Proc, Weight::Medium, what);
            (Verdict::Live, Confidence::Inferred)
        } else if is_ancestor {
            let what = format!("that is a living process above it, pid {}", client.pid());
            self.note(Source::Proc, Weight::Strong, what);
            (Verdict::Live, Confidence::Proven)
        } else {
            let what = format!(
                "that is a living process, pid {}, but none above it",
                client.pid()
            );
            self.note(Source::Proc, Weight::Medium, what);
            (Verdict::Live, Confidence::Inferred)
        }
    }

    /// A client may be another one's server; and a record may name another client than the wire does.
    fn note_other_owners(&mut self, client: &Process) {
        let above = self.units.with(client.pid());
        if let Some(above) = above.filter(|above| above.root.pid() != self.unit.root.pid()) {
            let case = Case::new(self.world, above, self.units);
            let holders = strangers(&case.stdin.seen, |pid| above.has(pid));
            if let Some(outer) = case.client_among(&holders) {
                let what = format!(
                    "its client pid {} is itself a server of {}",
                    client.pid(),
                    case.name(outer)
                );
                self.note(Source::Descriptors, Weight::Strong, what);
            }
        }
        let recorded = self
            .unit
            .census
            .and_then(|seen| records::holder(seen.record));
        if let Some(holder) = recorded.filter(|holder| holder.process.id.pid != client.pid()) {
            let what = format!(
                "a record has it below pid {}, which contradicts who holds its input",
                holder.process.id.pid
            );
            self.note(Source::Census, Weight::Medium, what);
        }
    }

    /// Both have lost their parent, and the holder is none of the programs that do so on purpose and then lead a
    /// session of their own.
    fn is_left_over_with(&self, holder: &Process) -> bool {
        let lost = |process| matches!(parent(self.world, process), Parent::Adopter(_));
        let root = self.unit.root;
        let below = self.world.snapshot().ancestors(root.pid());
        holder.sid != holder.pid()
            && !self.is_recorded_client(holder.pid())
            && below.iter().all(|one| one.pid() != holder.pid())
            && lost(root)
            && lost(holder)
    }

    /// A server that starts servers of its own, and whose own client is gone.
    fn is_left_over_itself(&self, client: &Process) -> bool {
        let above = self.units.with(client.pid());
        let Some(above) = above.filter(|above| above.root.pid() != self.unit.root.pid()) else {
            return false;
        };
        let case = Case::new(self.world, above, self.units);
        case.stdin.is_wire()
            && case.stdin.seen.state == EndState::Eof
            && matches!(parent(self.world, above.root), Parent::Adopter(_))
    }

    /// The same client holds a younger server that fits the configuration where this one does not any more.
    fn is_forgotten_generation(&mut self, client: &Process) -> bool {
        let Some(ours) = self.unit.fit.filter(|fit| !fit.names_a_server()) else {
            return false;
        };
        let root = self.unit.root;
        let younger = self.units.iter().find(|unit| {
            let theirs = unit
                .fit
                .filter(|fit| fit.names_a_server() && fit.at == ours.at);
            theirs.is_some()
                && unit.root.ppid == root.ppid
                && unit.root.id.start_ticks > root.id.start_ticks
        });
        let Some(younger) = younger.map(|unit| unit.root.pid()) else {
            return false;
        };
        let what = format!(
            "pid {} also runs pid {younger}, a younger one that is as configured now",
            client.pid()
        );
        self.note(Source::Configuration, Weight::Weak, what);
        true
    }

    /// Nothing will come over its input any more.
    pub(crate) fn at_its_end(&mut self) -> Decision {
        let recorded_dead = self.client_dead_by_record();
        let proven = self.confidence_at_end();
        match parent(self.world, self.unit.root) {
            Parent::Adopter(why) => {
                self.note(Source::Proc, Weight::Medium, why);
                (Verdict::OsOrphan, proven)
            }
            Parent::Living(_) | Parent::Unseen(_) if recorded_dead => (Verdict::OsOrphan, proven),
            Parent::Living(_) if self.is_in_a_pipeline() => (Verdict::Live, Confidence::Inferred),
            Parent::Living(above) => {
                self.owned_by(above);
                let lets_go = self.note_living_parent(above) && !self.output_is_read();
                let confidence = if lets_go {
                    Confidence::Inferred
                } else {
                    Confidence::Suspected
                };
                (Verdict::Detached, confidence)
            }
            Parent::Unseen(why) => {
                self.note(Source::Proc, Weight::Medium, why);
                CANNOT_TELL
            }
        }
    }

    /// The next program of a pipeline reads from its standard input what this one writes, and nothing above it
    /// does: `echo request | server | jq`.
    fn is_in_a_pipeline(&mut self) -> bool {
        let root = self.unit.root;
        let next = self.stdout.seen.holders.iter().find(|reader| {
            let process = self.world.process(reader.pid);
            let beside = process.is_some_and(|one| one.ppid == root.ppid && one.pgid == root.pgid);
            reader.fd == 0 && beside && !self.unit.has(reader.pid)
        });
        let Some(next) = next.map(|reader| self.name(reader)) else {
            return false;
        };
        let what = format!("{next}, beside it in a pipeline, takes its output");
        self.note(Source::Descriptors, Weight::Medium, what);
        true
    }

    /// Tells whether it is sure that the parent holds no end: another user's parent may hold one that is not seen.
    fn note_living_parent(&mut self, above: &Process) -> bool {
        if let Some(why) = above.descriptors.why() {
            let what = format!(
                "its parent pid {} ({}) lives; which ends it holds could not be read: {why}",
                above.pid(),
                above.comm
            );
            self.note(Source::Descriptors, Weight::Strong, what);
            return false;
        }
        let what = format!(
            "its parent pid {} ({}) lives and holds no end of its transport",
            above.pid(),
            above.comm
        );
        self.note(Source::Descriptors, Weight::Strong, what);
        true
    }

    /// Proven only if it was a stdio server for sure, and nobody is seen to read its answers either.
    fn confidence_at_end(&mut self) -> Confidence {
        let was_server =
            self.unit.record.is_some() || self.unit.fit.is_some_and(|fit| fit.names_a_server());
        if !was_server {
            self.note(
                Source::Configuration,
                Weight::Weak,
                "no record and no configuration says for sure that it is an MCP server",
            );
        }
        if self.moved {
            self.note(
                Source::Descriptors,
                Weight::Weak,
                "standard input is no wire; the one judged may be another wire of its own",
            );
        }
        let read = self.output_is_read();
        if read {
            self.note(
                Source::Descriptors,
                Weight::Medium,
                "somebody may still take its output",
            );
        }
        if was_server && !self.moved && !read {
            Confidence::Proven
        } else {
            Confidence::Inferred
        }
    }

    fn output_is_read(&self) -> bool {
        let end = &self.stdout.seen;
        match end.kind {
            EndKind::Pipe | EndKind::Socketpair | EndKind::Socket => {
                end.state == EndState::Open
                    && strangers(end, |pid| self.unit.has(pid))
                        .iter()
                        .any(|reader| !self.is_another_server(reader.pid))
            }
            EndKind::Tty => end.state == EndState::Open,
            EndKind::File => true,
            EndKind::Null | EndKind::None => false,
        }
    }

    /// Adds what the launch record says about a dead client.
    pub(crate) fn client_dead_by_record(&mut self) -> bool {
        let census = self.unit.census;
        let Some(record) = self.unit.record.or(census.map(|seen| seen.record)) else {
            return false;
        };
        let Some(holder) = records::holder(record) else {
            return false;
        };
        if records::alive(self.world, holder) != Some(false) {
            return false;
        }
        let what = match census {
            Some(seen) if self.unit.record.is_none() => format!(
                "the daemon saw it below pid {}, the client of run {}, at {}; that client is dead",
                holder.process.id.pid, record.session, seen.child.last_seen
            ),
            _ => format!(
                "its client, pid {} at the start of run {}, is dead",
                holder.process.id.pid, record.session
            ),
        };
        let source = match self.unit.record {
            Some(_) => Source::LaunchRecord,
            None => Source::Census,
        };
        self.note(source, Weight::Medium, what);
        self.owner = Some(Owner {
            pid: holder.process.id.pid,
            command: holder.process.command.clone().into(),
            alive: false,
            stuck_since: None,
        });
        true
    }

    /// What others are connected to is not ended under them.
    pub(crate) fn unless_shared(&mut self, decision: Decision) -> Decision {
        let (verdict, _) = decision;
        if !verdict.is_orphan() && verdict != Verdict::Unknown {
            return decision;
        }
        let users = dependents(self.world, self.unit);
        if users.is_empty() {
            return decision;
        }
        let what = format!("others are connected to it: {}", users.words());
        self.note(Source::Descriptors, Weight::Strong, what);
        (Verdict::Shared, Confidence::Inferred)
    }
}
