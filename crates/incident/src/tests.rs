//! Incidents about real processes, with an authority that does as it is told.

use model::{CallState, Exit, SessionId};
use serde_json::{Value, json};

use crate::{
    Absent, AuthorityLevel, Case, Desk, IncidentError, Probed, Stage, State, View,
    fixture::{Fake, ProcEyes, Scene, brief, call, gentle, operator, wall},
    list, preserve, resume,
};

mod closing;
mod processes;
mod storage;

pub(super) fn session() -> SessionId {
    SessionId::from_bytes([1; 10])
}

pub(super) fn json(case: &Case) -> Value {
    serde_json::to_value(View::of(case)).unwrap()
}

#[test]
fn a_run_whose_call_was_refused_and_whose_process_ended_is_contained() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.calls = vec![call(1, CallState::Answered, 90, 40)];
    let held = scene.program("");
    let pid = held.pid();
    scene.authority.watched = vec![pid];

    let done = scene.contain(&[pid], &gentle());

    assert_eq!(done.state(), State::Contained);
    assert_eq!(done.state().exit(), Exit::Done);
    assert!(scene.authority.alive_at_confirm[&pid]);
    let shown = json(done.case());
    assert_eq!(shown["schema"], "lych.incident/v1");
    assert_eq!(
        shown["confirmation"],
        json!({"kind": "refused", "by": "own_attempt", "seq": 60, "why": null})
    );
    assert_eq!(shown["follow_up"], json!([]));
    assert_eq!(shown["verify"]["verdict"], "intact_pinned");
    let row = &shown["rows"][0];
    assert_eq!(row["session_id"], session().to_string());
    assert_eq!(row["authorization"], "revoked");
    assert_eq!(row["last_success_at"], json!(wall(91)));
    assert_eq!(
        row["last_attempt_call"],
        json!(call(1, CallState::Answered, 90, 40).id)
    );
    assert_eq!(row["target"]["class"], "builds");
    assert_eq!(row["result"]["outcome"], "answered");
    assert_eq!(
        row["client_lost"],
        json!({"at": wall(100), "source": "holder_exited"})
    );
    assert_eq!(row["last_action_started_at"], json!(wall(90)));
    assert_eq!(row["revoked_at"], json!(wall(200)));
    assert_eq!(row["revocation"]["operator"]["presence"], "tty");
    assert_eq!(row["termination"]["signal"], "SIGTERM");
    assert_eq!(row["termination"]["result"], "gone");
}

#[test]
fn the_steps_are_taken_and_kept_in_their_order() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    let words: Vec<&str> = done.case().steps().map(|step| step.body.word()).collect();
    assert_eq!(
        words,
        [
            "preserve",
            "attribute",
            "revoke",
            "confirm",
            "terminate",
            "reconcile",
            "record"
        ]
    );
    for file in [
        "01-snapshot.json",
        "01-findings.json",
        "05-terminate-intent.json",
        "07-verify.txt",
    ] {
        assert!(done.case().folder().join(file).exists(), "{file}");
    }
}

#[test]
fn without_a_refusal_the_processes_are_ended_and_the_result_is_partial() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.refusal = None;
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(done.state(), State::Partial);
    assert_eq!(done.state().exit(), Exit::Negative);
    let shown = json(done.case());
    assert_eq!(shown["confirmation"]["kind"], "not_observed");
    assert_eq!(shown["rows"][0]["termination"]["result"], "gone");
    assert_eq!(shown["follow_up"][0]["id"], "look:refusal");
}

#[test]
fn where_the_survivor_does_not_ask_our_own_probe_confirms_and_is_named_as_the_weaker_proof() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.refusal = None;
    scene.authority.probed = Probed::Refused(61);
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(done.state(), State::Contained);
    let shown = json(done.case());
    assert_eq!(shown["confirmation"]["kind"], "refused");
    assert_eq!(shown["confirmation"]["by"], "probe");
    assert_eq!(shown["confirmation"]["seq"], 61);
}

#[test]
fn a_survivor_that_asked_by_itself_is_not_asked_for() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.probed = Probed::Refused(61);
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(json(done.case())["confirmation"]["by"], "own_attempt");
    assert!(!scene.authority.asked.contains(&"probe".to_owned()));
}

#[test]
fn a_probe_that_was_not_refused_confirms_nothing_and_says_why() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.refusal = None;
    scene.authority.probed = Probed::Otherwise("the gate would have let it through".to_owned());
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    let shown = json(done.case());
    let why = shown["confirmation"]["why"].as_str().unwrap();
    assert!(why.contains("no call of the run came"), "{why}");
    assert!(why.contains("would have let it through"), "{why}");
    assert_eq!(done.state(), State::Partial);
}

#[test]
fn a_process_that_never_used_our_gate_is_partial_and_its_own_secrets_must_be_rotated() {
    let mut scene = Scene::new(Fake::empty());
    let held = scene.program("");
    let mut selection = scene.select(&[held.pid()]);
    selection.subjects[0].reach.level = AuthorityLevel::Held;
    selection.subjects[0].reach.secrets = vec!["GITHUB_TOKEN".into()];
    let home = scene.world.home().clone();
    let preserved = preserve(&home, selection, &mut scene.desk()).unwrap();

    let done = scene.go_on(Stage::Preserved(preserved), &gentle()).unwrap();

    assert_eq!(done.state(), State::Partial);
    let shown = json(done.case());
    assert_eq!(shown["confirmation"]["kind"], "no_path_of_ours");
    assert_eq!(shown["rows"][0]["session_id"], Value::Null);
    assert_eq!(
        shown["follow_up"][0]["id"],
        format!("rotate:GITHUB_TOKEN@{}", held.pid())
    );
    assert!(!scene.authority.asked.contains(&"revoke".to_owned()));
}

#[test]
fn a_call_of_unknown_outcome_keeps_a_run_from_being_contained_until_it_is_reconciled() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.calls = vec![call(1, CallState::Unresolved, 99, 40)];
    let held = scene.program("");
    let done = scene.contain(&[held.pid()], &gentle());
    assert_eq!(done.state(), State::Partial);
    let id = done.case().id();
    assert!(
        json(done.case())["follow_up"][0]["id"]
            .as_str()
            .unwrap()
            .starts_with("reconcile:")
    );
    drop(done);

    scene.authority.calls = vec![call(1, CallState::Reconciled, 99, 40)];
    let Stage::Recorded(recorded) = resume(scene.world.home(), id).unwrap() else {
        panic!("it has a record");
    };
    let again = recorded.again().unwrap();
    let done = scene.go_on(again, &gentle()).unwrap();

    assert_eq!(done.state(), State::Contained);
    assert_eq!(done.case().follow_up(), []);
}

#[test]
fn without_a_daemon_everything_is_kept_and_nothing_is_called_confirmed() {
    let mut scene = Scene::new(Fake::empty());
    scene.authority.away = true;
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(done.state(), State::Partial);
    let shown = json(done.case());
    assert_eq!(shown["rows"][0]["termination"]["result"], "gone");
    assert_eq!(
        shown["rows"][0]["session_id"]["unknown"],
        "no daemon: it is away"
    );
    assert_eq!(shown["verify"]["unknown"], "no daemon: it is away");
    assert_eq!(shown["steps"][0]["anchored"], Value::Null);
}

#[test]
fn a_revocation_that_fails_stops_the_incident_before_any_signal() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.revoke_fails = true;
    let mut held = scene.program("");
    let selection = scene.select(&[held.pid()]);
    let home = scene.world.home().clone();
    let preserved = preserve(&home, selection, &mut scene.desk()).unwrap();
    let id = preserved.case().id();

    let refused = scene
        .go_on(Stage::Preserved(preserved), &brief())
        .unwrap_err();

    assert!(matches!(refused, IncidentError::Unanswered(_)));
    assert_eq!(held.ended(), None);
    assert_eq!(storage::place(&resume(&home, id).unwrap()), 2);
}

#[test]
fn a_refusal_that_comes_while_the_process_ends_confirms_as_well() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let refusal = scene.authority.refusal.take();
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    assert!(!confirmed.confirmation().is_refused());

    scene.authority.refusal = refusal;
    let done = scene.go_on(Stage::Confirmed(confirmed), &gentle()).unwrap();

    assert_eq!(done.state(), State::Contained);
}

#[test]
fn an_incident_without_a_process_cannot_be_opened() {
    let mut scene = Scene::new(Fake::empty());
    let selection = scene.select(&[]);
    let home = scene.world.home().clone();

    let refused = preserve(&home, selection, &mut scene.desk()).unwrap_err();

    assert!(matches!(refused, IncidentError::NoSubject));
    assert_eq!(list(&home).unwrap(), []);
}

#[test]
fn an_absent_authority_leaves_every_question_open() {
    let mut scene = Scene::new(Fake::empty());
    let held = scene.program("");
    let selection = scene.select(&[held.pid()]);
    let home = scene.world.home().clone();
    let mut desk = Desk {
        clock: &sys::clock::SystemClock,
        authority: &mut Absent::because("not installed"),
        eyes: &mut ProcEyes,
        operator: operator(),
    };

    let attributed = preserve(&home, selection, &mut desk)
        .unwrap()
        .attribute(&mut desk)
        .unwrap();

    let shown = json(attributed.case());
    assert_eq!(shown["state"], "open");
    assert_eq!(shown["confirmation"], Value::Null);
    assert_eq!(shown["rows"][0]["termination"], Value::Null);
}

#[test]
fn a_run_of_which_no_process_is_left_still_has_a_row() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.calls = vec![call(1, CallState::Unresolved, 90, 40)];
    let mut selection = scene.select(&[]);
    selection.session = Some(session());
    let home = scene.world.home().clone();
    let preserved = preserve(&home, selection, &mut scene.desk()).unwrap();

    let done = scene.go_on(Stage::Preserved(preserved), &gentle()).unwrap();

    assert_eq!(done.state(), State::Partial);
    let row = &json(done.case())["rows"][0];
    assert_eq!(row["session_id"], session().to_string());
    assert_eq!(row["result"]["outcome"], "unresolved");
    assert!(row["server"]["unknown"].is_string());
}

#[test]
fn a_revocation_that_holds_but_is_not_recorded_confirms_nothing() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.unrecorded = true;
    let held = scene.program("");

    let done = scene.contain(&[held.pid()], &gentle());

    assert_eq!(done.state(), State::Partial);
    let shown = json(done.case());
    assert_eq!(shown["confirmation"]["kind"], "not_observed");
    assert_eq!(shown["rows"][0]["revoked_at"], json!(wall(200)));
    let missing = shown["missing"].as_array().unwrap();
    assert!(missing.contains(&json!("the revocation is not recorded")));
}
