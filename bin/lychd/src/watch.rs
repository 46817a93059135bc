//! The processes behind one connection, watched by pidfd: a closed transport is a hint, an exit a fact.
//!
//! | the holder | its wire | what is recorded |
//! |---|---|---|
//! | exits | closed in order before, and it exited with 0 | the connection's end, nothing else |
//! | exits in any other way | closed or not | the client is lost |
//! | exits | stays open (somebody else inherited its end) | lost; the connection ends after the calls' grace |
//! | lives | closed | the connection's end |
//!
//! A process above the holder that exits while the wire is open makes the run abandoned.

use std::{
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use gateway::{Asker, GRACE};
use model::{Clock, Lost, LostBasis, ProcessRef, SessionId, Wall};
use sys::{
    chain::{Chain, Link},
    process::{ExitStatus, Handle},
};
use tokio::{io::unix::AsyncFd, sync::watch, task::JoinHandle, time};
use tokio_util::sync::CancellationToken;

use crate::daemon::Daemon;

mod holders;

pub(crate) use holders::Holders;

/// How long a client whose wire has just closed may take to be seen dead, and one that was seen dead to
/// have its wire closed. The kernel does both at once, in an order of its own.
const TOGETHER: Duration = Duration::from_millis(250);

/// How often it is asked how a process ended; the answer is there once its parent has collected it.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// How a connection's transport closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closed {
    /// When.
    pub(crate) at: Wall,
    /// Whether the client ended its input with every answer read.
    pub(crate) in_order: bool,
}

/// What the watchers know of the transport.
pub(crate) struct Wire(watch::Sender<Option<Closed>>);

impl Default for Wire {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Wire {
    /// Tells the watchers that the transport closed.
    pub(crate) fn closed(&self, how: Closed) {
        self.0.send_replace(Some(how));
    }
}

/// The watchers of one connection's chain.
pub(crate) struct Watched {
    holder: Option<JoinHandle<()>>,
    above: Vec<JoinHandle<()>>,
    /// Tells the holder's watcher that the connection is over.
    over: CancellationToken,
}

impl Watched {
    /// Gives the holder's end time to be recorded, and lets go of the processes above it.
    ///
    /// The holder itself is watched on, once for all its connections that are over.
    pub(crate) async fn settle(self) {
        if let Some(mut holder) = self.holder {
            drop(time::timeout(TOGETHER, &mut holder).await);
        }
        self.over.cancel();
        for task in self.above {
            task.abort();
        }
    }
}

/// Watches the holder and what is above it.
pub(crate) fn all(
    daemon: &Arc<Daemon>,
    who: Asker,
    chain: Chain,
    wire: &Wire,
    stop: &CancellationToken,
) -> Watched {
    let is_holder = chain.holder().ok().map(|link| link.process.id.clone());
    let above: Vec<_> = chain
        .above_holder()
        .iter()
        .map(|link| link.process.id.clone())
        .collect();
    let mut watched = Watched {
        holder: None,
        above: Vec::new(),
        over: CancellationToken::new(),
    };
    for link in chain.into_links() {
        let daemon = Arc::clone(daemon);
        if is_holder.as_ref() == Some(&link.process.id) {
            let ends = Ends {
                closed: wire.0.subscribe(),
                over: watched.over.clone(),
                stop: stop.clone(),
            };
            watched.holder = Some(tokio::spawn(holder(daemon, who, link, ends)));
        } else if above.contains(&link.process.id) {
            watched
                .above
                .push(tokio::spawn(ancestor(daemon, who, link)));
        }
    }
    watched
}

async fn ancestor(daemon: Arc<Daemon>, who: Asker, link: Link) {
    if exited(&link.handle).await {
        lost(&daemon, who, link.process, LostBasis::AncestorExited).await;
    }
}

/// What the watcher of a holder is told, and what it tells.
struct Ends {
    /// How the transport closed.
    closed: watch::Receiver<Option<Closed>>,
    /// The connection is over, and its holder lives.
    over: CancellationToken,
    /// Ends the connection.
    stop: CancellationToken,
}

async fn holder(daemon: Arc<Daemon>, who: Asker, link: Link, mut ends: Ends) {
    let is_dead = tokio::select! {
        biased;
        is_dead = exited(&link.handle) => is_dead,
        () = ends.over.cancelled() => {
            let in_order = ends.closed.borrow().is_some_and(|how| how.in_order);
            return holders::watch_on(&daemon, who.session, in_order, link);
        }
    };
    if !is_dead {
        return;
    }
    let process = link.process;
    let in_order = closed_in_order(&mut ends.closed).await;
    if !in_order || !ended_well(&link.handle).await {
        daemon.gateway.client_lost(who.session);
        lost(&daemon, who, process.clone(), LostBasis::HolderExited).await;
    }
    daemon.gate.holder_is_dead(&process.id);
    // Somebody else may hold the other end of the wire: then nothing would ever close it.
    let deadline = Instant::now() + GRACE;
    while daemon.gate.under_way(who.connection) > 0 && Instant::now() < deadline {
        time::sleep(ASK_EVERY).await;
    }
    ends.stop.cancel();
}

async fn closed_in_order(closed: &mut watch::Receiver<Option<Closed>>) -> bool {
    let told = time::timeout(TOGETHER, closed.wait_for(Option::is_some)).await;
    matches!(told, Ok(Ok(how)) if how.is_some_and(|how| how.in_order))
}

/// Waits for a process to end; false if that cannot be told.
async fn exited(process: &Handle) -> bool {
    let Ok(pidfd) = process.as_fd().try_clone_to_owned() else {
        return false;
    };
    #[expect(
        deprecated,
        reason = "an `OwnedFd` is what its unsafe successor asks for"
    )]
    let Ok(waiter) = AsyncFd::new(pidfd) else {
        return false;
    };
    waiter.readable().await.is_ok()
}

/// Tells whether a process is known to have ended by itself with 0; not known is not well.
async fn ended_well(process: &Handle) -> bool {
    let deadline = Instant::now() + TOGETHER;
    loop {
        if let Some(status) = process.exit_status().value() {
            return *status == ExitStatus::Exited { code: 0 };
        }
        if Instant::now() > deadline {
            return false;
        }
        time::sleep(ASK_EVERY).await;
    }
}

async fn lost(daemon: &Arc<Daemon>, who: Asker, process: ProcessRef, basis: LostBasis) {
    let at = daemon.clock.now().wall;
    let told = process.clone();
    daemon
        .launches
        .lost(who.connection, told, at, &daemon.notes);
    record_lost(daemon, who.session, process, (basis, at)).await;
}

async fn record_lost(
    daemon: &Arc<Daemon>,
    session: SessionId,
    process: ProcessRef,
    (basis, at): (LostBasis, Wall),
) {
    let what = Lost {
        basis,
        not_before: at,
        not_after: at,
        process: Some(process),
    };
    if let Some(ticket) = daemon.gate.lost(session, what)
        && let Err(error) = ticket.await
    {
        let text = format!("a lost client could not be recorded: {error}");
        daemon.notes.say(&text);
    }
}
