//! A connection for one request: resolved once, dialled at the address that was checked, TLS up, and silent.

use std::{fmt, io, pin::Pin, sync::Arc};

use authz::Permit;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use model::{CallId, Destination};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout_at},
};

use crate::{
    Limits, Plan,
    limits::ANSWER_HEAD_BYTES,
    network::{self, Network},
    tls,
};

/// A connection that is up and over which nothing of the request has left.
pub struct Connection<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) call: CallId,
    pub(crate) limits: Limits,
    pub(crate) line: Line,
}

/// What a request goes over.
pub(crate) struct Line {
    pub(crate) sender: http1::SendRequest<Full<Bytes>>,
    pub(crate) driver: Driver,
}

/// Why there is no connection. Nothing of the request left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The call's authority was taken away meanwhile.
    #[error("the call was cancelled before its connection was up")]
    Cancelled,
    /// It took too long.
    #[error("no connection to {0} in time")]
    TimedOut(Destination),
    /// The name has no address.
    #[error("the name of {destination} could not be resolved")]
    Resolve {
        /// Where to.
        destination: Destination,
        /// The resolver's answer.
        source: io::Error,
    },
    /// The name leads, also, to addresses that are not called on its word.
    #[error(
        "{0} leads to this machine, into a private network it is not sealed for (https+private://), or to an address that is never called"
    )]
    AddressRefused(Destination),
    /// No address took the connection.
    #[error("{destination} takes no connection")]
    Tcp {
        /// Where to.
        destination: Destination,
        /// What the last address said.
        source: io::Error,
    },
    /// The other side could not prove who it is, or speaks no TLS that we do.
    #[error("no trusted TLS connection to {destination}")]
    Tls {
        /// Where to.
        destination: Destination,
        /// Why not.
        source: io::Error,
    },
    /// There is nothing to check certificates against.
    #[error("no certificate authorities were found on this system, and the channel names none")]
    NoRoots,
    /// The HTTP library would not take the connection.
    #[error("the connection to {0} could not be prepared")]
    Handshake(Destination),
}

/// What moves the bytes; it runs only while somebody waits for something of this connection.
pub(crate) struct Driver(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

/// Opens the connection for a planned call. Nothing of the request is sent.
///
/// # Errors
/// There is none; the call can be withdrawn.
pub async fn connect<'a>(
    permit: &Permit,
    plan: &'a Plan,
    limits: &Limits,
) -> Result<Connection<'a>, ConnectError> {
    connect_by(&network::System, permit, plan, limits).await
}

/// The same over a network of the caller's choice.
pub(crate) async fn connect_by<'a>(
    network: &impl Network,
    permit: &Permit,
    plan: &'a Plan,
    limits: &Limits,
) -> Result<Connection<'a>, ConnectError> {
    let deadline = Instant::now() + limits.connect;
    let open = timeout_at(deadline, open(plan, network, deadline));
    let line = tokio::select! {
        biased;
        () = permit.cancelled().cancelled() => return Err(ConnectError::Cancelled),
        opened = open => opened.map_err(|_| ConnectError::TimedOut(plan.base.clone()))??,
    };
    Ok(Connection::over(line, permit, plan, limits))
}

async fn open(
    plan: &Plan,
    network: &impl Network,
    deadline: Instant,
) -> Result<Line, ConnectError> {
    let tcp = network::dial(&plan.base, network, deadline).await?;
    let stream: Box<dyn Stream> = if plan.base.is_tls() {
        Box::new(secure(plan, tcp).await?)
    } else {
        Box::new(tcp)
    };
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(ANSWER_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| ConnectError::Handshake(plan.base.clone()))?;
    let run = async move {
        // Whoever waits for the answer is told of the error there.
        connection.await.ok();
    };
    Ok(Line {
        sender,
        driver: Driver(Some(Box::pin(run))),
    })
}

async fn secure(
    plan: &Plan,
    tcp: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ConnectError> {
    let config = tls::config(plan.ca.as_deref()).ok_or(ConnectError::NoRoots)?;
    let failed = |source| ConnectError::Tls {
        destination: plan.base.clone(),
        source,
    };
    let name =
        ServerName::try_from(plan.base.host()).map_err(|error| failed(io::Error::other(error)))?;
    tokio_rustls::TlsConnector::from(Arc::clone(&config))
        .connect(name, tcp)
        .await
        .map_err(failed)
}

impl<'a> Connection<'a> {
    pub(crate) fn over(line: Line, permit: &Permit, plan: &'a Plan, limits: &Limits) -> Self {
        Self {
            plan,
            call: permit.call(),
            limits: *limits,
            line,
        }
    }
}

impl Line {
    /// Takes a look at what has come over it, and tells whether the next request can go.
    pub(crate) async fn is_idle(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.driver.run() => {}
            () = std::future::ready(()) => {}
        }
        self.sender.is_ready()
    }
}

impl Driver {
    /// Waits for `work` while moving the connection's bytes.
    pub(crate) async fn alongside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                out = &mut work => return out,
                () = self.run() => {}
            }
        }
    }

    /// Runs the connection to its end, and for ever after that: only `work` ends then.
    async fn run(&mut self) {
        match &mut self.0 {
            Some(connection) => connection.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}
