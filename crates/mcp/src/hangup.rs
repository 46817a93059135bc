//! Sees the two ends of a connection as the kernel tells them, without reading and without writing.
//!
//! Neither end may be found out by the way: a reader that waits for room in its out-queue does not read, and an
//! idle writer does not write. So a copy of the descriptor is watched, whose readiness is its own: clearing it
//! takes no event away from the reader or the writer.

use std::{io, os::fd::AsFd};

use tokio::{io::Interest, net::UnixStream};

/// Watches one connection.
#[derive(Debug)]
pub(crate) struct Watch {
    copy: UnixStream,
}

impl Watch {
    pub(crate) fn new(stream: &UnixStream) -> io::Result<Self> {
        let copy = stream.as_fd().try_clone_to_owned()?;
        let copy = UnixStream::from_std(copy.into())?;
        Ok(Self { copy })
    }

    /// Waits until the client can send no more: it shut its writing down, or closed the socket.
    pub(crate) async fn input_ended(&self) -> io::Result<()> {
        while !self.copy.ready(Interest::READABLE).await?.is_read_closed() {
            // Bytes have come, which are the reader's; the next wake is for what comes after them.
            self.wait_for_more(Interest::READABLE);
        }
        Ok(())
    }

    /// Waits until the client can receive no more: it closed the socket.
    pub(crate) async fn hung_up(&self) -> io::Result<()> {
        while !self.copy.ready(Interest::WRITABLE).await?.is_write_closed() {
            self.wait_for_more(Interest::WRITABLE);
        }
        Ok(())
    }

    /// Clears what is ready now, as a read or a write that found nothing to do would.
    fn wait_for_more(&self, interest: Interest) {
        let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        drop(self.copy.try_io(interest, nothing));
    }
}
