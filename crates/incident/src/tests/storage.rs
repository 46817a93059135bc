//! What a crash, a second worker or a changed file does to an incident.

use std::{fs, time::Duration};

use model::CallState;

use super::session;
use crate::{
    Case, Desk, IncidentError, Stage, State,
    fixture::{Fake, Scene, call, gentle},
    list, preserve, resume,
};

#[test]
fn a_crash_after_any_step_costs_nothing() {
    for stop_after in 1..=6 {
        let mut scene = Scene::new(Fake::with_run(session()));
        scene.authority.calls = vec![call(1, CallState::Answered, 90, 40)];
        let held = scene.program("");
        let selection = scene.select(&[held.pid()]);
        let home = scene.world.home().clone();
        let id = {
            let desk = &mut scene.desk();
            let mut stage = Stage::Preserved(preserve(&home, selection, desk).unwrap());
            for _ in 1..stop_after {
                stage = one_step(stage, desk);
            }
            list(&home).unwrap()[0]
            // Here the program dies: nothing is left of it but the folder.
        };

        let stage = resume(&home, id).unwrap();
        assert_eq!(place(&stage), stop_after);
        let done = scene.go_on(stage, &gentle()).unwrap();

        assert_eq!(done.state(), State::Contained, "after step {stop_after}");
        assert_eq!(done.case().steps().count(), 7, "after step {stop_after}");
    }
}

fn one_step(stage: Stage, desk: &mut Desk<'_>) -> Stage {
    match stage {
        Stage::Preserved(now) => Stage::Attributed(now.attribute(desk).unwrap()),
        Stage::Attributed(now) => Stage::Revoked(now.revoke("left over", desk).unwrap()),
        Stage::Revoked(now) => Stage::Confirmed(now.confirm(Duration::ZERO, desk).unwrap()),
        Stage::Confirmed(now) => Stage::Terminated(now.terminate(&gentle(), desk).unwrap()),
        Stage::Terminated(now) => Stage::Reconciled(now.reconcile(desk).unwrap()),
        Stage::Reconciled(now) => Stage::Recorded(now.record(desk).unwrap()),
        Stage::Recorded(done) => Stage::Recorded(done),
    }
}

pub(super) fn place(stage: &Stage) -> usize {
    match stage {
        Stage::Preserved(_) => 1,
        Stage::Attributed(_) => 2,
        Stage::Revoked(_) => 3,
        Stage::Confirmed(_) => 4,
        Stage::Terminated(_) => 5,
        Stage::Reconciled(_) => 6,
        Stage::Recorded(_) => 7,
    }
}

#[test]
fn a_step_that_a_crash_cut_off_is_taken_again_under_a_new_number() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    let (id, folder) = (confirmed.case.id(), confirmed.case.folder().to_owned());
    drop(confirmed);
    fs::write(folder.join("05-terminate-intent.json"), "{}").unwrap();
    fs::write(folder.join("05-terminate.json"), "{\"schema\": \"lych.inc").unwrap();

    let home = scene.world.home().clone();
    let stage = resume(&home, id).unwrap();
    assert_eq!(place(&stage), 4);
    let done = scene.go_on(stage, &gentle()).unwrap();

    assert_eq!(done.case().cut_off(), [5]);
    let numbers: Vec<u16> = done.case().steps().map(|step| step.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(Case::read(&home, id).unwrap().cut_off(), [5]);
}

#[test]
fn a_changed_step_is_found() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.away = true;
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    let (id, folder) = (confirmed.case.id(), confirmed.case.folder().to_owned());
    drop(confirmed);
    let file = folder.join("02-attribute.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("it is away", "it was away")).unwrap();

    let refused = resume(scene.world.home(), id).unwrap_err();

    assert!(matches!(refused, IncidentError::Damaged { path, .. } if path == file));
}

#[test]
fn the_last_step_cannot_be_changed_unnoticed_once_it_is_anchored() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    let (id, folder) = (confirmed.case.id(), confirmed.case.folder().to_owned());
    drop(confirmed);
    let file = folder.join("04-confirm.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("own_attempt", "probe")).unwrap();

    let refused = Case::read(scene.world.home(), id).unwrap_err();

    assert!(matches!(refused, IncidentError::Damaged { .. }));
}

#[test]
fn a_step_of_a_later_form_is_not_taken_for_one_that_was_cut_off() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    let (id, folder) = (confirmed.case.id(), confirmed.case.folder().to_owned());
    drop(confirmed);
    fs::write(
        folder.join("05-terminate.json"),
        "{\"schema\": \"lych.incident-step/v9\"}",
    )
    .unwrap();

    let refused = resume(scene.world.home(), id).unwrap_err();

    assert!(matches!(refused, IncidentError::Damaged { .. }));
}

#[test]
fn two_cannot_work_on_one_incident() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    let id = confirmed.case.id();

    let second = resume(scene.world.home(), id).unwrap_err();

    assert!(matches!(second, IncidentError::Busy(_)));
    assert!(Case::read(scene.world.home(), id).is_ok());
}

#[test]
fn steps_that_were_taken_without_a_daemon_are_anchored_later_and_marked_late() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.away = true;
    let held = scene.program("");
    let confirmed = scene.confirmed(&[held.pid()]);
    assert!(
        confirmed
            .case
            .stored()
            .iter()
            .all(|stored| stored.anchor.is_none())
    );

    scene.authority.away = false;
    scene.go_on(Stage::Confirmed(confirmed), &gentle()).unwrap();

    let late: Vec<bool> = scene
        .authority
        .anchored
        .iter()
        .map(|(_, late)| *late)
        .collect();
    assert_eq!(late, [true, true, true, true, false, false, false]);
    assert_eq!(scene.authority.anchored[0].0, "01-preserve");
}
