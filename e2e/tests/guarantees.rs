//! The figures in what is said about the log and the vault are those that were measured.

use std::fs;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

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
