//! Ports on pipes and socketpairs, empty, full, ended and broken.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use super::*;

fn both_kinds() -> [(OwnedFd, OwnedFd); 2] {
    let (reader, writer) = io::pipe().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    [(reader.into(), writer.into()), (one.into(), other.into())]
}

fn would_block(result: io::Result<usize>) -> bool {
    result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn neither_an_empty_nor_a_full_one_makes_us_wait_and_no_flag_is_set() {
    for (reader, writer) in both_kinds() {
        let from = Port::new(reader.as_fd()).unwrap();
        let to = Port::new(writer.as_fd()).unwrap();
        let mut into = vec![0; 1 << 20];

        assert!(would_block(from.take(&mut into)), "{from:?}");
        let mut given = 0;
        let full = loop {
            match to.give(&vec![b'x'; 300_000]) {
                Ok(length) => given += length,
                other => break other,
            }
        };
        assert!(would_block(full), "{to:?}");
        let mut taken = 0;
        while let Ok(length) = from.take(&mut into) {
            taken += length;
        }
        assert_eq!(given, taken);
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    }
}

#[test]
fn a_reader_that_goes_away_is_told_to_a_port_that_is_watched_for_nothing() {
    for (reader, writer) in both_kinds() {
        let to = Port::new(writer.as_fd()).unwrap();
        let watch = || [Some((to, Watch::default()))];
        let now = Some(boot_millis());
        let still_there = wait(watch(), now).unwrap_err();
        assert_eq!(still_there.kind(), io::ErrorKind::TimedOut);

        drop(reader);

        let [ready] = wait(watch(), None).unwrap();
        assert!(ready.hung_up && !ready.room, "{ready:?}");
        let broken = to.give(b"x").unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn the_end_of_input_is_input_of_no_bytes() {
    for (reader, writer) in both_kinds() {
        let from = Port::new(reader.as_fd()).unwrap();
        drop(writer);

        let watch = Watch {
            input: true,
            room: false,
        };
        let [ready] = wait([Some((from, watch))], None).unwrap();

        assert!(ready.input, "{ready:?}");
        assert_eq!(from.take(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn a_peer_that_only_ended_its_writing_has_not_hung_up() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let port = Port::new(near.as_fd()).unwrap();
    far.shutdown(Shutdown::Write).unwrap();

    let watch = Watch {
        input: true,
        room: true,
    };
    let [ready] = wait([Some((port, watch))], None).unwrap();

    assert!(ready.input && ready.room && !ready.hung_up, "{ready:?}");
    assert_eq!(port.give(b"hi").unwrap(), 2);
    drop(near);
    let mut text = String::new();
    far.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hi");
}

#[test]
fn an_absent_port_says_nothing() {
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"x").unwrap();
    let port = Port::new(reader.as_fd()).unwrap();
    let watch = Watch {
        input: true,
        room: false,
    };

    let [absent, present] = wait([None, Some((port, watch))], None).unwrap();

    assert_eq!(absent, Ready::default());
    assert!(present.input);
}
