//! Every row of failures, threats and guarantees is shown by something that is there, or says that it is open.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    documents::{ROOT, read, rows},
    tree::tree,
};

/// The pages whose tables say what shows a row.
const PAGES: [&str; 3] = [
    "docs/known-failures.md",
    "docs/threat-model.md",
    "docs/audit-guarantees.md",
];

/// What such a column is called.
const SHOWN_BY: [&str; 2] = ["shown by", "what shows it"];

/// What may stand there instead of a name.
const WITHOUT: [&str; 6] = [
    "open",
    "by construction",
    "not claimed",
    "the same",
    "as above",
    "](",
];

/// What a row can name.
struct There {
    /// Tests, each behind the path of its file.
    tests: BTreeSet<(String, String)>,
    vectors: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl There {
    fn look() -> Self {
        let mut tests = BTreeSet::new();
        for source in tree() {
            if source.path.ends_with(".rs") {
                let names = tests_in(&source.text).into_iter();
                tests.extend(names.map(|name| (source.path.clone(), name)));
            }
        }
        Self {
            tests,
            vectors: names_in("crates/ledger/testdata/vectors"),
            targets: names_in("fuzz/fuzz_targets"),
        }
    }

    /// Tells whether a word in code names something: `crate::module::test`, `crate::module`, a test's own name,
    /// or a vector's; `*` stands for any part of it.
    fn has(&self, word: &str) -> bool {
        if let Some(vector) = word.strip_prefix("vectors/") {
            return self.vectors.iter().any(|name| is_called(vector, name));
        }
        let mut parts: Vec<&str> = word.split("::").collect();
        let Some(last) = parts.pop() else {
            return false;
        };
        let tests = self.tests.iter();
        tests
            .clone()
            .any(|(path, name)| is_called(last, name) && is_within(path, &parts))
            || (parts.is_empty() && self.vectors.iter().any(|name| is_called(last, name)))
            || (parts.len() == 1
                && tests
                    .clone()
                    .any(|(path, _)| is_within(path, &[parts[0], last])))
    }
}

/// Returns the names of a folder's entries, without what stands behind their first dot.
fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder");
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| Some(name.to_str()?.split('.').next()?.to_owned()))
        .collect()
}

fn is_called(word: &str, name: &str) -> bool {
    word.split_once('*').map_or(word == name, |(begin, end)| {
        let rest = name.strip_prefix(begin);
        rest.is_some_and(|rest| rest.ends_with(end))
    })
}

/// Tells whether a file is in this crate and in these modules of it.
fn is_within(path: &str, parts: &[&str]) -> bool {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let folders: Vec<&str> = path.split('/').collect();
    parts.iter().all(|part| folders.contains(part))
}

/// Returns the names of the functions that a file marks as tests.
fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        marked |= line == "#[test]" || line.starts_with("#[tokio::test");
        let behind = line.strip_prefix("async ").unwrap_or(line);
        if let Some((name, _)) = behind.strip_prefix("fn ").and_then(|it| it.split_once('(')) {
            if marked {
                found.push(name.to_owned());
            }
            marked = false;
        }
    }
    found
}

/// Returns each row's first cell and the one that says what shows it.
fn claims(page: &str) -> Vec<(String, String)> {
    let mut column = None;
    let mut found = Vec::new();
    for line in page.lines() {
        let Some(cells) = rows(line).pop() else {
            column = None;
            continue;
        };
        let Some(at) = column else {
            let called = |cell: &String| SHOWN_BY.contains(&cell.as_str());
            column = Some(cells.iter().position(called));
            continue;
        };
        let shown = at.and_then(|at| cells.get(at));
        let is_ruler = cells[0].starts_with("---");
        let is_heading = cells[0].starts_with("**") && shown.is_some_and(String::is_empty);
        if let (Some(shown), false) = (shown, is_ruler || is_heading) {
            found.push((cells[0].clone(), shown.clone()));
        }
    }
    found
}

/// Says what is wrong with a cell that says what shows a row.
fn wrong(shown: &str, there: &There) -> Vec<String> {
    let parts: Vec<&str> = shown.split('`').collect();
    let said: String = parts.iter().step_by(2).copied().collect();
    let names = parts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let mut wrong: Vec<String> = names
        .filter(|(before, word)| {
            let is_there = if before.ends_with("fuzz target ") {
                there.targets.contains(*word)
            } else {
                there.has(word)
            };
            !is_there
        })
        .map(|(_, word)| format!("{word} is not there"))
        .collect();
    if parts.len() == 1 && !WITHOUT.iter().any(|word| said.contains(word)) {
        wrong.push("names nothing".to_owned());
    }
    wrong
}

#[test]
fn every_row_is_shown_by_something_that_is_there_or_is_open() {
    let there = There::look();
    let mut all = Vec::new();
    for page in PAGES {
        let claims = claims(&read(page));
        assert!(claims.len() > 10, "{page} has too few rows");
        for (row, shown) in claims {
            let wrong = wrong(&shown, &there).into_iter();
            all.extend(wrong.map(|why| format!("{page}: {row}: {why}")));
        }
    }

    assert_eq!(all, [""; 0]);
}

#[test]
fn a_row_that_names_what_is_not_there_or_nothing_is_named() {
    let test = |path: &str, name: &str| (path.to_owned(), name.to_owned());
    let there = There {
        tests: [
            test("crates/audit/tests/it/log.rs", "a_log_is_whole"),
            test("e2e/tests/crash.rs", "prove_crash"),
        ]
        .into(),
        vectors: ["cut_in_body".to_owned()].into(),
        targets: ["line".to_owned()].into(),
    };
    let good = "`audit::log::a_log_is_whole`, `audit::log`, `prove_crash` (`cut_*`), `vectors/cut_in_body`, fuzz target `line`";

    assert_eq!(wrong(good, &there), [""; 0]);
    assert_eq!(wrong("open: not tried", &there), [""; 0]);
    assert_eq!(wrong("a refusal", &there), ["names nothing"]);
    for bad in [
        "`ledger::log::a_log_is_whole`",
        "`audit::cut::a_log_is_whole`",
        "`a_log_is_hole`",
        "`vectors/cut_in_two`",
        "fuzz target `prove_crash`",
        "`prove_crash`, `line`",
    ] {
        assert_eq!(wrong(bad, &there).len(), 1, "{bad}");
    }
}

#[test]
fn the_column_that_shows_is_found_in_each_table_and_headings_are_no_rows() {
    let page = "| a | shown by | c |\n|---|---|---|\n| **part** | | |\n| one | `x` | y |\n\n| no | such |\n|---|---|\n| z | w |\n";

    assert_eq!(claims(page), [("one".to_owned(), "`x`".to_owned())]);
}

#[test]
fn a_function_that_is_no_test_shows_nothing() {
    let text = "#[test]\n#[cfg(unix)]\nfn it() {}\nfn helper() {}\n#[tokio::test(start_paused = true)]\nasync fn other() {}";

    assert_eq!(tests_in(text), ["it", "other"]);
}
