//! What the verbs do, say and refuse.

use serde_json::Value;
use testkit::World;

use crate::scene::Scene;

fn words(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["step"].as_str().unwrap()).collect()
}

#[test]
fn a_proven_orphan_is_ended_and_the_record_is_partial_because_no_refusal_was_seen() {
    let mut scene = Scene::start();
    scene.crash();

    let done = scene.contain(&[&scene.server(), "--yes", "--json", "--reason", "crashed"]);

    let done = done.expect_code(3);
    assert!(!scene.server.is_alive().unwrap());
    let record = done.json();
    assert_eq!(record["schema"], "lych.incident/v1");
    assert_eq!(record["state"], "partial");
    assert_eq!(record["confirmation"]["kind"], "no_path_of_ours");
    assert_eq!(
        words(&record["steps"]),
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
    let row = &record["rows"][0];
    assert_eq!(row["server"]["pid"], scene.server.id().pid);
    assert_eq!(row["termination"]["signal"], "SIGTERM");
    assert_eq!(row["termination"]["result"], "gone");
    assert!(row["client_lost"]["not_before"].is_string());
    assert!(row["session_id"]["unknown"].is_string());
}

#[test]
fn a_server_that_its_supervisor_brings_back_is_respawned_and_not_hunted() {
    let scene = Scene::kept();
    let first = scene.server.id().pid;

    let done = scene.contain(&[&scene.server(), "--yes", "--json"]);

    let record = done.expect_code(3).json();
    assert!(!scene.server.is_alive().unwrap());
    assert_eq!(record["state"], "respawned", "{record:#}");
    let text = record.to_string();
    assert!(
        text.contains(&format!("{}", scene.client())),
        "who brings it back is named"
    );
    assert_eq!(record["rows"][0]["server"]["pid"], first);
    let again = scene.world.run(["ps", "--json"]).json();
    let lives = again["findings"].as_array().unwrap().iter().any(|finding| {
        finding["root"]["ppid"] == scene.client() && finding["root"]["pid"] != first
    });
    assert!(lives, "the one that came back was ended too: {again:#}");
    scene.end_kept();
}

#[test]
fn every_field_that_a_row_promises_is_in_it() {
    let mut scene = Scene::start();
    scene.crash();

    let record = scene.contain(&[&scene.server(), "--yes", "--json"]).json();

    let row = record["rows"][0].as_object().unwrap();
    for field in [
        "observed_at",
        "client",
        "server",
        "parent_and_group",
        "session_id",
        "authorization",
        "last_success_at",
        "last_attempt_at",
        "last_attempt_call",
        "target",
        "result",
        "revocation",
        "termination",
        "follow_up",
        "client_lost",
        "last_action_started_at",
        "revoked_at",
        "calls",
    ] {
        assert!(row.contains_key(field), "{field}");
    }
}

#[test]
fn a_server_in_use_is_refused_and_lives_on() {
    let scene = Scene::start();

    let refused = scene.contain(&[&scene.server(), "--yes"]).expect_code(6);

    assert!(refused.stderr.contains("LIVE"), "{refused:?}");
    assert!(scene.server.is_alive().unwrap());
    assert!(!scene.world.home().incidents().exists());
    scene.end();
}

#[test]
fn without_a_terminal_nothing_is_done_until_somebody_says_yes() {
    let mut scene = Scene::start();
    scene.crash();

    let shown = scene.contain(&[&scene.server()]).expect_code(0);

    assert!(
        shown.stdout.contains("plan: 1 incident of 1 process"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("dry run"), "{shown:?}");
    assert!(scene.server.is_alive().unwrap());
    assert!(!scene.world.home().incidents().exists());
    scene.end();
}

#[test]
fn what_started_this_command_is_refused() {
    let world = World::new();

    let refused = world.run(["contain", &std::process::id().to_string(), "--yes"]);

    assert_eq!(refused.code(), Some(6), "{refused:?}");
}

#[test]
fn killing_needs_a_reason() {
    let world = World::new();

    let refused = world.run(["contain", "1", "--force-kill", "--yes"]);

    assert_eq!(refused.code(), Some(2), "{refused:?}");
}

#[test]
fn an_incident_is_opened_noted_and_closed_without_ending_anything() {
    let mut scene = Scene::start();
    scene.crash();
    let world = &scene.world;

    let opened = world.run(["incident", "open", &scene.server(), "--json"]);
    let id = opened.expect_code(0).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(scene.server.is_alive().unwrap());
    drop(
        world
            .run(["incident", "note", &id, "asked the team"])
            .expect_code(0),
    );
    let file = world.write("evidence.txt", "seen");
    let file = file.to_str().unwrap();
    drop(world.run(["incident", "attach", &id, file]).expect_code(0));
    drop(world.run(["incident", "close", &id]).expect_code(6));

    let going_on = scene.contain(&["--incident", &id, "--yes", "--json"]);
    let record = going_on.expect_code(3).json();
    assert_eq!(record["id"], id.as_str());
    assert!(!scene.server.is_alive().unwrap());

    let closed = [
        "incident",
        "close",
        &id,
        "--accept-open",
        "--reason",
        "a test account",
    ];
    drop(world.run(closed).expect_code(0));
    let shown = world
        .run(["incident", "show", &id, "--json"])
        .expect_code(0)
        .json();
    assert_eq!(shown["state"], "closed");
    let listed = world
        .run(["incident", "list", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(listed["incidents"][0]["id"], id.as_str());
    let page = world.run(["incident", "export", &id]).expect_code(0);
    assert!(page.stderr.contains("clear text") && page.stdout.contains("clear text"));
}

#[test]
fn only_proven_orphans_are_taken_by_the_sweep() {
    let mut orphan = Scene::start();
    let twin = Scene::start();
    orphan.crash();

    // Other tests crash clients of other worlds meanwhile: a dry run shows what would be taken.
    let plan = orphan
        .contain(&["--orphans", "--dry-run", "--json"])
        .expect_code(0)
        .json();

    let pids: Vec<u64> = plan["incidents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["processes"].as_array().unwrap())
        .map(|process| process["pid"].as_u64().unwrap())
        .collect();
    assert!(
        pids.contains(&u64::from(orphan.server.id().pid)),
        "{plan:#}"
    );
    assert!(!pids.contains(&u64::from(twin.server.id().pid)), "{plan:#}");
    orphan.end();
    twin.end();
}
