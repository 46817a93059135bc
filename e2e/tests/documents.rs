//! The documents say what the code says: exit codes, limits, and links that lead somewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use model::Exit;

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const EXITS: [Exit; 9] = [
    Exit::Done,
    Exit::Failed,
    Exit::Usage,
    Exit::Negative,
    Exit::Locked,
    Exit::Unreachable,
    Exit::Refused,
    Exit::TimedOut,
    Exit::Interrupted,
];

/// One line of docs/limits.md.
#[derive(Debug)]
struct Limit {
    value: String,
    name: String,
    file: String,
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the cells of every line of a Markdown table, heads and rulers included.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new(), "docs".into(), "docs/decisions".into()];
    folders.push("docs/proof".into());
    for folder in folders {
        let entries = fs::read_dir(Path::new(ROOT).join(&folder)).expect("a folder of documents");
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns where the links of a document lead, those into the world and into itself left out.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.split('#').next().unwrap_or_default().to_owned())
        .filter(|link| !link.is_empty() && !link.contains("://"))
        .collect()
}

fn dead_links(document: &Path, text: &str) -> Vec<String> {
    let folder = Path::new(ROOT).join(document.parent().unwrap_or(Path::new("")));
    links(text)
        .into_iter()
        .filter(|link| !folder.join(link).exists())
        .map(|link| format!("{} -> {link}", document.display()))
        .collect()
}

/// Returns the names of tests that stand in a document: words in code, long enough to be a claim.
fn named_tests(text: &str) -> Vec<String> {
    let in_code = text.split('`').skip(1).step_by(2);
    let is_name = |word: &&str| {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.chars().all(is_word) && (word.matches('_').count() > 3 || word.starts_with("prove_"))
    };
    in_code.filter(is_name).map(str::to_owned).collect()
}

/// Returns the limits of the table: `value` and `` `file.rs` `NAME` ``; a line without either is a heading.
fn limits(text: &str) -> Vec<Limit> {
    rows(text)
        .into_iter()
        .skip(2)
        .filter(|cells| !cells[1].is_empty())
        .map(|cells| {
            let mut code = cells[2].split('`').filter(|part| part.trim() != "");
            Limit {
                value: cells[1].clone(),
                file: code.next().unwrap_or_default().to_owned(),
                name: code.next().unwrap_or_default().to_owned(),
            }
        })
        .collect()
}

/// Returns what a constant of this name is set to in a source text; or a field, in the last place that sets it.
fn constant<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    if name.starts_with(char::is_lowercase) {
        let (_, behind) = source.rsplit_once(&format!(" {name}: "))?;
        return Some(behind.split_once(",\n")?.0.trim());
    }
    let (_, behind) = source.split_once(&format!("const {name}:"))?;
    let (_, value) = behind.split_once('=')?;
    let (value, _) = value.split_once(';')?;
    Some(value.trim())
}

/// Parts of a constant's name that say it is a bound.
const BOUNDS: &[&str] = &[
    "LONGEST",
    "LARGEST",
    "MOST_",
    "_CAP",
    "MAX_",
    "_WITHIN",
    "GRACE",
    "PATIENCE",
    "HIGHEST",
    "IN_FLIGHT",
];

/// Returns the constants of a source text whose names say that they are bounds, its tests left out.
fn bounds(source: &str) -> Vec<String> {
    source
        .lines()
        .take_while(|line| !line.contains("#[cfg(test)]"))
        .filter_map(|line| line.split_once("const ")?.1.split_once(": "))
        .filter(|(name, _)| BOUNDS.iter().any(|part| name.contains(part)))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Names the bounds of a file that have no line in the table.
fn unlisted(file: &str, source: &str, listed: &[Limit]) -> Vec<String> {
    bounds(source)
        .into_iter()
        .filter(|name| {
            !listed
                .iter()
                .any(|limit| limit.file == file && limit.name == *name)
        })
        .map(|name| format!("{file} {name}"))
        .collect()
}

/// Returns the product's source files, by their paths from the root.
fn sources() -> Vec<String> {
    let mut open = vec!["crates".to_owned(), "bin".to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder))
            .expect("a folder")
            .flatten()
        {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.ends_with(".rs") && path.contains("/src/") && !path.contains("tests") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the number a constant stands for: a product, a shift, or a duration in milliseconds.
fn number(expression: &str) -> Option<u64> {
    if let Some((unit, inner)) = duration(expression) {
        return Some(number(inner)? * unit);
    }
    if let Some((one, by)) = expression.split_once("<<") {
        return Some(number(one)? << number(by)?);
    }
    expression
        .split('*')
        .map(|factor| {
            let digits: String = factor.trim().replace('_', "");
            let digits = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            digits.parse::<u64>().ok().or_else(|| suffixed(factor))
        })
        .try_fold(1, |product, factor| Some(product * factor?))
}

fn duration(expression: &str) -> Option<(u64, &str)> {
    let units = [
        ("Duration::from_millis(", 1),
        ("Duration::from_secs(", 1000),
        ("Duration::from_mins(", 60_000),
        ("Duration::from_hours(", 3_600_000),
    ];
    units.iter().find_map(|(word, unit)| {
        let inner = expression.trim().strip_prefix(word)?;
        Some((*unit, inner.strip_suffix(')')?))
    })
}

fn suffixed(factor: &str) -> Option<u64> {
    let (digits, _) = factor.trim().split_once(['u', 'i'])?;
    digits.replace('_', "").parse().ok()
}

/// Returns the number that a person wrote: `4 MiB`, `10 s`, `64`.
fn written(value: &str) -> Option<u64> {
    let mut parts = value.split(' ');
    let digits: u64 = parts.next()?.replace(',', "").parse().ok()?;
    let unit = match parts.next() {
        None | Some("ms" | "bytes") => 1,
        Some("s") => 1000,
        Some("min") => 60_000,
        Some("h") => 3_600_000,
        Some("KiB") => 1024,
        Some("MiB") => 1024 * 1024,
        Some(_) => return None,
    };
    Some(digits * unit)
}

fn untrue(limit: &Limit, source: &str) -> Option<String> {
    let Some(expression) = constant(source, &limit.name) else {
        return Some(format!("{} has no constant {}", limit.file, limit.name));
    };
    let same = number(expression).is_some() && number(expression) == written(&limit.value);
    (!same).then(|| format!("{} is {expression}, not {}", limit.name, limit.value))
}

/// Returns the first block of this language in a document.
fn block<'a>(text: &'a str, language: &str) -> &'a str {
    let (_, behind) = text
        .split_once(&format!("```{language}\n"))
        .unwrap_or_else(|| panic!("no {language} block"));
    behind.split_once("```").expect("a block that ends").0
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut all = String::new();
    let mut open = vec![
        "crates".to_owned(),
        "bin".to_owned(),
        "e2e/tests".to_owned(),
    ];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder))
            .expect("a folder")
            .flatten()
        {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.ends_with(".rs") {
                all.push_str(&read(&path));
            }
        }
    }
    let mut missing = Vec::new();
    // It shows how a test is named, by one that does not exist.
    let telling = documents().into_iter();
    for document in telling.filter(|path| !path.ends_with("CONTRIBUTING.md")) {
        let names = named_tests(&read(&document)).into_iter();
        let unknown = names.filter(|name| !all.contains(&format!("fn {name}(")));
        missing.extend(unknown.map(|name| format!("{}: {name}", document.display())));
    }

    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_name_in_a_document_is_told_from_other_words() {
    let text = "`a_claim_that_is_a_test`, `HOME`, a_word_that_is_not_code, `lych up`, `prove_crash`, `is_write`";

    assert_eq!(named_tests(text), ["a_claim_that_is_a_test", "prove_crash"]);
}

#[test]
fn the_readmes_configuration_is_accepted_and_its_entry_is_one() {
    let readme = read("README.md");

    let policy = channels::Policy::parse_draft(block(&readme, "toml"));
    let entry: serde_json::Value = serde_json::from_str(block(&readme, "json")).expect("JSON");

    assert!(policy.is_ok(), "{:?}", policy.err());
    assert_eq!(entry["mcpServers"]["lychgate"]["args"][0], "mcp");
}

#[test]
fn the_table_of_exit_codes_is_the_one_in_code() {
    let listed: Vec<(String, String)> = rows(&read("docs/exit-codes.md"))
        .into_iter()
        .skip(2)
        .map(|cells| (cells[0].clone(), cells[1].clone()))
        .collect();
    let coded: Vec<(String, String)> = EXITS
        .iter()
        .map(|exit| {
            let name = serde_json::to_value(exit).expect("an exit code has a name");
            let name = name.as_str().expect("a name is text").to_owned();
            (exit.code().to_string(), name)
        })
        .collect();

    assert_eq!(listed, coded);
}

#[test]
fn every_link_in_a_document_leads_somewhere() {
    let dead: Vec<String> = documents()
        .iter()
        .flat_map(|path| dead_links(path, &read(path)))
        .collect();

    assert_eq!(dead, [""; 0]);
}

#[test]
fn every_limit_on_paper_is_the_one_in_code() {
    let wrong: Vec<String> = limits(&read("docs/limits.md"))
        .iter()
        .filter_map(|limit| untrue(limit, &read(&limit.file)))
        .collect();

    assert_eq!(wrong, [""; 0]);
}

#[test]
fn every_limit_in_code_is_on_paper() {
    let listed = limits(&read("docs/limits.md"));
    let missing: Vec<String> = sources()
        .iter()
        .flat_map(|file| unlisted(file, &read(file), &listed))
        .collect();

    assert_eq!(missing, [""; 0], "docs/limits.md lacks these");
}

#[test]
fn a_limit_without_a_line_is_named() {
    let source = "const LONGEST: usize = 4;\npub const NAME: &str = \"x\";\n#[cfg(test)]\nconst MOST_X: u8 = 1;";

    assert_eq!(unlisted("x.rs", source, &[]), ["x.rs LONGEST"]);
}

#[test]
fn a_link_to_nowhere_is_named() {
    let text = "see [a](README.md), [b](docs/nowhere.md#here) and [c](https://example.com/x.md)";

    assert_eq!(
        dead_links(Path::new("X.md"), text),
        ["X.md -> docs/nowhere.md"]
    );
}

#[test]
fn a_limit_that_is_another_one_in_code_is_named() {
    let source = "const LINE: usize = 4 * 1024 * 1024;\nconst GRACE: Duration = Duration::from_secs(10);\nconst SEGMENT: u64 = 1 << 24;";
    let limit = |name: &str, value: &str| Limit {
        value: value.to_owned(),
        name: name.to_owned(),
        file: "x.rs".to_owned(),
    };

    for (name, value) in [("LINE", "4 MiB"), ("GRACE", "10 s"), ("SEGMENT", "16 MiB")] {
        assert_eq!(untrue(&limit(name, value), source), None);
    }
    for (name, value) in [
        ("LINE", "5 MiB"),
        ("GRACE", "10 ms"),
        ("NONE", "1"),
        ("LINE", "much"),
    ] {
        assert!(untrue(&limit(name, value), source).is_some(), "{name}");
    }
}
