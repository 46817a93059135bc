//! Notes, files and the end of an incident.

use super::{json, session};
use crate::{
    IncidentError, State, View,
    fixture::{Fake, Scene, gentle},
};

#[test]
fn an_incident_does_not_close_over_open_follow_up_without_a_reason() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.refusal = None;
    let held = scene.program("");
    let done = scene.contain(&[held.pid()], &gentle());
    let mut case = done.case;

    let refused = case.close(None, &mut scene.desk()).unwrap_err();
    assert!(matches!(
        refused,
        IncidentError::OpenFollowUp { open: 1, .. }
    ));
    case.note(
        "the token is gone",
        Some("look:refusal".to_owned()),
        &mut scene.desk(),
    )
    .unwrap();
    case.close(None, &mut scene.desk()).unwrap();

    assert!(case.is_closed());
    assert_eq!(View::of(&case).state, State::Closed);
    let after = case.note("more", None, &mut scene.desk()).unwrap_err();
    assert!(matches!(after, IncidentError::Closed(_)));
}

#[test]
fn open_follow_up_can_be_accepted_with_a_reason_that_is_kept() {
    let mut scene = Scene::new(Fake::with_run(session()));
    scene.authority.refusal = None;
    let held = scene.program("");
    let mut case = scene.contain(&[held.pid()], &gentle()).case;

    case.close(Some("a test account"), &mut scene.desk())
        .unwrap();

    let shown = json(&case);
    assert_eq!(shown["state"], "closed");
    assert_eq!(shown["steps"][7]["note"], "a test account");
}

#[test]
fn a_note_cannot_finish_what_is_not_asked_for() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let mut case = scene.contain(&[held.pid()], &gentle()).case;

    let refused = case.note("done", Some("rotate:X@1".to_owned()), &mut scene.desk());

    assert!(matches!(refused, Err(IncidentError::NoSuchFollowUp { .. })));
}

#[test]
fn the_name_of_an_attached_file_cannot_leave_the_folder() {
    let mut scene = Scene::new(Fake::with_run(session()));
    let held = scene.program("");
    let mut case = scene.confirmed(&[held.pid()]).case;

    case.attach("../../x\u{1b}y.png", b"image", &mut scene.desk())
        .unwrap();

    assert!(case.folder().join("05-attached-.._.._x_y.png").exists());
}
