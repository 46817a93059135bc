//! One connection's socket: its two halves and a watch on its ends, all woken for what comes in and for the end alone.
//!
//! A socket that is watched for room wakes us whenever the client has read something, which is after every answer. So
//! there is a watch for room only while there is none.
//!
//! Neither end may be found out by the way: a reader that waits for room in its out-queue does not read, and an
//! idle writer does not write. So a copy of the descriptor is watched, whose readiness is its own: clearing it
//! takes no event away from the reader or the writer.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net,
    sync::Arc,
};

use tokio::{
    io::{Interest, Ready, unix::AsyncFd},
    net::UnixStream,
};

/// What reads.
#[derive(Debug)]
pub(crate) struct Reading(Arc<AsyncFd<net::UnixStream>>);

/// What writes. When it is dropped nothing more can be written.
#[derive(Debug)]
pub(crate) struct Writing(Arc<AsyncFd<net::UnixStream>>);

/// What sees the ends, without reading and without writing.
#[derive(Debug)]
pub(crate) struct Watch(AsyncFd<net::UnixStream>);

/// Takes a socket apart.
///
/// # Errors
/// It cannot be watched: the system is out of descriptors.
pub(crate) fn split(stream: UnixStream) -> io::Result<(Reading, Writing, Watch)> {
    let stream = stream.into_std()?;
    let copy = stream.try_clone()?;
    let both = Arc::new(watched(stream, Interest::READABLE)?);
    // Its end is told in any case (epoll_ctl(2): `EPOLLHUP` need not be asked for), and first to who came last:
    // what a client sent before it closed is then not begun.
    let watch = Watch(watched(copy, Interest::READABLE)?);
    Ok((Reading(Arc::clone(&both)), Writing(both), watch))
}

#[expect(
    deprecated,
    reason = "its unsafe successor asks for a descriptor that stays the same, which a `UnixStream` is"
)]
fn watched(stream: net::UnixStream, interest: Interest) -> io::Result<AsyncFd<net::UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}

impl Reading {
    /// Reads some bytes; none at the end.
    pub(crate) async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let Ok(read) = ready.try_io(|socket| socket.get_ref().read(into)) else {
                continue;
            };
            // Fewer than were asked for: there are no more now (epoll(7)), and more will be told.
            if read.as_ref().is_ok_and(|count| *count < into.len()) {
                ready.clear_ready();
            }
            return read;
        }
    }
}

impl Writing {
    /// Writes some bytes, once there is room.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self.0.get_ref();
        match socket.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
        let room = watched(socket.try_clone()?, Interest::WRITABLE)?;
        loop {
            let mut ready = room.writable().await?;
            if let Ok(written) = ready.try_io(|socket| socket.get_ref().write(bytes)) {
                return written;
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Fails only if the client has gone, who then needs no end.
        drop(self.0.get_ref().shutdown(Shutdown::Write));
    }
}

impl Watch {
    /// Waits until the client can send no more: it shut its writing down, or closed the socket.
    pub(crate) async fn input_ended(&self) -> io::Result<()> {
        self.until(Interest::READABLE, Ready::is_read_closed).await
    }

    /// Waits until the client can receive no more: it closed the socket.
    pub(crate) async fn hung_up(&self) -> io::Result<()> {
        self.until(Interest::WRITABLE, Ready::is_write_closed).await
    }

    async fn until(&self, interest: Interest, is_over: fn(Ready) -> bool) -> io::Result<()> {
        loop {
            let mut ready = self.0.ready(interest).await?;
            if is_over(ready.ready()) {
                return Ok(());
            }
            // Bytes have come, which are the reader's; the next wake is for what comes after them.
            ready.clear_ready();
        }
    }
}
