//! How long and how large an exchange may be, each with the reason.

use std::time::Duration;

/// The bounds of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For resolving, connecting and the TLS handshake together.
    pub connect: Duration,
    /// From sending until status and headers are there.
    pub head: Duration,
    /// From sending until the whole answer is there.
    pub whole: Duration,
    /// The body of an answer.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Three lost first packets of a TCP handshake (1 + 2 + 4 s) and a slow certificate check.
            connect: Duration::from_secs(10),
            // Load balancers commonly give up on their server after 60 s: later there is no answer to wait for.
            head: Duration::from_secs(60),
            // A megabyte over a slow mobile line. What takes longer is work for a job with an id.
            whole: Duration::from_secs(120),
            // An answer is one line of at most 4 MiB to the agent, and text grows when it is put into JSON.
            answer_bytes: 1 << 20,
        }
    }
}

/// The headers of an answer: ten times what servers send, and a bound on what a hostile one can make us keep.
pub(crate) const ANSWER_HEAD_BYTES: usize = 64 * 1024;

/// The headers an agent may set, and their size; servers commonly refuse heads beyond 8 to 16 KiB.
pub(crate) const ASK_HEADERS: usize = 64;
pub(crate) const ASK_HEADER_BYTES: usize = 8 * 1024;

/// The query, for the same reason.
pub(crate) const ASK_QUERY_BYTES: usize = 8 * 1024;

/// The body: what one line of the agent's protocol can carry.
pub(crate) const ASK_BODY_BYTES: usize = 4 << 20;

/// Addresses of one host that are tried; more would only share the time among attempts that each get too little.
pub(crate) const ADDRESSES: usize = 4;
