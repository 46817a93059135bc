//! The record as a person sees it, with text from outside that would rather look like something else.

use incident::{
    Acted, Anchored, CallRow, ClientLost, ConfirmationView, FollowUp, FollowUpKind, Named, Outcome,
    Place, RefusedBy, Row, State, StepView, Taken, Termination, View, Window,
};
use model::{
    CallId, Digest, Foreign, IncidentId, Known, Operator, Presence, RequestKey, SessionId, Wall,
};
use serde_json::json;

use super::{page, text};

fn at(second: u64) -> Wall {
    Wall::from_millis(1_772_334_000_000 + second * 1000)
}

fn operator() -> Operator {
    Operator {
        uid: 1000,
        login_uid: Some(1001),
        presence: Presence::Tty,
    }
}

fn rotate() -> FollowUp {
    FollowUp {
        id: "rotate:GITHUB_TOKEN@4711".to_owned(),
        kind: FollowUpKind::Rotate,
        what: "rotate or disable GITHUB_TOKEN: process 4711 held it itself".into(),
        pid: Some(4711),
        done: None,
    }
}

fn acted(path: &str) -> Acted {
    Acted {
        class: "builds".to_owned(),
        account: Known::Yes("https://ci.example.com/api/v2".into()),
        operation: Foreign::new(format!("force: POST {path}")),
    }
}

fn call(number: u8, window: Window, state: &str) -> CallRow {
    CallRow {
        id: CallId::from_bytes([number; 10]),
        window,
        state: state.to_owned(),
        attempted_at: at(u64::from(number)),
        cleared_at: None,
        settled_at: None,
        target: Known::Yes(acted("/forceschedulers/nightly")),
        key: Some(Known::Yes(RequestKey("k-77aa".to_owned()))),
        status: None,
        remote_id: None,
        why: None,
    }
}

fn row() -> Row {
    Row {
        observed_at: at(150),
        client: Known::Yes(Named {
            pid: 4700,
            command: vec!["claude".into()],
            reported: false,
        }),
        server: Known::Yes(Named {
            pid: 4711,
            command: vec![
                "node".into(),
                "server.js\u{1b}[2J\u{1b}[H\nincident i-0000000000000000  CONTAINED".into(),
                Foreign::new("x".repeat(70)),
            ],
            reported: false,
        }),
        parent_and_group: Known::Yes(Place {
            ppid: 1,
            pgid: 4711,
            sid: 4700,
            stat: "Ssl".to_owned(),
        }),
        session_id: Known::Yes(Some(SessionId::from_bytes([1; 10]))),
        authorization: Known::Yes(Some("revoked".to_owned())),
        last_success_at: Known::unknown("the vault is locked"),
        last_attempt_at: Known::Yes(Some(at(2))),
        last_attempt_call: Known::Yes(Some(CallId::from_bytes([2; 10]))),
        target: Known::Yes(Some(acted("/forceschedulers/nightly"))),
        result: Known::Yes(Some(Outcome {
            outcome: "unresolved".to_owned(),
            remote_id: None,
        })),
        revocation: Known::Yes(Some(Taken {
            at: at(200),
            operator: operator(),
        })),
        termination: Some(Termination {
            signal: Some("SIGKILL".to_owned()),
            result: "gone".to_owned(),
            why: None,
            exit: Some(Known::Yes(json!({"signal": 9}))),
            forced: Some("forced containment, cleanup possibly incomplete".to_owned()),
        }),
        follow_up: vec![rotate()],
        client_lost: Known::Yes(Some(ClientLost::Between {
            not_before: at(100),
            not_after: at(110),
            source: "holder_exited".to_owned(),
        })),
        last_action_started_at: Known::Yes(Some(at(2))),
        revoked_at: Known::Yes(Some(at(200))),
        calls: Known::Yes(vec![
            call(1, Window::BeforeLoss, "answered"),
            call(2, Window::Uncertain, "unresolved"),
            call(201, Window::AfterRevocation, "denied"),
        ]),
    }
}

fn view() -> View {
    View {
        schema: View::SCHEMA,
        id: IncidentId::from_bytes([9; 10]),
        state: State::Partial,
        opened_at: Known::Yes(at(150)),
        reason: Some("left over after the laptop slept".into()),
        confirmation: Some(ConfirmationView {
            kind: "refused",
            by: Some(RefusedBy::OwnAttempt),
            seq: Some(60),
            why: None,
        }),
        missing: vec!["the outcome of one call is not known".to_owned()],
        steps: vec![
            step(1, "preserve", Some(false), None),
            step(2, "note", Some(true), Some("asked the CI team\u{7}")),
            step(3, "close", None, None),
        ],
        cut_off: vec![5],
        verify: Known::Yes(json!({"verdict": "intact_pinned"})),
        follow_up: vec![rotate()],
        rows: vec![row()],
    }
}

fn step(number: u16, word: &'static str, late: Option<bool>, note: Option<&str>) -> StepView {
    StepView {
        number,
        step: word,
        at: at(150 + u64::from(number)),
        by: operator(),
        file: format!("{number:02}-{word}.json"),
        sha256: Digest::from_bytes([7; 32]),
        anchored: late.map(|late| Anchored { seq: 70, late }),
        evidence: Vec::new(),
        note: note.map(Foreign::from),
    }
}

#[test]
fn the_record_reads_as_it_should_in_a_terminal() {
    let shown = text::show(&view(), Some("log 4f1a…: intact, pinned from outside\n"));

    assert_eq!(shown, include_str!("show.txt"));
}

#[test]
fn no_line_of_the_record_is_wider_than_a_terminal_or_moves_its_cursor() {
    let shown = text::show(&view(), Some("intact\u{1b}[31m\n"));

    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'));
    let forged = |line: &&str| line.starts_with("incident i-0000");
    assert_eq!(shown.lines().filter(forged).count(), 0);
}

#[test]
fn the_exported_page_warns_first_and_keeps_foreign_text_in_its_cell() {
    let page = page::markdown(&view(), Some("intact\n"));

    assert!(page.lines().nth(2).unwrap().contains("clear text"));
    assert!(!page.contains('\u{1b}'));
    let server = page
        .lines()
        .find(|line| line.starts_with("| server |"))
        .unwrap();
    assert!(server.ends_with('|') && server.contains("CONTAINED"));
    assert!(page.contains("\n    intact\n"));
}
