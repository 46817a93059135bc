//! What records and the log say of runs, on values: what is gone above a client, what was revoked, who has a number now.

use model::{Known, LinkRole, LinkSeen, SessionState, Wall};

use crate::values::{Values, in_use, link};

/// A shim (200) of a client (100) below something else (40), which is not there any more.
fn gone_above(line: &str) -> Values {
    let shim = in_use().but(200, |one| one.command = Known::Yes(vec!["lych".into()]));
    let mut values = shim.recorded((100, 100), &[]);
    values.launches[0].chain = vec![
        link((200, 200), LinkRole::Shim, "lych mcp"),
        link((100, 100), LinkRole::Holder, "client"),
        link((40, 40), LinkRole::Above, line),
    ];
    values
}

/// The same in order.
fn nothing_gone() -> Values {
    gone_above("harness").with(40, 50, 40, "harness")
}

#[test]
fn a_run_of_two_connections_is_one_finding_and_one_that_ended_none() {
    let mut two = gone_above("harness")
        .with(201, 100, 201, "lych mcp")
        .served(201, 100);
    let mut second = two.launches[0].clone();
    second.chain[0] = link((201, 201), LinkRole::Shim, "lych mcp");
    two.launches.push(second);

    let findings = two.judge().findings;

    let roots: Vec<u32> = findings.iter().map(|one| one.root.pid).collect();
    assert_eq!(roots, [100]);
    let ended = gone_above("harness").logged(SessionState::Ended, None);
    assert_eq!(ended.words(200), "LIVE proven 200");
}

#[test]
fn what_the_log_says_of_a_run_in_order_is_told_and_only_a_revocation_asserted() {
    let logged = |state| nothing_gone().logged(state, Some(Wall::from_millis(7)));
    let orphan = "LOGICAL_ORPHAN inferred 200";
    let suspect = "LOGICAL_ORPHAN_SUSPECT suspected 200";
    assert_eq!(logged(SessionState::Live).words(200), "LIVE proven 200");
    assert_eq!(logged(SessionState::Revoked).words(200), orphan);
    assert_eq!(logged(SessionState::Lost).words(200), suspect);
    let mut by_record = nothing_gone();
    by_record.launches[0].revoked_at = Some(Wall::from_millis(7));
    assert_eq!(by_record.words(200), orphan);
    let since = |state| {
        let owner = logged(state).told(200).unwrap().owner.unwrap();
        owner.stuck_since.and_then(|since| since.value().copied())
    };
    assert_eq!(since(SessionState::Stuck), Some(Wall::from_millis(7)));
    assert_eq!(since(SessionState::Lost), None);
}

#[test]
fn a_launcher_between_shim_and_client_may_end() {
    let mut launched = nothing_gone();
    let launcher = link((150, 150), LinkRole::Above, "npx");
    launched.launches[0].chain.insert(1, launcher);
    assert_eq!(launched.words(200), "LIVE proven 200");
}

#[test]
fn a_dead_links_run_is_a_logical_orphan_but_for_a_shell_that_a_person_left() {
    let chain = gone_above;
    assert_eq!(chain("harness").words(200), "LOGICAL_ORPHAN inferred 100");
    assert_eq!(chain("bash -i").words(200), "LIVE proven 200");
    assert_eq!(chain("sh -c run").words(200), "LOGICAL_ORPHAN inferred 100");
    assert_eq!(nothing_gone().words(200), "LIVE proven 200");
    let later_holder = chain("harness").with(40, 50, 41, "stranger");
    assert_eq!(later_holder.words(200), "LOGICAL_ORPHAN inferred 100");
    let mut noted = nothing_gone();
    let process = noted.launches[0].chain[2].process.clone();
    noted.launches[0].lost.push(LinkSeen {
        process,
        at: Wall::from_millis(5),
    });
    assert_eq!(noted.words(200), "LOGICAL_ORPHAN inferred 100");
    let mut unknown = chain("harness");
    unknown.log.read = true;
    assert_eq!(unknown.words(200), "LOGICAL_ORPHAN_SUSPECT suspected 100");
    for hidden in [
        chain("harness").gap("other processes"),
        chain("harness").gap_of(7, "process"),
    ] {
        assert_eq!(hidden.words(200), "LIVE proven 200");
    }
    let elsewhere = chain("harness").gap_of(7, "descriptors");
    assert_eq!(elsewhere.words(200), "LOGICAL_ORPHAN inferred 100");
}

#[test]
fn a_later_holder_of_a_number_is_told_of_unless_nobody_expects_the_earlier_one() {
    let named = |start: u64| Values::new().recorded((90, 20), &[(91, start, 90, "x")]);
    let later = || named(30).with(91, 50, 31, "stranger");
    assert_eq!(later().words(91), "RECYCLED proven 91");
    assert_eq!(named(31).with(91, 50, 31, "x").words(91), "nothing");
    let mut closed = later();
    closed.launches[0].transport_closed_at = Some(Wall::from_millis(9));
    assert_eq!(closed.words(91), "nothing");
    let mut other_boot = later();
    other_boot.launches[0].children[0].process.id.boot_id = "another".to_owned();
    assert_eq!(other_boot.words(91), "nothing");
    let mut found_dead = later();
    let process = found_dead.launches[0].children[0].process.clone();
    found_dead.launches[0].lost.push(LinkSeen {
        process,
        at: Wall::from_millis(5),
    });
    assert_eq!(found_dead.words(91), "nothing");
    let mut above = later();
    above.launches[0].children.clear();
    above.launches[0].chain[0] = link((91, 30), LinkRole::Above, "x");
    assert_eq!(above.words(91), "nothing");
    let mut holder = later();
    holder.launches[0].children.clear();
    holder.launches[0].chain[0] = link((91, 30), LinkRole::Holder, "x");
    assert_eq!(holder.words(91), "RECYCLED proven 91");
}
