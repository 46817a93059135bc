//! The look at a recorded machine: what is missing is named, what has ended is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use inventory::{Look, Source, closer, take};
use model::{ExeId, ProcessId, Stamp, Wall};
use sys::{
    process::ProcStat,
    procfs::{Access, DescriptorInfo, File, Link, NamedPipe, PipeProbe, RawDescriptor},
    unix_diag::UnixSocket,
};

/// One process of the record.
#[derive(Clone, Default)]
struct Recorded {
    stat: String,
    command: &'static [u8],
    descriptors: Option<Vec<RawDescriptor>>,
    ends_during_the_look: bool,
    memory: Memory,
    /// What its descriptors on named pipes tell: the number of the pipe, or why not.
    named: BTreeMap<u32, Result<u64, io::ErrorKind>>,
}

/// Memory that answers at once, or that of a process on a dead mount.
#[derive(Clone, Default)]
struct Memory {
    dead: bool,
    mount: Arc<(Mutex<bool>, Condvar)>,
}

impl Memory {
    fn on_a_dead_mount() -> Self {
        Self {
            dead: true,
            ..Self::default()
        }
    }

    fn wait(&self) {
        let (back, told) = &*self.mount;
        let back = told.wait_while(back.lock().unwrap(), |back| self.dead && !*back);
        drop(back.unwrap());
    }

    fn mount_comes_back(&self) {
        *self.mount.0.lock().unwrap() = true;
        self.mount.1.notify_all();
    }
}

#[derive(Clone, Default)]
struct Machine {
    processes: BTreeMap<u32, Recorded>,
    blind: Option<&'static str>,
}

impl Machine {
    fn with(mut self, pid: u32, recorded: Recorded) -> Self {
        self.processes.insert(pid, recorded);
        self
    }
}

fn line(pid: u32, ppid: u32, start: u64) -> String {
    format!("{pid} (srv) S {ppid} {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 9 0")
}

fn pipe_end(fd: u32, inode: u32, access: Access) -> RawDescriptor {
    RawDescriptor {
        fd,
        target: format!("pipe:[{inode}]").into_bytes(),
        access: Some(access),
    }
}

fn gone<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotFound.into())
}

fn denied<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Source for Machine {
    type Process = Recorded;

    fn now(&self) -> Stamp {
        Stamp {
            wall: Wall::from_millis(1),
            boot_ms: 100_000,
        }
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok("boot".to_owned())
    }

    fn blind_spot(&self) -> io::Result<Option<String>> {
        Ok(self.blind.map(str::to_owned))
    }

    fn observer_uid(&self) -> u32 {
        1000
    }

    fn pids(&self) -> io::Result<Vec<u32>> {
        Ok(self.processes.keys().copied().collect())
    }

    fn process(&self, pid: u32) -> io::Result<Recorded> {
        self.processes.get(&pid).cloned().map_or_else(gone, Ok)
    }

    fn identity(&self, pid: u32) -> io::Result<ProcessId> {
        Ok(ProcessId {
            boot_id: "boot".to_owned(),
            pid,
            start_ticks: 500,
            pidfd_inode: Some(9),
        })
    }

    fn unix_sockets(&self) -> io::Result<Vec<UnixSocket>> {
        Ok(Vec::new())
    }

    fn passwd(&self) -> io::Result<String> {
        Ok("user:x:1000:1000::/home/user:/bin/sh".to_owned())
    }
}

impl Look for Recorded {
    fn owner(&self) -> io::Result<u32> {
        Ok(1000)
    }

    fn stat(&self) -> io::Result<ProcStat> {
        ProcStat::parse(self.stat.as_bytes())
    }

    fn read(&self, file: File) -> io::Result<Vec<u8>> {
        if matches!(file, File::CommandLine | File::Environment) {
            self.memory.wait();
        }
        Ok(self.command.to_vec())
    }

    fn link(&self, _: Link) -> io::Result<Vec<u8>> {
        denied()
    }

    fn exe_id(&self) -> io::Result<ExeId> {
        denied()
    }

    fn descriptors(&self) -> io::Result<Vec<RawDescriptor>> {
        if self.ends_during_the_look {
            return gone();
        }
        self.descriptors.clone().map_or_else(denied, Ok)
    }

    fn descriptor_info(&self, fd: u32) -> io::Result<DescriptorInfo> {
        if !self.named.contains_key(&fd) {
            return denied();
        }
        Ok(DescriptorInfo {
            access: if fd == 9 { Access::Write } else { Access::Read },
            close_on_exec: fd == 9,
            locked: false,
            wakes_in_ms: None,
        })
    }

    fn named_pipe(&self, fd: u32) -> io::Result<Option<NamedPipe>> {
        let told = self.named.get(&fd).copied().transpose()?;
        Ok(told.map(|inode| NamedPipe { device: 1, inode }))
    }

    fn probe_pipe(&self, _: u32, _: u64) -> io::Result<PipeProbe> {
        Ok(PipeProbe {
            hung_up: true,
            unread_bytes: 3,
        })
    }
}

fn readable(pid: u32, descriptors: Vec<RawDescriptor>) -> Recorded {
    Recorded {
        stat: line(pid, 1, 500),
        command: b"srv\0--stdio\0",
        descriptors: Some(descriptors),
        ..Recorded::default()
    }
}

/// A process with a file of one name at each of these descriptors.
fn named<const N: usize>(pid: u32, ends: [(u32, Result<u64, io::ErrorKind>); N]) -> Recorded {
    let file = |(fd, _): &(u32, _)| RawDescriptor {
        fd: *fd,
        target: b"/tmp/requests".to_vec(),
        access: None,
    };
    Recorded {
        descriptors: Some(ends.iter().map(file).collect()),
        named: ends.into_iter().collect(),
        ..readable(pid, Vec::new())
    }
}

/// Looks at a machine, and closer at its process 7 when it has become another.
fn closer_at_seven(machine: &Machine, later: &Machine) -> inventory::Snapshot {
    let mut seen = take(machine).unwrap();
    assert!(seen.all_holders_seen());
    closer(later, &mut seen, &BTreeSet::from([7]));
    seen
}

fn holders(seen: &inventory::Snapshot) -> Vec<(u32, u32)> {
    let pipe = seen.process(7).unwrap().descriptor(0).unwrap().named_pipe;
    let holders = pipe.into_iter().flat_map(|pipe| seen.named_pipe(pipe));
    holders.map(|one| (one.pid, one.fd)).collect()
}

#[test]
fn a_named_pipe_whose_holders_could_not_all_be_told_has_others_perhaps() {
    let reader = Machine::default().with(7, named(7, [(0, Ok(77))]));
    let all = reader
        .clone()
        .with(8, named(8, [(9, Ok(77)), (10, Ok(78))]));
    let denied = reader
        .clone()
        .with(8, named(8, [(9, Err(io::ErrorKind::PermissionDenied))]));
    let closed = reader
        .clone()
        .with(8, named(8, [(9, Err(io::ErrorKind::NotFound))]));

    let seen = closer_at_seven(&all, &all);
    assert_eq!(holders(&seen), [(7, 0), (8, 9)]);
    assert!(seen.all_holders_seen());
    let seen = closer_at_seven(&denied, &denied);
    assert_eq!(holders(&seen), [(7, 0)]);
    assert!(!seen.all_holders_seen());
    let gaps: Vec<_> = seen.unreadable.iter().map(|gap| gap.pid).collect();
    assert!(gaps.contains(&Some(8)), "{gaps:?}");
    let seen = closer_at_seven(&closed, &closed);
    assert_eq!(holders(&seen), [(7, 0)]);
    assert!(seen.all_holders_seen(), "closed is not hidden");
    let seen = closer_at_seven(&all, &reader);
    assert_eq!(holders(&seen), [(7, 0)]);
    assert!(seen.all_holders_seen(), "ended is not hidden");
}

#[test]
fn only_input_and_output_make_a_named_pipe_worth_asking_for() {
    let marked = |fd| {
        let machine = Machine::default().with(7, named(7, [(fd, Ok(77))]));
        let seen = closer_at_seven(&machine, &machine);
        let open = seen.process(7).unwrap().descriptor(fd).unwrap();
        open.named_pipe.is_some()
    };

    assert_eq!([0, 1, 2].map(marked), [true, true, false]);
}

#[test]
fn unreadable_descriptors_make_the_look_incomplete_and_say_whose_and_why() {
    let closed = Recorded {
        stat: line(7, 1, 500),
        ..Recorded::default()
    };
    let machine = Machine::default()
        .with(7, closed)
        .with(8, readable(8, Vec::new()));

    let seen = take(&machine).unwrap();

    assert!(!seen.complete && !seen.all_holders_seen());
    let gap = seen
        .unreadable
        .iter()
        .find(|gap| gap.what == "descriptors")
        .unwrap();
    assert_eq!((gap.pid, gap.why.as_str()), (Some(7), "permission denied"));
    assert_eq!(
        seen.processes[0].descriptors.why(),
        Some("permission denied")
    );
}

#[test]
fn a_process_that_ends_under_the_look_is_neither_there_nor_unreadable() {
    let ending = Recorded {
        ends_during_the_look: true,
        ..readable(9, Vec::new())
    };
    let machine = Machine::default().with(9, ending);

    let seen = take(&machine).unwrap();

    assert!(seen.processes.is_empty());
    assert!(seen.unreadable.is_empty());
}

#[test]
fn a_look_that_may_not_show_all_processes_is_never_complete() {
    let machine = Machine {
        blind: Some("in a container"),
        ..Machine::default()
    };

    let seen = take(&machine).unwrap();

    assert!(!seen.complete && !seen.all_holders_seen());
    assert_eq!(seen.unreadable[0].pid, None);
}

#[test]
fn holders_of_one_pipe_are_split_by_what_they_can_do_with_it() {
    let machine = Machine::default()
        .with(3, readable(3, vec![pipe_end(5, 77, Access::Write)]))
        .with(4, readable(4, vec![pipe_end(0, 77, Access::Read)]))
        .with(5, readable(5, vec![pipe_end(0, 77, Access::Read)]));

    let seen = take(&machine).unwrap();

    let pipe = seen.pipe(77).unwrap();
    assert_eq!(pipe.writers().map(|end| end.pid).collect::<Vec<_>>(), [3]);
    assert_eq!(
        pipe.readers().map(|end| end.pid).collect::<Vec<_>>(),
        [4, 5]
    );
    assert_eq!(
        pipe.hung_up.value(),
        None,
        "nobody asks a pipe with a writer"
    );
}

#[test]
fn a_parent_that_is_younger_than_its_child_is_no_parent() {
    let child = Recorded {
        stat: line(20, 30, 500),
        ..readable(20, Vec::new())
    };
    let recycled = Recorded {
        stat: line(30, 1, 900),
        ..readable(30, Vec::new())
    };
    let machine = Machine::default().with(20, child).with(30, recycled);

    let seen = take(&machine).unwrap();

    assert!(seen.ancestors(20).is_empty());
}

#[test]
fn a_process_whose_memory_does_not_answer_is_listed_without_it_and_holds_nobody_up() {
    let memory = Memory::on_a_dead_mount();
    let hung = Recorded {
        memory: memory.clone(),
        ..readable(2_000_000_007, vec![pipe_end(0, 77, Access::Read)])
    };
    let machine = Machine::default()
        .with(2_000_000_007, hung)
        .with(2_000_000_008, readable(2_000_000_008, Vec::new()));
    let timed = || {
        let began = Instant::now();
        let mut seen = take(&machine).unwrap();
        let pids: BTreeSet<u32> = machine.processes.keys().copied().collect();
        closer(&machine, &mut seen, &pids);
        (seen, began.elapsed())
    };

    let (first, took) = timed();
    let (_, again) = timed();

    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(again < Duration::from_secs(1), "waited again for {again:?}");
    assert!(!first.complete);
    let process = first.process(2_000_000_007).unwrap();
    assert_eq!(process.open().count(), 1);
    let details = process.closer.as_ref().unwrap();
    let why = "the kernel did not answer within 1 s";
    assert_eq!(process.command.why(), Some(why));
    assert_eq!(details.env_names.why(), Some(why));
    let gaps: Vec<(&str, &str)> = first
        .unreadable
        .iter()
        .filter(|gap| gap.pid == Some(2_000_000_007))
        .map(|gap| (&*gap.what, &*gap.why))
        .collect();
    assert!(gaps.contains(&("command line", why)), "{gaps:?}");
    assert!(gaps.contains(&("environment", why)), "{gaps:?}");
    let other = first.process(2_000_000_008).unwrap();
    assert!(other.closer.is_some() && other.command.value().is_some());

    memory.mount_comes_back();
    let deadline = Instant::now() + Duration::from_secs(10);
    let answers = || {
        take(&machine)
            .unwrap()
            .process(2_000_000_007)
            .unwrap()
            .command
            .value()
            .is_some()
    };
    while !answers() {
        assert!(
            Instant::now() < deadline,
            "it answers again and is not asked"
        );
        std::thread::yield_now();
    }
}
