//! An incident as a page in Markdown (CommonMark) for whoever reviews it.

use incident::{CallRow, View};
use model::{Foreign, Known};

use super::words;

/// Says what the page is, before anything that it says.
pub(super) const CLEAR_TEXT: &str = "This page is clear text: it names people, machines, accounts and commands. Pass it on with care.";

/// Returns the page; `verify` is the exact output of `audit verify`.
pub(super) fn markdown(view: &View, verify: Option<&str>) -> String {
    let mut page = format!("# Incident {}\n\n> {CLEAR_TEXT}\n\n", view.id);
    table(
        &mut page,
        ["", ""],
        &[
            vec!["state".to_owned(), view.state.word().to_owned()],
            vec![
                "opened".to_owned(),
                words::known(&view.opened_at, ToString::to_string),
            ],
            vec![
                "reason".to_owned(),
                view.reason
                    .as_ref()
                    .map_or_else(String::new, |text| text.raw().to_owned()),
            ],
            vec!["refusal".to_owned(), words::confirmation(view)],
            vec!["missing for contained".to_owned(), view.missing.join("; ")],
        ],
    );
    for (index, row) in view.rows.iter().enumerate() {
        page.push_str(&format!("## Process {}\n\n", index + 1));
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (label, value) in words::thirteen(row) {
            rows.push(vec![label.to_owned(), value]);
        }
        for (label, value) in words::three_times(row) {
            rows.push(vec![label.to_owned(), value]);
        }
        table(&mut page, ["", ""], &rows);
        calls(&mut page, &row.calls);
    }
    steps(&mut page, view);
    follow_up(&mut page, view);
    page.push_str("## audit verify\n\n");
    match (verify, view.verify.why()) {
        (Some(text), _) => code(&mut page, text),
        (None, Some(why)) => page.push_str(&format!("not known: {}\n", cell(why))),
        (None, None) => page.push_str("its output is not as the record names it\n"),
    }
    page
}

fn calls(page: &mut String, calls: &Known<Vec<CallRow>>) {
    match calls {
        Known::Unknown { unknown } => {
            page.push_str(&format!("Calls: not known: {}\n\n", cell(unknown)));
        }
        Known::Yes(calls) if calls.is_empty() => page.push_str("Calls: none on record.\n\n"),
        Known::Yes(calls) => {
            let rows: Vec<Vec<String>> = calls
                .iter()
                .map(|call| {
                    vec![
                        call.window.title().to_owned(),
                        call.attempted_at.to_string(),
                        call.id.to_string(),
                        call.state.clone(),
                        words::call(call),
                    ]
                })
                .collect();
            table(
                page,
                ["window", "attempted at", "call", "state", "what"],
                &rows,
            );
        }
    }
}

fn steps(page: &mut String, view: &View) {
    page.push_str("## Steps\n\n");
    let rows: Vec<Vec<String>> = view
        .steps
        .iter()
        .map(|step| {
            vec![
                format!("{:02}", step.number),
                step.step.to_owned(),
                step.at.to_string(),
                words::who(&step.by),
                step.sha256.to_string(),
                words::anchored(step),
                step.note
                    .as_ref()
                    .map_or_else(String::new, |note| note.raw().to_owned()),
            ]
        })
        .collect();
    let head = ["", "step", "at", "by", "sha256", "anchor", "note"];
    table(page, head, &rows);
}

fn follow_up(page: &mut String, view: &View) {
    page.push_str("## Follow-up\n\n");
    if view.follow_up.is_empty() {
        page.push_str("None.\n");
    }
    for item in &view.follow_up {
        let mark = if item.is_open() { "[ ]" } else { "[x]" };
        let done = words::done(item).map_or_else(String::new, |done| format!(" ({done})"));
        page.push_str(&format!(
            "- {mark} {}{}\n",
            cell(item.what.raw()),
            cell(&done)
        ));
    }
    page.push('\n');
}

fn table<const N: usize>(page: &mut String, head: [&str; N], rows: &[Vec<String>]) {
    page.push_str(&format!(
        "| {} |\n|{}\n",
        head.join(" | "),
        "---|".repeat(N)
    ));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        page.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    page.push('\n');
}

/// Every mark that CommonMark or HTML gives a meaning to is escaped: a command line must not become a link.
fn cell(text: &str) -> String {
    let shown = Foreign::new(text).to_string();
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~' => {
                out.push('\\');
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

/// An indented block has no end mark that a text could fake.
fn code(page: &mut String, text: &str) {
    for line in text.lines() {
        page.push_str(&format!("    {}\n", Foreign::new(line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_cannot_become_a_link_a_cell_or_a_tag() {
        let shown = cell("[x](http://e.example) | <img src=x> `a` \u{1b}[31m");

        assert!(!shown.contains("](") && !shown.contains('<') && !shown.contains('\u{1b}'));
        assert!(shown.contains("\\|"));
    }
}
