//! Helpers that outlived what started them, on values: what ties them, and what does not.

use model::Foreign;

use crate::values::{SRV, Values};

/// A worker (300) adopted by init, which a record saw below server 200 of client 100.
fn worker() -> Values {
    Values::new().with(300, 1, 300, "worker").recorded(
        (100, 100),
        &[(200, 200, 100, SRV), (300, 300, 200, "worker")],
    )
}

#[test]
fn a_worker_whose_recorded_parent_is_dead_is_left_over_and_as_sure_as_its_client_is_dead() {
    assert_eq!(worker().words(300), "LEFTOVER_CHILD inferred 300");
    let client_lives = worker().with(100, 50, 100, "client");
    assert_eq!(client_lives.words(300), "LEFTOVER_CHILD suspected 300");
    let mut unknown_to_log = worker();
    unknown_to_log.log.read = true;
    assert_eq!(unknown_to_log.words(300), "LEFTOVER_CHILD suspected 300");
    let later_holder = worker().with(200, 50, 201, "other");
    assert_eq!(later_holder.words(300), "LEFTOVER_CHILD inferred 300");
    let ended = worker()
        .with(200, 50, 200, SRV)
        .but(200, |one| one.stat = "Z".to_owned());
    assert_eq!(ended.words(300), "LEFTOVER_CHILD inferred 300");
}

#[test]
fn a_worker_is_no_leftover_where_it_was_meant_to_be_or_not_the_one_on_record() {
    let in_place = worker().with(90, 50, 20, "x").but(300, |one| one.ppid = 90);
    assert_eq!(in_place.words(300), "nothing");
    let another = worker().with(300, 1, 301, "worker");
    assert_eq!(another.words(300), "RECYCLED proven 300");
    let parent_lives = worker().with(200, 50, 200, "sh");
    assert_eq!(parent_lives.words(300), "nothing");
    let ended = worker().but(300, |one| one.stat = "Z".to_owned());
    assert_eq!(ended.words(300), "ZOMBIE proven 300");
    let kernels = worker().but(300, |one| one.kernel_thread = true);
    assert_eq!(kernels.words(300), "nothing");
}

#[test]
fn a_worker_that_was_adopted_before_it_was_seen_goes_by_its_client() {
    let seen_late = || {
        Values::new()
            .with(300, 1, 300, "worker")
            .recorded((100, 100), &[(300, 300, 1, "worker")])
    };
    assert_eq!(seen_late().words(300), "LEFTOVER_CHILD inferred 300");
    let client_lives = seen_late().with(100, 50, 100, "client");
    assert_eq!(client_lives.words(300), "nothing");
}

#[test]
fn a_worker_of_a_server_that_still_runs_belongs_to_it_with_all_below() {
    let with_server = worker()
        .with(200, 1, 200, SRV)
        .abandoned(200)
        .with(310, 300, 310, "child");
    let found = with_server.told(310).unwrap();

    assert_eq!(found.verdict.word(), "OS_ORPHAN");
    assert_eq!(found.root.pid, 200);
    let members: Vec<u32> = found.members.iter().map(|one| one.pid).collect();
    assert_eq!(members, [300, 310]);
}

#[test]
fn a_leftover_and_what_is_below_it_are_one_finding() {
    let report = worker().with(310, 300, 310, "child").judge();

    let roots: Vec<u32> = report.findings.iter().map(|one| one.root.pid).collect();
    assert_eq!(roots, [300]);
    assert_eq!(report.findings[0].members[0].pid, 310);
}

#[test]
fn two_leftovers_are_two_findings() {
    let two = worker().with(400, 1, 400, "worker").recorded(
        (101, 100),
        &[(201, 200, 101, SRV), (400, 400, 201, "worker")],
    );

    let roots: Vec<u32> = two
        .judge()
        .findings
        .iter()
        .map(|one| one.root.pid)
        .collect();
    assert_eq!(roots, [300, 400]);
}

#[test]
fn a_worker_of_the_servers_own_line_goes_by_its_record_and_without_one_is_unknown() {
    let same_line = || Values::new().with(300, 1, 300, SRV);
    let below = |parent: u32| {
        let seen = [(200, 200, 100, "launcher"), (300, 300, parent, SRV)];
        same_line().recorded((100, 100), &seen)
    };
    assert_eq!(same_line().words(300), "UNKNOWN unknown 300");
    assert_eq!(below(200).words(300), "LEFTOVER_CHILD inferred 300");
    let lives = below(200).with(200, 50, 200, "launcher");
    assert_eq!(lives.words(300), "LIVE inferred 300");
}

#[test]
fn a_browser_with_a_servers_profile_is_left_over_and_a_persons_own_is_not() {
    let browser = |folder: &str, ppid: u32| {
        let line = format!("chrome --user-data-dir={folder}");
        Values::new()
            .with(90, 50, 20, "x")
            .with(300, ppid, 300, &line)
            .words(300)
    };
    let of_a_server = "/home/user/.cache/ms-playwright/mcp-chrome";
    assert_eq!(browser(of_a_server, 1), "LEFTOVER_CHILD suspected 300");
    assert_eq!(browser(of_a_server, 90), "nothing");
    assert_eq!(browser("/home/user/.config/chrome", 1), "nothing");
}

/// A container (300) below its engine's shim (290).
fn container(shim: &str) -> Values {
    Values::new()
        .with(290, 1, 2000, shim)
        .with(300, 290, 2001, "python3 -m boxed")
}

const RUN: &str = "docker run -i mcp/boxed";

#[test]
fn a_container_goes_by_the_container_client_that_was_started_last_before_it() {
    let dead = |start: u64, line: &'static str| {
        container("containerd-shim").recorded((100, 100), &[(200, start, 100, line)])
    };
    let left = "LEFTOVER_CHILD suspected 300";
    assert_eq!(dead(1500, RUN).words(300), left);
    assert_eq!(dead(1001, RUN).words(300), left);
    assert_eq!(dead(1000, RUN).words(300), "nothing");
    assert_eq!(dead(2002, RUN).words(300), "nothing");
    assert_eq!(dead(1500, "docker ps").words(300), "nothing");
    assert_eq!(dead(1500, "x run").words(300), "nothing");
    assert_eq!(dead(1500, "python3 /usr/bin/docker run x").words(300), left);
    let mut other_boot = dead(1500, RUN);
    let seen = &mut other_boot.launches[0].children[0];
    seen.process.id.boot_id = "another".to_owned();
    assert_eq!(other_boot.words(300), "nothing");
    let no_engine = container("bash").recorded((100, 100), &[(200, 1500, 100, RUN)]);
    assert_eq!(no_engine.words(300), "nothing");
    let of_podman = container("conmon").recorded((100, 100), &[(200, 1500, 100, "podman run x")]);
    assert_eq!(of_podman.words(300), left);
}

#[test]
fn a_container_of_a_living_client_is_in_use_with_it_and_never_taken_for_a_dead_ones() {
    let both = |living: u64| {
        container("containerd-shim")
            .recorded((100, 100), &[(200, 1500, 100, RUN)])
            .with(110, 50, 100, "client")
            .with(210, 110, living, RUN)
            .served(210, 110)
            .words(300)
    };
    assert_eq!(both(1600), "LIVE proven 210");
    assert_eq!(
        both(1500),
        "LIVE proven 210",
        "of two as near the living has it"
    );
    assert_eq!(both(1400), "LEFTOVER_CHILD suspected 300");
    let ended = container("containerd-shim")
        .recorded((100, 100), &[(200, 1500, 100, RUN)])
        .with(200, 50, 1500, RUN)
        .but(200, |one| one.stat = "Z".to_owned());
    assert_eq!(ended.words(300), "LEFTOVER_CHILD suspected 300");
}

#[test]
fn what_may_not_be_read_is_unknown_and_no_leftover() {
    let hidden = worker().but(300, |one| {
        one.descriptors = model::Known::unknown("permission denied");
    });
    assert_eq!(hidden.words(300), "UNKNOWN unknown 300");
    let renamed = worker().but(300, |one| one.comm = Foreign::from("innocent"));
    assert_eq!(renamed.words(300), "LEFTOVER_CHILD inferred 300");
}

#[test]
fn what_has_ended_and_the_kernels_own_are_of_no_unit_whatever_a_record_says() {
    let worker = |change: fn(&mut inventory::Process)| {
        let values = Values::new()
            .with(100, 50, 100, "client")
            .with(200, 100, 200, SRV)
            .served(200, 100)
            .with(300, 1, 300, "worker")
            .but(300, change)
            .recorded((100, 100), &[(300, 300, 200, "worker")]);
        values.words(300)
    };
    assert_eq!(worker(|_| ()), "LIVE proven 200");
    let ended = worker(|one| one.stat = "Z".to_owned());
    assert_eq!(ended, "ZOMBIE proven 300");
    assert_eq!(worker(|one| one.kernel_thread = true), "nothing");
}
