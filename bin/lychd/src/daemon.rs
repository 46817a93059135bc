//! The daemon put together: one log, one gate, one gateway, two sockets, and an orderly end.

use std::{io, os::unix::net::UnixListener as StdListener, sync::Arc, time::Duration};

use audit::Audit;
use authz::Gate;
use channels::{Limits, LogRules, Policy, RunRules};
use gateway::{Asker, Gateway};
use model::{
    Act, Body, ChannelName, Clock, Entry, Explain, Home, Journal, Kind, Known, Lost, LostBasis,
    Operator, Presence, SessionId, Wall,
};
use serde_json::Value;
use sys::{
    clock::SystemClock,
    durable::{self, Reader},
    socket::Keeper,
};
use tokio::{
    net::UnixListener,
    signal::unix::{SignalKind, signal},
    sync::Mutex,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use zeroize::Zeroizing;

use crate::{
    agent,
    bounds::{self, Ages},
    launches::Launches,
    notes::Notes,
    notice::Notices,
    operator,
    pin::Tries,
    retention,
    room::Room,
    runs,
    shape::Digests,
    store::{AgeWrap, Bootstrap, Store},
    verbs, watch,
};

/// How long running calls may take to end when the daemon stops; what is left then is unresolved.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// How long a connection may take to flush what waits and to put its end on record.
const END_OF_CONNECTION: Duration = Duration::from_secs(1);

/// How often refusals of a flood are counted into the log.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Everything the daemon's tasks share.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    pub(crate) clock: SystemClock,
    pub(crate) notes: Notes,
    pub(crate) notices: Notices,
    pub(crate) audit: Arc<Audit>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) gateway: Gateway,
    pub(crate) store: Arc<Store>,
    pub(crate) launches: Launches,
    /// Clients that outlive their connections.
    pub(crate) holders: watch::Holders,
    /// Who may be connected at once.
    pub(crate) room: Room,
    /// What was learnt about the files of programs.
    pub(crate) digests: Digests,
    /// Since when the runs in memory are there.
    pub(crate) ages: Ages,
    /// When it was looked what of the log may go.
    pub(crate) keeper: retention::Keeper,
    /// Wrong PINs in a row.
    pub(crate) tries: Tries,
    /// One PIN is looked at at a time.
    pub(crate) pin_turn: Mutex<()>,
    /// One vault act at a time; each is several records and a file.
    pub(crate) vault_turn: Mutex<()>,
    pub(crate) stop: CancellationToken,
    started_at: Wall,
    channels: std::sync::RwLock<Arc<Policy>>,
}

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// It could not start; what it says is for the person who started it.
pub(crate) async fn run(home: Home, notices: Notices, started_by: &str) -> Result<(), String> {
    sys::harden::this_process()
        .map_err(|error| format!("the process cannot be shut to others: {error}"))?;
    folders(&home)?;
    let notes = Notes::open(&home.daemon_log()).map_err(|error| format!("lychd.log: {error}"))?;
    let lock = match sys::lock::try_lock(&home.lock()) {
        Ok(lock) => lock,
        // Somebody else was faster: that is what whoever started us wanted.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        Err(error) => return Err(format!("lychd.lock: {error}")),
    };
    let daemon = Arc::new(open(home, notes, notices)?);
    let ourselves = Keeper::ourselves();
    let beside = Keeper {
        group: daemon.home.realm().is_separate(),
        ..ourselves
    };
    let agents = listen(&daemon.home.agent_socket(), beside)?;
    let operators = listen(&daemon.home.operator_socket(), ourselves)?;
    daemon.record_start(started_by).await;
    verbs::by_machine(&daemon).await;
    daemon
        .notes
        .say(&format!("started, version {}", wire::VERSION));
    serve(&daemon, agents, operators).await?;
    close(daemon, lock).await
}

/// Makes the folders, and sees that we are who the home says.
fn folders(home: &Home) -> Result<(), String> {
    let own = sys::process::own_uid();
    let expected = home.realm().daemon(own);
    if own != expected {
        return Err(format!(
            "this home's daemon is uid {expected}, and this is uid {own}"
        ));
    }
    if home.realm().is_separate() {
        durable::let_group_read();
    }
    let private = home.private_folders().into_iter();
    // The log's own as well: what is asked of it next would only say that it is not there.
    let shared = home.shared_folders().into_iter().chain([home.audit()]);
    private
        .map(|folder| durable::private_folder(&folder))
        .chain(shared.map(|folder| durable::folder_for(Reader::Group, &folder)))
        .collect::<io::Result<()>>()
        .map_err(|error| error.to_string())
}

fn listen(path: &std::path::Path, keeper: Keeper) -> Result<UnixListener, String> {
    let bound: io::Result<StdListener> = sys::socket::bind(path, keeper);
    let listener = bound.and_then(|listener| {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    });
    listener.map_err(|error| format!("{}: {error}", path.display()))
}

fn open(home: Home, notes: Notes, notices: Notices) -> Result<Daemon, String> {
    let clock = SystemClock;
    let bootstrap =
        Bootstrap::load_or_make(&home).map_err(|error| format!("bootstrap.key: {error}"))?;
    let new_log = bootstrap.as_ref().map(|keys| audit::NewLog {
        bootstrap_root: audit::RootSigner::public(keys),
        recipient: keys.recipient().to_owned(),
    });
    let options = audit::Options {
        dir: home.audit(),
        clock: Arc::new(clock),
        wrap: Arc::new(AgeWrap),
        new_log,
        sizes: audit::Sizes::default(),
    };
    let (audit, recovered) = Audit::open(options).map_err(|error| in_one_line(error.explain()))?;
    notes.say(&told(&recovered));
    if let Some(keys) = &bootstrap
        && let Err(error) = audit.endorse(keys)
    {
        notes.say(&format!(
            "this run of the log could not be endorsed: {error}"
        ));
    }
    let audit = Arc::new(audit);
    let store = Arc::new(Store::new(&home, bootstrap));
    let descriptors = sys::harden::all_descriptors()
        .map_err(|error| format!("how many descriptors there are cannot be told: {error}"))?;
    let room = Room::of(descriptors);
    let gate = Gate::new(Arc::clone(&audit) as Arc<dyn Journal>).with_room_for(room.calls());
    let gate = Arc::new(gate);
    let gateway = Gateway::new(
        Arc::clone(&gate),
        Arc::clone(&store) as Arc<dyn gateway::Secrets>,
        Limits::default(),
    );
    let launches = Launches::new(home.launches());
    for (session, holder) in launches.revoked_holders(&recovered.revoked_runs) {
        gate.still_revoked(session, holder, None);
    }
    Ok(Daemon {
        launches,
        holders: watch::Holders::default(),
        room,
        started_at: clock.now().wall,
        home,
        clock,
        notes,
        notices,
        audit,
        gate,
        gateway,
        store,
        digests: Digests::default(),
        ages: Ages::default(),
        keeper: retention::Keeper::new(clock.now()),
        tries: Tries::default(),
        pin_turn: Mutex::new(()),
        vault_turn: Mutex::new(()),
        stop: CancellationToken::new(),
        channels: std::sync::RwLock::new(Arc::new(Policy::nothing())),
    })
}

async fn serve(
    daemon: &Arc<Daemon>,
    agents: UnixListener,
    operators: UnixListener,
) -> Result<(), String> {
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut ticks = tokio::time::interval(COUNT_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let tasks = TaskTracker::new();
    loop {
        tokio::select! {
            accepted = agents.accept() => match accepted {
                Ok((stream, _)) => { tasks.spawn(until_stop(Arc::clone(daemon), agent::serve(Arc::clone(daemon), stream))); }
                Err(error) => daemon.tired(&error).await,
            },
            accepted = operators.accept() => match accepted {
                Ok((stream, _)) => { tasks.spawn(until_stop(Arc::clone(daemon), operator::serve(Arc::clone(daemon), stream))); }
                Err(error) => daemon.tired(&error).await,
            },
            _ = ticks.tick() => {
                drop(daemon.gate.count_denials());
                daemon.audit.watch();
                bounds::end_old_runs(daemon);
                retention::look(daemon);
            }
            () = daemon.stop.cancelled() => break,
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        }
    }
    daemon.stop.cancel();
    tasks.close();
    // Answers that are on their way reach their readers; whoever does not read is not waited for.
    drop(tokio::time::timeout(END_OF_CONNECTION * 2, tasks.wait()).await);
    Ok(())
}

/// A start that fails ends its log with this line, and whoever started it is shown the last one.
fn in_one_line(explain: Explain) -> String {
    let why = explain.why.map(|why| format!(": {why}"));
    let next = explain.next.map(|next| format!("; {next}"));
    let [why, next] = [why, next].map(Option::unwrap_or_default);
    format!("{}{why}{next}", explain.what)
}

fn told(recovered: &audit::Recovered) -> String {
    format!(
        "log opened: {}closed in order before: {}, repairs: {}, open calls: {}, revoked runs: {}",
        if recovered.created { "new, " } else { "" },
        recovered.closed_in_order,
        recovered.repairs.len(),
        recovered.open_calls.len(),
        recovered.revoked_runs.len()
    )
}

/// Serves one connection until it ends or the daemon does.
async fn until_stop(daemon: Arc<Daemon>, work: impl Future<Output = ()>) {
    let stop = daemon.stop.clone();
    tokio::select! {
        () = work => {}
        () = async { stop.cancelled().await; tokio::time::sleep(END_OF_CONNECTION).await; } => {}
    }
}

async fn close(daemon: Arc<Daemon>, lock: sys::lock::Lock) -> Result<(), String> {
    if tokio::time::timeout(STOP_GRACE, daemon.gateway.drain())
        .await
        .is_err()
    {
        daemon
            .notes
            .say("calls were still under way at the end; they are unresolved");
    }
    daemon.notices.end().await;
    let closed = daemon
        .audit
        .close()
        .map(drop)
        .map_err(|error| format!("the log could not be closed in order: {error}"));
    for socket in [daemon.home.agent_socket(), daemon.home.operator_socket()] {
        // A socket that stays is replaced by the next start.
        drop(std::fs::remove_file(socket));
    }
    daemon.notes.say("ended");
    drop(lock);
    closed
}

impl Daemon {
    pub(crate) fn journal(&self) -> &dyn Journal {
        self.audit.as_ref()
    }

    async fn record_start(&self, started_by: &str) {
        let by = Operator {
            uid: sys::process::own_uid(),
            login_uid: None,
            presence: Presence::None,
        };
        let act = Act::Started {
            by: started_by.to_owned(),
        };
        let body = Body::Acted { act, by };
        let ticket = self.journal().push(Entry {
            kind: Kind::Acted,
            session: None,
            call: None,
            refers_to: None,
            body,
        });
        if let Err(error) = ticket.await {
            self.notes
                .say(&format!("the start could not be recorded: {error}"));
        }
    }

    /// Out of descriptors or memory: whoever waits is served when there are some again.
    async fn tired(&self, error: &io::Error) {
        self.notes
            .say(&format!("a connection could not be accepted: {error}"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// Makes a policy effective.
    pub(crate) fn open_gateway(&self, policy: Policy) {
        let policy = Arc::new(policy);
        *self
            .channels
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::clone(&policy);
        let secret = self.store.with(|vault| runs::id_secret(vault));
        self.gateway
            .open(policy, secret.unwrap_or_else(|| Zeroizing::new([0; 32])));
    }

    /// Returns what the applied policy says about runs. It goes on to hold while the vault is shut.
    pub(crate) fn rules(&self) -> RunRules {
        self.channels
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .runs()
    }

    /// Returns how much of the log the applied policy keeps; before the vault is opened for the first time, as much as
    /// where nothing is said.
    pub(crate) fn log_rules(&self) -> LogRules {
        self.channels
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .log()
    }

    /// Tells whether the applied policy has this channel.
    pub(crate) fn has_channel(&self, name: &ChannelName) -> bool {
        let policy = self
            .channels
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        policy
            .channels()
            .iter()
            .any(|channel| channel.name() == name)
    }

    /// Hears what a connection's protocol has to tell while it lasts.
    pub(crate) fn hear(&self, who: Asker, event: &mcp::Event) {
        let mcp::Event::Stuck { since } = event else {
            return;
        };
        let now = self.clock.now().wall;
        let stuck = Lost {
            basis: LostBasis::ClientStuck,
            not_before: since.wall,
            not_after: now,
            process: None,
        };
        // Nothing depends on this record being on disk; it goes there with the next one.
        drop(self.gate.lost(who.session, stuck));
    }

    /// Forgets what is only needed while a run has connections.
    pub(crate) fn forget_if_ended(&self, session: SessionId) {
        if !self
            .gate
            .runs()
            .iter()
            .any(|run| run.id == session && run.connections > 0)
        {
            self.gateway.ended(session);
        }
    }

    pub(crate) async fn status(self: &Arc<Self>) -> Result<Value, Explain> {
        let health = self.audit.health();
        let view = wire::StatusView {
            pid: std::process::id(),
            version: wire::VERSION.to_owned(),
            started_at: self.started_at,
            vault: self.store.state(),
            presence: match verbs::sealed(self) {
                Ok(sealed) => sealed.presence().into(),
                Err(closed) => Known::unknown(closed.what),
            },
            log_id: self.audit.log_id().to_string(),
            last_seq: self.audit.head().map_or(0, |head| head.seq),
            log_poisoned: health.poisoned.is_some(),
            log_fault: health.poisoned.or(health.attempts_refused),
            log_head_behind: health.head_behind,
            log_keep: match verbs::sealed(self) {
                Ok(sealed) => Known::Yes(wire::LogKeep {
                    days: sealed.policy.log().days(),
                    bytes: sealed.policy.log().bytes(),
                }),
                Err(closed) => Known::unknown(closed.what),
            },
            runs: self
                .gate
                .runs()
                .iter()
                .filter(|run| run.connections > 0)
                .count(),
            unresolved: verbs::unresolved(self).await?,
            draft_differs: verbs::draft_differs(self),
        };
        runs::to_value(&view)
    }
}
