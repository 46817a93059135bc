//! What became of the other end of a wire, on values: each way it can be known, and each way it cannot.

use inventory::{Access, Target};
use model::Known;
use verdict::{EndKind, EndState, Finding, Proof, TransportEnd};

use crate::{
    scene::evidence,
    values::{SRV, Values},
};

/// A server (200) below its client (100), without any wire.
fn bare() -> Values {
    Values::new()
        .with(100, 50, 100, "client")
        .with(200, 100, 200, SRV)
}

fn of(values: Values) -> Finding {
    values.told(200).unwrap()
}

fn known(end: &TransportEnd) -> (EndState, Option<Proof>) {
    (end.state, end.proof)
}

fn input(values: Values) -> (EndState, Option<Proof>) {
    known(&of(values).transport.stdin)
}

fn output(values: Values) -> (EndState, Option<Proof>) {
    known(&of(values).transport.stdout)
}

#[test]
fn a_pipe_is_at_its_end_if_it_says_so_or_all_that_could_hold_it_were_seen() {
    let hung_up = |values: Values, told| values.but_pipe(2000, |pipe| pipe.hung_up = told);
    let alone = || bare().abandoned(200);
    let held = || bare().served(200, 100);
    let not_asked = || Known::unknown("not asked");
    let scan = Some(Proof::HolderScan);
    let asked = Some(Proof::PipeHup);
    assert_eq!(input(alone()), (EndState::Eof, asked));
    assert_eq!(input(held()), (EndState::Open, scan));
    assert_eq!(input(hung_up(held(), not_asked())), (EndState::Open, scan));
    assert_eq!(
        input(hung_up(held(), Known::Yes(true))),
        (EndState::Eof, asked)
    );
    let unseen = || hung_up(alone(), Known::Yes(false));
    assert_eq!(input(unseen()), (EndState::Open, asked));
    assert!(evidence(&of(unseen())).contains("who holds it cannot be seen"));
    assert_eq!(unseen().words(200), "UNKNOWN unknown 200");
    assert_eq!(input(hung_up(alone(), not_asked())), (EndState::Eof, scan));
    let not_all_seen = || hung_up(alone(), not_asked()).gap("other processes");
    assert_eq!(input(not_all_seen()), (EndState::Unknown, None));
    assert_eq!(not_all_seen().words(200), "UNKNOWN unknown 200");
}

#[test]
fn a_pipe_that_is_written_to_is_never_asked_and_its_readers_are_those_that_take_it() {
    let scan = Some(Proof::HolderScan);
    assert_eq!(output(bare().served(200, 100)), (EndState::Open, scan));
    let alone = || bare().abandoned(200);
    assert_eq!(output(alone()), (EndState::Eof, scan));
    let gap = alone().gap("other processes");
    assert_eq!(output(gap), (EndState::Unknown, None));
    let unread = |told| {
        let values = bare().served(200, 100);
        let values = values.but_pipe(2001, |pipe| pipe.unread_bytes = told);
        of(values).transport.stdout.unread_bytes
    };
    assert_eq!(unread(Known::Yes(7)), Some(Known::Yes(7)));
    assert_eq!(unread(Known::unknown("not asked")), None);
    let waiting = bare().served(200, 100);
    let waiting = waiting.but_pipe(2000, |pipe| pipe.unread_bytes = Known::Yes(3));
    assert_eq!(
        of(waiting).transport.stdin.unread_bytes,
        Some(Known::Yes(3))
    );
}

#[test]
fn an_end_that_is_held_the_wrong_way_round_tells_nothing() {
    let turned = |fd: u32, access| {
        let values = bare().served(200, 100);
        values.but(200, |one| {
            let Known::Yes(open) = &mut one.descriptors else {
                return;
            };
            open.iter_mut().find(|open| open.fd == fd).unwrap().access = Some(access);
        })
    };
    let unknown = (EndState::Unknown, None);
    assert_eq!(input(turned(0, Access::Write)), unknown);
    assert_eq!(output(turned(1, Access::Read)), unknown);
    let both = (EndState::Open, Some(Proof::HolderScan));
    assert_eq!(input(turned(0, Access::ReadWrite)), both);
    assert_eq!(output(turned(1, Access::ReadWrite)), both);
}

/// A server on a pair of sockets, whose client has the other end of both, or nobody has.
fn on_sockets(peer: Option<u64>, holder: Option<(u32, u32)>) -> Values {
    let values = bare().unix(500, peer, None, Some((200, 0)));
    let values = match holder {
        Some(_) => values.unix(501, Some(500), None, holder),
        None => values,
    };
    values.open((200, 1), Target::Socket { inode: 500 })
}

#[test]
fn a_socket_is_at_its_end_if_its_peer_is_gone_or_has_shut_that_direction() {
    let diag = Some(Proof::UnixDiag);
    let client = Some((100, 9));
    let held = || on_sockets(Some(501), client);
    assert_eq!(input(held()), (EndState::Open, diag));
    assert_eq!(output(held()), (EndState::Open, diag));
    assert_eq!(held().words(200), "LIVE proven 200");
    assert_eq!(of(held()).transport.stdin.kind, EndKind::Socketpair);
    let gone = || on_sockets(Some(0), None);
    assert_eq!(
        (input(gone()), output(gone())),
        ((EndState::Eof, diag), (EndState::Eof, diag))
    );
    let no_input = || held().but_unix(500, |one| one.no_more_input = true);
    assert_eq!(input(no_input()), (EndState::Eof, diag));
    assert_eq!(output(no_input()), (EndState::Open, diag));
    let no_output = || held().but_unix(500, |one| one.no_more_output = true);
    assert_eq!(input(no_output()), (EndState::Open, diag));
    assert_eq!(output(no_output()), (EndState::Eof, diag));
}

#[test]
fn only_a_nameless_pair_of_sockets_is_a_wire() {
    let client = Some((100, 9));
    let held = || on_sockets(Some(501), client);
    let kind = |values: Values| of(values).transport.stdin.kind;
    let own_name = held().but_unix(500, |one| one.name = Some("/tmp/own".into()));
    assert_eq!(kind(own_name), EndKind::Socket);
    let others_name = held().but_unix(501, |one| one.name = Some("/tmp/own".into()));
    assert_eq!(kind(others_name), EndKind::Socket);
    let never_connected = || on_sockets(None, None);
    assert_eq!(kind(never_connected()), EndKind::Socket);
    assert_eq!(input(never_connected()), (EndState::Unknown, None));
    let unlisted = bare().open((200, 0), Target::Socket { inode: 7 });
    let end = of(unlisted).transport.stdin;
    assert_eq!((end.kind, end.state), (EndKind::Socket, EndState::Unknown));
}

#[test]
fn what_waits_in_a_socket_is_what_its_reader_has_not_read() {
    let held = on_sockets(Some(501), Some((100, 9)))
        .but_unix(500, |one| one.unread_bytes = 3)
        .but_unix(501, |one| one.unread_bytes = 4);
    let transport = of(held).transport;
    assert_eq!(transport.stdin.unread_bytes, Some(Known::Yes(3)));
    assert_eq!(transport.stdout.unread_bytes, Some(Known::Yes(4)));
}

#[test]
fn a_plain_file_is_no_wire_and_nobody_has_to_hold_its_other_end() {
    let path = "/tmp/requests".into();
    let deleted = false;
    let values = bare().open((200, 0), Target::File { path, deleted });
    let end = of(values.clone()).transport.stdin;
    assert_eq!((end.kind, end.state), (EndKind::File, EndState::Open));
    assert_eq!(values.words(200), "UNKNOWN unknown 200");
}

/// A server with nothing at 0 and 1 and an orphan's two ends at these.
fn moved(input: u32, output: u32) -> Values {
    Values::new()
        .with(200, 1, 200, SRV)
        .open((200, 0), Target::Null)
        .pipe(2000, None, Some((200, input)))
        .pipe(2001, Some((200, output)), None)
}

#[test]
fn a_wire_that_was_moved_away_is_judged_where_it_is_and_proves_less() {
    assert_eq!(moved(5, 6).words(200), "OS_ORPHAN inferred 200");
    let text = evidence(&of(moved(5, 6)));
    assert!(
        text.contains("the other end of its descriptor 5 is gone"),
        "{text}"
    );
    let unknown = "UNKNOWN unknown 200";
    assert_eq!(moved(2, 6).words(200), unknown, "standard error is none");
    assert_eq!(moved(5, 2).words(200), unknown);
    let only_out = Values::new()
        .with(200, 1, 200, SRV)
        .open((200, 0), Target::Null)
        .pipe(2001, Some((200, 6)), None);
    assert_eq!(only_out.words(200), unknown);
}

#[test]
fn a_pipe_between_a_server_and_its_own_is_no_wire_that_was_moved() {
    let to_its_own = || {
        Values::new()
            .with(200, 1, 200, SRV)
            .open((200, 0), Target::Null)
            .with(201, 200, 210, "helper")
            .pipe(2010, Some((201, 1)), Some((200, 3)))
            .pipe(2011, Some((200, 4)), Some((201, 0)))
    };
    assert_eq!(to_its_own().words(200), "UNKNOWN unknown 200");
    let beside = to_its_own()
        .pipe(2020, None, Some((200, 5)))
        .pipe(2021, Some((200, 6)), None);
    let text = evidence(&of(beside));
    assert!(text.contains("descriptor 5 is gone"), "{text}");
}

#[test]
fn a_process_on_the_same_input_or_output_is_of_the_unit_and_one_on_the_same_file_is_not() {
    let unnamed = |values: Values| {
        let values = values.with(201, 200, 210, "inner");
        values.but(200, |one| one.command = Known::Yes(vec!["outer".into()]))
    };
    let left = || unnamed(Values::new().with(200, 1, 200, SRV).abandoned(200));
    let members = |values: Values| of(values).members.len();
    assert_eq!(members(left()), 0, "nothing ties it");
    let same_input = left().hold_pipe(2000, (201, 0), Access::Read);
    assert_eq!(members(same_input), 1);
    let same_output = left().hold_pipe(2001, (201, 1), Access::Write);
    assert_eq!(members(same_output), 1);
    let elsewhere = left().hold_pipe(2001, (201, 2), Access::Write);
    assert_eq!(members(elsewhere), 0, "standard error");
    let file = || Target::Kernel { name: "x".into() };
    let same_file = left().open((201, 1), file()).open((201, 0), file());
    assert_eq!(members(same_file), 0);
}

#[test]
fn what_was_started_with_other_arguments_is_looked_at_only_if_it_has_a_wire_or_hides_it() {
    let other = || {
        bare().but(200, |one| {
            let words = ["python3", "/opt/srv.py", "--http"];
            one.command = Known::Yes(words.map(Into::into).to_vec());
        })
    };
    assert_eq!(other().words(200), "nothing");
    assert_eq!(other().served(200, 100).words(200), "LIVE proven 200");
    let hidden = other().but(200, |one| one.descriptors = Known::unknown("denied"));
    assert_eq!(hidden.words(200), "UNKNOWN unknown 200");
}

#[test]
fn what_lost_both_ends_is_told_of_unless_it_has_ended_or_is_the_kernels() {
    let lost = |change: fn(&mut inventory::Process)| {
        let values = Values::new().with(200, 1, 200, "unnamed").abandoned(200);
        values.but(200, change).words(200)
    };
    assert_eq!(lost(|_| ()), "OS_ORPHAN inferred 200");
    assert_eq!(lost(|one| one.stat = "Z".to_owned()), "ZOMBIE proven 200");
    assert_eq!(lost(|one| one.kernel_thread = true), "nothing");
}

#[test]
fn a_process_whose_input_the_one_above_holds_is_of_its_unit_and_a_server_below_a_lost_relay_too() {
    let relay = |writer| {
        Values::new()
            .with(199, 1, 199, "relay")
            .abandoned(199)
            .with(300, 50, 30, "other")
            .with(200, 199, 200, "inner")
            .pipe(2000, Some((writer, 9)), Some((200, 0)))
    };
    assert_eq!(relay(199).words(200), "OS_ORPHAN inferred 199");
    assert_eq!(relay(300).words(200), "nothing", "another's");
    let server = |writer| {
        let words = SRV.split(' ').map(Into::into).collect();
        let values = relay(writer).but(200, |one| one.command = Known::Yes(words));
        values.words(200)
    };
    assert_eq!(server(199), "OS_ORPHAN proven 199");
    assert_eq!(server(300), "LIVE inferred 200");
}

#[test]
fn a_launcher_is_of_the_unit_of_what_it_launches_and_of_no_other_servers() {
    let boxed = "docker run -i mcp/boxed";
    let below = |line: &str| {
        let values = Values::new()
            .with(100, 50, 100, "client")
            .with(199, 100, 199, boxed)
            .served(199, 100)
            .with(200, 199, 200, line);
        values.served(200, 199).words(200)
    };
    assert_eq!(below(boxed), "LIVE proven 199");
    assert_eq!(below(SRV), "LIVE proven 200");
}
