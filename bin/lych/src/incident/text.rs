//! An incident as a person reads it in a terminal.

use incident::{CallRow, View, Window};

use super::{sheet::Sheet, words};

/// Returns the whole incident; `verify` is the exact output of `audit verify`.
pub(super) fn show(view: &View, verify: Option<&str>) -> String {
    let mut sheet = Sheet::default();
    head(view, &mut sheet);
    for (index, row) in view.rows.iter().enumerate() {
        sheet.gap();
        sheet.line(
            0,
            2,
            &format!("process {} of {}", index + 1, view.rows.len()),
        );
        for (label, value) in words::thirteen(row) {
            sheet.field(label, &value);
        }
        sheet.gap();
        for (label, value) in words::three_times(row) {
            sheet.field(label, &value);
        }
    }
    calls(view, &mut sheet);
    steps(view, &mut sheet);
    follow_up(view, &mut sheet);
    verification(view, verify, &mut sheet);
    sheet.into_text()
}

fn head(view: &View, sheet: &mut Sheet) {
    let state = view.state.word().to_uppercase();
    sheet.line(0, 2, &format!("incident {}  {state}", view.id));
    sheet.field(
        "opened",
        &words::known(&view.opened_at, ToString::to_string),
    );
    if let Some(reason) = &view.reason {
        sheet.field("reason", reason.raw());
    }
    sheet.field("refusal", &words::confirmation(view));
    for missing in &view.missing {
        sheet.field("not contained", missing);
    }
    for number in &view.cut_off {
        let text = format!("a crash cut step {number:02} off; its files are kept");
        sheet.field("cut off", &text);
    }
}

/// All rows of an incident have the calls of one run, but each can have lost its client at another time.
fn calls(view: &View, sheet: &mut Sheet) {
    let mut told: Vec<&model::Known<Vec<CallRow>>> = Vec::new();
    for row in &view.rows {
        if told.contains(&&row.calls) {
            continue;
        }
        told.push(&row.calls);
        sheet.gap();
        match &row.calls {
            model::Known::Yes(calls) if calls.is_empty() => {
                sheet.line(0, 2, "calls: none on record");
            }
            model::Known::Yes(calls) => by_window(calls, sheet),
            model::Known::Unknown { unknown } => {
                sheet.line(0, 2, &format!("calls: not known: {unknown}"));
            }
        }
    }
}

/// How many calls of a window are shown: what a run did last tells, and a busy run has thousands.
const NEWEST: usize = 20;

fn by_window(calls: &[CallRow], sheet: &mut Sheet) {
    for window in [
        Window::BeforeLoss,
        Window::Uncertain,
        Window::AfterRevocation,
    ] {
        let here: Vec<&CallRow> = calls.iter().filter(|call| call.window == window).collect();
        if here.is_empty() {
            continue;
        }
        sheet.line(0, 2, &format!("calls: {}", window.title()));
        let earlier = here.len().saturating_sub(NEWEST);
        if earlier > 0 {
            sheet.line(2, 6, &format!("({earlier} earlier ones: see --json)"));
        }
        for call in here.into_iter().skip(earlier) {
            let line = format!("{}  {:<10}  {}", call.attempted_at, call.state, call.id);
            sheet.line(2, 6, &line);
            sheet.line(6, 8, &words::call(call));
        }
    }
}

fn steps(view: &View, sheet: &mut Sheet) {
    sheet.gap();
    sheet.line(0, 2, "steps");
    for step in &view.steps {
        let (number, word, at) = (step.number, step.step, step.at);
        let line = format!("{number:02}  {word:<9}  {at}  {}", words::anchored(step));
        sheet.line(2, 6, &line);
        if let Some(note) = &step.note {
            sheet.line(6, 6, &format!("{}: {}", words::who(&step.by), note.raw()));
        }
    }
}

fn follow_up(view: &View, sheet: &mut Sheet) {
    sheet.gap();
    if view.follow_up.is_empty() {
        sheet.line(0, 2, "follow-up: none");
        return;
    }
    sheet.line(0, 2, "follow-up");
    for item in &view.follow_up {
        let mark = if item.is_open() { "[ ]" } else { "[x]" };
        sheet.line(2, 6, &format!("{mark} {}", item.what.raw()));
        sheet.line(6, 6, &item.id);
        if let Some(done) = words::done(item) {
            sheet.line(6, 6, &done);
        }
    }
}

fn verification(view: &View, verify: Option<&str>, sheet: &mut Sheet) {
    sheet.gap();
    match (verify, &view.verify) {
        (Some(text), _) => {
            sheet.line(0, 2, "audit verify");
            for line in text.lines() {
                sheet.line(2, 4, line);
            }
        }
        (None, model::Known::Unknown { unknown }) => {
            sheet.line(0, 2, &format!("audit verify: not known: {unknown}"));
        }
        (None, model::Known::Yes(_)) => {
            sheet.line(
                0,
                2,
                "audit verify: its output is not as the record names it",
            );
        }
    }
}
