//! Sockets, files and closer looks of a look that is being made up.

use std::net::SocketAddr;

use inventory::{
    Access, Activity, Closer, Descriptor, Holder, Pipe, Process, Socket, Target, TcpSocket,
    TcpState, UdpSocket,
};
use model::{Foreign, Known};

use super::Values;

impl Values {
    /// Opens something.
    pub(crate) fn open(self, (pid, fd): (u32, u32), target: Target) -> Self {
        self.but(pid, |process| {
            let Known::Yes(open) = &mut process.descriptors else {
                panic!("pid {pid} shows no descriptors");
            };
            open.push(Descriptor {
                fd,
                access: None,
                close_on_exec: None,
                locked: false,
                wakes_in_ms: None,
                named_pipe: None,
                target,
            });
        })
    }

    /// Changes a pipe.
    pub(crate) fn but_pipe(mut self, inode: u64, change: impl FnOnce(&mut Pipe)) -> Self {
        change(self.pipes.get_mut(&inode).unwrap());
        self
    }

    /// Lets another process hold an end of a pipe.
    pub(crate) fn hold_pipe(self, inode: u64, (pid, fd): (u32, u32), access: Access) -> Self {
        let held = self.but_pipe(inode, |pipe| pipe.holders.push(Holder { pid, fd, access }));
        let opened = held.open((pid, fd), Target::Pipe { inode });
        opened.but(pid, |process| {
            let Known::Yes(open) = &mut process.descriptors else {
                return;
            };
            open.last_mut().unwrap().access = Some(access);
        })
    }

    /// Says what a closer look saw; without it, that there is no variable and nothing else is known.
    pub(crate) fn closer(self, pid: u32, change: impl FnOnce(&mut Closer)) -> Self {
        self.but(pid, |process| change(details(process)))
    }

    /// Adds a unix socket, connected to the one of that number if it has a peer.
    pub(crate) fn unix(
        mut self,
        inode: u64,
        peer: Option<u64>,
        name: Option<&str>,
        holder: Option<(u32, u32)>,
    ) -> Self {
        let socket = Socket {
            inode,
            peer,
            no_more_input: false,
            no_more_output: false,
            listening: peer.is_none(),
            name: name.map(Foreign::from),
            unread_bytes: 0,
            holders: holder
                .map(|(pid, fd)| Holder {
                    pid,
                    fd,
                    access: Access::ReadWrite,
                })
                .into_iter()
                .collect(),
        };
        self.sockets.insert(inode, socket);
        match holder {
            Some(holder) => self.open(holder, Target::Socket { inode }),
            None => self,
        }
    }

    /// Changes a unix socket.
    pub(crate) fn but_unix(mut self, inode: u64, change: impl FnOnce(&mut Socket)) -> Self {
        change(self.sockets.get_mut(&inode).unwrap());
        self
    }

    /// Adds a TCP socket; without a holder it has no inode any more.
    pub(crate) fn tcp(
        self,
        holder: Option<(u32, u32)>,
        state: TcpState,
        local: &str,
        remote: &str,
    ) -> Self {
        self.tcp_that(holder, state, (local, remote), None)
    }

    /// The same with what it has done.
    pub(crate) fn tcp_that(
        mut self,
        holder: Option<(u32, u32)>,
        state: TcpState,
        (local, remote): (&str, &str),
        activity: Option<Activity>,
    ) -> Self {
        let inode = holder.map_or(0, |(pid, fd)| u64::from(pid) * 1000 + u64::from(fd));
        self.tcp.push(TcpSocket {
            inode,
            network_namespace: 1,
            state,
            local: address(local),
            remote: address(remote),
            activity,
        });
        match holder {
            Some(holder) => self.open(holder, Target::Socket { inode }),
            None => self,
        }
    }

    /// Adds a UDP socket.
    pub(crate) fn udp(mut self, (pid, fd): (u32, u32), local: &str, remote: Option<&str>) -> Self {
        let inode = u64::from(pid) * 1000 + u64::from(fd);
        self.udp.push(UdpSocket {
            inode,
            network_namespace: 1,
            local: address(local),
            remote: remote.map(address),
        });
        self.open((pid, fd), Target::Socket { inode })
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn details(process: &mut Process) -> &mut Closer {
    let text = r#"{"cgroup": {"unknown": "x"}, "env_names": [], "exe_id": {"unknown": "x"},
        "network_namespace": {"unknown": "x"}, "withstands_term": {"unknown": "x"}}"#;
    let none = || serde_json::from_str(text).unwrap();
    process.closer.get_or_insert_with(none)
}
