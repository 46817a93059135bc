//! The relay between pipes or sockets and a daemon that the test plays.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// A relay in a thread, and the other ends of all that it holds.
struct Running {
    /// Writes into standard input.
    client_in: Option<File>,
    /// Reads standard output.
    client_out: Option<File>,
    daemon: UnixStream,
    over: Receiver<Over>,
}

/// Standard input with its other end, and standard output with its.
type Ends = (OwnedFd, File, OwnedFd, File);

fn pipes() -> Ends {
    let (stdin, client_in) = io::pipe().unwrap();
    let (client_out, stdout) = io::pipe().unwrap();
    let file = |fd: OwnedFd| File::from(fd);
    (
        stdin.into(),
        file(client_in.into()),
        stdout.into(),
        file(client_out.into()),
    )
}

/// As Node starts its servers.
fn sockets() -> Ends {
    let (stdin, client_in) = UnixStream::pair().unwrap();
    let (client_out, stdout) = UnixStream::pair().unwrap();
    let file = |end: UnixStream| File::from(OwnedFd::from(end));
    (
        stdin.into(),
        file(client_in),
        stdout.into(),
        file(client_out),
    )
}

fn start((stdin, client_in, stdout, client_out): Ends, ahead: &'static [u8]) -> Running {
    let (near, daemon) = UnixStream::pair().unwrap();
    let (said, over) = channel();
    thread::spawn(move || {
        let ended = run(stdin.as_fd(), stdout.as_fd(), &near, ahead).unwrap();
        // Both go with the process, and in a test with the thread.
        drop((near, stdout));
        said.send(ended).ok();
    });
    Running {
        client_in: Some(client_in),
        client_out: Some(client_out),
        daemon,
        over,
    }
}

fn both_kinds() -> [Running; 2] {
    [start(pipes(), b""), start(sockets(), b"")]
}

impl Running {
    fn over(&self) -> Over {
        self.over.recv_timeout(SOON).unwrap()
    }

    fn tell(&mut self, bytes: &[u8]) {
        self.client_in.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn hear(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.client_out
            .as_mut()
            .unwrap()
            .read_exact(&mut bytes)
            .unwrap();
        bytes
    }

    fn hear_all(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut client_out = self.client_out.take().unwrap();
        client_out.read_to_end(&mut bytes).unwrap();
        bytes
    }
}

#[test]
fn bytes_go_both_ways_and_what_came_with_the_welcome_goes_first() {
    let mut running = start(pipes(), b"ahead ");
    running.tell(b"question");
    let mut question = [0; 8];
    running.daemon.read_exact(&mut question).unwrap();
    running.daemon.write_all(b"answer").unwrap();

    assert_eq!(&question, b"question");
    assert_eq!(running.hear(12), b"ahead answer");
}

#[test]
fn after_the_end_of_input_answers_flow_until_the_daemon_closes() {
    for mut running in both_kinds() {
        running.tell(b"question");
        drop(running.client_in.take());
        let mut question = Vec::new();
        running.daemon.read_to_end(&mut question).unwrap();
        assert_eq!(
            question, b"question",
            "the end is passed on behind the bytes"
        );

        running.daemon.write_all(b"late answer").unwrap();
        drop(running.daemon);

        let mut client_out = running.client_out.take().unwrap();
        let mut answer = String::new();
        client_out.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "late answer");
        assert_eq!(running.over.recv_timeout(SOON), Ok(Over::InputEnded));
    }
}

#[test]
fn an_output_that_nobody_reads_ends_an_idle_relay_at_once() {
    for mut running in both_kinds() {
        drop(running.client_out.take());

        assert_eq!(running.over(), Over::ClientGone);
        let closed = running.daemon.read(&mut [0; 8]).unwrap();
        assert_eq!(closed, 0);
    }
}

#[test]
fn an_output_that_nobody_reads_is_seen_with_the_input_still_open_and_a_full_buffer() {
    for mut running in both_kinds() {
        let chunk = vec![b'x'; 1 << 16];
        running
            .daemon
            .set_write_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        while running.daemon.write_all(&chunk).is_ok() {}

        drop(running.client_out.take());

        assert_eq!(running.over(), Over::ClientGone);
    }
}

#[test]
fn what_the_daemon_said_before_it_closed_is_passed_on_first() {
    for mut running in both_kinds() {
        let long = vec![b'y'; 3 << 20];
        running.daemon.write_all(&long[..100_000]).unwrap();
        let mut daemon = running.daemon.try_clone().unwrap();
        let rest = long[100_000..].to_vec();
        let writer = thread::spawn(move || {
            daemon.write_all(&rest).unwrap();
            daemon.shutdown(Shutdown::Both).unwrap();
        });

        let heard = running.hear_all();

        writer.join().unwrap();
        assert_eq!(heard.len(), long.len());
        assert_eq!(running.over(), Over::DaemonClosed);
    }
}

#[test]
fn a_daemon_that_reads_slowly_gets_every_byte_in_order() {
    for mut running in both_kinds() {
        let long: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let expected = long.clone();
        let mut client_in = running.client_in.take().unwrap();
        let writer = thread::spawn(move || {
            client_in.write_all(&long).unwrap();
        });

        let mut seen = Vec::new();
        running.daemon.read_to_end(&mut seen).unwrap();

        writer.join().unwrap();
        assert!(seen == expected, "bytes were lost or mixed");
    }
}

#[test]
fn a_daemon_that_closes_while_much_waits_for_it_is_seen() {
    for mut running in both_kinds() {
        let mut client_in = running.client_in.take().unwrap();
        let writer = thread::spawn(move || client_in.write_all(&vec![0; 4 << 20]));
        let mut some = [0; 1000];
        running.daemon.read_exact(&mut some).unwrap();

        running.daemon.shutdown(Shutdown::Both).unwrap();

        assert_eq!(running.over(), Over::DaemonClosed);
        assert!(writer.join().unwrap().is_err(), "its reader is gone");
    }
}

#[test]
fn an_idle_relay_does_not_end() {
    let running = start(pipes(), b"");

    let nothing = running.over.recv_timeout(Duration::from_millis(100));

    assert_eq!(nothing, Err(RecvTimeoutError::Timeout));
}
