//! The two sides that `mcp` stands between: a client that speaks lines, and a gateway that does as it is told.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use gateway::{Acts, Answered, Asker, ChannelShown, Ending, HttpRequest, OperationShown, Refusal};
use mcp::{Connection, Ended, Event};
use model::{CallId, Denial, Digest, Foreign, LogId, Receipt, Unsettled, Withdrawal};
use serde_json::{Value, json};
use testkit::{RunningClock, World};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Longer than any wait that succeeds.
pub const SOON: Duration = Duration::from_secs(20);

/// What the gateway was told or asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Asked(String),
    Delivered(CallId, bool),
    TurnedAway(Denial),
}

/// A gateway whose calls end as their path says.
pub struct FakeActs {
    world: World,
    told: UnboundedSender<Told>,
    /// Calls of `/held` end when there is a permit.
    pub release: Semaphore,
    pub last: Mutex<Option<HttpRequest>>,
}

/// More than a socket holds, so that the rest waits for the client.
pub const LARGE: usize = 300_000;

pub const RECEIPT_SEQ: u64 = 41;

pub fn receipt() -> Receipt {
    Receipt {
        log_id: LogId::from_bytes([7; 32]),
        seq: RECEIPT_SEQ,
        id: Digest::from_bytes([9; 32]),
    }
}

impl FakeActs {
    fn refused(&self, why: Denial) -> Ending {
        Ending::Refused(Refusal {
            call: self.world.call_id(),
            why,
            what_to_do: "run lych unlock".to_owned(),
            receipt: Some(receipt()),
        })
    }

    fn answered(&self, body: Vec<u8>) -> Ending {
        Ending::Answered(Answered {
            call: self.world.call_id(),
            status: 200,
            headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
            body,
            cut: gateway::Cut::default(),
            remote_id: Some(Foreign::from("job-7")),
            receipt: Some(receipt()),
        })
    }
}

impl Acts for FakeActs {
    fn channels(&self, _who: Asker) -> Vec<ChannelShown> {
        vec![ChannelShown {
            name: "builds".parse().unwrap(),
            kind: "http",
            base: "https://ci.example.com/api/".to_owned(),
            closed: Some(Denial::Locked),
            operations: vec![OperationShown {
                name: "force".to_owned(),
                allow: vec!["POST /force/*".to_owned()],
                idempotent: true,
            }],
        }]
    }

    async fn http(&self, _who: Asker, request: HttpRequest) -> Ending {
        let path = request.path.clone();
        *self.last.lock().unwrap() = Some(request);
        self.told.send(Told::Asked(path.clone())).ok();
        match path.as_str() {
            "/held" => {
                self.release.acquire().await.unwrap().forget();
                self.answered(b"held".to_vec())
            }
            "/large" => self.answered(vec![b'x'; LARGE]),
            "/binary" => self.answered(vec![0xff, 0x00]),
            "/locked" => self.refused(Denial::Locked),
            "/repeat" => self.refused(Denial::Repeat {
                of: CallId::from_bytes([1; 10]),
            }),
            "/withdrawn" => Ending::Withdrawn {
                call: self.world.call_id(),
                proof: Withdrawal::HandedBackUnwritten,
                why: "the connection was refused".to_owned(),
                receipt: Some(receipt()),
            },
            "/unresolved" => Ending::Unresolved {
                call: self.world.call_id(),
                why: Unsettled::ConnectionBroke,
                receipt: Some(receipt()),
            },
            "/defect" => panic!("a defect of the gateway, wanted by the test"),
            path => self.answered(format!("you said {path}").into_bytes()),
        }
    }

    fn delivered(&self, _who: Asker, call: CallId, reached: bool) {
        self.told.send(Told::Delivered(call, reached)).ok();
    }

    fn turned_away(&self, _who: Asker, why: Denial) {
        self.told.send(Told::TurnedAway(why)).ok();
    }
}

/// A connection under test.
pub struct Served {
    pub client: Client,
    pub acts: Arc<FakeActs>,
    pub told: UnboundedReceiver<Told>,
    pub events: UnboundedReceiver<Event>,
    pub stop: CancellationToken,
    pub end: JoinHandle<io::Result<Ended>>,
}

/// Opens a connection.
pub fn serve() -> Served {
    serve_after(Vec::new())
}

/// Opens a connection of which some bytes were read already.
pub fn serve_after(ahead: Vec<u8>) -> Served {
    let (near, far) = UnixStream::pair().unwrap();
    let (told_to, told) = unbounded_channel();
    let (event_to, events) = unbounded_channel();
    let world = World::new();
    let who = Asker {
        session: world.session_id(),
        connection: world.connection_id(),
    };
    let acts = Arc::new(FakeActs {
        world,
        told: told_to,
        release: Semaphore::new(0),
        last: Mutex::default(),
    });
    let stop = CancellationToken::new();
    let connection = Connection {
        stream: far,
        ahead,
        who,
        clock: Arc::new(RunningClock::new()),
        stop: stop.clone(),
    };
    let note = move |event| event_to.send(event).unwrap_or_default();
    let end = tokio::spawn(mcp::serve(connection, Arc::clone(&acts), note));
    Served {
        client: Client::new(near),
        acts,
        told,
        events,
        stop,
        end,
    }
}

impl Served {
    /// Waits for the end of the connection.
    pub async fn ended(self) -> Ended {
        timeout(SOON, self.end).await.unwrap().unwrap().unwrap()
    }

    /// Waits for what the gateway is told next.
    pub async fn next_told(&mut self) -> Told {
        timeout(SOON, self.told.recv()).await.unwrap().unwrap()
    }

    /// Waits until the gateway is told that an answer was delivered or not.
    pub async fn next_delivered(&mut self) -> bool {
        loop {
            if let Told::Delivered(_, reached) = self.next_told().await {
                return reached;
            }
        }
    }

    /// Opens the legacy era.
    pub async fn initialize(&mut self) {
        let answer = self.client.ask(initialize("2025-11-25")).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }

    /// Sends a call and waits until the gateway has it.
    pub async fn call_and_wait(&mut self, id: u64, path: &str) {
        self.client.send(call(id, path)).await;
        assert_eq!(self.next_told().await, Told::Asked(path.to_owned()));
    }
}

/// The client's end of a connection.
pub struct Client {
    pub stream: UnixStream,
    read: Vec<u8>,
}

impl Client {
    fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        timeout(SOON, self.stream.write_all(bytes))
            .await
            .unwrap()
            .unwrap();
    }

    pub async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Waits for the next message; none at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let mut chunk = vec![0; 64 << 10];
            let read = timeout(SOON, self.stream.read(&mut chunk)).await.unwrap();
            match read.unwrap() {
                0 => return None,
                length => self.read.extend_from_slice(&chunk[..length]),
            }
        }
    }

    /// Sends a request and waits for the next message, which must be its answer.
    pub async fn ask(&mut self, request: Value) -> Value {
        let id = request["id"].clone();
        self.send(request).await;
        let answer = self.next().await.expect("an answer");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends no more.
    pub async fn shut(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

pub fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"}
    }})
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of the modern era.
pub fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "2"}
    });
    request(id, method, params)
}

pub fn arguments(path: &str) -> Value {
    json!({"name": "http_request", "arguments": {
        "channel": "builds", "method": "POST", "path": path
    }})
}

/// A legacy tool call.
pub fn call(id: u64, path: &str) -> Value {
    request(id, "tools/call", arguments(path))
}
