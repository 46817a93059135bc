//! Decides which lines of a connection become requests.
//!
//! Reading waits for three things only: bytes, room for a reply to a line that is not let in, and the answer to an
//! `initialize`, whose successors belong to the era it opens. It never waits for a call.
//!
//! # Two eras on one connection
//! A request that names its protocol version in `_meta` is modern and stands for itself. Any other needs an
//! `initialize` before it, whatever was sent before that: `rmcp`'s own start settles on the era of the first request
//! and would refuse a legacy client whose connection was first probed with a modern call.

use std::sync::Arc;

use gateway::Acts;
use model::Denial;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId};
use wire::{LINE_CAP, LineBuffer, LineError};

use crate::{
    MOST_IN_FLIGHT,
    connection::InputEnd,
    flights::{Flights, NotLetIn},
    message::{self, Incoming, LineFault, Request, RequestKind},
    outbox::{Line, Outbox},
    result,
    socket::Reading,
};

/// Reads one connection.
pub(crate) struct Intake<A> {
    half: Reading,
    chunk: Box<[u8]>,
    lines: LineBuffer,
    ended: bool,
    end: Arc<InputEnd>,
    outbox: Outbox,
    flights: Arc<Flights<A>>,
    /// Whether an `initialize` has opened the legacy era.
    legacy: bool,
    /// The `initialize` whose answer is to be the next.
    opening: Option<RequestId>,
}

impl<A: Acts> Intake<A> {
    /// Reads `half`, of which `ahead` was read already.
    pub(crate) fn new(
        half: Reading,
        ahead: &[u8],
        outbox: Outbox,
        flights: Arc<Flights<A>>,
        end: Arc<InputEnd>,
    ) -> Self {
        let mut lines = LineBuffer::new(LINE_CAP);
        lines.push(ahead);
        Self {
            half,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            lines,
            ended: false,
            end,
            outbox,
            flights,
            legacy: false,
            opening: None,
        }
    }

    /// Returns the next request that is let in; none when the input has ended and all is answered.
    ///
    /// Safe to drop at any await: what was read stays in the buffer.
    pub(crate) async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(id) = &self.opening {
                self.flights.until_queued(id).await;
                self.opening = None;
            }
            // Taken before the line, so that no line is taken for whose refusal there is no room.
            let Ok(room) = self.outbox.clone().reserve_owned().await else {
                return None;
            };
            match self.lines.next_line() {
                Ok(Some(line)) => match self.let_in(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err(reply) => drop(room.send(*reply)),
                },
                Err(LineError::TooLong { cap }) => {
                    let text = format!("a line is longer than {cap} bytes");
                    let fault = LineFault::new(ErrorCode::INVALID_REQUEST, text, None);
                    drop(room.send(Line::fault(fault)));
                }
                Ok(None) | Err(_) if self.ended => {
                    drop(room);
                    self.flights.all_answered().await;
                    return None;
                }
                Ok(None) | Err(_) => {
                    drop(room);
                    self.read().await;
                }
            }
        }
    }

    async fn read(&mut self) {
        match self.half.read(&mut self.chunk).await {
            // A torn line at the end was never whole, so it is no request.
            Ok(0) | Err(_) => {
                self.end.note();
                self.ended = true;
            }
            Ok(length) => self
                .lines
                .push(self.chunk.get(..length).unwrap_or_default()),
        }
    }

    fn let_in(&mut self, line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<Line>> {
        let fault = |fault| Box::new(Line::fault(fault));
        match message::read(line).map_err(fault)? {
            Incoming::Nothing => Ok(None),
            Incoming::Cancel(id) => {
                self.flights.cancel(&id);
                Ok(None)
            }
            Incoming::Request(request) => {
                self.check_era(&request).map_err(fault)?;
                self.flights.begin(&request.id).map_err(|why| {
                    if request.is_tool_call() && matches!(why, NotLetIn::Busy) {
                        self.flights.turned_away(Denial::Busy);
                    }
                    Box::new(refusal(why, &request))
                })?;
                if request.kind == RequestKind::Initialize {
                    self.legacy = true;
                    self.opening = Some(request.id);
                }
                Ok(Some(request.message))
            }
        }
    }

    fn check_era(&self, request: &Request) -> Result<(), LineFault> {
        let stands_alone = match request.kind {
            RequestKind::Initialize | RequestKind::Modern | RequestKind::Free => true,
            RequestKind::Legacy => false,
        };
        if stands_alone || self.legacy {
            return Ok(());
        }
        let text =
            "the request needs either its protocol version in _meta or an initialize before it";
        let id = Some(request.id.clone());
        Err(LineFault::new(ErrorCode::INVALID_PARAMS, text, id))
    }
}

fn refusal(why: NotLetIn, request: &Request) -> Line {
    let id: RequestId = request.id.clone();
    match why {
        NotLetIn::Duplicate => {
            let text = "a request with this id is not answered yet";
            Line::fault(LineFault::new(ErrorCode::INVALID_REQUEST, text, Some(id)))
        }
        NotLetIn::Busy if request.is_tool_call() => Line::answer(&result::busy(id), None),
        NotLetIn::Busy => {
            let text = format!("{MOST_IN_FLIGHT} requests are not answered yet");
            Line::fault(LineFault::new(BUSY, text, Some(id)))
        }
    }
}

/// JSON-RPC leaves positive codes to applications; those of its own range are all taken or reserved by MCP.
const BUSY: ErrorCode = ErrorCode(64);

/// One read of a socket; lines are usually far shorter.
const CHUNK: usize = 16 << 10;
