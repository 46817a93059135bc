//! Giving up the oldest of the log: when an operator says so, and by itself; on record, and never what is needed.

use std::fs;

use testkit::{Deadline, Target, wait_until};

use crate::{
    agent::Agent,
    gate::Gate,
    log::{audit, verify},
    operator::Line,
};

#[test]
fn the_oldest_segments_are_given_up_on_record_and_only_when_they_need_not_be_kept() {
    let gate = Gate::before(Target::start());
    fill_with_calls(&gate);
    let before = segments(&gate);
    assert!(before >= 2, "{before} segments");

    drop(audit(&gate, &["prune"]).expect_code(0));
    assert_eq!(
        segments(&gate),
        before,
        "nothing is ninety days old, nor a gibibyte long"
    );
    drop(audit(&gate, &["prune", "--bytes", "1"]).expect_code(0));

    assert_eq!(segments(&gate), 1);
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["prunes"].as_array().map(Vec::len),
        Some(1),
        "{report:#}"
    );
    assert!(report["first_seq"].as_u64() > Some(1), "{report:#}");
    gate.close();
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 0, "{report:#}");
    drop(gate.open_daemon());
}

#[test]
fn what_must_be_kept_and_cannot_be_carried_over_is_not_given_up() {
    let gate = Gate::before(Target::start());
    // Steps of incidents are kept for ever.
    Line::open(&gate.world).fill_segments(2);
    let before = segments(&gate);

    let refused = audit(&gate, &["prune", "--bytes", "1"]).expect_code(6);

    assert!(refused.stderr.contains("still needed"), "{refused:?}");
    assert_eq!(segments(&gate), before);
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn pruning_without_the_right_to_it_or_with_a_wrong_number_changes_nothing() {
    let gate = Gate::before(Target::start());
    drop(audit(&gate, &["prune", "--days", "x"]).expect_code(2));
    drop(audit(&gate, &["prune", "--bytes", "-1"]).expect_code(2));
    drop(gate.world.run(["lock"]).expect_code(0));
    drop(audit(&gate, &["prune"]).expect_code(4));
    gate.close();
    drop(audit(&gate, &["prune"]).expect_code(5));
}

/// A policy that keeps no more of the log than one segment.
const SHORT: &str = "admission = \"allow\"\n[log]\nkeep_bytes = 16777216\n";

#[test]
fn what_is_beyond_the_configured_length_is_given_up_without_a_word_from_anybody() {
    let gate = Gate::before(Target::start());
    fill_with_calls(&gate);
    let usual = gate.world.run(["status", "--json"]).expect_code(0).json();
    assert_eq!(
        usual["log"]["keep"],
        serde_json::json!({"days": 90, "bytes": 1 << 30})
    );

    gate.apply(SHORT);

    wait_until("the first segment to go", Deadline::usual(), || {
        segments(&gate) == 1
    });
    let status = gate.world.run(["status"]).expect_code(0).stdout;
    assert!(status.contains("at most 16 MiB"), "{status}");
    gate.close();
    let (report, code) = verify(&gate, &[]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["prunes"].as_array().map(Vec::len), Some(1));
    assert!(report["first_seq"].as_u64() > Some(1), "{report:#}");
}

#[test]
fn what_an_incident_refers_to_is_not_given_up_by_itself_however_long_the_log_is() {
    let gate = Gate::before(Target::start());
    Agent::open(&gate.world).call("GET", "/r/first");
    let run = gate.only_run();
    drop(
        gate.world
            .run(["incident", "open", "--session", &run])
            .expect_code(0),
    );
    fill_with_calls(&gate);
    let before = segments(&gate);

    gate.apply(SHORT);

    wait_until(
        "the daemon to say that it keeps it",
        Deadline::usual(),
        || {
            fs::read_to_string(gate.world.home().daemon_log())
                .is_ok_and(|said| said.contains("an incident refers to record"))
        },
    );
    assert_eq!(segments(&gate), before);
    let (report, code) = verify(&gate, &[]);
    assert_eq!((code, &report["first_seq"]), (0, &1.into()), "{report:#}");
}

#[test]
fn so_little_as_cannot_be_kept_is_refused_and_nothing_changes() {
    let gate = Gate::before(Target::start());
    gate.world.write("config.toml", "[log]\nkeep_days = 0\n");

    let refused = gate.world.run(["channels", "apply"]).expect_code(2);

    assert!(
        refused.stderr.contains("line 2: keep_days cannot be 0"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("at least 1"), "{refused:?}");
}

fn segments(gate: &Gate) -> usize {
    let folder = gate.world.home().audit().join("seg");
    let names = fs::read_dir(folder).expect("segments").flatten();
    names
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "seg"))
        .count()
}

/// Makes calls with the longest paths until the second segment has begun.
fn fill_with_calls(gate: &Gate) {
    let mut agent = Agent::open(&gate.world);
    let path = format!("/r/{}", "x".repeat(4_000));
    while segments(gate) < 2 {
        let asked: Vec<u64> = (0..60).map(|_| agent.send("GET", &path)).collect();
        for _ in asked {
            assert!(agent.next(Deadline::usual()).is_some(), "no answer");
        }
    }
}
