//! What the compiler and clippy cannot see in the source tree: words in the wrong room.
//!
//! Every guard is a function from one source file to the places where it is broken, and every guard has a
//! test that shows it a broken file. The patterns are glued from halves so that this file passes its own
//! guards.

use std::{fs, path::Path, process::Command};

/// A text file of the project, by its path from the root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Files longer than a reader's patience, each with the reason why it is one file.
const LONG: &[(&str, &str)] = &[(
    "crates/ledger/tests/it/vectors/cases.rs",
    "one attack after the other, read as a list beside its folder of vectors",
)];

/// A file should be under 300 lines; from here on it needs its reason in `LONG`.
const LONGEST: usize = 500;

/// Rooms that may name the operating system. In `supervise` it is one file.
const PLATFORM: &[&str] = &["crates/sys/", "crates/supervise/src/target.rs"];

/// Words that say how a text came about, or paths of one machine: neither helps a reader.
const MACHINE_WORDS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!(".lib", "rary"),
    concat!("DEVELOPERS", ".md"),
    concat!("before-", "stop"),
    concat!("/tm", "p/t-"),
    concat!("issue", " #"),
    concat!("Co-Auth", "ored-By"),
    concat!("the brief", " says"),
];

/// How the lines begin between which a merge left both sides.
const MERGED: &[&str] = &[concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

/// Ways to send a signal. Killing a child by its handle (`Child::kill`) is one of them.
const SIGNALS: &[&str] = &[
    concat!("pidfd_send", "_signal"),
    concat!("kill_", "process"),
    concat!("libc::", "kill"),
    concat!("kill", "pg("),
    concat!("tg", "kill("),
    concat!(".ki", "ll()"),
    concat!(".start_", "kill()"),
];

/// The program that sends a signal to a number: in tests, to a child of their own, and nowhere else.
const KILLER: &str = concat!("new(\"k", "ill\")");

/// Programs that send signals by name: never the way, in tests neither.
const KILLERS: &[&str] = &[
    concat!("new(\"pk", "ill\")"),
    concat!("new(\"killa", "ll\")"),
    concat!("pki", "ll -"),
    concat!("killa", "ll -"),
];

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Tells whether the file belongs to the product, as opposed to its tests and tools.
    pub(crate) fn is_product(&self) -> bool {
        let room = self.path.starts_with("crates/") || self.path.starts_with("bin/");
        room && self.path.contains("/src/") && !self.path.ends_with("tests.rs")
    }

    /// Returns the lines of code with their numbers: comments cut off, and strings emptied.
    fn code(&self) -> impl Iterator<Item = (usize, String)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, without_text(line)))
    }

    /// Returns the lines of code in front of the file's own tests.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, String)> {
        self.code().take_while(|(_, line)| !begins_tests(line))
    }

    pub(crate) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Tells whether a file's own tests begin here.
pub(crate) fn begins_tests(line: &str) -> bool {
    line.contains("#[cfg(test)]") || line.contains("#[cfg(all(test,")
}

/// Returns a line of Rust without its comment and without what stands between double quotes.
fn without_text(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => drop(chars.next()),
            // A quote as a character literal opens no string.
            '\'' if !quoted && chars.peek() == Some(&'"') => out.push_str("' "),
            '"' if out.ends_with("' ") => out.push(' '),
            '"' => quoted = !quoted,
            '/' if !quoted && chars.peek() == Some(&'/') => break,
            other if !quoted => out.push(other),
            _ => {}
        }
    }
    out
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|part| part == word)
}

fn unopened(source: &Source) -> Vec<String> {
    if !source.is_rust() || source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![source.at(1, "does not open with what the file is for")]
}

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    let excused = LONG.iter().any(|(path, _)| *path == source.path);
    if source.is_rust() && lines > LONGEST && !excused {
        return vec![source.at(lines, "is too long and on no list that says why")];
    }
    Vec::new()
}

fn unsafe_outside_sys(source: &Source) -> Vec<String> {
    if !source.is_rust() || source.path.starts_with("crates/sys/") {
        return Vec::new();
    }
    let word = concat!("un", "safe");
    source
        .code()
        .filter(|(_, line)| has_word(line, word))
        .map(|(number, _)| source.at(number, word))
        .collect()
}

fn platform_outside_sys(source: &Source) -> Vec<String> {
    let allowed = PLATFORM.iter().any(|room| source.path.starts_with(room));
    if !source.is_rust() || allowed {
        return Vec::new();
    }
    let word = concat!("target", "_os");
    source
        .code()
        .filter(|(_, line)| has_word(line, word))
        .map(|(number, _)| source.at(number, word))
        .collect()
}

fn bare_allow(source: &Source) -> Vec<String> {
    let pattern = concat!("[al", "low(");
    source
        .code()
        .filter(|(_, line)| source.is_rust() && line.contains(pattern))
        .map(|(number, _)| source.at(number, "an allowance without a reason"))
        .collect()
}

fn switched_off(source: &Source) -> Vec<String> {
    let patterns = [
        concat!("#[ign", "ore]"),
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
    ];
    source
        .code()
        .filter(|(_, line)| source.is_rust() && patterns.iter().any(|p| line.contains(p)))
        .map(|(number, _)| source.at(number, "a stub or a test that does not run"))
        .collect()
}

fn machine_words(source: &Source) -> Vec<String> {
    source
        .text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| {
            MACHINE_WORDS
                .iter()
                .filter(|word| line.contains(**word))
                .map(move |word| source.at(index + 1, word))
        })
        .collect()
}

/// Names what a merge left for somebody to decide.
fn undecided(source: &Source) -> Vec<String> {
    source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| MERGED.iter().any(|mark| line.starts_with(mark)))
        .map(|(index, _)| source.at(index + 1, "both sides of a merge"))
        .collect()
}

fn signal_outside_supervise(source: &Source) -> Vec<String> {
    if !source.is_rust() || !source.is_product() || source.path.starts_with("crates/supervise/") {
        return Vec::new();
    }
    let by_program = source
        .text
        .lines()
        .take_while(|line| !begins_tests(line))
        .enumerate()
        .filter(|(_, line)| line.contains(KILLER))
        .map(|(index, _)| source.at(index + 1, KILLER));
    source
        .product_code()
        .flat_map(|(number, line)| {
            SIGNALS
                .iter()
                .filter(|call| line.contains(**call))
                .map(|call| source.at(number, call))
                .collect::<Vec<_>>()
        })
        .chain(by_program)
        .collect()
}

fn killed_by_name(source: &Source) -> Vec<String> {
    source
        .text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| {
            KILLERS
                .iter()
                .filter(|killer| line.contains(**killer))
                .map(move |killer| source.at(index + 1, killer))
        })
        .collect()
}

/// Returns every text file of the work tree that git tracks or would track.
pub(crate) fn tree() -> Vec<Source> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .expect("git lists the work tree");
    assert!(listed.status.success(), "git ls-files failed");
    let paths = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let sources: Vec<Source> = paths
        .split_terminator('\0')
        // A file that is listed and gone is being moved; one that is no text has no words.
        .filter_map(|path| {
            Some(Source::new(
                path,
                &fs::read_to_string(root.join(path)).ok()?,
            ))
        })
        .collect();
    assert!(sources.len() > 50, "the work tree was not found");
    sources
}

fn breaches(guard: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    tree().iter().flat_map(guard).collect()
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    assert_eq!(breaches(unopened), [""; 0]);
}

#[test]
fn no_file_is_too_long_without_a_reason() {
    assert_eq!(breaches(too_long), [""; 0]);
}

#[test]
fn unsafe_code_stands_in_sys_alone() {
    assert_eq!(breaches(unsafe_outside_sys), [""; 0]);
}

#[test]
fn the_operating_system_is_named_in_sys_and_one_file_of_supervise() {
    assert_eq!(breaches(platform_outside_sys), [""; 0]);
}

#[test]
fn no_lint_is_lifted_without_a_reason() {
    assert_eq!(breaches(bare_allow), [""; 0]);
}

#[test]
fn nothing_is_a_stub_and_every_test_runs() {
    assert_eq!(breaches(switched_off), [""; 0]);
}

#[test]
fn no_file_speaks_of_a_machine_or_of_how_it_was_written() {
    assert_eq!(breaches(machine_words), [""; 0]);
}

#[test]
fn no_file_holds_both_sides_of_a_merge() {
    assert_eq!(breaches(undecided), [""; 0]);
}

#[test]
fn only_supervise_sends_signals() {
    assert_eq!(breaches(signal_outside_supervise), [""; 0]);
}

#[test]
fn nobody_kills_by_name() {
    assert_eq!(breaches(killed_by_name), [""; 0]);
}

#[test]
fn the_list_of_long_files_names_only_long_files() {
    let tree = tree();
    for (path, reason) in LONG {
        let long = tree
            .iter()
            .any(|source| source.path == *path && source.text.lines().count() > LONGEST);

        assert!(long, "{path} is not too long any more ({reason})");
    }
}

#[test]
fn a_file_without_its_purpose_is_named() {
    let source = Source::new("crates/wire/src/line.rs", "use std::io;\n");

    assert_eq!(unopened(&source).len(), 1);
}

#[test]
fn a_file_over_the_limit_is_named() {
    let source = Source::new("crates/wire/src/line.rs", &"x\n".repeat(LONGEST + 1));

    assert_eq!(too_long(&source).len(), 1);
}

#[test]
fn unsafe_in_code_is_named_and_in_a_comment_or_text_is_not() {
    let word = concat!("un", "safe");
    let text = format!("// {word}\nlet a = \"{word} {{\";\nlet b = {word} {{ f() }};\n");
    let source = Source::new("crates/vault/src/file.rs", &text);

    let found = unsafe_outside_sys(&source);

    assert_eq!(found, [format!("crates/vault/src/file.rs:3: {word}")]);
}

#[test]
fn a_platform_outside_sys_is_named() {
    let text = concat!("#[cfg(any(target", "_os = \"linux\"))]\n");

    assert_eq!(
        platform_outside_sys(&Source::new("bin/lych/src/main.rs", text)).len(),
        1
    );
    assert_eq!(
        platform_outside_sys(&Source::new("crates/sys/src/lib.rs", text)).len(),
        0
    );
}

#[test]
fn an_allowance_is_named() {
    let text = concat!("#![al", "low(clippy::panic)]\n#[al", "low(dead_code)]\n");

    assert_eq!(
        bare_allow(&Source::new("testkit/src/lib.rs", text)).len(),
        2
    );
}

#[test]
fn a_stub_and_a_test_that_does_not_run_are_named() {
    let text = concat!("#[ign", "ore]\nfn f() { to", "do!() }\n");

    assert_eq!(switched_off(&Source::new("e2e/tests/x.rs", text)).len(), 2);
}

#[test]
fn a_path_of_one_machine_is_named_in_any_kind_of_file() {
    let text = concat!("see /wo", "rk/shared\n");

    assert_eq!(machine_words(&Source::new("README.md", text)).len(), 1);
}

#[test]
fn both_sides_of_a_merge_are_named() {
    let text = concat!("<<<<", "<<< HEAD\none\n====\nother\n>>>>", ">>> 1a2b\n");

    assert_eq!(undecided(&Source::new("docs/limits.md", text)).len(), 2);
}

#[test]
fn a_signal_outside_supervise_is_named_but_not_in_tests() {
    let call = concat!("child.ki", "ll()?; Command::new(\"k", "ill\");\n");
    let after = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ {call} }}\n");

    let sent = signal_outside_supervise(&Source::new("crates/inventory/src/look.rs", call));
    let tested = signal_outside_supervise(&Source::new("crates/inventory/src/look.rs", &after));

    assert_eq!(sent.len(), 2);
    assert_eq!(tested.len(), 0);
}

#[test]
fn a_program_that_kills_by_name_is_named() {
    let text = concat!("Command::new(\"pki", "ll\")\n");

    assert_eq!(
        killed_by_name(&Source::new("e2e/tests/x.rs", text)).len(),
        1
    );
}
