//! An outside system on loopback that counts what reaches it, and can be slow, deaf or rude.
//!
//! Its thread accepts only while the mode lets it, under one lock with the mode itself: once
//! [`Target::set_mode`] has returned, no connection is taken in the old mode.

use std::{
    collections::BTreeMap,
    io::{self, BufReader},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    Deadline,
    deadline::{wait_for, wait_until},
    http::{Reply, Request},
};

/// What the target does with whoever comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Takes the request and answers it.
    Answer,
    /// Takes the request, which then counts, and answers when it is released and not before.
    Hold,
    /// Lets no connection be established: a connect hangs until the mode changes.
    RefuseToAccept,
    /// Takes the request, which then counts, and closes without a word.
    CloseBeforeAnswer,
}

type Answer = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The counting target; dropping it closes everything and joins its threads.
pub struct Target {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    listener: TcpListener,
    answer: Answer,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    mode: Mode,
    closing: bool,
    /// How often held requests were released; a request waits for the next time after its own arrival.
    released: u64,
    requests: Vec<Request>,
    lookups: usize,
    /// A second handle on every open connection, by its number: shutting it wakes a blocked reader.
    open: BTreeMap<u64, TcpStream>,
    accepted: u64,
    /// Our own connections that keep the queue full.
    fillers: Vec<TcpStream>,
}

/// Where a key can be looked up: `GET /seen/KEY` tells how often it came.
const LOOKUP: &str = "/seen/";

/// How long a connect may take until it counts as hanging. On loopback an accepted one takes microseconds.
const HANGS: Duration = Duration::from_millis(150);

/// More connections than the smallest queue takes, whatever the kernel makes of a backlog of zero.
const MOST_FILLERS: usize = 16;

/// The queue's length in ordinary times: the one that std asks for.
const BACKLOG: i32 = 128;

impl Target {
    /// Starts a target that answers every request with 200 and its number.
    ///
    /// # Panics
    /// Loopback gives no port.
    #[must_use]
    pub fn start() -> Self {
        Self::answering(|request| Reply::json(200, format!("{{\"number\":{}}}", request.number)))
    }

    /// Starts a target that answers as `answer` says.
    ///
    /// # Panics
    /// Loopback gives no port.
    #[must_use]
    pub fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        listener
            .set_nonblocking(true)
            .expect("a listener can be made not to block");
        let shared = Arc::new(Shared {
            listener,
            answer: Box::new(answer),
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept()
        });
        Self {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// Returns where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its base URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes what it does from now on; requests that are held stay held.
    ///
    /// # Panics
    /// The queue could not be filled, so that a connect would not hang.
    pub fn set_mode(&self, mode: Mode) {
        let mut state = self.shared.lock();
        state.mode = mode;
        // Closing them first: accepted later, each ends at once.
        state.fillers.clear();
        match mode {
            Mode::RefuseToAccept => {
                self.shared.listen(0);
                state.fillers = fill(self.address);
            }
            Mode::Answer | Mode::Hold | Mode::CloseBeforeAnswer => self.shared.listen(BACKLOG),
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Lets every request that is held at this moment be answered.
    pub fn release(&self) {
        self.shared.lock().released += 1;
        self.shared.changed.notify_all();
    }

    /// Returns all requests so far, lookups left out.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Returns the requests behind the first `known` ones.
    #[must_use]
    pub fn requests_since(&self, known: usize) -> Vec<Request> {
        let state = self.shared.lock();
        state.requests.get(known..).unwrap_or_default().to_vec()
    }

    /// Returns how many requests came so far, lookups left out.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// Returns how many connections were taken so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// Returns how many of them are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.shared.lock().open.len()
    }

    /// Returns how many lookups were made.
    #[must_use]
    pub fn lookups(&self) -> usize {
        self.shared.lock().lookups
    }

    /// Waits until at least `count` requests came and returns them all.
    ///
    /// # Panics
    /// They did not before the deadline.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize, deadline: Deadline) -> Vec<Request> {
        wait_for(&format!("request {count} at the target"), deadline, || {
            Some(self.requests()).filter(|requests| requests.len() >= count)
        })
    }

    /// Returns how often each idempotency key came.
    #[must_use]
    pub fn keys(&self) -> BTreeMap<String, usize> {
        let mut keys = BTreeMap::new();
        for request in &self.shared.lock().requests {
            if let Some(key) = request.idempotency_key() {
                *keys.entry(key.to_owned()).or_insert(0) += 1;
            }
        }
        keys
    }

    /// Returns how often this idempotency key came.
    #[must_use]
    pub fn seen(&self, key: &str) -> usize {
        self.keys().get(key).copied().unwrap_or(0)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closing = true;
        state.fillers.clear();
        for stream in std::mem::take(&mut state.open).into_values() {
            // Whoever has closed already needs no shutdown.
            drop(stream.shutdown(Shutdown::Both));
        }
        drop(state);
        self.shared.changed.notify_all();
        // The acceptor sleeps until somebody comes.
        drop(TcpStream::connect_timeout(&self.address, HANGS));
        if let Some(acceptor) = self.acceptor.take() {
            // It has panicked already in a test that has failed.
            drop(acceptor.join());
        }
    }
}

impl State {
    const fn new() -> Self {
        Self {
            mode: Mode::Answer,
            closing: false,
            released: 0,
            requests: Vec::new(),
            lookups: 0,
            open: BTreeMap::new(),
            accepted: 0,
            fillers: Vec::new(),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked was counting: the count as it stands is what the test asks for.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue's length; listen(2) on a listening socket does just that.
    fn listen(&self, backlog: i32) {
        rustix::net::listen(&self.listener, backlog).expect("a listener's queue can be changed");
    }

    fn accept(self: &Arc<Self>) {
        let mut workers: Vec<JoinHandle<()>> = Vec::new();
        while self.wait_for_somebody() {
            // A thread that is never joined keeps its stack: a long test would run out of memory maps.
            workers.retain(|worker| !worker.is_finished());
            let state = self.lock();
            if state.mode == Mode::RefuseToAccept {
                continue;
            }
            if let Ok((stream, _)) = self.listener.accept() {
                self.serve_on_a_thread(state, stream, &mut workers);
            }
        }
        for worker in workers {
            // It has panicked already in a test that has failed.
            drop(worker.join());
        }
    }

    fn serve_on_a_thread(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        stream: TcpStream,
        workers: &mut Vec<JoinHandle<()>>,
    ) {
        // Some systems let an accepted socket inherit this from its listener (accept(2)).
        let usable = stream
            .set_nonblocking(false)
            .and_then(|()| stream.try_clone());
        let Ok(second) = usable else { return };
        state.accepted += 1;
        let number = state.accepted;
        state.open.insert(number, second);
        let shared = Arc::clone(self);
        workers.push(thread::spawn(move || {
            // A connection that breaks is what these tests are about.
            drop(shared.serve(&stream));
            drop(stream.shutdown(Shutdown::Both));
            shared.lock().open.remove(&number);
        }));
    }

    /// Waits until a connection may be taken; false once the target closes.
    fn wait_for_somebody(&self) -> bool {
        let state = self.lock();
        let waiting = |state: &mut State| state.mode == Mode::RefuseToAccept && !state.closing;
        let state = self
            .changed
            .wait_while(state, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closing {
            return false;
        }
        drop(state);
        let mut ready = [rustix::event::PollFd::new(
            &self.listener,
            rustix::event::PollFlags::IN,
        )];
        // Interrupted or not: the next round asks again.
        let _ = rustix::event::poll(&mut ready, None);
        !self.lock().closing
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(stream);
        while let Some(request) = Request::read(&mut from)? {
            let Some(reply) = self.take(request) else {
                return Ok(());
            };
            reply.write(&mut &*stream)?;
        }
        Ok(())
    }

    /// Counts a request and returns its reply, when there is to be one.
    fn take(&self, mut request: Request) -> Option<Reply> {
        let mut state = self.lock();
        if let Some(key) = request.path.strip_prefix(LOOKUP) {
            state.lookups += 1;
            return Some(looked_up(&state, key));
        }
        request.number = state.requests.len() + 1;
        state.requests.push(request.clone());
        let before = state.released;
        match state.mode {
            // The connection was established before the mode changed: it is served as usual.
            Mode::Answer | Mode::RefuseToAccept => drop(state),
            Mode::CloseBeforeAnswer => return None,
            Mode::Hold => {
                let held = |state: &mut State| state.released == before && !state.closing;
                drop(self.changed.wait_while(state, held));
            }
        }
        Some((self.answer)(&request))
    }
}

fn looked_up(state: &State, key: &str) -> Reply {
    let count = state
        .requests
        .iter()
        .filter(|request| request.idempotency_key() == Some(key))
        .count();
    let key = serde_json::Value::from(key);
    Reply::json(200, format!("{{\"key\":{key},\"count\":{count}}}"))
}

/// Connects until a connect hangs, and returns the connections that fill the queue.
fn fill(address: SocketAddr) -> Vec<TcpStream> {
    let mut fillers = Vec::new();
    for _ in 0..MOST_FILLERS {
        match TcpStream::connect_timeout(&address, HANGS) {
            Ok(stream) => fillers.push(stream),
            Err(_) => return fillers,
        }
    }
    panic!("the queue took {MOST_FILLERS} connections and is not full");
}

/// Waits until `address` takes a connection.
///
/// # Panics
/// It does not before the deadline.
pub fn wait_for_listener(address: SocketAddr, deadline: Deadline) {
    wait_until(
        &format!("somebody to listen on {address}"),
        deadline,
        || TcpStream::connect_timeout(&address, HANGS).is_ok(),
    );
}

#[cfg(test)]
mod tests;
