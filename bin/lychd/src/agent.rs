//! One agent connection, from the door to its recorded end.

use std::{os::fd::AsFd, sync::Arc, time::Duration};

use authz::Newcomer;
use gateway::Asker;
use model::{Clock, ConnectionId, LaunchRecord, Lost, LostBasis, Wall};
use sys::chain::{Chain, Link};
use tokio::{io::AsyncWriteExt, io::unix::AsyncFd, net::UnixStream};
use wire::{Refusal, Reply, Welcome};

use crate::{
    admission::{self, Guest},
    daemon::Daemon,
};

/// How long a client whose wire has just closed may take to be seen dead. The kernel closes descriptors
/// before it announces the exit, so the end of the wire comes first.
const EXIT_AFTER_CLOSE: Duration = Duration::from_millis(250);

/// Serves one connection until it ends.
pub(crate) async fn serve(daemon: Arc<Daemon>, mut stream: UnixStream) {
    let guest = match admission::look(&mut stream).await {
        Ok(guest) => guest,
        Err(explain) => {
            daemon
                .notes
                .say(&format!("a connection was refused: {}", explain.what));
            let refusal = Reply::Refused(Refusal {
                version: wire::VERSION.to_owned(),
                explain,
            });
            say(&mut stream, &refusal).await;
            return;
        }
    };
    if let Err(why) = admitted(&daemon, stream, guest).await {
        daemon
            .notes
            .say(&format!("a connection could not be admitted: {why}"));
    }
}

async fn admitted(
    daemon: &Arc<Daemon>,
    mut stream: UnixStream,
    guest: Guest,
) -> Result<(), String> {
    let connection = ConnectionId::random().map_err(|error| error.to_string())?;
    let recorded = guest.chain.recorded();
    let admission = daemon
        .gate
        .admit(Newcomer {
            connection,
            chain: recorded.clone(),
            holder: guest
                .chain
                .holder()
                .ok()
                .map(|link| link.process.id.clone()),
            uid: guest.uid,
            admission: "policy".to_owned(),
        })
        .map_err(|error| error.to_string())?;
    let session = admission.session;
    // The run is on record before its client hears that it is one. If it cannot be recorded the client is
    // let in all the same: every call of it will be refused, and it can read why.
    let recorded_run = admission.ticket.await;
    if let Err(error) = &recorded_run {
        daemon
            .notes
            .say(&format!("a run could not be recorded: {error}"));
    }
    let record = LaunchRecord {
        schema: LaunchRecord::SCHEMA.to_owned(),
        connection,
        session,
        session_seq: admission.session_seq.unwrap_or_default(),
        chain: recorded,
        lost: Vec::new(),
        connected_at: daemon.clock.now().wall,
        transport_closed_at: None,
        revoked_at: None,
    };
    daemon.launches.add(record, &daemon.notes);
    let welcome = Welcome {
        protocol: guest.hello_protocol,
        version: wire::VERSION.to_owned(),
        session,
        connection,
    };
    say(&mut stream, &Reply::Welcome(welcome)).await;
    let who = Asker {
        session,
        connection,
    };
    let watched = watch_all(daemon, who, guest.chain);
    let connection = mcp::Connection {
        stream,
        ahead: guest.rest,
        who,
        clock: Arc::new(daemon.clock),
        stop: daemon.stop.clone(),
    };
    let heard = Arc::clone(daemon);
    let events = move |event| heard.hear(who, &event);
    let ended = mcp::serve(connection, Arc::new(daemon.gateway.clone()), events).await;
    let closed_at = ended
        .as_ref()
        .map_or_else(|_| daemon.clock.now(), |ended| ended.transport_closed_at);
    end(daemon, who, watched, closed_at.wall).await;
    ended
        .map(drop)
        .map_err(|error| format!("its protocol could not be served: {error}"))
}

async fn say(stream: &mut UnixStream, reply: &Reply) {
    // A peer that is gone reads nothing; the next read tells.
    if let Ok(line) = wire::encode(reply) {
        drop(stream.write_all(&line).await);
    }
}

/// The watchers of one connection's chain.
struct Watched {
    holder: Option<tokio::task::JoinHandle<()>>,
    others: Vec<tokio::task::JoinHandle<()>>,
}

fn watch_all(daemon: &Arc<Daemon>, who: Asker, chain: Chain) -> Watched {
    let holder_id = chain.holder().ok().map(|link| link.process.id.clone());
    let above: Vec<_> = chain
        .above_holder()
        .iter()
        .map(|link| link.process.id.clone())
        .collect();
    let mut watched = Watched {
        holder: None,
        others: Vec::new(),
    };
    for link in chain.into_links() {
        let basis = if holder_id.as_ref() == Some(&link.process.id) {
            LostBasis::HolderExited
        } else if above.contains(&link.process.id) {
            LostBasis::AncestorExited
        } else {
            continue;
        };
        let task = tokio::spawn(watch(Arc::clone(daemon), who, link, basis));
        match basis {
            LostBasis::HolderExited => watched.holder = Some(task),
            LostBasis::TransportClosed | LostBasis::AncestorExited | LostBasis::ClientStuck => {
                watched.others.push(task);
            }
        }
    }
    watched
}

/// Waits for one process of the chain to end, and puts its end on record.
async fn watch(daemon: Arc<Daemon>, who: Asker, link: Link, basis: LostBasis) {
    let before = daemon.clock.now().wall;
    let Ok(pidfd) = link.handle.as_fd().try_clone_to_owned() else {
        return;
    };
    #[expect(
        deprecated,
        reason = "an `OwnedFd` is what its unsafe successor asks for"
    )]
    let Ok(waiter) = AsyncFd::new(pidfd) else {
        return;
    };
    if waiter.readable().await.is_err() {
        return;
    }
    let at = daemon.clock.now().wall;
    let holder = link.process.id.clone();
    let lost = Lost {
        basis,
        not_before: before.max(at),
        not_after: at,
        process: Some(link.process.clone()),
    };
    daemon
        .launches
        .lost(who.connection, link.process, at, &daemon.notes);
    let ticket = daemon.gate.lost(who.session, lost);
    if basis == LostBasis::HolderExited {
        daemon.gateway.client_lost(who.session);
        daemon.gate.holder_is_dead(&holder);
    }
    if let Err(error) = ticket.await {
        daemon
            .notes
            .say(&format!("a lost client could not be recorded: {error}"));
    }
}

async fn end(daemon: &Arc<Daemon>, who: Asker, mut watched: Watched, closed_at: Wall) {
    if let Some(holder) = &mut watched.holder {
        // Its end, if this is one, goes on record before the end of the connection.
        drop(tokio::time::timeout(EXIT_AFTER_CLOSE, holder).await);
    }
    daemon
        .launches
        .closed(who.connection, closed_at, &daemon.notes);
    let ticket = daemon
        .gate
        .disconnected(who.session, who.connection, closed_at);
    for task in watched.others {
        task.abort();
    }
    if let Err(error) = ticket.await {
        daemon.notes.say(&format!(
            "the end of a connection could not be recorded: {error}"
        ));
    }
    daemon.forget_if_ended(who.session);
}
