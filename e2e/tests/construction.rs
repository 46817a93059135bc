//! What the failures of others came from and is not in this house: looked for in its source and among its crates.
//!
//! docs/known-failures.md says *by construction* of it.

use crate::{
    documents::read,
    tree::{Source, begins_tests, tree},
};

/// Code that would listen on a network, judge a certificate by itself, or trust one that nobody judged.
const CODE: &[&str] = &[
    concat!("Tcp", "Listener"),
    concat!("Udp", "Socket::bind"),
    concat!("Server", "CertVerifier"),
    concat!("danger", "ous("),
];

/// The one listener: the target of a drill, for as long as that runs.
const TARGET: &str = "bin/lych/src/drill/target.rs";

/// Programs that would run a text, or show whatever address they are given.
const PROGRAMS: &[&str] = &[
    concat!("new(\"s", "h\")"),
    concat!("new(\"ba", "sh\")"),
    concat!("new(\"/bin/", "sh\")"),
    concat!("xdg-", "open"),
    concat!("new(\"op", "en\")"),
];

/// Crates that speak SSH, hold a database, serve pages, open addresses, or repeat and redirect by themselves.
const CRATES: &[&str] = &[
    "russh",
    "ssh2",
    "libssh2-sys",
    "rusqlite",
    "libsqlite3-sys",
    "sqlx",
    "axum",
    "tungstenite",
    "open",
    "opener",
    "webbrowser",
    "reqwest",
    "hpke",
    "hpke-rs",
];

/// Names what stands in a source file of the product, its tests left out.
fn brought_in(source: &Source) -> Vec<String> {
    if !source.path.ends_with(".rs") || !source.is_product() || source.path.contains("/tests/") {
        return Vec::new();
    }
    let code = source.product_code().flat_map(|(number, line)| {
        let found = CODE.iter().filter(move |word| line.contains(**word));
        found.map(move |word| (number, *word))
    });
    let product = source.text.lines().take_while(|line| !begins_tests(line));
    let programs = product.enumerate().flat_map(|(index, line)| {
        let found = PROGRAMS.iter().filter(move |word| line.contains(**word));
        found.map(move |word| (index + 1, *word))
    });
    code.filter(|(_, word)| source.path != TARGET || *word != CODE[0])
        .chain(programs)
        .map(|(number, word)| source.at(number, word))
        .collect()
}

/// Returns the crates of a lock file that are on the list.
fn locked(lock: &str) -> Vec<&str> {
    lock.lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .filter(|name| CRATES.contains(name))
        .collect()
}

#[test]
fn what_the_failures_of_others_came_from_is_not_here() {
    let tree = tree();
    let found: Vec<String> = tree.iter().flat_map(brought_in).collect();

    assert_eq!(found, [""; 0]);
    assert_eq!(locked(&read("Cargo.lock")), [""; 0]);
}

#[test]
fn a_listener_a_shell_and_a_crate_for_pages_are_named() {
    let text = concat!(
        "let a = Tcp",
        "Listener::bind(x);\nCommand::new(\"s",
        "h\");\n#[cfg(test)]\nTcp",
        "Listener"
    );
    let source = |path| brought_in(&Source::new(path, text)).len();

    assert_eq!(source("bin/lychd/src/daemon.rs"), 2);
    assert_eq!(source(TARGET), 1);
    assert_eq!(source("crates/channels/src/tests/server.rs"), 0);
    assert_eq!(locked("name = \"axum\"\nname = \"hyper\"\n"), ["axum"]);
}
