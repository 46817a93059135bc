//! The page, from reports made by hand.

use serde_json::{Value, json};

use super::*;

fn process(pid: u32) -> Value {
    json!({"pid": pid, "start": "500", "user": "user", "command": ["srv", "--stdio"], "exe": "/bin/srv",
        "cwd": "/", "ppid": 1, "pgid": pid, "sid": pid, "stat": "S", "elapsed_ms": 60_000 + u64::from(pid),
        "rss_bytes": 10 * 1024 * 1024, "cpu_ms": 5, "observed_at": "2026-03-01T03:00:00.000Z"})
}

fn finding(pid: u32, verdict: &str, confidence: &str) -> Value {
    let end = json!({"kind": "pipe", "state": "eof", "proof": "pipe_hup", "unread_bytes": 0, "holders": []});
    json!({"id": format!("f-{pid}-500"), "verdict": verdict, "confidence": confidence, "also": [],
        "root": process(pid), "members": [],
        "server": {"name": "srv", "client": "cursor", "match": "exact"}, "session": null, "owner": null,
        "transport": {"stdin": end, "stdout": end},
        "authority": {"level": "none_seen", "because": ["nothing was seen"], "consumes": [],
            "env_names": [], "files": [], "sockets": [], "tcp": []},
        "evidence": [], "suggest": "contain"})
}

fn report(complete: bool, findings: &[Value]) -> Report {
    let orphaned = findings
        .iter()
        .filter(|one| one["confidence"] == "proven")
        .count();
    serde_json::from_value(json!({"schema": "lych.ps/v1", "observed_at": "2026-03-01T03:00:00.000Z",
        "boot_id": "b", "complete": complete,
        "unreadable": if complete { json!([]) } else { json!([{"pid": 9, "what": "descriptors", "why": "no"}]) },
        "sums": {"processes": 2000, "live": 0, "orphaned": orphaned, "suspected": 0, "unknown": 0,
            "orphaned_rss_bytes": 0, "not_readable": u8::from(!complete)},
        "findings": findings}))
    .unwrap()
}

#[test]
fn a_thousand_equal_orphans_are_one_readable_group() {
    let findings: Vec<Value> = (1000..2000)
        .map(|pid| finding(pid, "OS_ORPHAN", "proven"))
        .collect();

    let page = page(&report(true, &findings), false, 1000);

    assert!(page.lines().count() < 12, "{page}");
    assert!(page.contains("1000 ×"), "{page}");
    assert!(page.contains("9 GB") || page.contains("10000 MB"), "{page}");
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

#[test]
fn what_is_proven_and_what_is_inferred_stand_apart() {
    let findings = [
        finding(1, "OS_ORPHAN", "inferred"),
        finding(2, "OS_ORPHAN", "proven"),
    ];

    let page = page(&report(true, &findings), false, 1000);

    let proven = page.find("(proven)").unwrap();
    let inferred = page.find("(inferred)").unwrap();
    assert!(proven < inferred, "the surest first: {page}");
}

#[test]
fn the_next_command_takes_all_proven_ones_or_looks_at_a_doubtful_one() {
    let next_of = |findings: &[Value], uid| {
        let page = page(&report(true, findings), false, uid);
        page.lines().last().unwrap().to_owned()
    };

    let proven = next_of(&[finding(7, "OS_ORPHAN", "proven")], 1000);
    assert_eq!(proven, "Next: lych contain --orphans --dry-run");
    let inferred = next_of(&[finding(7, "ORPHAN_HELD_OPEN", "inferred")], 1000);
    assert_eq!(inferred, "Next: lych inspect 7");
    let logical = next_of(&[finding(7, "LOGICAL_ORPHAN", "inferred")], 1000);
    assert_eq!(logical, "Next: lych contain f-7-500 --dry-run");
}

#[test]
fn an_incomplete_look_never_says_that_there_is_nothing() {
    let seen = page(&report(false, &[]), false, 1000);
    let root = page(&report(false, &[]), false, 0);

    assert!(seen.contains("among what could be read"), "{seen}");
    assert!(seen.contains("sudo lych ps"), "{seen}");
    assert!(!root.contains("sudo"), "root need not become root: {root}");
}

#[test]
fn foreign_text_cannot_move_the_cursor() {
    let mut evil = finding(7, "OS_ORPHAN", "proven");
    evil["root"]["command"] = json!(["srv", "\u{1b}[2J\u{202e}"]);
    evil["server"]["name"] = json!("a\nNext: rm -rf");

    let page = page(&report(true, &[evil]), false, 1000);

    assert!(
        !page.contains('\u{1b}') && !page.contains('\u{202e}'),
        "{page}"
    );
    assert_eq!(
        page.lines()
            .filter(|line| line.starts_with("Next:"))
            .count(),
        1,
        "{page}"
    );
}

#[test]
fn every_head_stands_out_by_what_it_means_and_nothing_else_does() {
    for verdict in [
        Verdict::LogicalOrphan,
        Verdict::OsOrphan,
        Verdict::OrphanHeldOpen,
        Verdict::Detached,
        Verdict::LeftoverChild,
    ] {
        assert_eq!(
            tint(verdict_words(verdict)),
            Some(Tint::Alarm),
            "{verdict:?}"
        );
    }
    for verdict in [
        Verdict::LogicalOrphanSuspect,
        Verdict::Unknown,
        Verdict::Zombie,
        Verdict::Recycled,
    ] {
        assert_eq!(
            tint(verdict_words(verdict)),
            Some(Tint::Doubt),
            "{verdict:?}"
        );
    }
    for verdict in [Verdict::Shared, Verdict::Managed, Verdict::Live] {
        assert_eq!(
            tint(verdict_words(verdict)),
            Some(Tint::Fine),
            "{verdict:?}"
        );
    }
    assert_eq!(tint("  pid 7  LEFT OVER"), None);
    assert_eq!(tint("96 processes"), None);
}
