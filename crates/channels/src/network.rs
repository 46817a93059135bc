//! From a name to a connection: the addresses are asked for once, checked, and dialled as they are.

use std::{io, net::SocketAddr};

use model::Destination;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::{ConnectError, limits::ADDRESSES};

/// What names and addresses mean: the operating system's network, or a test's.
pub(crate) trait Network: Sync {
    /// Returns the addresses of `host`, with `port`.
    fn lookup(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;

    /// Connects to an address.
    fn dial(&self, address: SocketAddr) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// The operating system's network.
pub(crate) struct System;

impl Network for System {
    async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// Connects to the first address of `base` that takes it.
pub(crate) async fn dial(
    base: &Destination,
    network: &impl Network,
    deadline: Instant,
) -> Result<TcpStream, ConnectError> {
    let addresses = addresses(base, network).await?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for (index, address) in addresses.iter().enumerate() {
        // What is left is shared, so that one silent address does not use up the time of the others.
        let others = u32::try_from(addresses.len() - index).unwrap_or(1);
        let share = deadline.saturating_duration_since(Instant::now()) / others;
        match timeout(share, network.dial(*address)).await {
            Ok(Ok(stream)) => {
                // A request is one short burst: waiting for more of it would only delay it.
                stream.set_nodelay(true).ok();
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(ConnectError::Tcp {
        destination: base.clone(),
        source: last,
    })
}

/// Returns the addresses to dial. There is one question: what was checked is what is dialled, and a resolver
/// that would answer otherwise a moment later is not asked then.
async fn addresses(
    of: &Destination,
    network: &impl Network,
) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Some(ip) = of.ip() {
        return Ok(vec![SocketAddr::new(ip, of.port())]);
    }
    let found = network.lookup(&of.host(), of.port()).await;
    let mut found = found.map_err(|source| ConnectError::Resolve {
        destination: of.clone(),
        source,
    })?;
    let all = found.len();
    found.retain(|address| of.admits(address.ip()));
    // A name with one foot in here is played with: dialling its other addresses would only make it try again.
    if found.is_empty() || found.len() < all {
        return Err(ConnectError::AddressRefused(of.clone()));
    }
    found.truncate(ADDRESSES);
    Ok(found)
}
