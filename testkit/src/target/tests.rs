//! The target does what each of its modes says.

use std::{
    io::{Read, Write},
    time::Instant,
};

use super::*;

fn connect(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

fn send(stream: &mut TcpStream, head: &str, body: &str) {
    let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).unwrap();
}

fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 1024];
    let read = stream.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[test]
fn every_request_is_counted_with_all_it_carried() {
    let target = Target::start();
    let mut stream = connect(&target);

    send(&mut stream, "POST /a?b=c HTTP/1.1\r\nX-Name: v", "hello");
    let first = answer(&mut stream);
    send(&mut stream, "GET /second HTTP/1.1", "");
    let second = answer(&mut stream);

    let requests = target.requests();
    assert!(first.ends_with("{\"number\":1}"), "{first}");
    assert!(second.ends_with("{\"number\":2}"), "{second}");
    assert_eq!(requests[0].method, "POST");
    assert_eq!(requests[0].path, "/a?b=c");
    assert_eq!(requests[0].header("x-name"), Some("v"));
    assert_eq!(requests[0].body, b"hello");
    assert!(requests[0].instant <= requests[1].instant);
}

#[test]
fn a_chunked_body_is_put_together() {
    let target = Target::start();
    let mut stream = connect(&target);

    let text =
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    stream.write_all(text.as_bytes()).unwrap();
    answer(&mut stream);

    assert_eq!(target.requests()[0].body, b"abcde");
}

#[test]
fn a_held_request_counts_and_is_answered_only_when_released() {
    let target = Target::start();
    target.set_mode(Mode::Hold);
    let mut stream = connect(&target);

    send(&mut stream, "POST /slow HTTP/1.1", "");
    drop(target.wait_for_requests(1, Deadline::usual()));
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let early = stream.read(&mut [0; 1]);
    target.release();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();

    assert!(early.is_err(), "an answer came before the release");
    assert!(answer(&mut stream).contains("200"));
}

#[test]
fn a_connect_hangs_while_nobody_accepts_and_goes_on_afterwards() {
    let target = Target::start();
    target.set_mode(Mode::RefuseToAccept);

    let refused = TcpStream::connect_timeout(&target.address(), HANGS);
    target.set_mode(Mode::Answer);
    let mut stream = connect(&target);
    send(&mut stream, "GET / HTTP/1.1", "");

    assert_eq!(
        refused.map(drop).map_err(|error| error.kind()),
        Err(io::ErrorKind::TimedOut)
    );
    assert!(answer(&mut stream).contains("200"));
    assert_eq!(target.requests().len(), 1, "a filler was counted");
}

#[test]
fn a_connection_that_is_closed_before_the_answer_has_counted() {
    let target = Target::start();
    target.set_mode(Mode::CloseBeforeAnswer);
    let mut stream = connect(&target);

    send(&mut stream, "POST / HTTP/1.1", "");

    assert_eq!(answer(&mut stream), "");
    assert_eq!(target.requests().len(), 1);
}

#[test]
fn a_key_can_be_looked_up_while_its_request_is_held() {
    let target = Target::start();
    target.set_mode(Mode::Hold);
    let mut held = connect(&target);
    send(&mut held, "POST / HTTP/1.1\r\nIdempotency-Key: k1", "");
    drop(target.wait_for_requests(1, Deadline::usual()));

    let mut asking = connect(&target);
    send(&mut asking, "GET /seen/k1 HTTP/1.1", "");
    let known = answer(&mut asking);
    send(&mut asking, "GET /seen/k2 HTTP/1.1", "");
    let unknown = answer(&mut asking);

    assert!(known.ends_with("{\"key\":\"k1\",\"count\":1}"), "{known}");
    assert!(unknown.ends_with("\"count\":0}"), "{unknown}");
    assert_eq!((target.seen("k1"), target.lookups()), (1, 2));
    assert_eq!(target.requests().len(), 1);
}

#[test]
fn a_target_ends_at_once_even_with_a_held_request_and_a_silent_connection() {
    let target = Target::start();
    target.set_mode(Mode::Hold);
    let mut held = connect(&target);
    let _silent = connect(&target);
    send(&mut held, "POST / HTTP/1.1", "");
    drop(target.wait_for_requests(1, Deadline::usual()));

    let before = Instant::now();
    drop(target);

    assert!(before.elapsed() < Duration::from_secs(5));
}
