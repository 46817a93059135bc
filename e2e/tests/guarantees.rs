//! What is said about the log and the vault is shown by tests that are there.

use std::{fs, path::PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the text of every source file, tests included.
fn sources() -> String {
    let root = PathBuf::from(ROOT);
    let mut open: Vec<PathBuf> = ["crates", "bin", "e2e"].map(|name| root.join(name)).into();
    let mut all = String::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                all.push_str(&fs::read_to_string(path).expect("a source file"));
            }
        }
    }
    all
}

/// Returns the names of tests that a page gives, each behind its crate and module. An end in `*` stands for several.
fn named(page: &str) -> Vec<&str> {
    let crates = [
        "audit::", "ledger::", "authz::", "vault::", "lychd::", "e2e::",
    ];
    let begins = |word: &&str| {
        let mut crates = crates.iter();
        // Crate, module and test; what is shorter names a whole module.
        crates.any(|name| word.starts_with(name)) && word.matches("::").count() > 1
    };
    let quoted = page.split('`').skip(1).step_by(2);
    quoted
        .filter(begins)
        .filter_map(|word| word.rsplit("::").next())
        .collect()
}

/// Returns the names for which there is no test.
fn missing<'page>(page: &'page str, sources: &str) -> Vec<&'page str> {
    let is_there = |name: &&str| {
        let begin = name.strip_suffix('*').map(|begin| format!("fn {begin}"));
        sources.contains(&begin.unwrap_or_else(|| format!("fn {name}(")))
    };
    named(page)
        .into_iter()
        .filter(|name| !is_there(name))
        .collect()
}

/// Returns the figures in what a page says: numbers of two digits and more, outside of code and links.
fn figures(page: &str) -> Vec<String> {
    let said: String = page.split('`').step_by(2).collect();
    let mut parts = said.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    text.extend(parts.filter_map(|part| Some(part.split_once(')')?.1)));
    text.split(|c: char| !c.is_alphanumeric() && c != ',' && c != '-')
        .map(|word| word.trim_matches(',').replace(',', ""))
        .filter(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_digit()))
        .collect()
}

/// Returns the figures that no table has.
fn unmeasured(page: &str, tables: &str) -> Vec<String> {
    let values: Vec<&str> = tables
        .lines()
        .filter_map(|line| {
            line.strip_suffix(" |")?
                .rsplit_once("| ")
                .map(|(_, value)| value)
        })
        .collect();
    let mut figures = figures(page);
    figures.retain(|figure| !values.contains(&figure.as_str()));
    figures
}

#[test]
fn every_figure_that_the_guarantees_give_was_measured() {
    let page = fs::read_to_string(format!("{ROOT}/docs/audit-guarantees.md")).expect("the page");
    let proof = fs::read_to_string(format!("{ROOT}/docs/proof/audit.md")).expect("the proof");

    assert!(figures(&page).len() > 2, "the page gives too few");
    assert_eq!(
        unmeasured(&page, &proof),
        [""; 0],
        "not in docs/proof/audit.md"
    );
}

#[test]
fn a_figure_that_was_not_measured_is_named() {
    let page = "at 2,984 points (108 calls), exit 3, SHA-256, `n 77` and [x 55](y-66.md)";
    let tables = "| what | value |\n| points | 2984 |\n| others | 55 |";

    assert_eq!(unmeasured(page, tables), ["108"]);
}

#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let page = fs::read_to_string(format!("{ROOT}/docs/audit-guarantees.md")).expect("the page");

    assert!(named(&page).len() > 30, "the page names too few");
    assert_eq!(missing(&page, &sources()), [] as [&str; 0]);
}

#[test]
fn a_test_that_is_not_there_is_named() {
    let page = "by `audit::it::there`, `audit::it::some_*` and `e2e::it::gone` in `audit/`";

    assert_eq!(missing(page, "fn there() fn some_thing()"), ["gone"]);
}
