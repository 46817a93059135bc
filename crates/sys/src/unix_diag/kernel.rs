//! The question behind the list of unix sockets.

use std::io;

use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::TCP_LISTEN,
    unix::{
        ShowFlags, StateFlags, UnixRequest, UnixResponse,
        nlas::{Nla, UnixDiagName},
    },
};

use super::UnixSocket;
use crate::sock_diag::dump;

/// Asks for all of them and puts the answers together.
pub(super) fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    let request = SockDiagMessage::UnixRequest(UnixRequest {
        state_flags: StateFlags::all(),
        inode: 0,
        show_flags: ShowFlags::NAME | ShowFlags::PEER | ShowFlags::RQLEN,
        cookie: [0xff; 8],
    });
    let mut sockets = Vec::new();
    dump(request, |answer| {
        if let SockDiagMessage::UnixResponse(answer) = answer {
            sockets.push(socket_of(*answer));
        }
    })?;
    Ok(sockets)
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

/// `RCV_SHUTDOWN` and `SEND_SHUTDOWN` of the kernel's `include/net/sock.h`.
const RECEIVE_SHUTDOWN: u8 = 1;
const SEND_SHUTDOWN: u8 = 2;
