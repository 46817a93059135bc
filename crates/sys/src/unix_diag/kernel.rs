//! The netlink conversation behind the list of unix sockets.

use std::{io, os::fd::OwnedFd, time::Duration};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::TCP_LISTEN,
    unix::{
        ShowFlags, StateFlags, UnixRequest, UnixResponse,
        nlas::{Nla, UnixDiagName},
    },
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use super::UnixSocket;

/// Asks for all of them and puts the answers together.
pub(super) fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    let socket = ask()?;
    let mut sockets = Vec::new();
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
                return Ok(sockets);
            }
            if let NetlinkPayload::Error(error) = &message.payload {
                return Err(error.to_io());
            }
            if let NetlinkPayload::InnerMessage(SockDiagMessage::UnixResponse(answer)) =
                message.payload
            {
                sockets.push(socket_of(*answer));
            }
            rest = rest.get(size..).unwrap_or_default();
        }
    }
}

fn ask() -> io::Result<OwnedFd> {
    let request = SockDiagMessage::UnixRequest(UnixRequest {
        state_flags: StateFlags::all(),
        inode: 0,
        show_flags: ShowFlags::NAME | ShowFlags::PEER | ShowFlags::RQLEN,
        cookie: [0xff; 8],
    });
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

fn socket_of(answer: UnixResponse) -> UnixSocket {
    let mut socket = UnixSocket {
        inode: u64::from(answer.header.inode),
        peer: None,
        no_more_input: false,
        no_more_output: false,
        listening: answer.header.state == TCP_LISTEN,
        name: None,
        unread_bytes: 0,
    };
    for attribute in answer.nlas {
        match attribute {
            Nla::Peer(inode) => socket.peer = Some(u64::from(inode)),
            Nla::Shutdown(bits) => {
                socket.no_more_input = bits & RECEIVE_SHUTDOWN != 0;
                socket.no_more_output = bits & SEND_SHUTDOWN != 0;
            }
            Nla::Name(name) => socket.name = Some(name_of(name)),
            Nla::ReceiveQueueLength(bytes, _) => socket.unread_bytes = u64::from(bytes),
            Nla::Vfs(_) | Nla::PendingConnections(_) | Nla::MemInfo(_) | Nla::Other(_) => {}
        }
    }
    socket
}

fn name_of(name: UnixDiagName) -> Vec<u8> {
    match name {
        UnixDiagName::Pathname(path) => path.into_encoded_bytes(),
        UnixDiagName::Abstract(name) => [b"@", name.as_slice()].concat(),
    }
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

/// `RCV_SHUTDOWN` and `SEND_SHUTDOWN` of the kernel's `include/net/sock.h`.
const RECEIVE_SHUTDOWN: u8 = 1;
const SEND_SHUTDOWN: u8 = 2;

/// The kernel answers at once; a wait this long means that it does not answer at all.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
