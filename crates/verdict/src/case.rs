//! One unit on the bench: its wires, its owner, and the evidence as it is gathered.

use clients::{Client, Strength};
use inventory::{Holder, Process};
use model::{Foreign, Known, Wall};

use crate::{
    EndKind, EndState, Evidence, EvidenceSource, EvidenceStrength, Fits, Owner, Proof, ServerView,
    Transport,
    units::{Unit, Units},
    wire::{self, End, Way},
    world::World,
};

/// One unit on the bench.
pub(crate) struct Case<'a, 'b> {
    pub(crate) world: &'b World<'a>,
    pub(crate) unit: &'b Unit<'a>,
    pub(crate) units: &'b Units<'a>,
    pub(crate) stdin: End,
    pub(crate) stdout: End,
    /// Whether its wire was not found at 0 and 1 but elsewhere, so that it may be another wire of its own.
    pub(crate) moved: bool,
    pub(crate) owner: Option<Owner>,
    pub(crate) evidence: Vec<Evidence>,
}

impl<'a, 'b> Case<'a, 'b> {
    pub(crate) fn new(world: &'b World<'a>, unit: &'b Unit<'a>, units: &'b Units<'a>) -> Self {
        let snapshot = world.snapshot();
        let mut stdin = wire::usual(snapshot, unit.root, Way::In);
        let mut stdout = wire::usual(snapshot, unit.root, Way::Out);
        let mut moved = false;
        let has_no_input = matches!(
            stdin.seen.kind,
            EndKind::Null | EndKind::File | EndKind::None
        );
        if has_no_input && stdin.named_pipe.is_none() && unit.fit.is_some() {
            let find = |way| wire::moved(snapshot, unit.root, way, |pid| unit.has(pid));
            if let (Some(input), Some(output)) = (find(Way::In), find(Way::Out)) {
                (stdin, stdout, moved) = (input, output, true);
            }
        }
        Self {
            world,
            unit,
            units,
            stdin,
            stdout,
            moved,
            owner: None,
            evidence: Vec::new(),
        }
    }

    /// Adds a fact.
    pub(crate) fn note(
        &mut self,
        source: EvidenceSource,
        strength: EvidenceStrength,
        what: impl Into<String>,
    ) {
        self.evidence.push(Evidence {
            what: what.into(),
            source,
            strength,
            at: self.unit.root.observed_at,
        });
    }

    /// Adds what the configuration says, and returns which server it is.
    pub(crate) fn server(&mut self) -> Option<ServerView> {
        let Some((fit, server)) = self
            .unit
            .fit
            .and_then(|fit| Some((fit, self.world.input.expected.get(fit.at)?)))
        else {
            return self.unit.record.map(|_| ServerView {
                name: Foreign::from("lychgate"),
                client: Client::Unnamed,
                fits: Fits::None,
            });
        };
        let same_line = |other: &&clients::Expected| {
            other.command == server.command && other.args == server.args && *other != server
        };
        let also: Vec<String> = self
            .world
            .input
            .expected
            .iter()
            .filter(same_line)
            .map(|other| format!("{} in {}", other.name, other.client))
            .collect();
        let mut what = match fit.found.strength {
            Strength::Exact => "its command line is the configured one of ".to_owned(),
            Strength::Strong => "program and server argument are those of ".to_owned(),
            Strength::Weak => "its program, but not its arguments, are those of ".to_owned(),
        };
        what.push_str(&format!("{} in {} ", server.name, server.client));
        what.push_str(&format!(
            "({})",
            Foreign::new(server.source.display().to_string())
        ));
        if !also.is_empty() {
            what.push_str(&format!(", also of {}", also.join(", ")));
        }
        if is_remote(server) {
            self.note(
                EvidenceSource::Configuration,
                EvidenceStrength::Weak,
                "its other half runs on another machine, which was not inspected",
            );
        }
        let strength = if fit.found.strength == Strength::Weak {
            EvidenceStrength::Weak
        } else {
            EvidenceStrength::Medium
        };
        self.note(EvidenceSource::Configuration, strength, what);
        Some(ServerView {
            name: server.name.clone(),
            client: server.client,
            fits: if fit.ambiguous {
                Fits::Ambiguous
            } else {
                fit.found.strength.into()
            },
        })
    }

    /// Adds what became of the other end of its input; `whose` says which process that is to the reader.
    pub(crate) fn note_input(&mut self, whose: &str) {
        let end = &self.stdin.seen;
        let place = if self.moved {
            format!("descriptor {}", self.stdin.fd.unwrap_or(0))
        } else if end.state == EndState::Eof && self.stdin.named_pipe.is_some() {
            // For this moment: who comes next is not gone.
            let what = format!("nobody writes to the named pipe that is {whose} standard input");
            self.note(EvidenceSource::Descriptors, EvidenceStrength::Medium, what);
            return;
        } else if self.stdin.named_pipe.is_some() {
            "standard input, a named pipe,".to_owned()
        } else {
            "standard input".to_owned()
        };
        let (source, how) = match end.proof {
            Some(Proof::UnixDiag) => (EvidenceSource::UnixDiag, "the kernel's socket list"),
            Some(Proof::PipeHup) => (EvidenceSource::Pipe, "the pipe itself"),
            Some(Proof::HolderScan) => (EvidenceSource::Descriptors, "all open descriptors"),
            None => return,
        };
        let what = match end.state {
            EndState::Eof => format!("the other end of {whose} {place} is gone, by {how}"),
            EndState::Open | EndState::HeldOpen => {
                let holders: Vec<String> =
                    end.holders.iter().map(|holder| self.name(holder)).collect();
                if holders.is_empty() {
                    format!(
                        "the other end of {whose} {place} is open, by {how}; who holds it cannot be seen"
                    )
                } else {
                    format!(
                        "the other end of {whose} {place} is held by {}",
                        list(&holders)
                    )
                }
            }
            EndState::Unknown => return,
        };
        self.note(source, EvidenceStrength::Strong, what);
    }

    /// Names a holder for a person.
    pub(crate) fn name(&self, holder: &Holder) -> String {
        let comm = self.world.process(holder.pid).map(|process| &process.comm);
        match comm {
            Some(comm) => format!("pid {} ({comm}) fd {}", holder.pid, holder.fd),
            None => format!("pid {} fd {}", holder.pid, holder.fd),
        }
    }

    /// Says who uses it.
    pub(crate) fn owned_by(&mut self, process: &Process) {
        let stuck = self.stuck(process);
        self.owner = Some(Owner {
            pid: process.pid(),
            command: process.command.clone(),
            alive: true,
            stuck_since: stuck.map(|stuck| stuck.since),
        });
    }

    /// Tells whether a client does not do its part, and since when.
    ///
    /// A client that does not run cannot read. One that waits for something else while answers lie there is
    /// stuck only after a while: it may be about to read them.
    pub(crate) fn stuck(&self, client: &Process) -> Option<Stuck> {
        let ran = client.closer.as_ref().map(|closer| &closer.last_ran);
        let since = ran.cloned().unwrap_or_else(|| Known::unknown("not asked"));
        let long = client
            .still_for_ms()
            .is_some_and(|still| still >= STUCK_AFTER_MS);
        let unread = match &self.stdout.seen.unread_bytes {
            Some(Known::Yes(bytes)) if *bytes > 0 => Some(*bytes),
            Some(_) | None => None,
        };
        let how = if client.is_stopped() {
            "is stopped".to_owned()
        } else if client.is_uninterruptible() && long {
            "waits in the kernel for what no signal ends".to_owned()
        } else if let Some(bytes) = unread.filter(|_| long) {
            format!("does not run while {bytes} bytes for it are not read")
        } else {
            return None;
        };
        let when = match &since {
            Known::Yes(at) => format!(", since {at} by when it last ran"),
            Known::Unknown { unknown } => format!(", since when is not known: {unknown}"),
        };
        Some(Stuck {
            what: format!("its client pid {} {how}{when}", client.pid()),
            since,
        })
    }

    /// Returns both ends as they are told.
    pub(crate) fn transport(&self) -> Transport {
        Transport {
            stdin: self.stdin.seen.clone(),
            stdout: self.stdout.seen.clone(),
        }
    }

    /// Returns when its root was read.
    pub(crate) const fn at(&self) -> Wall {
        self.unit.root.observed_at
    }

    /// Tells whether a process belongs to another server than this one.
    pub(crate) fn is_another_server(&self, pid: u32) -> bool {
        let unit = self.units.with(pid);
        unit.is_some_and(|unit| unit.root.pid() != self.unit.root.pid())
    }
}

/// A client that does not do its part.
pub(crate) struct Stuck {
    /// How it is stuck, for a person.
    pub(crate) what: String,
    /// Since when.
    pub(crate) since: Known<Wall>,
}

/// As long as our own gate waits for a client that does not read.
const STUCK_AFTER_MS: u64 = 30_000;

/// Tells whether a configured server is started over ssh(1): then only its near end can be seen from here.
fn is_remote(server: &clients::Expected) -> bool {
    server.command.raw().rsplit('/').next() == Some("ssh")
}

fn list(names: &[String]) -> String {
    match names {
        [first, second, third, _, ..] => {
            format!("{first}, {second}, {third} and {} more", names.len() - 3)
        }
        few => few.join(", "),
    }
}
