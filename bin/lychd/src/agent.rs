//! One agent connection, from the door to its recorded end.

use std::sync::Arc;

use authz::Newcomer;
use gateway::Asker;
use model::{Clock, ConnectionId, Explain, LaunchRecord, Stamp};
use tokio::{io::AsyncWriteExt, net::UnixStream};
use wire::{Refusal, Reply, Welcome};

use crate::{
    admission::{self, Guest},
    census,
    daemon::Daemon,
    room, trust,
    watch::{self, Closed, Watched, Wire},
};

/// Serves one connection until it ends.
pub(crate) async fn serve(daemon: Arc<Daemon>, mut stream: UnixStream) {
    let realm = daemon.home.realm();
    // Another user's connection waits nowhere and takes nobody's place.
    let peer = match admission::peer(realm, &stream) {
        Ok(peer) => peer,
        Err(explain) => return refused(&daemon, &mut stream, explain).await,
    };
    let heard = daemon
        .room
        .door
        .enter()
        .until(admission::hear(peer, &mut stream));
    let heard = match heard.await {
        Some(Ok(heard)) => heard,
        Some(Err(explain)) => return refused(&daemon, &mut stream, explain).await,
        // Said to nobody but the peer: who connects without end must not fill the notes either.
        None => return refuse(&mut stream, admission::silent()).await,
    };
    let _place = match daemon.room.agent() {
        Ok(place) => place,
        Err(explain) => return refuse(&mut stream, explain).await,
    };
    let guest = match admission::look(realm, heard).await {
        Ok(guest) => guest,
        Err(explain) => return refused(&daemon, &mut stream, explain).await,
    };
    let _part = match daemon.room.share(room::Guest::behind(&guest.chain)) {
        Ok(part) => part,
        Err(explain) => return refuse(&mut stream, explain).await,
    };
    if let Err(why) = admitted(&daemon, stream, guest).await {
        daemon
            .notes
            .say(&format!("a connection could not be admitted: {why}"));
    }
}

async fn refused(daemon: &Daemon, stream: &mut UnixStream, explain: Explain) {
    daemon
        .notes
        .say(&format!("a connection was refused: {}", explain.what));
    refuse(stream, explain).await;
}

async fn refuse(stream: &mut UnixStream, explain: Explain) {
    let refusal = Reply::Refused(Refusal {
        version: wire::VERSION.to_owned(),
        explain,
    });
    say(stream, &refusal).await;
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
        children: Vec::new(),
    };
    let chain = record.chain.clone();
    daemon.launches.add(record, &daemon.notes);
    // Before the welcome, so that the first call of a run whose shape is remembered does not find it waiting.
    trust::admit(daemon, session, chain).await;
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
    let census = guest.chain.holder().ok().map(|holder| {
        let holder = holder.process.id.clone();
        tokio::spawn(census::keep(Arc::clone(daemon), connection, holder))
    });
    let stop = daemon.stop.child_token();
    let wire = Wire::default();
    let watched = watch::all(daemon, who, guest.chain, &wire, &stop);
    let connection = mcp::Connection {
        stream,
        ahead: guest.rest,
        who,
        clock: Arc::new(daemon.clock),
        stop,
    };
    let heard = Arc::clone(daemon);
    let events = move |event| heard.hear(who, &event);
    let ended = mcp::serve(connection, Arc::new(daemon.gateway.clone()), events).await;
    let closed = Closed::of(ended.as_ref().ok(), daemon.clock.now());
    if let Some(census) = census {
        census.abort();
    }
    end(daemon, who, watched, &wire, closed).await;
    ended
        .map(drop)
        .map_err(|error| format!("its protocol could not be served: {error}"))
}

impl Closed {
    fn of(ended: Option<&mcp::Ended>, now: Stamp) -> Self {
        let Some(ended) = ended else {
            return Self {
                at: now.wall,
                in_order: false,
            };
        };
        let at = ended.input_ended_at.unwrap_or(ended.transport_closed_at);
        Self {
            at: at.wall,
            in_order: ended.closing == mcp::Closing::InputEnded && ended.unanswered == 0,
        }
    }
}

async fn end(daemon: &Arc<Daemon>, who: Asker, watched: Watched, wire: &Wire, closed: Closed) {
    wire.closed(closed);
    // The client's end, if this is one, goes on record before the end of the connection.
    watched.settle().await;
    daemon
        .launches
        .closed(who.connection, closed.at, &daemon.notes);
    let ticket = daemon
        .gate
        .disconnected(who.session, who.connection, closed.at);
    if let Err(error) = ticket.await {
        daemon.notes.say(&format!(
            "the end of a connection could not be recorded: {error}"
        ));
    }
    daemon.forget_if_ended(who.session);
}

async fn say(stream: &mut UnixStream, reply: &Reply) {
    // A peer that is gone reads nothing; the next read tells.
    if let Ok(line) = wire::encode(reply) {
        drop(stream.write_all(&line).await);
    }
}
