//! One question to the kernel's list of sockets, and all of its answers (sock_diag(7)).

use std::{io, os::fd::OwnedFd, time::Duration};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

/// Asks for all sockets that `request` describes, and hands over every answer.
pub(crate) fn dump(
    request: SockDiagMessage,
    mut take: impl FnMut(SockDiagMessage),
) -> io::Result<()> {
    let socket = ask(request)?;
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        let (length, whole) = recv(&socket, buffer.as_mut_slice(), RecvFlags::TRUNC)?;
        if whole > length {
            return Err(io::Error::other("an answer of the kernel was cut"));
        }
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let size = aligned(message.header.length)?;
            if let NetlinkPayload::Done(_) = message.payload {
                return Ok(());
            }
            if let NetlinkPayload::Error(error) = &message.payload {
                return Err(error.to_io());
            }
            if let NetlinkPayload::InnerMessage(answer) = message.payload {
                take(answer);
            }
            rest = rest.get(size..).unwrap_or_default();
        }
    }
}

fn ask(request: SockDiagMessage) -> io::Result<OwnedFd> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LONGEST_WAIT))?;
    send(&socket, &bytes, SendFlags::empty())?;
    Ok(socket)
}

/// Messages of one answer start at multiples of four bytes (netlink(7)).
fn aligned(length: u32) -> io::Result<usize> {
    let size = usize::try_from(length).unwrap_or(0).next_multiple_of(4);
    if size == 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a netlink message of no length",
        ));
    }
    Ok(size)
}

/// The kernel answers at once; a wait this long means that it does not answer at all.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
