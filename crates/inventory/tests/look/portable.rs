//! The look through ps(1) and lsof(8): the forms of a Mac from recorded text, the agreement with the native look live.

use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream, UdpSocket},
    process::{Command, Stdio},
};

use inventory::{
    Access, Listing, Live, Snapshot, Target, TcpState, closer, parse_portable, take, take_portable,
};
use model::Wall;

const MAC: Listing<'static> = Listing {
    ps: include_str!("samples/mac-ps.txt"),
    lsof: include_str!("samples/mac-lsof.txt"),
};

fn mac() -> Snapshot {
    parse_portable(MAC, Wall::from_millis(1_800_000_000_000), 501)
}

fn stdin_of(snapshot: &Snapshot, pid: u32) -> u64 {
    let open = snapshot.process(pid).unwrap().descriptor(0).unwrap();
    let (Target::Pipe { inode } | Target::Socket { inode }) = open.target else {
        panic!("{open:?}");
    };
    inode
}

#[test]
fn on_a_mac_each_end_of_a_pipe_is_found_by_its_own_handle() {
    let seen = mac();

    let pipe = seen.pipe(stdin_of(&seen, 4400)).unwrap();

    let ends = |writers: bool| -> Vec<(u32, u32)> {
        let of = |access: Access| {
            if writers {
                access.writes()
            } else {
                access.reads()
            }
        };
        let holders = pipe.holders.iter().filter(|holder| of(holder.access));
        holders.map(|holder| (holder.pid, holder.fd)).collect()
    };
    assert_eq!(ends(true), [(501, 31)]);
    assert_eq!(ends(false), [(4400, 0)]);
}

#[test]
fn on_a_mac_the_other_end_of_a_socketpair_is_named_or_gone() {
    let seen = mac();

    let held = seen.socket(stdin_of(&seen, 4300)).unwrap();
    let other = seen.socket(held.peer.unwrap()).unwrap();
    assert_eq!(other.holders[0].pid, 501);
    let gone = seen.socket(stdin_of(&seen, 4242)).unwrap();
    assert_eq!(gone.peer, Some(0));
}

#[test]
fn a_process_that_lsof_does_not_list_is_not_readable_and_never_without_descriptors() {
    let seen = mac();

    let logd = seen.process(88).unwrap();
    assert_eq!(logd.descriptors.why(), Some("lsof does not list it"));
    assert!(!seen.complete && !seen.all_holders_seen());
    assert!(seen.unreadable.iter().any(|gap| gap.pid == Some(88)));
}

#[test]
fn on_a_mac_a_pipe_that_names_no_other_end_has_none_if_others_name_theirs() {
    let seen = mac();
    let of = |pid| {
        seen.pipe(stdin_of(&seen, pid))
            .unwrap()
            .hung_up
            .value()
            .copied()
    };
    let silent: String = MAC
        .lsof
        .lines()
        .map(|line| {
            let line = if line.starts_with("n->0x") { "n" } else { line };
            format!("{line}\n")
        })
        .collect();
    let listing = Listing {
        lsof: &silent,
        ..MAC
    };
    let nothing_told = parse_portable(listing, Wall::from_millis(1_800_000_000_000), 501);

    assert_eq!((of(4400), of(4500)), (None, Some(true)));
    let writes = seen.process(4500).unwrap().descriptor(1).unwrap();
    let Target::Pipe { inode } = writes.target else {
        panic!("{writes:?}");
    };
    let told = &seen.pipe(inode).unwrap().hung_up;
    assert!(told.value().is_none(), "who writes is not asked who writes");
    assert!(
        nothing_told
            .pipes
            .iter()
            .all(|pipe| pipe.hung_up.value().is_none())
    );
}

#[test]
fn a_unix_socket_is_connected_alone_or_waiting_in_the_words_of_either_system() {
    let socket = |state: &str, name: &str| {
        let lsof = format!("p4400\nf3\nau\ntunix\nd0xfeed0001\nn{name}\nTST={state}\n");
        let listing = Listing { lsof: &lsof, ..MAC };
        let seen = parse_portable(listing, Wall::from_millis(1_800_000_000_000), 501);
        let socket = seen.socket(0xfeed_0001).unwrap();
        assert_eq!(socket.no_more_input, socket.peer == Some(0));
        assert_eq!(socket.no_more_output, socket.peer == Some(0));
        let name = socket.name.as_ref().map(|name| name.raw().to_owned());
        (socket.peer, socket.listening, name)
    };
    let named = |name: &str| Some(name.to_owned());

    assert_eq!(socket("", "->0xfeed0002"), (Some(0xfeed_0002), false, None));
    assert_eq!(socket("", "->(none)"), (Some(0), false, None));
    let linux = "type=STREAM ->INO=77 1,x,3u (CONNECTED)";
    assert_eq!(socket("CONNECTED", linux), (Some(77), false, None));
    assert_eq!(socket("CONNECTED", "type=STREAM"), (Some(0), false, None));
    let by_name = socket("", "@own type=STREAM (CONNECTED)");
    assert_eq!(by_name, (Some(0), false, named("@own")));
    assert_eq!(socket("", "type=DGRAM"), (None, false, None));
    let path = "/tmp/own type=STREAM";
    assert_eq!(socket("LISTEN", path), (None, true, named("/tmp/own")));
    let waits = socket("", "/tmp/own type=STREAM (LISTEN)");
    assert_eq!(waits, (None, true, named("/tmp/own")));
}

#[test]
fn a_descriptor_has_the_access_of_its_letter_and_a_terminal_is_known_by_either_name() {
    let open = |letter: &str, kind: &str, name: &str| {
        let lsof = format!("p4400\nf3\na{letter}\nt{kind}\nD0x1000004\ni77\nn{name}\n");
        let listing = Listing { lsof: &lsof, ..MAC };
        let seen = parse_portable(listing, Wall::from_millis(1_800_000_000_000), 501);
        seen.process(4400).unwrap().descriptor(3).unwrap().clone()
    };

    for (letter, access) in [
        ("r", Some(Access::Read)),
        ("w", Some(Access::Write)),
        ("u", Some(Access::ReadWrite)),
        (" ", None),
    ] {
        assert_eq!(open(letter, "REG", "/tmp/x").access, access, "{letter}");
    }
    for (name, is_one) in [
        ("/dev/ttys001", true),
        ("/dev/pts/3", true),
        ("/dev/random", false),
    ] {
        let target = open("u", "CHR", name).target;
        assert_eq!(matches!(target, Target::Terminal { .. }), is_one, "{name}");
    }
}

#[test]
fn on_a_mac_a_named_pipe_is_told_by_its_file_system_and_number() {
    let file = |kind: &str, name: &str| {
        let lsof = format!(
            "p4400\nf0\nar\nt{kind}\nD0x1000004\ni77\nn{name}\n\
             p4500\nf9\naw\nt{kind}\nD0x1000004\ni77\nn{name}\n\
             p501\nf9\naw\nt{kind}\nD0x1000005\ni77\nn{name}\n"
        );
        let listing = Listing { lsof: &lsof, ..MAC };
        let seen = parse_portable(listing, Wall::from_millis(1_800_000_000_000), 501);
        let pipe = seen
            .process(4400)
            .unwrap()
            .descriptor(0)
            .unwrap()
            .named_pipe?;
        let holders = seen.named_pipe(pipe);
        Some(holders.map(|one| (one.pid, one.fd, one.access)).collect())
    };

    let ends = vec![(4400, 0, Access::Read), (4500, 9, Access::Write)];
    assert_eq!(file("FIFO", "/tmp/requests"), Some(ends));
    assert_eq!(file("REG", "/tmp/requests"), None);
}

#[test]
fn on_a_mac_what_is_no_file_and_no_socket_is_the_kernels() {
    let seen = mac();

    let client = seen.process(501).unwrap();
    let names: Vec<String> = client
        .open()
        .filter_map(|open| match &open.target {
            Target::Kernel { name } => Some(name.to_string()),
            Target::Socket { .. }
            | Target::Pipe { .. }
            | Target::Null
            | Target::Terminal { .. }
            | Target::File { .. } => None,
        })
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[0], "count=0, state=0xa");
    let ended = seen.process(4600).unwrap();
    assert!(ended.is_zombie() && !ended.kernel_thread);
    assert!(ended.descriptors.value().is_some());
}

#[test]
fn starts_are_told_in_the_ticks_of_the_other_way_of_looking() {
    let seen = mac();

    let start = |pid| seen.process(pid).unwrap().id.start_ticks;

    // 8:09 and 8:10 minutes ago.
    assert_eq!(start(4300) - start(4400), 100);
}

#[test]
fn on_a_mac_a_process_has_its_tcp_and_udp_sockets() {
    let seen = mac();

    let server = seen.process(4300).unwrap();
    let has = |inode| {
        server
            .open()
            .any(|open| open.target == Target::Socket { inode })
    };
    let tcp: Vec<(TcpState, String)> = seen
        .tcp
        .iter()
        .filter(|socket| has(socket.inode))
        .map(|socket| (socket.state, socket.local.to_string()))
        .collect();
    assert_eq!(
        tcp,
        [
            (TcpState::Established, "127.0.0.1:50000".to_owned()),
            (TcpState::Listen, "[::]:8080".to_owned()),
            (TcpState::Close, "0.0.0.0:0".to_owned())
        ]
    );
    assert!(has(seen.udp[0].inode));
}

/// What one look says of the sockets of this very process.
fn own_inet(seen: &Snapshot) -> BTreeSet<String> {
    let own = seen.process(std::process::id()).unwrap();
    let inodes: BTreeSet<u64> = own
        .open()
        .filter_map(|open| match open.target {
            Target::Socket { inode } => Some(inode),
            Target::Pipe { .. }
            | Target::Null
            | Target::Terminal { .. }
            | Target::File { .. }
            | Target::Kernel { .. } => None,
        })
        .collect();
    let of_tcp = seen.tcp.iter().filter(|one| inodes.contains(&one.inode));
    let of_udp = seen.udp.iter().filter(|one| inodes.contains(&one.inode));
    let tcp =
        of_tcp.map(|one| format!("{} {:?} {} {}", one.inode, one.state, one.local, one.remote));
    let udp = of_udp.map(|one| format!("{} udp {} {:?}", one.inode, one.local, one.remote));
    tcp.chain(udp).collect()
}

#[test]
fn both_ways_of_looking_see_the_same_tcp_and_udp_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let six = TcpListener::bind("[::1]:0");
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
    connected.connect(plain.local_addr().unwrap()).unwrap();

    let live = Live::open().unwrap();
    let mut native = take(&live).unwrap();
    closer(&live, &mut native, &BTreeSet::from([std::process::id()]));
    let portable = take_portable(Wall::from_millis(1_800_000_000_000), 0).unwrap();

    let seen = own_inet(&portable);
    assert_eq!(seen.len(), 5 + usize::from(six.is_ok()), "{seen:?}");
    assert_eq!(seen, own_inet(&native));
    drop((client, accepted));
}

#[test]
fn both_ways_of_looking_name_the_same_holders() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut paired = Command::new("cat")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();

    let native = take(&Live::open().unwrap()).unwrap();
    let portable = take_portable(Wall::from_millis(1_800_000_000_000), 0).unwrap();

    for seen in [&native, &portable] {
        let process = seen.process(child.id()).unwrap();
        assert_eq!(process.ppid, std::process::id());
        let pipe = seen.pipe(stdin_of(seen, child.id())).unwrap();
        let writers: Vec<u32> = pipe.writers().map(|holder| holder.pid).collect();
        assert_eq!(writers, [std::process::id()]);
        let socket = seen.socket(stdin_of(seen, paired.id())).unwrap();
        let other = seen.socket(socket.peer.unwrap()).unwrap();
        let holders: Vec<u32> = other.holders.iter().map(|holder| holder.pid).collect();
        assert_eq!(holders, [std::process::id()]);
    }
    assert_eq!(
        stdin_of(&native, child.id()),
        stdin_of(&portable, child.id())
    );
    drop((child.stdin.take(), ours));
    child.wait().unwrap();
    paired.wait().unwrap();
}
