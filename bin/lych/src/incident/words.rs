//! An incident's values in words, the same for the terminal and for the exported page.

use incident::{
    Acted, CallRow, ClientLost, FollowUp, Named, Outcome, Place, Row, StepView, Taken, Termination,
    View,
};
use model::{Foreign, Known, Operator, Presence, Wall};
use serde_json::Value;

/// The thirteen things that a row says, with their labels.
pub(super) fn thirteen(row: &Row) -> [(&'static str, String); 13] {
    [
        ("observed at", row.observed_at.to_string()),
        ("client", known(&row.client, named)),
        ("server", known(&row.server, named)),
        ("parent and group", known(&row.parent_and_group, place)),
        ("run", maybe(&row.session_id, ToString::to_string)),
        ("authorization", maybe(&row.authorization, Clone::clone)),
        ("last success", maybe(&row.last_success_at, Wall::to_string)),
        ("last attempt", last_attempt(row)),
        ("target", maybe(&row.target, acted)),
        ("result", maybe(&row.result, outcome)),
        ("revoked", maybe(&row.revocation, taken)),
        ("termination", termination(row.termination.as_ref())),
        ("follow-up", follow_up(&row.follow_up)),
    ]
}

/// Three times that stay three.
pub(super) fn three_times(row: &Row) -> [(&'static str, String); 3] {
    [
        ("client lost", maybe(&row.client_lost, client_lost)),
        (
            "last action began",
            maybe(&row.last_action_started_at, Wall::to_string),
        ),
        ("authority revoked", maybe(&row.revoked_at, Wall::to_string)),
    ]
}

/// What one call was and what came of it, without its time, state and id.
pub(super) fn call(call: &CallRow) -> String {
    let mut parts = vec![known(&call.target, acted)];
    let mut add = |label: &str, text: Option<String>| {
        parts.extend(text.map(|text| format!("{label} {text}")));
    };
    add(
        "key",
        call.key.as_ref().map(|key| known(key, |key| key.0.clone())),
    );
    add(
        "status",
        call.status
            .as_ref()
            .map(|status| known(status, u16::to_string)),
    );
    add(
        "remote id",
        call.remote_id.as_ref().map(|id| known(id, raw)),
    );
    add(
        "why:",
        call.why.as_ref().map(|why| known(why, Clone::clone)),
    );
    parts.join("; ")
}

/// One line about what is known of the revocation's effect.
pub(super) fn confirmation(view: &View) -> String {
    let Some(confirmation) = &view.confirmation else {
        return "not looked for yet".to_owned();
    };
    match (confirmation.seq, &confirmation.why) {
        (Some(seq), _) => format!(
            "seen: a call was refused after the revocation, record {seq}{}",
            match confirmation.by {
                Some(incident::RefusedBy::OwnAttempt) => ", by its own attempt",
                Some(incident::RefusedBy::Probe) => ", by our probe (the weaker proof)",
                None => "",
            }
        ),
        (None, Some(why)) => format!("NOT confirmed: {why}"),
        (None, None) => "NOT confirmed".to_owned(),
    }
}

/// What stands behind a step's name and time.
pub(super) fn anchored(step: &StepView) -> String {
    match &step.anchored {
        Some(anchor) if anchor.late => format!("anchored late at record {}", anchor.seq),
        Some(anchor) => format!("anchored at record {}", anchor.seq),
        None => "not anchored".to_owned(),
    }
}

/// Who did something, and how his presence was established.
pub(super) fn who(operator: &Operator) -> String {
    let presence = match operator.presence {
        Presence::OtherUid => "another user",
        Presence::Pin => "pin",
        Presence::Tty => "tty",
        Presence::None => "nobody proved present",
    };
    match operator.login_uid {
        Some(login) if login != operator.uid => {
            format!("uid {} (logged in as {login}; {presence})", operator.uid)
        }
        Some(_) | None => format!("uid {} ({presence})", operator.uid),
    }
}

/// How something that is to be done stands.
pub(super) fn done(item: &FollowUp) -> Option<String> {
    let done = item.done.as_ref()?;
    let (at, by, note) = (done.at, who(&done.by), done.note.raw());
    Some(format!("done {at} by {by}: {note}"))
}

pub(super) fn known<T>(value: &Known<T>, text: impl FnOnce(&T) -> String) -> String {
    match value {
        Known::Yes(value) => text(value),
        Known::Unknown { unknown } => format!("not known: {unknown}"),
    }
}

fn maybe<T>(value: &Known<Option<T>>, text: impl FnOnce(&T) -> String) -> String {
    known(value, |value| {
        value.as_ref().map_or_else(|| "none".to_owned(), text)
    })
}

fn raw(text: &Foreign) -> String {
    text.raw().to_owned()
}

fn named(process: &Named) -> String {
    let whose_word = if process.reported {
        "  (reported by its shim, not seen)"
    } else {
        ""
    };
    format!("{}  {}{whose_word}", process.pid, command(&process.command))
}

/// Returns a command line that a person can take in; JSON has the whole of it.
pub(crate) fn command(words: &[Foreign]) -> String {
    if words.is_empty() {
        return "(command line not readable)".to_owned();
    }
    let words: Vec<&str> = words.iter().map(Foreign::raw).collect();
    let whole = words.join(" ");
    match whole.char_indices().nth(LONGEST_COMMAND) {
        Some((end, _)) => {
            let more = whole.chars().count() - LONGEST_COMMAND;
            format!(
                "{} … ({more} characters more)",
                whole.get(..end).unwrap_or_default()
            )
        }
        None => whole,
    }
}

/// Four lines of a terminal: enough to know a server by, also behind a launcher.
const LONGEST_COMMAND: usize = 240;

fn place(place: &Place) -> String {
    let Place {
        ppid,
        pgid,
        sid,
        stat,
    } = place;
    format!("ppid {ppid}, pgid {pgid}, sid {sid}, state {stat}")
}

fn last_attempt(row: &Row) -> String {
    match (&row.last_attempt_at, &row.last_attempt_call) {
        (Known::Yes(Some(at)), Known::Yes(Some(call))) => format!("{at}  {call}"),
        _ => maybe(&row.last_attempt_at, Wall::to_string),
    }
}

fn acted(target: &Acted) -> String {
    let account = known(&target.account, raw);
    format!("{}  {}  {account}", target.class, target.operation.raw())
}

fn outcome(result: &Outcome) -> String {
    match &result.remote_id {
        Some(id) => format!("{}, remote id {}", result.outcome, known(id, raw)),
        None => format!("{}, no remote id", result.outcome),
    }
}

fn taken(taken: &Taken) -> String {
    format!("{}  by {}", taken.at, who(&taken.operator))
}

fn client_lost(lost: &ClientLost) -> String {
    match lost {
        ClientLost::At { at, source } => format!("{at}  ({})", basis(source)),
        ClientLost::Between {
            not_before,
            not_after,
            source,
        } => format!("between {not_before} and {not_after}  ({})", basis(source)),
    }
}

/// On which fact a loss rests: a closed transport is a hint, an ended client is a fact.
fn basis(source: &str) -> &str {
    match source {
        "transport_closed" => "its transport closed, which is a hint",
        "holder_exited" => "the client exited",
        "ancestor_exited" => "a process above the client exited",
        "client_stuck" => "the client does not run or does not read",
        "gone_when_looked_at" => "it was gone when we looked",
        other => other,
    }
}

fn termination(termination: Option<&Termination>) -> String {
    let Some(done) = termination else {
        return "nothing was done yet".to_owned();
    };
    let Some(signal) = &done.signal else {
        return match &done.why {
            Some(why) => format!("no signal was sent: {why}"),
            None => "no signal was sent: it had ended".to_owned(),
        };
    };
    let mut text = format!("{signal}: {}", done.result.replace('_', " "));
    if let Some(exit) = &done.exit {
        text.push_str(", ");
        text.push_str(&exit_text(exit));
    }
    if let Some(why) = &done.why {
        text.push_str("; ");
        text.push_str(why);
    }
    if let Some(forced) = &done.forced {
        text.push_str("; ");
        text.push_str(forced);
    }
    text
}

fn exit_text(exit: &Known<Value>) -> String {
    if let Known::Unknown { unknown } = exit {
        return format!("with which result is not known ({unknown})");
    }
    known(exit, |value| {
        if let Some(code) = value.get("code") {
            format!("exit code {code}")
        } else if let Some(signal) = value.get("signal") {
            format!("ended by signal {signal}")
        } else {
            value.to_string()
        }
    })
}

fn follow_up(items: &[FollowUp]) -> String {
    let open = items.iter().filter(|item| item.is_open()).count();
    match (items.len(), open) {
        (0, _) => "none".to_owned(),
        (_, 0) => "all done".to_owned(),
        (_, open) => format!("{open} open, see below"),
    }
}
