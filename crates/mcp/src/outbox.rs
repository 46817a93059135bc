//! The one writer of a connection: a bounded queue of lines, and the truth about what reached the socket.
//!
//! Nobody who puts a line in waits for the client, but for room in the queue. A client that takes no byte of what
//! waits for it is *stuck*: that is reported with the time since when, and it is reported when it reads on.

use std::{io, sync::Arc, time::Duration};

use gateway::Acts;
use model::Clock;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel, error::SendError},
    time::timeout,
};

use crate::{connection::Event, flights::Flights, message::LineFault, socket::Writing};

/// A line on its way out.
#[derive(Debug)]
pub(crate) struct Line {
    bytes: Vec<u8>,
    /// The request that it answers, if that one was let in.
    answers: Option<RequestId>,
}

impl Line {
    /// Writes an answer to a request that was let in.
    pub(crate) fn answer(message: &ServerJsonRpcMessage, id: Option<RequestId>) -> Self {
        Self {
            bytes: encode(message),
            answers: id,
        }
    }

    /// Writes an answer to a line that was not let in.
    pub(crate) fn fault(fault: LineFault) -> Self {
        let error = ErrorData::new(fault.code, fault.text, None);
        let message: ServerJsonRpcMessage = JsonRpcMessage::error(error, fault.id);
        Self::answer(&message, None)
    }
}

fn encode(message: &ServerJsonRpcMessage) -> Vec<u8> {
    wire::encode(message).unwrap_or_else(|_| {
        // Only a map with keys that are no text cannot be written, and no message has one.
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"an answer could not be written"}}"#;
        let mut line = text.as_bytes().to_vec();
        line.push(b'\n');
        line
    })
}

/// Where lines are put.
pub(crate) type Outbox = Sender<Line>;

/// A line that could not be put anywhere, because nothing is written any more.
pub(crate) type NotWritten = SendError<Line>;

/// What writes them.
pub(crate) struct Writer<A> {
    half: Writing,
    queue: Receiver<Line>,
    /// The line that is being written, and how much of it the socket took.
    current: Option<(Line, usize)>,
    flights: Arc<Flights<A>>,
    clock: Arc<dyn Clock>,
    events: Arc<dyn Fn(Event) + Send + Sync>,
}

/// Returns the queue's two ends. The writer has to be run.
pub(crate) fn open<A: Acts>(
    half: Writing,
    flights: Arc<Flights<A>>,
    clock: Arc<dyn Clock>,
    events: Arc<dyn Fn(Event) + Send + Sync>,
) -> (Outbox, Writer<A>) {
    let (outbox, queue) = channel(MOST_WAITING);
    let writer = Writer {
        half,
        queue,
        current: None,
        flights,
        clock,
        events,
    };
    (outbox, writer)
}

impl<A: Acts> Writer<A> {
    /// Writes until every sender is gone.
    ///
    /// Can be dropped at any await and run again: no line is torn by that.
    ///
    /// # Errors
    /// The socket took no more; lines that still waited are lost, and their flights are left open.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        loop {
            if self.current.is_none() {
                let Some(line) = self.queue.recv().await else {
                    return Ok(());
                };
                self.current = Some((line, 0));
            }
            self.write_current().await?;
            if let Some((line, _)) = self.current.take()
                && let Some(id) = line.answers
            {
                self.flights.answered(&id, true);
            }
        }
    }

    /// Takes no more lines and writes those that wait, at most this long.
    pub(crate) async fn flush(&mut self, at_most: Duration) {
        self.queue.close();
        // What is not written by then stays an open flight, which the end of the connection settles.
        drop(timeout(at_most, self.run()).await);
    }

    async fn write_current(&mut self) -> io::Result<()> {
        while let Some((line, written)) = &mut self.current {
            let rest = line.bytes.get(*written..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            let since = self.clock.now();
            let taken = match timeout(STUCK_AFTER, self.half.write(rest)).await {
                Ok(taken) => taken?,
                Err(_) => {
                    (self.events)(Event::Stuck { since });
                    let taken = self.half.write(rest).await?;
                    let at = self.clock.now();
                    (self.events)(Event::ReadsAgain { at });
                    taken
                }
            };
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *written += taken;
        }
        Ok(())
    }
}

/// How many lines may wait. Answers are bounded by the requests in flight; this bounds what else is said, so that a
/// client that sends nonsense and reads nothing cannot fill our memory: reading stops when the queue is full.
const MOST_WAITING: usize = 32;

/// Shorter, and a client that collects garbage or pages in from disk would be called stuck.
const STUCK_AFTER: Duration = Duration::from_secs(30);
