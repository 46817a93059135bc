//! Against this very process and its children.

use std::{
    fs,
    io::Write,
    os::fd::AsRawFd,
    process::{Command, Stdio},
};

use super::*;

fn own() -> ProcDir {
    ProcFs::open().unwrap().process(std::process::id()).unwrap()
}

fn number(fd: &impl AsRawFd) -> u32 {
    u32::try_from(fd.as_raw_fd()).unwrap()
}

fn find(fd: u32) -> RawDescriptor {
    let all = own().descriptors().unwrap();
    all.into_iter().find(|seen| seen.fd == fd).unwrap()
}

fn inode(fd: u32) -> u64 {
    let target = String::from_utf8(find(fd).target).unwrap();
    let inner = target.strip_prefix("pipe:[").unwrap();
    inner.strip_suffix(']').unwrap().parse().unwrap()
}

#[test]
fn the_two_ends_of_a_pipe_are_told_apart_by_their_access() {
    let (reader, writer) = io::pipe().unwrap();

    assert_eq!(find(number(&reader)).access, Some(Access::Read));
    assert_eq!(find(number(&writer)).access, Some(Access::Write));
    assert_eq!(inode(number(&reader)), inode(number(&writer)));
}

/// One that is opened far above the others is found all the same, and so are those below it.
#[test]
fn every_descriptor_is_listed_with_and_without_gaps_between_them() {
    let listed = || -> Vec<u32> {
        own()
            .descriptors()
            .unwrap()
            .iter()
            .map(|one| one.fd)
            .collect()
    };
    let entries = || -> Vec<u32> {
        let names = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut all: Vec<u32> = names
            .filter_map(|name| name.file_name().to_str()?.parse().ok())
            .collect();
        all.sort_unstable();
        all
    };
    // What is open while they look differs by what each of them opens for that.
    let misses = || entries().iter().any(|fd| *fd > 8 && !listed().contains(fd));
    assert!(!misses());

    let file = fs::File::open("/dev/null").unwrap();
    let far: Vec<OwnedFd> = [40, 90, 200]
        .into_iter()
        .map(|at| rustix::io::fcntl_dupfd_cloexec(&file, at).unwrap())
        .collect();

    assert!(!misses());
    assert!(listed().is_sorted());
    assert!(far.iter().all(|fd| listed().contains(&number(fd))));
}

#[test]
fn a_pipe_hangs_up_only_when_its_last_writer_is_gone_and_keeps_its_bytes() {
    let (reader, mut writer) = io::pipe().unwrap();
    let (fd, ino) = (number(&reader), inode(number(&reader)));
    writer.write_all(b"47 bytes").unwrap();

    let held = own().probe_pipe(fd, ino).unwrap();
    drop(writer);
    let closed = own().probe_pipe(fd, ino).unwrap();

    assert_eq!((held.hung_up, held.unread_bytes), (false, 8));
    assert_eq!((closed.hung_up, closed.unread_bytes), (true, 8));
}

#[test]
fn a_descriptor_that_outlives_a_program_start_is_told_from_one_that_does_not() {
    let (reader, writer) = io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();

    let closes = |fd| own().descriptor_info(fd).unwrap().close_on_exec;
    assert!(closes(number(&reader)));
    assert!(!closes(number(&writer)));
}

#[test]
fn a_lock_is_seen_on_the_descriptor_that_holds_it() {
    let file = tempfile::tempfile().unwrap();
    let locked = || own().descriptor_info(number(&file)).unwrap().locked;

    let before = locked();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();

    assert_eq!((before, locked()), (false, true));
}

#[cfg(target_os = "linux")]
#[test]
fn a_timer_that_was_set_says_when_it_goes_off_and_another_does_not() {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
    let wakes = || own().descriptor_info(number(&timer)).unwrap().wakes_in_ms;

    let before = wakes();
    let value = Timespec {
        tv_sec: 90,
        tv_nsec: 0,
    };
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: value,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).unwrap();

    assert_eq!(before, None);
    assert!((60_000..=90_000).contains(&wakes().unwrap()));
}

#[test]
fn a_descriptor_that_became_another_file_is_not_probed() {
    let (reader, _writer) = io::pipe().unwrap();

    let error = own().probe_pipe(number(&reader), 1).unwrap_err();

    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn own_files_links_and_owner_are_read() {
    let own = own();

    let argv = own.read(File::CommandLine).unwrap();
    assert!(argv.starts_with(std::env::args().next().unwrap().as_bytes()));
    let exe = fs::read_link("/proc/self/exe").unwrap();
    let link = own.link(Link::Executable).unwrap();
    assert_eq!(link, exe.as_os_str().as_encoded_bytes());
    assert_eq!(own.owner().unwrap(), rustix::process::geteuid().as_raw());
    assert_eq!(own.stat().unwrap().pid, std::process::id());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_waits_ran_before_one_that_runs() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let folder = ProcFs::open().unwrap().process(child.id()).unwrap();
    let waits = || folder.stat().unwrap().state.letter() == 'S';
    while !waits() {
        std::thread::yield_now();
    }
    let ran = folder.last_ran().unwrap();
    // Our own time goes on while that of the other stands still.
    while own().last_ran().unwrap() < ran + 100 {
        std::thread::yield_now();
    }

    assert_eq!(folder.last_ran().unwrap(), ran);

    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn after_its_end_a_process_cannot_be_read_through_its_folder() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let folder = ProcFs::open().unwrap().process(child.id()).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();

    let error = folder.stat().unwrap_err();

    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
