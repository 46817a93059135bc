//! The house keeps its floors: who may depend on whom, and which code each program must not contain.
//!
//! The table below is the one in ARCHITECTURE.md. Each rule is a function over plain values and is itself
//! tested on a house that breaks it, so that none can rot into always saying yes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Every room and its floor. A room that is not here is not in the house.
const FLOORS: &[(u8, &[&str])] = &[
    (0, &["model"]),
    (1, &["wire", "ledger", "sys"]),
    (
        2,
        &[
            "inventory",
            "vault",
            "authz",
            "audit",
            "clients",
            "supervise",
        ],
    ),
    (3, &["channels", "verdict"]),
    (4, &["gateway", "incident"]),
    (5, &["mcp"]),
    (6, &["lychd", "lych"]),
];

/// Crates beside the house: they may look at any room, and no room may depend on them.
const BESIDE: &[&str] = &["testkit", "e2e", "xtask"];

/// What must not be inside a program. The first names of each list are rooms of the other wing; the rest is
/// code that only the other wing has a use for.
const CLOSURES: &[(&str, &[&str])] = &[
    (
        "lych",
        &[
            "mcp", "gateway", "channels", "vault", "authz", "audit", "rmcp", "hyper", "rustls",
            "ring", "age", "tokio",
        ],
    ),
    ("lychd", &["clients", "verdict", "incident", "supervise"]),
    // The verifier runs on strange machines and on hostile bytes: no C in it, and no cipher.
    (
        "ledger",
        &[
            "ring",
            "cc",
            "cmake",
            "pkg-config",
            "bindgen",
            "age",
            "chacha20poly1305",
        ],
    ),
];

/// External crates that belong to the rooms named beside them and to no other.
const PINNED: &[(&str, &[&str])] = &[
    ("rmcp", &["mcp"]),
    ("hyper", &["channels"]),
    ("rustls", &["channels"]),
    ("tokio-rustls", &["channels"]),
    ("age", &["vault"]),
    ("chacha20poly1305", &["audit"]),
    ("rustix", &["sys", "supervise", "testkit"]),
    ("libc", &["sys"]),
    ("netlink-packet-sock-diag", &["sys"]),
    ("jsonc-parser", &["clients"]),
    ("clap", &["lych", "lychd"]),
];

/// One direct dependency that is compiled into its crate, tests left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
    /// Whether it is asked for on one platform only.
    one_platform: bool,
}

impl Edge {
    fn new(from: &str, to: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            one_platform: false,
        }
    }
}

/// Returns the floor a room is on.
fn floor_of(room: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(_, rooms)| rooms.contains(&room))
        .map(|(floor, _)| *floor)
}

/// Names the rooms that stand on no floor, and the rooms of the table that do not exist.
fn homeless(rooms: &BTreeSet<String>) -> Vec<String> {
    let known: BTreeSet<&str> = FLOORS
        .iter()
        .flat_map(|(_, rooms)| rooms.iter().copied())
        .chain(BESIDE.iter().copied())
        .collect();
    let missing = known
        .iter()
        .filter(|room| !rooms.contains(**room))
        .map(|room| format!("{room} is in the table and not in the workspace"));
    let unlisted = rooms
        .iter()
        .filter(|room| !known.contains(room.as_str()))
        .map(|room| format!("{room} is in the workspace and not in the table"));
    missing.chain(unlisted).collect()
}

/// Names the edges that do not lead to a lower floor.
fn not_downward(edges: &[Edge]) -> Vec<String> {
    edges
        .iter()
        .filter_map(|edge| {
            let to = floor_of(&edge.to);
            let beside = BESIDE.contains(&edge.to.as_str());
            let from = floor_of(&edge.from)?;
            let breach = to.is_some_and(|to| to >= from) || beside;
            breach.then(|| format!("{} -> {}", edge.from, edge.to))
        })
        .collect()
}

/// Names the edges by which a crate takes what is pinned to other rooms.
fn unpinned(edges: &[Edge]) -> Vec<String> {
    edges
        .iter()
        .filter(|edge| {
            PINNED
                .iter()
                .any(|(name, rooms)| *name == edge.to && !rooms.contains(&edge.from.as_str()))
        })
        .map(|edge| format!("{} -> {}", edge.from, edge.to))
        .collect()
}

/// Names the edges outside `sys` that exist on one platform only.
fn one_platform(edges: &[Edge]) -> Vec<String> {
    edges
        .iter()
        .filter(|edge| edge.one_platform && edge.from != "sys")
        .map(|edge| format!("{} -> {}", edge.from, edge.to))
        .collect()
}

/// Names what stands in a program's closure and must not.
fn strangers(inside: &BTreeSet<String>, forbidden: &[&str]) -> Vec<String> {
    forbidden
        .iter()
        .filter(|name| inside.contains(**name))
        .map(|name| (*name).to_owned())
        .collect()
}

fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .other_options(vec!["--locked".to_owned()])
            .exec()
            .expect("cargo metadata answers for this workspace")
    })
}

fn rooms() -> BTreeSet<String> {
    metadata()
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect()
}

fn edges() -> Vec<Edge> {
    metadata()
        .workspace_packages()
        .iter()
        .flat_map(|package| {
            package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| Edge {
                    from: package.name.to_string(),
                    to: dependency.name.clone(),
                    one_platform: dependency.target.is_some(),
                })
        })
        .collect()
}

/// Returns the names of all crates that are built for `root`, itself left out.
fn closure(root: &str) -> BTreeSet<String> {
    let resolve = metadata().resolve.as_ref().expect("a resolved graph");
    let below: BTreeMap<&PackageId, Vec<&PackageId>> = resolve
        .nodes
        .iter()
        .map(|node| {
            let deps = node.deps.iter().filter(|dep| {
                dep.dep_kinds
                    .iter()
                    .any(|kind| kind.kind != DependencyKind::Development)
            });
            (&node.id, deps.map(|dep| &dep.pkg).collect())
        })
        .collect();
    let start = metadata()
        .workspace_packages()
        .into_iter()
        .find(|package| package.name == root)
        .expect("the program is in the workspace");
    let mut seen = BTreeSet::new();
    let mut open = vec![&start.id];
    while let Some(id) = open.pop() {
        for next in below.get(id).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    seen.into_iter()
        .map(|id| metadata()[id].name.to_string())
        .collect()
}

#[test]
fn every_crate_is_on_the_table() {
    assert_eq!(homeless(&rooms()), [""; 0]);
}

#[test]
fn dependencies_go_down_only() {
    assert_eq!(not_downward(&edges()), [""; 0]);
}

#[test]
fn neither_program_contains_the_other_wing() {
    for (program, forbidden) in CLOSURES {
        let inside = closure(program);

        assert_eq!(
            strangers(&inside, forbidden),
            [""; 0],
            "inside {program}, which must do without"
        );
    }
}

#[test]
fn what_is_dangerous_has_one_room() {
    assert_eq!(unpinned(&edges()), [""; 0]);
}

#[test]
fn only_sys_depends_on_a_platform() {
    assert_eq!(one_platform(&edges()), [""; 0]);
}

#[test]
fn a_room_that_is_not_on_the_table_is_named() {
    let mut rooms = rooms();
    rooms.insert("attic".to_owned());
    rooms.remove("model");

    let found = homeless(&rooms);

    assert_eq!(
        found,
        [
            "model is in the table and not in the workspace",
            "attic is in the workspace and not in the table"
        ]
    );
}

#[test]
fn an_edge_upward_sideways_or_to_the_test_kit_is_named() {
    let edges = [
        Edge::new("model", "vault"),
        Edge::new("audit", "vault"),
        Edge::new("authz", "testkit"),
        Edge::new("audit", "ledger"),
        Edge::new("testkit", "gateway"),
    ];

    let found = not_downward(&edges);

    assert_eq!(
        found,
        ["model -> vault", "audit -> vault", "authz -> testkit"]
    );
}

#[test]
fn a_pinned_crate_in_a_strange_room_is_named() {
    let edges = [Edge::new("mcp", "rmcp"), Edge::new("gateway", "rmcp")];

    assert_eq!(unpinned(&edges), ["gateway -> rmcp"]);
}

#[test]
fn a_dependency_for_one_platform_is_named() {
    let edges = [Edge {
        one_platform: true,
        ..Edge::new("inventory", "libc")
    }];

    assert_eq!(one_platform(&edges), ["inventory -> libc"]);
}

#[test]
fn a_closure_reaches_what_is_only_indirectly_there() {
    // rmcp stands two rooms below the daemon: a closure that saw direct edges only would miss it.
    let found = strangers(&closure("lychd"), &["rmcp", "clients"]);

    assert_eq!(found, ["rmcp"]);
}
