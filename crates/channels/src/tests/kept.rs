//! What may go over a connection that was kept: nothing behind which anything else came.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
    time::Duration,
};

use model::SessionId;

use super::{
    server::{Server, read_request, read_to_close},
    world::{World, ask, credential, get, patient},
};
use crate::{
    Kept, Plan, Policy, Sent, connect,
    kept::{KEPT_FOR, MOST_KEPT},
};

const RUN: SessionId = SessionId::from_bytes([7; 10]);

const SOON: Duration = Duration::from_secs(20);

/// What a server does behind each of its answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Waits for the next request.
    Nothing,
    /// Says more, in the same breath.
    More,
    /// Says more once it is told to.
    MoreLater,
    /// Closes.
    Close,
}

/// A server whose answers say over which of its connections they came. It ends with its last connection.
struct Numbering {
    address: SocketAddr,
    go_on: Sender<()>,
    went_on: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Numbering {
    fn start(behind: Behind, connections: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (go_on, told) = channel();
        let (tell, went_on) = channel();
        let thread = std::thread::spawn(move || {
            let mut open: Vec<JoinHandle<()>> = Vec::new();
            let mut told = Some((told, tell));
            for number in 1..=connections {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(SOON)).unwrap();
                let told = told.take();
                open.push(std::thread::spawn(move || {
                    serve(stream, number, behind, told);
                }));
            }
            for one in open {
                one.join().unwrap();
            }
        });
        Self {
            address,
            go_on,
            went_on,
            thread,
        }
    }
}

fn serve(
    mut stream: TcpStream,
    number: usize,
    behind: Behind,
    told: Option<(Receiver<()>, Sender<()>)>,
) {
    let number = number.to_string();
    let length = number.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{number}");
    while !read_request(&mut stream).is_empty() {
        let more = if behind == Behind::More { 2 } else { 1 };
        stream.write_all(answer.repeat(more).as_bytes()).unwrap();
        match (behind, &told) {
            (Behind::Close, told) => {
                drop(stream);
                if let Some((_, tell)) = told {
                    tell.send(()).unwrap();
                }
                return;
            }
            (Behind::MoreLater, Some((told, tell))) => {
                told.recv_timeout(SOON).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                tell.send(()).unwrap();
                // Nothing more is asked over this one.
                assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
                return;
            }
            (Behind::Nothing | Behind::More | Behind::MoreLater, _) => {}
        }
    }
}

/// Makes one call and returns the number of its connection.
async fn number_of(world: &World, kept: &Kept, plan: &Plan) -> String {
    number_in(RUN, world, kept, plan).await
}

async fn number_in(run: SessionId, world: &World, kept: &Kept, plan: &Plan) -> String {
    let permit = world.permit(plan).await;
    let mut connection = kept.connect(run, &permit, plan, &patient()).await.unwrap();
    let cleared = world.clear(permit);
    let sent = connection.send(&cleared, Some(credential(plan))).await;
    let Sent::Answered(answer) = sent else {
        panic!("{sent:?}");
    };
    kept.keep(run, connection, &cleared).await;
    world.settle(cleared);
    String::from_utf8(answer.body).unwrap()
}

#[tokio::test]
async fn the_next_read_goes_over_a_connection_that_nothing_else_came_over() {
    let server = Numbering::start(Behind::Nothing, 1);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));

    for _ in 0..3 {
        assert_eq!(number_of(&world, &kept, &plan).await, "1");
    }

    drop(kept);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn what_comes_behind_an_answer_is_never_the_answer_of_the_next_call() {
    let server = Numbering::start(Behind::More, 2);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));

    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    assert_eq!(kept.count(), 0);
    assert_eq!(number_of(&world, &kept, &plan).await, "2");

    server.thread.join().unwrap();
}

#[tokio::test]
async fn nor_is_what_comes_while_it_is_kept() {
    let server = Numbering::start(Behind::MoreLater, 2);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));
    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    assert_eq!(kept.count(), 1);

    server.go_on.send(()).unwrap();
    server.went_on.recv_timeout(SOON).unwrap();
    // One turn of the runtime, so that it has seen what the kernel already knows.
    tokio::task::yield_now().await;

    assert_eq!(number_of(&world, &kept, &plan).await, "2");
    drop(kept);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let server = Numbering::start(Behind::Close, 2);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));

    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    server.went_on.recv_timeout(SOON).unwrap();
    tokio::task::yield_now().await;

    assert_eq!(number_of(&world, &kept, &plan).await, "2");
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_head_leaves_its_connection_to_nobody() {
    // Some servers send a body all the same, and later: it would be the answer of the next call.
    let server = Server::start(|mut stream| {
        let request = read_request(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            .unwrap();
        request
    });
    let (world, kept) = (World::new(), Kept::default());
    let plan = planned("builds", "HEAD", server.address);

    assert_eq!(number_of(&world, &kept, &plan).await, "");

    assert_eq!(kept.count(), 0);
    assert!(server.end().contains("connection: close"));
}

#[tokio::test]
async fn another_channel_to_the_same_address_has_its_own_connection() {
    let server = Numbering::start(Behind::Nothing, 2);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));
    let other = planned("artifacts", "GET", server.address);

    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    assert_eq!(number_of(&world, &kept, &other).await, "2");
    assert_eq!(number_of(&world, &kept, &plan).await, "1");

    drop(kept);
    server.thread.join().unwrap();
}

/// A read over a channel of this name.
fn planned(channel: &str, method: &str, address: SocketAddr) -> Plan {
    let text = format!(
        r#"
[channel.{channel}]
kind = "http"
base = "http://{address}/api"
secret = "token"
[[channel.{channel}.operation]]
name = "read"
allow = ["{method} /builds/*"]
"#
    );
    let mut asked = ask(method, "/builds/1");
    asked.channel = channel.to_owned();
    Policy::parse_draft(&text).unwrap().plan(asked).unwrap()
}

#[tokio::test]
async fn what_is_closed_is_gone_and_what_is_another_runs_stays() {
    let server = Numbering::start(Behind::Nothing, 3);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));
    let other = SessionId::from_bytes([8; 10]);
    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    assert_eq!(number_in(other, &world, &kept, &plan).await, "2");

    assert_eq!(format!("{kept:?}"), "Kept(..)");

    kept.close_of(RUN);

    assert_eq!(kept.count(), 1);
    assert_eq!(number_in(other, &world, &kept, &plan).await, "2");
    kept.close();
    assert_eq!(kept.count(), 0);
    assert_eq!(number_in(other, &world, &kept, &plan).await, "3");
    drop(kept);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn each_is_closed_in_its_own_time_whoever_came_meanwhile() {
    let server = Numbering::start(Behind::Nothing, 3);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));
    let other = SessionId::from_bytes([8; 10]);
    assert_eq!(number_of(&world, &kept, &plan).await, "1");
    // From here on the time is ours; the others wait for real bytes, which need none.
    tokio::time::pause();
    tokio::time::advance(KEPT_FOR - Duration::from_millis(1500)).await;
    tokio::time::resume();
    assert_eq!(number_in(other, &world, &kept, &plan).await, "2");
    assert_eq!(kept.count(), 2);

    tokio::time::pause();
    let passes = async |time| {
        tokio::time::advance(time).await;
        tokio::task::yield_now().await;
        kept.count()
    };

    assert_eq!(passes(Duration::from_millis(1600)).await, 1);
    assert_eq!(passes(KEPT_FOR).await, 0);
    tokio::time::resume();
    // And whoever comes after all are gone is looked after again.
    assert_eq!(number_of(&world, &kept, &plan).await, "3");
    tokio::time::pause();
    assert_eq!(passes(KEPT_FOR + Duration::from_millis(1)).await, 0);
    drop(kept);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn of_too_many_the_oldest_is_closed() {
    let server = Numbering::start(Behind::Nothing, MOST_KEPT + 2);
    let (world, kept, plan) = (World::new(), Kept::default(), get(server.address));
    let run = |number: usize| SessionId::from_bytes([u8::try_from(number).unwrap(); 10]);

    for number in 1..=MOST_KEPT + 1 {
        let told = number_in(run(number), &world, &kept, &plan).await;
        assert_eq!(told, number.to_string());
    }

    assert_eq!(kept.count(), MOST_KEPT);
    assert_eq!(number_in(run(2), &world, &kept, &plan).await, "2");
    let again = number_in(run(1), &world, &kept, &plan).await;
    assert_eq!(again, (MOST_KEPT + 2).to_string(), "the first is closed");
    drop(kept);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_connection_whose_call_was_revoked_meanwhile_is_not_kept() {
    for (is_revoked, kept_then) in [(false, 1), (true, 0)] {
        let server = Server::start(|mut stream| {
            read_request(&mut stream);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer).unwrap();
            read_to_close(&mut stream)
        });
        let (world, kept) = (World::new(), Kept::default());
        let plan = get(server.address);
        let permit = world.permit(&plan).await;
        let mut connection = connect(&permit, &plan, &patient()).await.unwrap();
        let cleared = world.clear(permit);
        let sent = connection.send(&cleared, Some(credential(&plan))).await;
        assert!(matches!(sent, Sent::Answered(_)), "{sent:?}");
        if is_revoked {
            world.revoke();
        }

        kept.keep(world.run(), connection, &cleared).await;

        assert_eq!(kept.count(), kept_then);
        kept.close();
        server.end();
    }
}
