//! What a program that was started on its own finds, and what its starter keeps.

use std::{
    fs,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
    time::{Duration, Instant},
};

use super::*;

fn start(folder: &Path, script: &str) -> Detached {
    Detached {
        program: "/bin/sh".into(),
        arguments: ["-c", script, "name"].map(OsString::from).to_vec(),
        environment: vec![("ONLY".into(), "this one".into())],
        log: folder.join("log"),
        as_user: None,
    }
}

/// Waits until the log has a last line, and returns its lines.
fn said(start: &Detached) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let text = fs::read_to_string(&start.log).unwrap_or_default();
        if text.ends_with("end\n") {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < deadline, "only this was said: {text}");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_of_the_starter_is_left_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    // One that would be inherited: without close-on-exec.
    let leak = fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(leak.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    // The shell itself reads its masks: while it starts another program, it has all signals blocked.
    let script = "exec 1>&2; pwd; cd /proc/$$; echo $PPID; cut -d' ' -f5,6 stat; echo $$ $$; \
                  ls fd; readlink fd/0; \
                  while read -r key value; do case $key in SigBlk:|SigIgn:) echo $value;; esac; done <status; \
                  umask; tr '\\0' ' ' <environ; echo; echo end";
    let start = start(folder.path(), script);

    start.start().unwrap();

    let said = said(&start);
    assert_eq!(said[0], "/", "the folder");
    assert_ne!(said[1], std::process::id().to_string(), "the parent");
    assert_eq!(said[2], said[3], "group and session are its own");
    assert_eq!(said[4..8], ["0", "1", "2", "/dev/null"], "the descriptors");
    let mask = |line: &str| u64::from_str_radix(line, 16).unwrap();
    assert_eq!(mask(&said[8]), 0, "blocked signals");
    // The C library keeps signals 32 and 33 for itself and lets nobody set them.
    assert_eq!(mask(&said[9]) & !(0b11 << 31), 0, "ignored signals");
    assert_eq!(said[10..12], ["0077", "ONLY=this one "]);
}

/// A death signal that a launcher arms goes off when the *thread* that armed it ends (PR_SET_PDEATHSIG(2const)),
/// though the launcher lives: whoever starts programs from a pool of threads kills them so.
#[test]
fn a_program_outlives_the_thread_that_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.unwrap().success());
    let script = format!(
        "cd '{}'; echo begun >&2; read -r line <go; echo end >&2",
        folder.path().display()
    );
    let start = start(folder.path(), &script);

    std::thread::scope(|scope| scope.spawn(|| start.start().unwrap()).join().unwrap());
    // Opening it waits for the program to be there, after the thread has ended.
    fs::write(&go, "go on\n").unwrap();

    assert_eq!(said(&start), ["begun", "end"]);
}

#[test]
fn no_child_is_left_to_be_reaped() {
    let folder = tempfile::tempdir().unwrap();
    let start = start(folder.path(), "echo end >&2");

    start.start().unwrap();

    said(&start);
    let waited = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    assert_eq!(waited.unwrap_err(), rustix::io::Errno::CHILD);
}

#[test]
fn a_program_that_cannot_run_is_an_error_of_the_starter() {
    let folder = tempfile::tempdir().unwrap();
    let mut start = start(folder.path(), "");
    start.program = folder.path().join("missing");

    assert_eq!(start.start().unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(&start.program, "no program").unwrap();
    assert_eq!(
        start.start().unwrap_err().kind(),
        io::ErrorKind::PermissionDenied
    );
}

#[test]
fn the_log_is_private_and_no_link_is_followed_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut start = start(folder.path(), "echo end >&2");
    start.start().unwrap();
    said(&start);
    assert_eq!(fs::metadata(&start.log).unwrap().mode() & 0o777, 0o600);

    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&start.log, &link).unwrap();
    start.log = link;

    assert!(start.start().is_err());
}
