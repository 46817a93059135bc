//! One connection from its welcome to its end.
//!
//! ```text
//! open ──client shuts its writing──► answering ──last answer written──► ended: InputEnded
//!   │                                    │
//!   ├──client closes, or a write fails───┴────────────────────────────► ended: HungUp, WriteFailed
//!   └──the daemon says so: what waits is flushed for a moment ────────► ended: Stopped
//! ```
//! Whatever the end, calls that the gateway has accepted run on there; it is told of each whether its answer
//! reached the socket.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use gateway::{Acts, Asker};
use model::{Clock, Stamp};
use rmcp::service::serve_directly_with_ct;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::{
    face::Face,
    flights::Flights,
    intake::Intake,
    outbox::{self, Writer},
    socket::{self, Watch},
    transport::Lines,
};

/// A connection that has been welcomed.
pub struct Connection {
    /// The socket.
    pub stream: UnixStream,
    /// Bytes that were read behind the hello line.
    pub ahead: Vec<u8>,
    /// The run and connection that it belongs to.
    pub who: Asker,
    /// Tells when something happened.
    pub clock: Arc<dyn Clock>,
    /// Ends the connection from our side.
    pub stop: CancellationToken,
}

/// Something that happens while a connection lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The client can send no more. Its answers still flow, if it only shut its writing.
    InputEnded {
        /// When the kernel told it.
        at: Stamp,
    },
    /// The client takes nothing of what waits for it.
    Stuck {
        /// When the first byte began to wait.
        since: Stamp,
    },
    /// It reads again.
    ReadsAgain {
        /// Since when.
        at: Stamp,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When the client's input ended, if it did before the connection: the earlier of the two times at which
    /// it may have been lost.
    pub input_ended_at: Option<Stamp>,
    /// When the transport was closed, in both directions.
    pub transport_closed_at: Stamp,
    /// What closed it.
    pub closing: Closing,
    /// Requests that had no answer yet; the calls among them run on at the gateway.
    pub unanswered: usize,
}

/// What closed a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// The client shut its writing, and got all its answers.
    InputEnded,
    /// The client closed the socket.
    HungUp,
    /// A write failed.
    WriteFailed {
        /// The error, for an operator.
        why: String,
    },
    /// The daemon ended it.
    Stopped,
    /// The protocol's own loop broke: a defect of ours.
    Broken,
}

/// Serves one connection until it ends.
///
/// # Errors
/// The connection could not be watched, so nothing of it was served: the system is out of descriptors.
pub async fn serve<A: Acts>(
    connection: Connection,
    acts: Arc<A>,
    events: impl Fn(Event) + Send + Sync + 'static,
) -> io::Result<Ended> {
    let Connection {
        stream,
        ahead,
        who,
        clock,
        stop,
    } = connection;
    let (reading, writing, watch) = socket::split(stream)?;
    let events: Arc<dyn Fn(Event) + Send + Sync> = Arc::new(events);
    let over = CancellationToken::new();
    let flights = Arc::new(Flights::new(Arc::clone(&acts), who));
    let (outbox, mut writer) = outbox::open(
        writing,
        Arc::clone(&flights),
        Arc::clone(&clock),
        Arc::clone(&events),
    );
    let input_end = Arc::new(InputEnd {
        clock: Arc::clone(&clock),
        events,
        at: OnceLock::new(),
    });
    let intake = Intake::new(
        reading,
        &ahead,
        outbox.clone(),
        Arc::clone(&flights),
        Arc::clone(&input_end),
    );
    let lines = Lines::new(intake, outbox, Arc::clone(&flights), over.clone());
    let face = Face::new(acts, who, Arc::clone(&flights));
    let running = serve_directly_with_ct(face, lines, None, over.clone());

    let closing = closing(&watch, &stop, &input_end, &mut writer).await;
    let transport_closed_at = clock.now();
    over.cancel();
    if closing == Closing::Stopped {
        writer.flush(LAST_WORDS).await;
    }
    // What rmcp still does is not waited for: a drain of at most five seconds of answers that nobody can read.
    drop((writer, running));
    let unanswered = flights.close();
    Ok(Ended {
        input_ended_at: input_end.at.get().copied(),
        transport_closed_at,
        closing,
        unanswered,
    })
}

/// Waits for whatever closes the connection, and writes what there is to write meanwhile.
async fn closing<A: Acts>(
    watch: &Watch,
    stop: &CancellationToken,
    input_end: &InputEnd,
    writer: &mut Writer<A>,
) -> Closing {
    tokio::select! {
        biased;
        Ok(()) | Err(_) = watch.hung_up() => Closing::HungUp,
        () = stop.cancelled() => Closing::Stopped,
        never = input_end.watch(watch) => match never {},
        written = writer.run() => match written {
            // rmcp let go of the transport, which it does after the last answer.
            Ok(()) if input_end.at.get().is_some() => Closing::InputEnded,
            Ok(()) => Closing::Broken,
            Err(error) => Closing::WriteFailed { why: error.to_string() },
        },
    }
}

/// When the client's input ended: noted by whoever sees it first, the watch or the reader.
pub(crate) struct InputEnd {
    clock: Arc<dyn Clock>,
    events: Arc<dyn Fn(Event) + Send + Sync>,
    at: OnceLock<Stamp>,
}

impl InputEnd {
    /// Notes that it ended.
    pub(crate) fn note(&self) {
        let now = self.clock.now();
        if self.at.set(now).is_ok() {
            (self.events)(Event::InputEnded { at: now });
        }
    }

    /// Notes the end as the kernel tells it, then waits for ever: it is no end of the connection.
    async fn watch(&self, watch: &Watch) -> Infallible {
        if watch.input_ended().await.is_ok() {
            self.note();
        }
        std::future::pending().await
    }
}

/// How long answers that are ready may take when the daemon ends a connection.
const LAST_WORDS: Duration = Duration::from_secs(1);
